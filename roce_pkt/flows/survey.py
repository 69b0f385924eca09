"""The first pass over a capture: which flows there are, how much they sent, and what else is in it.

Batches come in, a few numbers a frame come out (`Rows`), which is all that later passes need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import KIND_OTHER, KIND_ROCEV1, KIND_ROCEV2, KINDS, hint_text
from roce_pkt.capture.frames import Frames
from roce_pkt.flows.size import frame_octets
from roce_pkt.flows.table import KEY_COLUMNS, FlowTable, Ids, destination_of, source_of
from roce_pkt.wire import ib
from roce_pkt.wire.aeth import TYPES
from roce_pkt.wire.opcode import CNP, OPCODES, RESPONSES, TRANSPORT_BASES

CE = 3
_READ = (
    *KEY_COLUMNS, "number", "time_ns", "kind", "status", "headers", "opcode", "psn", "sqpn", "syndrome",
    "ecn", "icrc_ok", "eth_dst", "ip_version", "ip_len", "paylen", "vlan_count", "wire_len",
)  # fmt: skip
MOST_SENDERS = 4096
"""Source queue pairs remembered of one datagram flow."""


def _opcodes(chosen: set[int]) -> NDArray[np.bool_]:
    table = np.zeros(256, bool)
    table[sorted(chosen)] = True
    return table


_ACKS = {op.value for op in OPCODES.values() if op.operation in ("ack", "atomic_ack")}
IS_DATA = ~_opcodes(_ACKS | {CNP})
"""Opcodes a sending queue pair is throttled in; unknown ones count as data."""
IS_ACK = _opcodes({op.value for op in OPCODES.values() if op.operation == "ack"})
IS_REQUEST = _opcodes({op.value for op in OPCODES.values() if op.request and op.transport in ("RC", "XRC")})
# spec: IBTA 9.7.5.1.1: an acknowledge carries the PSN of the request it answers; so does the first of
# the packets that answer a READ
IS_ANSWER = _opcodes({op.value for op in OPCODES.values() if op.operation in RESPONSES and op.starts_message})
_NAK = TYPES.index("nak")
IS_DATAGRAM = _opcodes({value for value in range(256) if value & 0xE0 == TRANSPORT_BASES["UD"]})


@dataclass(slots=True)
class Rows:
    """The RoCE frames of one batch, reduced: one array element a frame.

    Args:
        number: 1-based frame number.
        time_ns: Nanoseconds since 1970.
        flow: Number in `Survey.flows`; for CNPs the number in `Survey.cnps`.
        octets: Ethernet header to ICRC.
        opcode: BTH opcode.
        psn: Packet sequence number.
        ce: Carries CE.
        answers: Acknowledges, or begins to answer, the request of its PSN.
        intact: The ICRC is right or cannot be checked: the receiver took the frame.
    """

    number: Ids
    time_ns: Ids
    flow: Ids
    octets: Ids
    opcode: NDArray[np.uint8]
    psn: Ids
    ce: NDArray[np.bool_]
    answers: NDArray[np.bool_]
    intact: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.number)

    @property
    def cnp(self) -> NDArray[np.bool_]:
        """Frames that are notifications."""
        return self.opcode == CNP

    @property
    def marked_data(self) -> NDArray[np.bool_]:
        """Frames that feed a notification point."""
        return self.ce & self.intact & IS_DATA[self.opcode]


class Flow(NamedTuple):
    """What one flow amounts to.

    Args:
        number: In the flow table.
        frames: Frames, notifications excluded.
        octets: Octets as the capture counts them.
        data_frames: Frames that a sending queue pair is throttled in.
        ce: Frames that carry CE.
        first_ns: Time of the first frame.
        last_ns: Time of the last frame.
        wire_rate_bps: Mean rate on the wire, preamble and gap included; None with fewer than two times.
    """

    number: int
    frames: int
    octets: int
    data_frames: int
    ce: int
    first_ns: int
    last_ns: int
    wire_rate_bps: float | None


class Survey:
    """Everything the first pass learns.

    Args:
        link_overhead_bytes: What a frame takes on the wire besides `Rows.octets`.

    Attributes:
        flows: Directed flows, notifications excluded.
        cnps: Notifications by their own addresses and queue pair.
        contents: What kinds of frames there are; `other` by what they look like.
        senders: Source queue pairs of datagram flows.
        ports: First destination MAC address of each flow: the receiving port, on its own link.
    """

    def __init__(self, link_overhead_bytes: int) -> None:
        self.flows, self.cnps = FlowTable(), FlowTable()
        self.contents: Counter[str] = Counter()
        self.senders: dict[int, set[int]] = {}
        self.ports: list[int] = []
        self.frames = 0
        self.wrong_icrc, self.first_wrong_icrc = 0, 0
        self.backwards, self.first_backwards = 0, 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.cnp_counts: Counter[int] = Counter()
        self._overhead = link_overhead_bytes
        self._latest_ns: int | None = None
        self._sums: dict[str, NDArray[np.int64]] = {}
        self._grow(1)

    def add(self, frames: Frames) -> Rows:
        """Count a batch and reduce it."""
        self._times(frames)
        self._contents(frames)
        rows = self.rows(frames)
        self._tally(rows, frames)
        return rows

    def rows(self, frames: Frames) -> Rows:
        """Reduce a batch without counting it: for a second pass."""
        roce = (frames.kind == KIND_ROCEV2) | (frames.kind == KIND_ROCEV1)
        which = np.flatnonzero(roce & frames.has(ib.BTH))
        frames = Frames({name: frames.column(name)[which] for name in _READ})
        opcode = frames.opcode
        flow = np.empty(len(frames), np.int64)
        cnp = opcode == CNP
        for table, rows in ((self.cnps, np.flatnonzero(cnp)), (self.flows, np.flatnonzero(~cnp))):
            if len(rows):
                flow[rows] = table.number(frames[rows])
        self._first_seen(frames, flow, ~cnp)
        refused = IS_ACK[opcode] & (frames.syndrome >> 5 & 3 == _NAK)
        return Rows(
            number=frames.number,
            time_ns=frames.time_ns,
            flow=flow,
            octets=frame_octets(frames),
            opcode=opcode,
            psn=frames.psn.astype(np.int64),
            ce=(frames.ecn == CE) & (frames.kind == KIND_ROCEV2),
            answers=IS_ANSWER[opcode] & ~refused,
            intact=frames.icrc_ok != 0,
        )

    def _times(self, frames: Frames) -> None:
        times = frames.time_ns
        if not len(times):
            return
        previous = times[0] if self._latest_ns is None else self._latest_ns
        before = np.flatnonzero(times < np.concatenate(([previous], times[:-1])))
        if len(before):
            self.first_backwards = self.first_backwards or int(frames.number[before[0]])
            self.backwards += len(before)
        self._latest_ns = int(times[-1])
        low, high = int(times.min()), int(times.max())
        self.first_ns = low if self.first_ns is None else min(low, self.first_ns)
        self.last_ns = high if self.last_ns is None else max(high, self.last_ns)

    def _contents(self, frames: Frames) -> None:
        self.frames += len(frames)
        for code, count in enumerate(np.bincount(frames.kind, minlength=len(KINDS)).tolist()):
            if count and code != KIND_OTHER:
                self.contents[KINDS[code]] += count
        other = frames.kind == KIND_OTHER
        looks = frames.hint[other].astype(np.int64) << 16 | frames.hint_value[other]
        for look, count in zip(*(a.tolist() for a in np.unique(looks, return_counts=True)), strict=True):
            self.contents[hint_text(look >> 16, look & 0xFFFF) or "unreadable"] += count
        wrong = np.flatnonzero(frames.icrc_ok == 0)
        if len(wrong):
            self.first_wrong_icrc = self.first_wrong_icrc or int(frames.number[wrong[0]])
            self.wrong_icrc += len(wrong)

    def _first_seen(self, frames: Frames, flow: Ids, data: NDArray[np.bool_]) -> None:
        """Facts that belong to a flow from its first frame on."""
        if len(self.flows) > len(self.ports):
            first = np.zeros(len(self.flows), np.int64)
            rows = np.flatnonzero(data)[::-1]
            first[flow[rows]] = rows
            self.ports += frames.eth_dst[first[len(self.ports) :]].tolist()
        datagrams = np.flatnonzero(data & IS_DATAGRAM[frames.opcode])
        if len(datagrams):
            both = np.unique(flow[datagrams] << 24 | frames.sqpn[datagrams].astype(np.int64))
            for pair in both.tolist():
                senders = self.senders.setdefault(pair >> 24, set())
                if len(senders) < MOST_SENDERS:
                    senders.add(pair & 0xFFFFFF)

    def _tally(self, rows: Rows, frames: Frames) -> None:
        cnp = rows.cnp
        numbers, counts = np.unique(rows.flow[cnp], return_counts=True)
        self.cnp_counts.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
        kept = np.flatnonzero(~cnp)
        flow, times = rows.flow[kept], rows.time_ns[kept]
        wire_octets = rows.octets[kept] + self._overhead
        wire_len = frames.wire_len[np.searchsorted(frames.number, rows.number[kept])]
        size = len(self.flows)
        self._grow(size)

        def add(name: str, weights: NDArray[Any] | None) -> None:
            # sums of whole numbers below 2^53 are exact in bincount's floats
            self._sums[name][:size] += np.bincount(flow, weights, size).astype(np.int64)

        add("frames", None)
        add("data_frames", IS_DATA[rows.opcode[kept]])
        add("ce", rows.ce[kept])
        add("octets", wire_len)
        add("wire_octets", wire_octets)
        np.minimum.at(self._sums["first_ns"], *_extreme(flow, times, -1, size))
        np.maximum.at(self._sums["last_ns"], *_extreme(flow, times, 1, size))
        self._sums["last_octets"][flow] = wire_octets

    def _grow(self, size: int) -> None:
        blanks = {"first_ns": np.iinfo(np.int64).max, "last_ns": np.iinfo(np.int64).min}
        names = ("frames", "data_frames", "ce", "octets", "wire_octets", "last_octets", "first_ns", "last_ns")
        for name in names:
            old = self._sums.get(name, np.empty(0, np.int64))
            if len(old) < size:
                new = np.full(max(size, 2 * len(old), 64), blanks.get(name, 0), np.int64)
                new[: len(old)] = old
                self._sums[name] = new

    @property
    def roce(self) -> int:
        """RoCE frames of both versions."""
        return self.contents["rocev2"] + self.contents["rocev1"]

    @property
    def has_marks(self) -> bool:
        """True when a frame carries CE."""
        return bool(self._sums["ce"].any())

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
        return int(self._sums["first_ns"][:count].min()), int(self._sums["last_ns"][:count].max())

    def __iter__(self) -> Iterator[Flow]:
        """Every flow's sums."""
        size = len(self.flows)
        names = ("frames", "octets", "data_frames", "ce", "first_ns", "last_ns", "wire_octets", "last_octets")
        columns = (self._sums[name][:size].tolist() for name in names)
        for number, row in enumerate(zip(*columns, strict=True)):
            frames, octets, data_frames, ce, first_ns, last_ns, wire_octets, last_octets = row
            # the first frame starts the clock and the last one stops it: what lies between is all but one
            span_ns, between = last_ns - first_ns, wire_octets - last_octets
            rate = between * 8e9 / span_ns if span_ns > 0 else None
            yield Flow(number, frames, octets, data_frames, ce, first_ns, last_ns, rate)

    def sends_back(self, number: int) -> Sequence[int]:
        """Flows in the opposite direction between the same addresses."""
        key = self.flows.keys[number]
        return self.flows.between(destination_of(key), source_of(key))


def _extreme(flow: Ids, times: Ids, step: int, size: int) -> tuple[Ids, Ids]:
    """The flows of a batch with the first (`step` -1) or last (1) row of each, if time runs forward."""
    if len(times) < 2 or (times[1:] < times[:-1]).any():
        return flow, times
    row = np.full(size, -1, np.int64)
    row[flow[::step]] = np.arange(len(flow))[::step]
    present = np.flatnonzero(row >= 0)
    return present, times[row[present]]
