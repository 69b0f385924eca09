"""What faults do to the octets of one frame."""

from __future__ import annotations

import random
from collections.abc import Mapping

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


def marked(octets: bytes, read: Dissection) -> tuple[bytes, Detail] | None:
    """The frame with CE in its IP header, checksum followed; None when it has no IP or is marked already.

    The ICRC does not change: it masks the field.
    """
    layer = layer_of(read, "ip")
    if layer is None:
        grh = layer_of(read, "grh")
        if grh is None or grh.values["tclass"] & 3 == net.CE:
            return None
        tclass = grh.values["tclass"] | net.CE
        detail: Detail = {"ecn_was": grh.values["tclass"] & 3}
        return replaced(octets, grh.offset, ib.GRH.pack(grh.values | {"tclass": tclass})), detail
    was = layer.values["ecn"]
    if was == net.CE:
        return None
    values = layer.values | {"ecn": net.CE}
    if layer.header is net.IPV4:
        # spec: RFC 1624 eqn. 3: HC' = ~(~HC + ~m + m'); a wrong checksum stays as wrong as it was
        values["chksum"] = followed(layer.values["chksum"], net.CE - was)
    return replaced(octets, layer.offset, layer.header.pack(values)), {"ecn_was": was}


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
    if fault.what == "payload":
        end = min(read.payload_offset + read.payload_len, len(octets))
        span = range(8 * read.payload_offset, 8 * end)
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
