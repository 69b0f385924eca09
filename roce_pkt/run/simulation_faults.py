"""Faults that a simulation did: their octets where frames are recorded, and the truth about them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from roce_pkt.edit import act
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import name_of


@dataclass(slots=True)
class DoneFaults:
    """What rules did in a run, and in which recorded frames it is seen.

    Args:
        names: Names of the run.
    """

    names: Names
    _frames: dict[int, list[int]] = field(init=False, default_factory=dict)
    _details: dict[int, act.Detail] = field(init=False, default_factory=dict)

    def chain(self, hit: int) -> list[int]:
        """The faults done to one frame, first to last, by the last."""
        hits = self.names.built.arrays.hit
        found = []
        while hit:
            found.append(hit)
            hit = int(hits[hit]["before"])
        return found[::-1]

    def first_kind(self, hit: int) -> int:
        """What kind of frame it was before it was damaged."""
        return int(self.names.built.arrays.hit[hit]["kind"])

    def apply(self, hit: int, octets: bytes, frame: int) -> bytes:
        """A frame as the faults done to it left its octets.

        Args:
            hit: The last of them.
            octets: The frame as it was sent.
            frame: Its number in the output.
        """
        for one in self.chain(hit):
            self._frames.setdefault(one, []).append(frame)
            row = self.names.built.arrays.hit[one]
            fault = self.names.scenario.fault[int(row["rule"])]
            if fault.do == "truncate":
                octets = octets[: fault.bytes]
                self._details[one] = {"octets": len(octets)}
            elif fault.do == "corrupt" and fault.what == "field":
                dice = random.Random(f"{self.names.scenario.seed}/{int(row['rule'])}/{one}")
                changed = act.corrupted(octets, dissect(octets), fault, dice)
                if changed is not None:
                    octets, self._details[one] = changed
            elif fault.do == "corrupt":
                octets = act.flipped(octets, min(int(row["bit"]), 8 * len(octets) - 1))
        return octets

    def truth(self) -> list[dict[str, Any]]:
        """One document for each fault, in the order in which they were done."""
        names = self.names
        pairs, found = names.built.pairs, []
        for one in range(1, int(names.built.w["hits"]) + 1):
            row = names.built.arrays.hit[one]
            fault = names.scenario.fault[int(row["rule"])]
            half = int(row["half"])
            flow = names.flow(int(pairs.half["peer"][half]))
            cnp = name_of(int(row["opcode"])) == "CNP"
            psn = 0 if cnp else int(pairs.start_psn[half] + row["psn"]) & 0xFFFFFF
            frames = self._frames.get(one, [])
            document: dict[str, Any] = {
                "do": fault.do,
                "rule": int(row["rule"]) + 1,
                "time_ns": int(row["time_ps"]) // PS_PER_NS,
                "output_frame": frames[0] if frames else None,
                "output_frames": frames,
                "src": flow.src,
                "dst": flow.dst,
                "dqpn": flow.dqpn,
                "opcode": name_of(int(row["opcode"])),
                "psn": psn,
            }
            if int(row["bit"]) >= 0:
                document["bit"] = int(row["bit"])
            found.append(document | self._details.get(one, {}))
        return found
