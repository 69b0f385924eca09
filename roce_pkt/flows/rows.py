"""RoCE frames reduced to what later passes need: a few numbers each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.wire.aeth import TYPES
from roce_pkt.wire.opcode import CNP, OPCODES, RESPONSES, TRANSPORT_BASES

ECN_CE = 3
NAK_TYPE = TYPES.index("nak")
NAK_SEQUENCE_ERROR = NAK_TYPE << 5
"""AETH syndrome of a PSN sequence error."""
UNTAGGED = 0xFF
"""`Rows.pcp` of a frame without a VLAN tag."""

CE, INTACT, ANSWERS, NAK, DATA, NOTIFIES = 1, 2, 4, 8, 16, 32
"""Bits of `Rows.flags`."""


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
IS_ODD = ~_opcodes({*OPCODES, CNP})
IS_DATAGRAM = _opcodes({value for value in range(256) if value & 0xE0 == TRANSPORT_BASES["UD"]})


@dataclass(slots=True)
class Rows:
    """The RoCE frames of one batch, reduced: one array element a frame.

    Args:
        number: 1-based frame number.
        time_ns: Nanoseconds since 1970.
        flow: Number in `Survey.flows`; for CNPs the number in `Survey.cnps`.
        octets: Ethernet header to ICRC.
        psn: Packet sequence number.
        opcode: BTH opcode.
        flags: Bits: `CE` carries a mark; `INTACT` the receiver took it: the ICRC is right or cannot be
            checked; `ANSWERS` it acknowledges, or begins to answer, the request of its PSN; `NAK` it
            reports a sequence error; `DATA` and `NOTIFIES` by its opcode.
        eth_src: Source MAC address.
        eth_dst: Destination MAC address.
        interface: Index of the capture's interface.
        dscp: Differentiated services code point.
        pcp: Priority of the outer VLAN tag, or `UNTAGGED`.
    """

    number: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    flow: NDArray[np.int32]
    octets: NDArray[np.int32]
    psn: NDArray[np.uint32]
    opcode: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    eth_src: NDArray[np.uint64]
    eth_dst: NDArray[np.uint64]
    interface: NDArray[np.uint16]
    dscp: NDArray[np.uint8]
    pcp: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which: Any) -> Rows:
        return Rows(*(getattr(self, name)[which] for name in NAMES))

    def having(self, bits: int) -> NDArray[np.bool_]:
        """Rows with all of these flags."""
        found: NDArray[np.bool_] = (self.flags & bits) == bits
        return found

    @property
    def cnp(self) -> NDArray[np.bool_]:
        """Frames that are notifications."""
        return self.having(NOTIFIES)

    @property
    def marked_data(self) -> NDArray[np.bool_]:
        """Frames that feed a notification point."""
        return self.having(CE | INTACT | DATA)

    @property
    def naks(self) -> NDArray[np.bool_]:
        """Frames that report a sequence error, and whose receiver took them."""
        return self.having(NAK | INTACT)

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """Several batches as one."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in NAMES))

    @classmethod
    def empty(cls, size: int) -> Rows:
        """Rows to be filled."""
        return cls(*(np.empty(size, dtype) for dtype in DTYPES))


NAMES = tuple(field.name for field in fields(Rows))
DTYPES = ("i8", "i8", "i4", "i4", "u4", "u1", "u1", "u8", "u8", "u2", "u1", "u1")
