"""Messages of a capture: who asked for how much, when it began and when its last packet passed.

Only the packets that begin and end messages are looked at: a WRITE and a READ say their length in
the RETH, a SEND's follows from its first and last packet, an ATOMIC works on 8 octets. A packet sent
again counts once, with its first beginning and its last end. A datagram is a message of its own and
never sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.frames import Frames
from roce_pkt.flows.survey import Survey
from roce_pkt.psn import HALF, MASK
from roce_pkt.wire.ib import GSI_QKEY, GSI_QPN
from roce_pkt.wire.opcode import BY_NAME, OPCODES

Ints = NDArray[np.int64]
BEGINS, ENDS, ASKS, ALONE = 1, 2, 4, 8
VERBS = ("send", "write", "read_request", "read_response", "atomic", "atomic_ack")
TRANSPORTS = ("RC", "UC", "XRC", "UD")
ATOMIC_BYTES = 8
CONNECTED = {"XRC": "rc"}
"""Services that scenarios know by another's name."""


def _bits() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for op in OPCODES.values():
        if op.operation in VERBS and op.transport in TRANSPORTS:
            table[op.value] = (
                BEGINS * op.starts_message
                | ENDS * op.ends_message
                | ASKS * (op.operation in ("read_request", "atomic"))
                | ALONE * (op.transport == "UD")
            )
    return table


BITS = _bits()
_VERB = np.array([VERBS.index(OPCODES[o].operation) if o in OPCODES and OPCODES[o].operation in VERBS else -1
                  for o in range(256)])  # fmt: skip
SEND, WRITE, ASK, ANSWER, ATOMIC, ATOMIC_ANSWER = range(len(VERBS))
_SERVICE = {op.value: CONNECTED.get(op.transport, op.transport.lower()) for op in OPCODES.values()}
_ATOMICS = {
    BY_NAME["RC_COMPARE_SWAP"].value & 0x1F: "cmp_swp",
    BY_NAME["RC_FETCH_ADD"].value & 0x1F: "fetch_add",
}
"""Verbs of ATOMICs, by the part of their opcodes that all services share."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Args:
        flow: Number of the flow its requests travel in.
        verb: `send`, `write`, `read`, `cmp_swp` or `fetch_add`.
        octets: Its length.
        first_ns: When its first packet passed.
        last_ns: When its last packet passed, of a READ the last of the answer; None: not in the capture.
        packets: Packets that carried it; 1 where that is not known.
        transport: `rc`, `uc` or `ud`; XRC is driven as `rc`.
    """

    flow: int
    verb: str
    octets: int
    first_ns: int
    last_ns: int | None
    packets: int = 1
    transport: str = "rc"

    @property
    def gap_ns(self) -> float:
        """Mean time between its packets: how much it was throttled."""
        return 0.0 if self.last_ns is None else (self.last_ns - self.first_ns) / max(self.packets - 1, 1)


class Messages:
    """Collects the packets that begin and end messages."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []

    def add(self, frames: Frames, survey: Survey) -> None:
        """Look at a batch; its flows are numbered by `survey`."""
        rows = survey.rows(frames)
        bits = BITS[rows.opcode]
        which = np.flatnonzero(bits != 0)
        rows = rows[which]
        at = np.searchsorted(frames.number, rows.number)
        # management is no work request
        asked = (bits[which] & ALONE == 0) | ((frames.dqpn[at] > GSI_QPN) & (frames.qkey[at] != GSI_QKEY))
        rows, at = rows[np.flatnonzero(asked)], at[asked]
        columns = (
            rows.flow, rows.time_ns, rows.psn, rows.opcode, frames.dmalen[at], frames.payload_len[at]
        )  # fmt: skip
        self._parts.append(np.stack([column.astype(np.int64) for column in columns], axis=1))

    def found(self, partners: dict[int, int]) -> list[Message]:
        """All messages, by flow and beginning.

        Args:
            partners: Each flow's other half: where the answers to its READs travel.
        """
        table = np.concatenate(self._parts) if self._parts else np.zeros((0, 6), np.int64)
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        by_flow = {int(rows[0, 0]): rows for rows in np.split(table, _edges(table[:, 0])) if len(rows)}
        out = []
        for flow, rows in by_flow.items():
            alone = BITS[rows[:, 3]] & ALONE != 0
            out += [Message(flow, "send", row[5], row[1], row[1], 1, "ud") for row in rows[alone].tolist()]
            connected = rows[~alone]
            out += _one_way(flow, connected)
            out += _reads(flow, connected, by_flow.get(partners.get(flow, -1)))
        return sorted(out, key=lambda message: (message.flow, message.first_ns))


def _edges(flow: Ints) -> Ints:
    return np.flatnonzero(np.diff(flow)) + 1


def _unwrapped(psn: Ints) -> Ints:
    """PSNs without wrapping, each taken to be near the one before."""
    if not len(psn):
        return psn
    steps = (np.diff(psn) + HALF & MASK) - HALF
    return psn[0] + np.concatenate(([0], np.cumsum(steps)))


def _one_way(flow: int, rows: Ints) -> list[Message]:
    """SENDs and WRITEs: each beginning with the nearest end at or after it."""
    verb = _VERB[rows[:, 3]]
    rows = rows[(verb == SEND) | (verb == WRITE)]
    psn, bits = _unwrapped(rows[:, 2]), BITS[rows[:, 3]]
    begins: dict[int, Any] = {}
    ends: dict[int, Any] = {}
    for place, row, bit in zip(psn.tolist(), rows.tolist(), bits.tolist(), strict=True):
        if bit & BEGINS:
            begins.setdefault(place, row)
        if bit & ENDS:
            ends[place] = row
    out, ending = [], np.array(sorted(ends), np.int64)
    starting = np.array(sorted(begins), np.int64)
    for n, place in enumerate(starting.tolist()):
        row, at = begins[place], int(np.searchsorted(ending, place))
        limit = starting[n + 1] if n + 1 < len(starting) else np.iinfo(np.int64).max
        end = ends[int(ending[at])] if at < len(ending) and ending[at] < limit else None
        verb_of = int(_VERB[row[3]])
        octets = row[4]
        packets = 1 if end is None else int(ending[at]) - place + 1
        if verb_of == SEND:
            octets = row[5] * max(packets - 1, 0) + (row[5] if end is None else end[5])
        last_ns, service = None if end is None else end[1], _SERVICE[row[3]]
        out.append(Message(flow, VERBS[verb_of], octets, row[1], last_ns, packets, service))
    return out


def _reads(flow: int, rows: Ints, answers: Ints | None) -> list[Message]:
    """READs and ATOMICs: each request with the last packet of its answer, which bears its PSNs."""
    asks = rows[BITS[rows[:, 3]] & ASKS != 0]
    if not len(asks):
        return []
    ends: Ints = np.zeros((0, 6), np.int64)
    if answers is not None:
        brings = (_VERB[answers[:, 3]] == ANSWER) | (_VERB[answers[:, 3]] == ATOMIC_ANSWER)
        ends = answers[brings & (BITS[answers[:, 3]] & ENDS != 0)]
    both = np.concatenate((asks, ends))
    both = both[np.argsort(both[:, 1], kind="stable")]
    psn = _unwrapped(both[:, 2])
    is_ask = BITS[both[:, 3]] & ASKS != 0
    last = dict(zip(psn[~is_ask].tolist(), both[~is_ask, 1].tolist(), strict=True))
    ending, out, begun = np.array(sorted(last), np.int64), [], set[int]()
    for place, row in zip(psn[is_ask].tolist(), both[is_ask].tolist(), strict=True):
        if place in begun:
            continue
        begun.add(place)
        if _VERB[row[3]] == ATOMIC:
            verb = _ATOMICS[row[3] & 0x1F]
            out.append(Message(flow, verb, ATOMIC_BYTES, row[1], last.get(place)))
            continue
        at = int(np.searchsorted(ending, place))
        end = int(ending[at]) if at < len(ending) else None
        packets = 1 if end is None else end - place + 1
        out.append(Message(flow, "read", row[4], row[1], None if end is None else last[end], packets))
    return out
