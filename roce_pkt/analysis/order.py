"""Rules between frames: the packets of a message come in order, and all but the last are of one size.

Only neighbours in PSN are compared, so loss, retransmission and reordering raise nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt import psn as serial
from roce_pkt.analysis.rules import FIRST_OR_MIDDLE, KNOWN, UD, by_opcode, whole
from roce_pkt.capture.frames import Frames
from roce_pkt.errors import Finding
from roce_pkt.wire.opcode import CNP, OPCODES, name_of

_OPERATIONS = sorted({op.operation for op in OPCODES.values()})
STARTS = by_opcode(lambda v: v in OPCODES and OPCODES[v].starts_message)
ENDS = by_opcode(lambda v: v in OPCODES and OPCODES[v].ends_message)
OPERATION = by_opcode(lambda v: _OPERATIONS.index(OPCODES[v].operation) if v in OPCODES else 255)
REQUEST = by_opcode(lambda v: v in OPCODES and OPCODES[v].request)

KEY = ("src_hi", "src_lo", "dst_hi", "dst_lo", "dqpn")
MAX_FLOWS = 200_000
"""Flows remembered between batches; a hostile capture can name millions."""


@dataclass(slots=True)
class OrderRules:
    """Carries the last packet of each flow from batch to batch."""

    last: dict[tuple[int, ...], tuple[int, int, int]] = field(default_factory=dict)

    def judge(self, f: Frames) -> Iterator[Finding]:
        """Findings of one batch."""
        use = whole(f) & (KNOWN[f.opcode] != 0) & (UD[f.opcode] == 0) & (f.opcode != CNP) & (f.icrc_ok != 0)
        rows = np.flatnonzero(use)
        if not len(rows):
            return
        columns = [f.column(name)[rows].astype(np.uint64) for name in KEY] + [REQUEST[f.opcode[rows]]]
        # frames of one flow side by side, in capture order within it
        order = np.lexsort((np.arange(len(rows)), *reversed(columns)))
        sorted_rows = rows[order]
        keys = [column[order] for column in columns]
        same = np.ones(len(order), bool)
        same[0] = False
        for key in keys:
            same[1:] &= key[1:] == key[:-1]
        yield from self._seams(f, sorted_rows, keys, same)
        yield from self._pairs(f, sorted_rows[:-1][same[1:]], sorted_rows[1:][same[1:]])

    def _seams(
        self, f: Frames, rows: NDArray[np.intp], keys: list[NDArray[Any]], same: NDArray[np.bool_]
    ) -> Iterator[Finding]:
        """Compare each flow's first packet with the last of an earlier batch, and remember its last."""
        starts = np.flatnonzero(~same)
        ends = np.append(starts[1:], len(rows)) - 1
        for first, last in zip(starts, ends, strict=True):
            key = tuple(int(k[first]) for k in keys)
            before = self.last.get(key)
            if before is not None:
                yield from _compare(f, int(rows[first]), *before)
            if key in self.last or len(self.last) < MAX_FLOWS:
                row = rows[last]
                self.last[key] = (int(f.opcode[row]), int(f.psn[row]), int(f.payload_len[row]))

    def _pairs(self, f: Frames, before: NDArray[np.intp], after: NDArray[np.intp]) -> Iterator[Finding]:
        next_psn = (f.psn[before].astype(np.int64) + 1) & serial.MASK
        neighbours = next_psn == f.psn[after]
        one, two = f.opcode[before], f.opcode[after]
        wrong = (ENDS[one] != STARTS[two]) | ((ENDS[one] == 0) & (OPERATION[one] != OPERATION[two]))
        sizes = (FIRST_OR_MIDDLE[one] != 0) & (
            ((FIRST_OR_MIDDLE[two] != 0) & (f.payload_len[before] != f.payload_len[after]))
            | (f.payload_len[after] > f.payload_len[before])
        )
        for i in np.flatnonzero(neighbours & (wrong | (sizes & (STARTS[two] == 0)))):
            row = int(before[i])
            state = int(f.opcode[row]), int(f.psn[row]), int(f.payload_len[row])
            yield from _compare(f, int(after[i]), *state)


def _compare(f: Frames, row: int, opcode: int, psn: int, payload_len: int) -> Iterator[Finding]:
    """Judge one packet by the one before it in PSN."""
    now = int(f.opcode[row])
    if int(f.psn[row]) != serial.add(psn, 1):
        return
    frame = int(f.number[row])
    pair = f"{name_of(opcode)} (PSN {psn}) is followed by {name_of(now)}"
    if ENDS[opcode] != STARTS[now]:
        why = "a new message starts before the last one ended" if STARTS[now] else "no message is open"
        yield Finding("opcode.order", "error", f"{pair}: {why}", frame)
    elif not ENDS[opcode] and OPERATION[opcode] != OPERATION[now]:
        yield Finding("opcode.order", "error", f"{pair}: the message changes its kind", frame)
    elif not ENDS[opcode]:
        size = int(f.payload_len[row])
        if size > payload_len or (FIRST_OR_MIDDLE[now] and size != payload_len):
            text = f"{pair}: {size} octets after {payload_len}; one message has one path MTU"
            yield Finding("payload.mtu_changes", "error", text, frame)
