"""What came of it: pauses summed up, and what notifications looked like."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.flows.rows import UNTAGGED, Rows
from roce_pkt.run.obedience import Obedience, response_ps
from roce_pkt.run.pauses import Line, Pauses
from roce_pkt.run.storms import Storm, storms
from roce_pkt.units import PS_PER_NS

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pause:
    """One direction and class.

    Args:
        direction: MAC address that sent the pauses, with its interface if there are several; its link
            partner is what stops.
        priority: Class 0..7, or None for an 802.3x PAUSE of the whole port.
        xoff: Frames that paused.
        xon: Frames that resumed.
        paused_ns: Time paused within the capture, overlaps counted once; None without a link speed.
        share: The same as a part of the capture.
        longest_ns: The longest time at a stretch.
        violations: Frames sent inside a pause after the response allowed; None: not known which to look at.
        first_violations: Numbers of the first of them.
        speed_bps: Speed that a quantum is measured by.
        response_ns: Response allowed.
        storms: What a switch's watchdog would have called a storm.
        line: Where each pause started and stopped.
    """

    direction: str
    priority: int | None
    xoff: int
    xon: int
    paused_ns: int | None
    share: float | None
    longest_ns: int | None
    violations: int | None
    first_violations: list[int]
    speed_bps: float | None
    response_ns: float | None
    storms: list[Storm]
    line: Line

    @property
    def name(self) -> str:
        """Direction and class for people."""
        return f"{self.direction} {'port' if self.priority is None else f'class {self.priority}'}"

    def as_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "direction": self.direction,
            "priority": self.priority,
            "xoff": self.xoff,
            "xon": self.xon,
            "paused_ns": self.paused_ns,
            "violations": self.violations,
            "violation_frames": self.first_violations,
            "share": self.share,
            "longest_ns": self.longest_ns,
            "speed_bps": self.speed_bps,
            "response_ns": self.response_ns,
            "storms": [
                {
                    "detected_ns": storm.at_ps // PS_PER_NS,
                    "restored_ns": None if storm.over_ps is None else storm.over_ps // PS_PER_NS,
                }
                for storm in self.storms
            ],
        }


def pause_sums(
    machine: Pauses, obedience: Obedience, moved: dict[int, list[Ints]], setup: Any, end_ps: int
) -> list[Pause]:
    """All directions and classes; a pause still running is counted to the capture's end.

    Args:
        machine: The pauses.
        obedience: Who was told to stop.
        moved: Times of frames inside pauses, by the line's number.
        setup: What the machines ran with.
        end_ps: The capture's end.
    """
    out = []
    for source, line in sorted(machine.lines.items()):
        speed = machine.speed_bps(source.interface)
        starts, stops = line.spans(end_ps)
        lasted = np.minimum(stops, end_ps) - np.minimum(starts, end_ps)
        total = int(lasted.sum())
        allowed = None if speed is None else response_ps(speed, setup.pfc.response_ps)
        found = [] if speed is None else storms(
            starts, stops, line.frame_times, np.concatenate(moved.get(line.number, [np.zeros(0, np.int64)])),
            end_ps, setup.watchdog,
        )  # fmt: skip
        unseen = None if speed is None or obedience.stopped(source.interface, source.mac) is None else 0
        out.append(
            Pause(
                direction=line.direction,
                priority=line.priority,
                xoff=line.xoff,
                xon=line.xon,
                paused_ns=None if speed is None else total // PS_PER_NS,
                share=None if speed is None or not end_ps else total / end_ps,
                longest_ns=None if speed is None else int(lasted.max(initial=0)) // PS_PER_NS,
                violations=unseen if line.violations is None else line.violations,
                first_violations=line.first_violations,
                speed_bps=speed,
                response_ns=None if allowed is None else allowed / PS_PER_NS,
                storms=found,
                line=line,
            )
        )
    return out


@dataclass(slots=True)
class NotificationChecks:
    """How notifications looked.

    Args:
        p: Twin of `checks.NOTIFICATION`: what they should look like.
        dscp: Wrong DSCPs with how many carried each.
        priority: Wrong priorities of VLAN tags.
        first: First frame with each, as (`dscp` or `priority`, value).
    """

    p: Any
    dscp: Counter[int] = field(default_factory=Counter)
    priority: Counter[int] = field(default_factory=Counter)
    first: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, rows: Rows) -> None:
        """Look at notifications."""
        tagged = rows.pcp != UNTAGGED
        for name, values, wrong, counts in (
            ("dscp", rows.dscp, rows.dscp != self.p.dscp, self.dscp),
            ("priority", rows.pcp, tagged & (rows.pcp != self.p.priority), self.priority),
        ):
            found, at, many = np.unique(values[wrong], return_index=True, return_counts=True)
            frames = rows.number[wrong][at]
            for value, frame, count in zip(found.tolist(), frames.tolist(), many.tolist(), strict=True):
                counts[value] += count
                self.first.setdefault((name, value), frame)
