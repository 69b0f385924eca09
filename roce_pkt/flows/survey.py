"""The first pass over a capture: which flows there are, how much they sent, and what else is in it.

Batches come in, a few numbers a frame come out (`Rows`), which is all that later passes need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import KIND_OTHER, KIND_ROCEV1, KIND_ROCEV2, KINDS, hint_text
from roce_pkt.capture.frames import Frames
from roce_pkt.flows import rows as reduced
from roce_pkt.flows.rows import (
    IS_ACK,
    IS_ANSWER,
    IS_DATA,
    IS_DATAGRAM,
    IS_ODD,
    NAK_SEQUENCE_ERROR,
    NAK_TYPE,
    UNTAGGED,
    Rows,
)
from roce_pkt.flows.size import LINK_OVERHEAD_BYTES, frame_octets
from roce_pkt.flows.table import KEY_COLUMNS, FlowTable, destination_of, source_of
from roce_pkt.wire import ib
from roce_pkt.wire.opcode import CNP

_READ = (
    *KEY_COLUMNS, "number", "time_ns", "kind", "status", "headers", "opcode", "psn", "sqpn", "syndrome",
    "ecn", "dscp", "icrc_ok", "eth_src", "eth_dst", "interface_id", "pcp", "ip_version", "ip_len", "paylen",
    "vlan_count", "wire_len",
)  # fmt: skip
MOST_SENDERS = 4096
"""Source queue pairs remembered of one datagram flow."""
LOADED_ALREADY = 50
"""By how much less work repays one more compiled piece once a large capture was read by such."""
_NEVER, _ALWAYS = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class Flow(NamedTuple):
    """What one flow amounts to.

    Args:
        number: In the flow table.
        frames: Frames, notifications excluded.
        octets: Octets as the capture counts them.
        data_frames: Frames that a sending queue pair is throttled in.
        ecn: Frames by ECN field: Not-ECT, ECT(1), ECT(0), CE.
        first_ns: Time of the first frame.
        last_ns: Time of the last frame.
        wire_rate_bps: Mean rate on the wire, preamble and gap included; None with fewer than two times.
    """

    number: int
    frames: int
    octets: int
    data_frames: int
    ecn: tuple[int, int, int, int]
    first_ns: int
    last_ns: int
    wire_rate_bps: float | None

    @property
    def ce(self) -> int:
        """Frames that carry CE."""
        return self.ecn[reduced.ECN_CE]


class Sums:
    """Running sums of every flow, one row each.

    Attributes:
        table: A column for each of `NAMES`.
        links: Destination MAC, source MAC and interface of each flow's first frame.
    """

    NAMES = (
        "frames", "data_frames", "octets", "wire_octets", "last_octets", "first_ns", "last_ns",
        "ecn0", "ecn1", "ecn2", "ecn3",
    )  # fmt: skip
    AT = {name: at for at, name in enumerate(NAMES)}  # noqa: RUF012 - a table that stays as it is

    def __init__(self) -> None:
        self.table = np.zeros((0, len(self.NAMES)), np.int64)
        self.links = np.zeros((0, 3), np.uint64)

    def grow(self, size: int) -> None:
        """Have at least `size` rows."""
        old = len(self.table)
        if old < size:
            more = np.zeros((max(size, 2 * old, 64) - old, len(self.NAMES)), np.int64)
            more[:, self.AT["first_ns"]], more[:, self.AT["last_ns"]] = _NEVER, _ALWAYS
            self.table = np.concatenate((self.table, more))
            self.links = np.concatenate((self.links, np.zeros((len(more), 3), np.uint64)))

    def column(self, name: str) -> NDArray[np.int64]:
        """One sum of every flow."""
        return self.table[:, self.AT[name]]


class Survey:
    """Everything the first pass learns.

    Attributes:
        flows: Directed flows, notifications excluded.
        cnps: Notifications by their own addresses and queue pair.
        contents: What kinds of frames there are; `other` by what they look like.
        senders: Source queue pairs of datagram flows.
        odd: Flows with opcodes that no table knows: a vendor's own, or nonsense.
        has_naks: Receivers refused something.
    """

    def __init__(self) -> None:
        self.flows, self.cnps = FlowTable(), FlowTable()
        self.contents: Counter[str] = Counter()
        self.senders: dict[int, set[int]] = {}
        self.odd: set[int] = set()
        self.frames = 0
        self.wrong_icrc, self.first_wrong_icrc = 0, 0
        self.backwards, self.first_backwards = 0, 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.sums, self._waste = Sums(), Sums()
        self._cnps = np.zeros(0, np.int64)
        self._latest_ns: int | None = None
        self.has_naks, self._compiled = False, False

    def add(self, frames: Frames) -> Rows:
        """Count a batch and reduce it."""
        if not len(frames):
            return Rows.empty(0)
        self._compiled = self._compiled or frames.kernel == "compiled"
        self._glance(frames)
        if frames.kernel == "compiled":
            rows = self._walk(frames, count=True)
        else:
            rows = self.rows(frames)
            self._tally(rows, frames)
        self.has_naks = self.has_naks or bool(rows.naks.any())
        odd = IS_ODD[rows.opcode]
        if odd.any():
            self.odd |= set(np.unique(rows.flow[odd]).tolist())
        return rows

    def rows(self, frames: Frames) -> Rows:
        """Reduce a batch without counting it: for a second pass."""
        if frames.kernel == "compiled":
            return self._walk(frames, count=False)
        roce = (frames.kind == KIND_ROCEV2) | (frames.kind == KIND_ROCEV1)
        which = np.flatnonzero(roce & frames.has(ib.BTH))
        frames = Frames({name: frames.column(name)[which] for name in _READ})
        opcode, cnp = frames.opcode, frames.opcode == CNP
        flow = np.empty(len(frames), np.int32)
        for table, rows in ((self.cnps, np.flatnonzero(cnp)), (self.flows, np.flatnonzero(~cnp))):
            if len(rows):
                flow[rows] = table.number(frames[rows])
        self._first_seen(frames, flow, ~cnp)
        refused = IS_ACK[opcode] & (frames.syndrome >> 5 & 3 == NAK_TYPE)
        marked = (frames.ecn == reduced.ECN_CE) & (frames.kind == KIND_ROCEV2)
        flags = (
            marked * reduced.CE
            | (frames.icrc_ok != 0) * reduced.INTACT
            | (IS_ANSWER[opcode] & ~refused) * reduced.ANSWERS
            | (refused & (frames.syndrome == NAK_SEQUENCE_ERROR)) * reduced.NAK
            | IS_DATA[opcode] * reduced.DATA
            | cnp * reduced.NOTIFIES
        )
        return Rows(
            number=frames.number,
            time_ns=frames.time_ns,
            flow=flow,
            octets=frame_octets(frames).astype(np.int32),
            psn=frames.psn,
            opcode=opcode,
            flags=flags.astype(np.uint8),
            eth_src=frames.eth_src,
            eth_dst=frames.eth_dst,
            interface=frames.interface_id,
            dscp=frames.dscp,
            pcp=np.where(frames.vlan_count > 0, frames.pcp, UNTAGGED).astype(np.uint8),
        )

    def _walk(self, frames: Frames, *, count: bool) -> Rows:
        """`rows`, and `_tally` where it counts, compiled."""
        from roce_pkt.flows import kernel_survey as kernel

        sums, made = (self.sums if count else self._waste), Rows.empty(len(frames))
        columns = tuple(frames.column(name) for name in kernel.INPUTS)
        out = tuple(getattr(made, name) for name in reduced.NAMES)
        counts, row = np.zeros(4, np.int64), 0
        while row < len(frames):
            flow_slots, flow_keys = self.flows.walked(kernel.index)
            cnp_slots, cnp_keys = self.cnps.walked(kernel.index)
            sums.grow(len(flow_keys))
            self.sums.grow(len(flow_keys))
            self._grow_cnps(len(cnp_keys))
            cnp_counts = self._cnps if count else np.zeros_like(self._cnps)
            tables = (flow_slots, flow_keys, cnp_slots, cnp_keys, cnp_counts, kernel.OPCODE_BITS)
            counts[kernel.FLOWS], counts[kernel.CNPS] = len(self.flows), len(self.cnps)
            row = kernel.walk(row, columns, out, tables, sums.table, self.sums.links, counts)
            self.flows.take(int(counts[kernel.FLOWS]))
            self.cnps.take(int(counts[kernel.CNPS]))
        rows = made[: int(counts[kernel.ROWS])]
        if count and counts[kernel.DATAGRAMS]:
            which = np.searchsorted(frames.number, rows.number)
            self._datagrams(
                frames.sqpn[which], rows.flow, np.flatnonzero(~rows.cnp & IS_DATAGRAM[rows.opcode])
            )
        return rows

    def _glance(self, frames: Frames) -> None:
        """Count what every frame has, RoCE or not."""
        times, kind = frames.time_ns, frames.kind
        latest = int(times[0]) if self._latest_ns is None else self._latest_ns
        if frames.kernel == "compiled":
            from roce_pkt.flows import kernel_survey as kernel

            kinds, found = np.zeros(len(KINDS), np.int64), np.zeros(kernel.GLANCED, np.int64)
            kernel.glance(times, kind, frames.icrc_ok, latest, kinds, found)
            low, high, backwards, first_backwards, wrong, first_wrong = found.tolist()
        else:
            kinds = np.bincount(kind, minlength=len(KINDS))
            before = np.flatnonzero(times < np.concatenate(([latest], times[:-1])))
            broken = np.flatnonzero(frames.icrc_ok == 0)
            low, high, backwards, wrong = int(times.min()), int(times.max()), len(before), len(broken)
            first_backwards, first_wrong = (int(rows[0]) if len(rows) else -1 for rows in (before, broken))
        self._latest_ns = int(times[-1])
        self.first_ns = low if self.first_ns is None else min(low, self.first_ns)
        self.last_ns = high if self.last_ns is None else max(high, self.last_ns)
        self.backwards, self.wrong_icrc = self.backwards + backwards, self.wrong_icrc + wrong
        if backwards and not self.first_backwards:
            self.first_backwards = int(frames.number[first_backwards])
        if wrong and not self.first_wrong_icrc:
            self.first_wrong_icrc = int(frames.number[first_wrong])
        self.frames += len(frames)
        for code, count in enumerate(kinds.tolist()):
            if count and code != KIND_OTHER:
                self.contents[KINDS[code]] += count
        if kinds[KIND_OTHER]:
            self._others(frames, np.flatnonzero(kind == KIND_OTHER))

    def _others(self, frames: Frames, rows: NDArray[np.intp]) -> None:
        """Count frames that are no RoCE by what they look like."""
        looks = frames.hint[rows].astype(np.int64) << 16 | frames.hint_value[rows]
        for look, count in zip(*(a.tolist() for a in np.unique(looks, return_counts=True)), strict=True):
            self.contents[hint_text(look >> 16, look & 0xFFFF) or "unreadable"] += count

    def _first_seen(self, frames: Frames, flow: NDArray[np.int32], data: NDArray[np.bool_]) -> None:
        """Facts that belong to a flow from its first frame on."""
        size = len(self.flows)
        self.sums.grow(size)
        rows = np.flatnonzero(data)[::-1]
        new = rows[self.sums.column("frames")[flow[rows]] == 0]
        facts = (frames.eth_dst[new], frames.eth_src[new], frames.interface_id[new].astype(np.uint64))
        self.sums.links[flow[new]] = np.stack(facts, axis=1)
        self._datagrams(frames.sqpn, flow, np.flatnonzero(data & IS_DATAGRAM[frames.opcode]))

    def _datagrams(self, sqpn: NDArray[Any], flow: NDArray[np.int32], which: NDArray[np.int64]) -> None:
        both = np.unique(flow[which].astype(np.int64) << 24 | sqpn[which].astype(np.int64))
        for pair in both.tolist():
            senders = self.senders.setdefault(pair >> 24, set())
            if len(senders) < MOST_SENDERS:
                senders.add(pair & 0xFFFFFF)

    def _grow_cnps(self, size: int) -> None:
        self._cnps = np.concatenate((self._cnps, np.zeros(max(0, size - len(self._cnps)), np.int64)))

    def _tally(self, rows: Rows, frames: Frames) -> None:
        cnp, size = rows.cnp, len(self.flows)
        self._grow_cnps(len(self.cnps))
        self._cnps[: len(self.cnps)] += np.bincount(rows.flow[cnp], minlength=len(self.cnps))
        kept = np.flatnonzero(~cnp)
        flow, times = rows.flow[kept], rows.time_ns[kept]
        wire_octets = rows.octets[kept] + LINK_OVERHEAD_BYTES
        row = np.searchsorted(frames.number, rows.number[kept])
        self.sums.grow(size)
        sums = self.sums.column

        def add(name: str, weights: NDArray[Any] | None) -> None:
            # sums of whole numbers below 2^53 are exact in bincount's floats
            sums(name)[:size] += np.bincount(flow, weights, size).astype(np.int64)

        add("frames", None)
        add("data_frames", IS_DATA[rows.opcode[kept]])
        add("octets", frames.wire_len[row])
        add("wire_octets", wire_octets)
        ecn, v2 = frames.ecn[row], frames.kind[row] == KIND_ROCEV2
        for value in range(4):
            add(f"ecn{value}", (ecn == value) & v2)
        np.minimum.at(sums("first_ns"), flow, times)
        np.maximum.at(sums("last_ns"), flow, times)
        sums("last_octets")[flow] = wire_octets

    def repays(self, work: float, many: float) -> bool:
        """Whether loading one more piece of compiled code pays.

        Args:
            work: How much there is to do.
            many: How much repays loading the compiler's library as well.
        """
        return work > (many / LOADED_ALREADY if self._compiled else many)

    @property
    def cnp_counts(self) -> NDArray[np.int64]:
        """Notifications of each kind in `cnps`."""
        return self._cnps[: len(self.cnps)]

    @property
    def ports(self) -> NDArray[np.uint64]:
        """First destination MAC address of each flow: the receiving port, on its own link."""
        return self.links[:, 0]

    @property
    def links(self) -> NDArray[np.uint64]:
        """Destination MAC, source MAC and interface of each flow's first frame."""
        return self.sums.links[: len(self.flows)]

    @property
    def roce(self) -> int:
        """RoCE frames of both versions."""
        return self.contents["rocev2"] + self.contents["rocev1"]

    @property
    def has_marks(self) -> bool:
        """True when a frame carries CE."""
        return bool(self.sums.column("ecn3").any())

    @property
    def has_pauses(self) -> bool:
        """True when there are pause frames."""
        return bool(self.contents["pfc"] or self.contents["pause"])

    @property
    def duration_ns(self) -> int:
        """From the earliest to the latest frame."""
        return 0 if self.first_ns is None or self.last_ns is None else self.last_ns - self.first_ns

    @property
    def roce_span_ns(self) -> tuple[int, int]:
        """Earliest and latest time of a flow's frame."""
        count = len(self.flows)
        if not count:
            return self.first_ns or 0, self.last_ns or 0
        return int(self.sums.column("first_ns")[:count].min()), int(self.sums.column("last_ns")[:count].max())

    def __iter__(self) -> Iterator[Flow]:
        """Every flow's sums."""
        at = Sums.AT
        for number, row in enumerate(self.sums.table[: len(self.flows)].tolist()):
            first_ns, last_ns = row[at["first_ns"]], row[at["last_ns"]]
            # the first frame starts the clock and the last one stops it: what lies between is all but one
            span_ns, between = last_ns - first_ns, row[at["wire_octets"]] - row[at["last_octets"]]
            rate = between * 8e9 / span_ns if span_ns > 0 else None
            ecn = tuple(row[at["ecn0"] : at["ecn0"] + 4])
            counted = (row[at["frames"]], row[at["octets"]], row[at["data_frames"]])
            yield Flow(number, *counted, ecn, first_ns, last_ns, rate)

    def sends_back(self, number: int) -> Sequence[int]:
        """Flows in the opposite direction between the same addresses."""
        key = self.flows.keys[number]
        return self.flows.between(destination_of(key), source_of(key))
