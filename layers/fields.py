"""Scapy fields made from the wire tables, and the few kinds of field Scapy does not have.

A layout is typed once, in `roce_pkt.wire`. Where a Scapy class needs another kind of field (an
enumeration, a value that is filled on build) it replaces the generated one, and its width is
checked against the table's.
"""

# ruff: noqa: ARG002  Scapy hands every field method the packet, needed or not

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from scapy.fields import (
    BitField,
    ByteEnumField,
    ByteField,
    Field,
    IntField,
    IPField,
    LEShortField,
    LongField,
    ShortField,
    StrFixedLenField,
    XBitField,
    XByteField,
    XIntField,
    XLongField,
    XShortField,
)

from roce_pkt.errors import InputError
from roce_pkt.wire import aeth, header, opcode

_WHOLE = {8: ByteField, 16: ShortField, 32: IntField, 64: LongField}
_WHOLE_HEX = {8: XByteField, 16: XShortField, 32: XIntField, 64: XLongField}

Replacements = Mapping[str, Sequence[Field]]


def fields_of(table: header.Header, replace: Replacements | None = None) -> list[Field]:
    """The Scapy fields of a header.

    Args:
        table: The header's layout.
        replace: Scapy fields to put in the place of a table field, by its name.

    Raises:
        ValueError: A replacement is not as wide as the field it replaces.
    """
    replace = replace or {}
    out: list[Field] = []
    start = 0
    for field in table.fields:
        instead = replace.get(field.name)
        if instead is None:
            out.append(_generated(field, table.order, whole_octets=start % 8 == 0))
        else:
            if sum(map(_bits, instead)) != field.bits:
                raise ValueError(f"{table.name}.{field.name}: replacement is not {field.bits} bits wide")
            out.extend(instead)
        start += field.bits
    return out


def _generated(field: header.Field, order: header.Order, *, whole_octets: bool) -> Field:
    match field.show:
        case "ipv6":
            return GidField(field.name, field.default, field.bits)
        case "ipv4":
            return IPField(field.name, "0.0.0.0")  # noqa: S104 - a default that means none
        case "octets":
            return StrFixedLenField(field.name, b"", length=field.bits // 8)
        case _ if order == "little":
            return LEShortField(field.name, field.default)
    hexadecimal = field.show in ("hex", "key")
    kinds = _WHOLE_HEX if hexadecimal else _WHOLE
    if whole_octets and field.bits in kinds:
        return kinds[field.bits](field.name, field.default)
    return (XBitField if hexadecimal else BitField)(field.name, field.default, field.bits)


class Noted:
    """A field shown with what its value means; the layer's class says that by `note_of`."""

    __slots__ = ()

    def i2repr(self, pkt: Any, x: Any) -> str:
        """The value, and the note in brackets."""
        text = str(super().i2repr(pkt, x))  # type: ignore[misc]
        note = pkt.note_of(self.name) if isinstance(x, int) and pkt is not None else ""
        return f"{text} ({note})" if note else text


def noted(fields: Sequence[Field]) -> list[Field]:
    """The same fields, shown with notes."""
    for field in fields:
        kind = type(field)
        if kind not in _NOTED:
            _NOTED[kind] = type(f"Noted{kind.__name__}", (Noted, kind), {"__slots__": ()})
        field.__class__ = _NOTED[kind]
    return list(fields)


_NOTED: dict[type, type] = {}


def _bits(field: Field) -> int:
    return int(field.size if isinstance(field, BitField) else 8 * field.sz)


class OpcodeField(ByteEnumField):
    """The BTH opcode: a number or a name in, the name shown; None means "from the stacked headers"."""

    def __init__(self) -> None:
        super().__init__("opcode", None, {value: op.name for value, op in opcode.OPCODES.items()})

    def any2i_one(self, pkt: Any, x: Any) -> Any:
        """Numbers as they are, names as `roce_pkt.wire.opcode.parse_opcode` reads them."""
        return opcode.parse_opcode(x) if isinstance(x, str) else x

    def i2repr_one(self, pkt: Any, x: Any) -> str:
        """The opcode's name, or its number when it has none."""
        return opcode.name_of(x) if isinstance(x, int) else repr(x)


class SyndromeField(XByteField):
    """The AETH syndrome, shown with what it says."""

    def i2repr(self, pkt: Any, x: Any) -> str:
        """`0x60 (NAK, PSN sequence error)`."""
        text = super().i2repr(pkt, x)
        return f"{text} ({aeth.describe(x)})" if isinstance(x, int) else text


class Gid(int):
    """A 128-bit GID: an integer that reads as IPv6 text and equals it."""

    def __str__(self) -> str:
        return header.ipv6_text(int(self))

    def __repr__(self) -> str:
        return repr(str(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            try:
                return int(self) == parse_gid(other)
            except InputError:
                return False
        return int.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def parse_gid(text: str) -> Gid:
    """Read a GID written as IPv6, or as IPv4 for the mapped form RoCE uses (`::ffff:10.0.0.1`).

    Raises:
        InputError: Neither.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InputError(f"{text!r} is no GID: write IPv6 or IPv4 text, or a 128-bit number") from None
    return Gid(int(address) | (0xFFFF << 32 if address.version == 4 else 0))


class GidField(XBitField):
    """A GID given as a number, 16 octets or text."""

    def any2i(self, pkt: Any, x: Any) -> Any:
        """The GID as a number; lists and random values pass through."""
        if isinstance(x, str):
            return parse_gid(x)
        if isinstance(x, bytes | bytearray):
            return Gid.from_bytes(x, "big")
        if isinstance(x, list):
            return [self.any2i(pkt, one) for one in x]
        return x

    def i2h(self, pkt: Any, x: Any) -> Any:
        """A `Gid`, which is a number and reads as text."""
        return Gid(x) if isinstance(x, int) else x

    def i2repr(self, pkt: Any, x: Any) -> str:
        """IPv6 text."""
        return str(Gid(x)) if isinstance(x, int) else repr(x)


class TrailingField(Field):
    """Octets after the payload. The layer itself cuts them off and puts them on; None means "fill"."""

    def __init__(self, name: str) -> None:
        super().__init__(name, None)

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, None]:
        """Nothing is taken from the front."""
        return s, None

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        """Nothing is put at the front."""
        return s


class PadField(TrailingField):
    """The pad octets between payload and ICRC."""

    def any2i(self, pkt: Any, x: Any) -> Any:
        """Octets, or None."""
        return x if x is None else bytes(x)

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Hexadecimal."""
        return "None" if x is None else x.hex() or "none"


class IcrcField(TrailingField):
    """The ICRC as contrib reads it: the four wire octets as one big-endian number.

    Octets that are not four (a frame cut by its capture, or one crafted without an ICRC) stay octets.
    """

    def any2i(self, pkt: Any, x: Any) -> Any:
        """A number, fewer or more octets than four, or None."""
        if isinstance(x, bytes | bytearray):
            return int.from_bytes(x, "big") if len(x) == 4 else bytes(x)
        return x

    def i2repr(self, pkt: Any, x: Any) -> str:
        """The value and whether it is right."""
        if isinstance(x, bytes):
            return f"{x.hex()} (cut)" if x else "not there"
        return f"0x{x:08x} ({pkt.icrc_verdict()})" if isinstance(x, int) else repr(x)
