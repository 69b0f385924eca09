"""The opcode table: one row for each opcode, made by rule.

An opcode is a transport (bits 7-5) and an operation (bits 4-0). The operation decides the headers
after the BTH; the transport adds its own in front: RDETH and DETH for RD, XRCETH for XRC requests,
DETH for UD.

Sources: IBTA Vol 1 table 38 as named by the Linux kernel (ib_pack.h, rxe_opcode.c); XRC names as in
Wireshark's table; FLUSH and ATOMIC WRITE from IBTA 1.5 annex A19.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from roce_pkt.errors import InputError, nearest
from roce_pkt.wire import ib
from roce_pkt.wire.header import Header

Transport = Literal["RC", "UC", "RD", "UD", "CNP", "XRC"]
TRANSPORT_BASES: dict[Transport, int] = {
    "RC": 0x00,
    "UC": 0x20,
    "RD": 0x40,
    "UD": 0x60,
    "CNP": 0x80,
    "XRC": 0xA0,
}

Position = Literal["first", "middle", "last", "only"]


@dataclass(frozen=True, slots=True)
class Opcode:
    """What one opcode means.

    Args:
        value: The octet on the wire.
        name: The kernel's and Scapy's name.
        transport: Service the queue pair offers.
        operation: `send`, `write`, `read_request`, `read_response`, `ack`, `atomic_ack`, `atomic`,
            `resync`, `flush`, `atomic_write` or `cnp`.
        position: Place in its message.
        headers: Headers that follow the BTH, in order.
        payload: True when payload may follow those headers.
        request: True for a requester's packet, False for a responder's.
    """

    value: int
    name: str
    transport: Transport
    operation: str
    position: Position
    headers: tuple[Header, ...]
    payload: bool
    request: bool

    @property
    def starts_message(self) -> bool:
        """First or Only."""
        return self.position in ("first", "only")

    @property
    def ends_message(self) -> bool:
        """Last or Only."""
        return self.position in ("last", "only")


Row = tuple[int, str, str, Position, tuple[Header, ...], bool]
# code, name, operation, position, headers, payload
_SEND_WRITE: tuple[Row, ...] = (
    (0x00, "SEND_FIRST", "send", "first", (), True),
    (0x01, "SEND_MIDDLE", "send", "middle", (), True),
    (0x02, "SEND_LAST", "send", "last", (), True),
    (0x03, "SEND_LAST_WITH_IMMEDIATE", "send", "last", (ib.IMMDT,), True),
    (0x04, "SEND_ONLY", "send", "only", (), True),
    (0x05, "SEND_ONLY_WITH_IMMEDIATE", "send", "only", (ib.IMMDT,), True),
    (0x06, "RDMA_WRITE_FIRST", "write", "first", (ib.RETH,), True),
    (0x07, "RDMA_WRITE_MIDDLE", "write", "middle", (), True),
    (0x08, "RDMA_WRITE_LAST", "write", "last", (), True),
    (0x09, "RDMA_WRITE_LAST_WITH_IMMEDIATE", "write", "last", (ib.IMMDT,), True),
    (0x0A, "RDMA_WRITE_ONLY", "write", "only", (ib.RETH,), True),
    (0x0B, "RDMA_WRITE_ONLY_WITH_IMMEDIATE", "write", "only", (ib.RETH, ib.IMMDT), True),
)
_RELIABLE: tuple[Row, ...] = (
    (0x0C, "RDMA_READ_REQUEST", "read_request", "only", (ib.RETH,), False),
    (0x0D, "RDMA_READ_RESPONSE_FIRST", "read_response", "first", (ib.AETH,), True),
    (0x0E, "RDMA_READ_RESPONSE_MIDDLE", "read_response", "middle", (), True),
    (0x0F, "RDMA_READ_RESPONSE_LAST", "read_response", "last", (ib.AETH,), True),
    (0x10, "RDMA_READ_RESPONSE_ONLY", "read_response", "only", (ib.AETH,), True),
    (0x11, "ACKNOWLEDGE", "ack", "only", (ib.AETH,), False),
    (0x12, "ATOMIC_ACKNOWLEDGE", "atomic_ack", "only", (ib.AETH, ib.ATOMICACKETH), False),
    (0x13, "COMPARE_SWAP", "atomic", "only", (ib.ATOMICETH,), False),
    (0x14, "FETCH_ADD", "atomic", "only", (ib.ATOMICETH,), False),
)
_INVALIDATE: tuple[Row, ...] = (
    (0x16, "SEND_LAST_WITH_INVALIDATE", "send", "last", (ib.IETH,), True),
    (0x17, "SEND_ONLY_WITH_INVALIDATE", "send", "only", (ib.IETH,), True),
)
_EXTENSIONS: tuple[Row, ...] = (
    (0x1C, "FLUSH", "flush", "only", (ib.FETH, ib.RETH), False),
    (0x1D, "ATOMIC_WRITE", "atomic_write", "only", (ib.RETH,), True),
)
_RESYNC: Row = (0x15, "RESYNC", "resync", "only", (), False)

_ROWS: dict[Transport, tuple[Row, ...]] = {
    "RC": _SEND_WRITE + _RELIABLE + _INVALIDATE + _EXTENSIONS,
    "UC": _SEND_WRITE,
    "RD": _SEND_WRITE + _RELIABLE + (_RESYNC,) + _EXTENSIONS[:1],
    "UD": (_SEND_WRITE[4], _SEND_WRITE[5]),
    "XRC": _SEND_WRITE + _RELIABLE + _INVALIDATE + _EXTENSIONS,
}
RESPONSES = frozenset({"read_response", "ack", "atomic_ack"})


def _in_front(transport: Transport, operation: str) -> tuple[Header, ...]:
    """Headers the transport puts between BTH and the operation's own."""
    response = operation in RESPONSES
    if transport == "RD":
        return (ib.RDETH,) if response or operation == "flush" else (ib.RDETH, ib.DETH)
    if transport == "XRC":
        return () if response else (ib.XRCETH,)
    return (ib.DETH,) if transport == "UD" else ()


def _table() -> dict[int, Opcode]:
    table = {}
    for transport, rows in _ROWS.items():
        for code, name, operation, position, headers, payload in rows:
            value = TRANSPORT_BASES[transport] | code
            table[value] = Opcode(
                value=value,
                name=f"{transport}_{name}",
                transport=transport,
                operation=operation,
                position=position,
                headers=_in_front(transport, operation) + headers,
                payload=payload,
                request=operation not in RESPONSES,
            )
    # IBTA annex A17: the congestion notification packet, opcode 0x81, not the bare class 0x80.
    table[0x81] = Opcode(0x81, "CNP", "CNP", "cnp", "only", (ib.CNP,), False, False)
    return dict(sorted(table.items()))


OPCODES: Mapping[int, Opcode] = MappingProxyType(_table())
"""Every known opcode by value; a value that is missing is unknown, which is not an error."""

BY_NAME: Mapping[str, Opcode] = MappingProxyType({op.name: op for op in OPCODES.values()})

CNP = 0x81


def name_of(value: int) -> str:
    """The opcode's name, or `0xe0` style text for an unknown one."""
    op = OPCODES.get(value)
    return op.name if op else f"0x{value:02x}"


def parse_opcode(text: str) -> int:
    """Read an opcode by name (short forms `_IMM`, `_INV` and a missing `RDMA_` accepted) or number.

    Raises:
        InputError: Unknown name, with the nearest right one.
    """
    word = text.strip().upper()
    if word[:1].isdigit():
        try:
            value = int(word, 0)
        except ValueError:
            value = -1
        if not 0 <= value <= 255:
            raise InputError(f"opcode {text!r} is no number between 0 and 255")
        return value
    full = word.removesuffix("_IMM") + "_WITH_IMMEDIATE" if word.endswith("_IMM") else word
    full = full.removesuffix("_INV") + "_WITH_INVALIDATE" if full.endswith("_INV") else full
    transport, _, rest = full.partition("_")
    for candidate in (full, f"{transport}_RDMA_{rest}"):
        if candidate in BY_NAME:
            return BY_NAME[candidate].value
    raise InputError(f"unknown opcode {text!r}{nearest(full, BY_NAME)}")


def segment_opcode(transport: Transport, verb: str, position: Position, suffix: str = "") -> int:
    """The opcode of one packet of a message.

    Args:
        transport: `RC`, `UC`, `RD`, `UD` or `XRC`.
        verb: `SEND`, `RDMA_WRITE` or `RDMA_READ_RESPONSE`.
        position: Place in the message.
        suffix: `WITH_IMMEDIATE` or `WITH_INVALIDATE`; used only on the packet that ends the message.

    Raises:
        InputError: The transport has no such packet.
    """
    ends = position in ("last", "only")
    name = f"{transport}_{verb}_{position.upper()}" + (f"_{suffix}" if suffix and ends else "")
    if name not in BY_NAME:
        raise InputError(
            f"{transport} has no {verb} {position} packet {suffix}".rstrip() + nearest(name, BY_NAME)
        )
    return BY_NAME[name].value


def segments(length_bytes: int, mtu_bytes: int) -> list[tuple[Position, int, int]]:
    """Cut a message into packets.

    Args:
        length_bytes: Message length; 0 gives one empty packet.
        mtu_bytes: Path MTU.

    Returns:
        For each packet its position, its first octet in the message, and its octets.
    """
    count = max(1, -(-length_bytes // mtu_bytes))
    out: list[tuple[Position, int, int]] = []
    for i in range(count):
        position: Position = "middle"
        if i in (0, count - 1):
            position = "only" if count == 1 else "first" if i == 0 else "last"
        start = i * mtu_bytes
        out.append((position, start, min(mtu_bytes, length_bytes - start)))
    return out
