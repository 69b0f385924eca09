"""What faults do to the octets of one frame."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from roce_pkt.errors import InputError, nearest
from roce_pkt.scenario.fault import Fault
from roce_pkt.wire import ib, net
from roce_pkt.wire.dissection import Dissection, Layer
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import Header

Detail = dict[str, int | str]
"""What exactly was done, for the truth file."""

CORRUPTIBLE: Mapping[str, Header] = {h.name: h for h in (net.ETH, net.UDP, ib.GRH, ib.BTH, *ib.EXTENDED)}
_IP_FIELDS = {f"ip.{f.name}" for h in (net.IPV4, net.IPV6) for f in h.fields}


def check(fault: Fault, where: str) -> None:
    """Refuse a fault whose parts do not go together.

    Raises:
        InputError: What is wrong, and what is allowed.
    """
    if fault.do != "corrupt" or fault.what != "field":
        return
    known = {f"{h.name}.{f.name}" for h in CORRUPTIBLE.values() for f in h.fields} | _IP_FIELDS
    if fault.field not in known:
        raise InputError(
            f"{where}: field {fault.field!r} is none that can be corrupted; write HEADER.FIELD, "
            f"e.g. bth.psn{nearest(fault.field, known)}"
        )


def layer_of(read: Dissection, header_name: str) -> Layer | None:
    """The layer of that header name, IPv4 or IPv6 for `ip`."""
    return next((layer for layer in read.layers if layer.header.name == header_name), None)


def replaced(octets: bytes, at: int, new: bytes) -> bytes:
    """`octets` with `new` in place of what stood at `at`."""
    return octets[:at] + new + octets[at + len(new) :]


class Place(NamedTuple):
    """Where the parts of a frame lie that faults change.

    Args:
        header: Its network header, or None.
        at: First octet of that.
        payload: First octet of the payload.
        payload_len: Octets of the payload on the wire.
    """

    header: Header | None
    at: int
    payload: int
    payload_len: int


def place_of(read: Dissection) -> Place:
    """The place of the parts of a dissected frame."""
    layer = layer_of(read, "ip") or layer_of(read, "grh")
    if layer is None:
        return Place(None, 0, read.payload_offset, read.payload_len)
    return Place(layer.header, layer.offset, read.payload_offset, read.payload_len)


def marked(octets: bytes, place: Place) -> tuple[bytes, Detail] | None:
    """The frame with CE in its IP header, checksum followed; None when it has no IP or is marked already.

    The ICRC does not change: it masks the field.
    """
    header, at = place.header, place.at
    if header is None:
        return None
    # ECN is the end of the traffic class, which lies over two octets but in IPv4
    octet, shift = (at + 1, 0) if header is net.IPV4 else (at + 1, 4)
    was = octets[octet] >> shift & net.CE
    if was == net.CE:
        return None
    new = bytearray(octets)
    new[octet] |= net.CE << shift
    if header is net.IPV4:
        # spec: RFC 1624 eqn. 3: HC' = ~(~HC + ~m + m'); a wrong checksum stays as wrong as it was
        sum_at = at + net.IPV4.places["chksum"].offset
        chksum = followed(int.from_bytes(octets[sum_at : sum_at + 2], "big"), net.CE - was)
        new[sum_at : sum_at + 2] = chksum.to_bytes(2, "big")
    return bytes(new), {"ecn_was": was}


def followed(chksum: int, added: int) -> int:
    """The Internet checksum after `added` (may be negative) is added to one of the 16-bit words it covers."""
    total = (chksum ^ 0xFFFF) + added
    return (total % 0xFFFF or (0xFFFF if total else 0)) ^ 0xFFFF


def flipped(octets: bytes, bit: int) -> bytes:
    """One bit inverted; bit 0 is the frame's first on the wire diagram."""
    return replaced(octets, bit // 8, bytes([octets[bit // 8] ^ 0x80 >> bit % 8]))


def corrupted(
    octets: bytes, read: Dissection, fault: Fault, dice: random.Random
) -> tuple[bytes, Detail] | None:
    """The frame damaged as the fault says, its ICRC left as it was; None when there is nothing to damage."""
    if fault.what == "field":
        return _field(octets, read, fault, dice)
    return bit_flipped(octets, place_of(read), fault, dice)


def bit_flipped(
    octets: bytes, place: Place, fault: Fault, dice: random.Random
) -> tuple[bytes, Detail] | None:
    """A bit flipped as the fault says, the ICRC left as it was; None when there is nothing to damage."""
    if fault.what == "payload":
        end = min(place.payload + place.payload_len, len(octets))
        span = range(8 * place.payload, 8 * end)
        if not span:
            return None
        bit = dice.choice(span)
    elif fault.bit >= 0:
        bit = fault.bit
        if bit >= 8 * len(octets):
            return None
    else:
        bit = dice.randrange(8 * len(octets))
    return flipped(octets, bit), {"bit": bit}


def _field(octets: bytes, read: Dissection, fault: Fault, dice: random.Random) -> tuple[bytes, Detail] | None:
    header_name, _, name = fault.field.partition(".")
    layer = layer_of(read, header_name)
    if layer is None or name not in layer.values:
        return None
    bits = layer.header.field(name).bits
    was = layer.values[name]
    value = fault.value if fault.value >= 0 else was ^ 1 << dice.randrange(bits)
    if value == was or value >= 1 << bits:
        return None
    packed = layer.header.pack(layer.values | {name: value})
    return replaced(octets, layer.offset, packed), {"field": fault.field, "was": was, "now": value}


def intact(sent: bytes, came: bytes) -> bool:
    """Whether a receiver takes the frame: unchanged, or changed only where no check covers it."""
    if sent == came:
        return True
    if len(sent) != len(came) or sent[:6] != came[:6]:
        return False
    read = dissect(came)
    ip = next((layer for layer in read.layers if layer.header is net.IPV4), None)
    if ip is not None and not net.ipv4_checksum_ok(came[ip.offset : ip.end]):
        return False
    return bool(read.status == "ok" and read.icrc is not None and read.icrc.ok)
