"""The machine under every header table: fields as bit ranges, packed and unpacked from one list.

A header is a name, a title and an ordered list of fields. Everything else (octet offsets, masks,
Scapy classes, constants of the compiled kernels, the tree that `dissect --frame` prints) is
derived from that list, so a layout is typed once.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Show = Literal["dec", "hex", "key", "mac", "ipv4", "ipv6", "octets"]
Order = Literal["big", "little"]
Octets = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a header.

    Args:
        name: Name in JSON, in columns and in Scapy.
        bits: Width in bits.
        show: How people read it. `key` is also a string in JSON, so that no reader loses bits;
            `octets` has no meaning as a number.
        default: Value of a freshly built header.
        title: A few words for the tree.
    """

    name: str
    bits: int
    show: Show = "dec"
    default: int = 0
    title: str = ""

    @property
    def reserved(self) -> bool:
        """Reserved bits: kept for the round trip, shown only when not zero."""
        return self.name.startswith("resv")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field lies: the octets that hold it, then shift and mask.

    Args:
        offset: First octet, from the start of the header.
        size: Octets that hold the field.
        shift: Bits to shift right after reading those octets big-endian.
        mask: Mask after the shift.
    """

    offset: int
    size: int
    shift: int
    mask: int


class Header:
    """A header's layout.

    Args:
        name: Short name in the field's own abbreviation, lower case (`bth`, `aeth`).
        title: Full name.
        fields: Ordered fields; their widths add up to whole octets.
        order: Order of the octets within a field; a little-endian header has whole octets only.
    """

    def __init__(self, name: str, title: str, *fields: Field, order: Order = "big") -> None:
        self.name, self.title, self.fields, self.order = name, title, fields, order
        bits = sum(f.bits for f in fields)
        if bits % 8 or (order == "little" and any(f.bits % 8 for f in fields)):
            raise ValueError(f"{name}: {bits} bits are not whole octets")
        self.size_bytes = bits // 8
        self._bits = bits
        self.places: dict[str, Place] = {}
        start = 0
        for field in fields:
            end = start + field.bits
            first, last = start // 8, (end + 7) // 8
            self.places[field.name] = Place(first, last - first, last * 8 - end, (1 << field.bits) - 1)
            start = end
        self._readers = [
            (name, p.offset, p.offset + p.size, p.shift, p.mask) for name, p in self.places.items()
        ]

    def __repr__(self) -> str:
        return f"Header({self.name!r}, {self.size_bytes} octets)"

    def field(self, name: str) -> Field:
        """The field called `name`.

        Raises:
            KeyError: No such field.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def unpack(self, octets: Octets, offset: int = 0) -> dict[str, int]:
        """Read every field from `octets` at `offset`; the caller has checked that it fits."""
        data = bytes(octets[offset : offset + self.size_bytes])
        read, order = int.from_bytes, self.order
        return {
            name: read(data[first:last], order) >> shift & mask
            for name, first, last, shift, mask in self._readers
        }

    def pack(self, values: Mapping[str, int]) -> bytes:
        """Build the octets; fields not given take their default.

        Raises:
            KeyError: A value for a field that does not exist.
            ValueError: A value that does not fit its field.
        """
        unknown = values.keys() - self.places.keys()
        if unknown:
            raise KeyError(f"{self.name} has no field {sorted(unknown)}")
        whole = 0
        for field in self.fields:
            value = values.get(field.name, field.default)
            if not 0 <= value < 1 << field.bits:
                raise ValueError(f"{self.name}.{field.name} holds {field.bits} bits, not {value}")
            if self.order == "little":
                value = int.from_bytes(value.to_bytes(field.bits // 8, "little"), "big")
            whole = whole << field.bits | value
        return whole.to_bytes(self.size_bytes, "big")

    def as_json(self, values: Mapping[str, int]) -> dict[str, object]:
        """The header as a JSON object: integers, keys as "0x..." strings, addresses as text."""
        return {
            f.name: json_value(f, values[f.name]) for f in self.fields if not f.reserved or values[f.name]
        }


def json_value(field: Field, value: int) -> int | str:
    """One field's value as JSON carries it."""
    if field.show in ("dec", "hex"):
        return value
    if field.show == "octets":
        return value.to_bytes(field.bits // 8, "big").hex()
    return text_value(field, value)


def text_value(field: Field, value: int) -> str:
    """One field's value as people read it."""
    match field.show:
        case "dec":
            return str(value)
        case "hex" | "key":
            return f"0x{value:0{(field.bits + 3) // 4}x}"
        case "mac":
            return mac_text(value)
        case "ipv4":
            return ipv4_text(value)
        case "ipv6":
            return ipv6_text(value)
        case "octets":
            return octets_text(value.to_bytes(field.bits // 8, "big"))


def octets_text(octets: bytes, most: int = 32) -> str:
    """Octets in hexadecimal for people: zeros at the end are counted, long ones are cut."""
    shown = octets.rstrip(b"\0")
    zeros = len(octets) - len(shown)
    words = [shown[:most].hex() + ("..." if len(shown) > most else "")] if shown else []
    if len(shown) > most:
        words.append(f"{len(shown)} octets")
    if zeros:
        words.append(f"{zeros} zero octets")
    return ", ".join(words) or "none"


def mac_text(value: int) -> str:
    """48 bits as `52:54:00:00:00:0a`."""
    return value.to_bytes(6, "big").hex(":")


def ipv4_text(value: int) -> str:
    """32 bits in dotted decimal."""
    return ".".join(map(str, value.to_bytes(4, "big")))


def ipv6_text(value: int) -> str:
    """128 bits in the compressed form of RFC 5952."""
    return ipaddress.IPv6Address(value).compressed
