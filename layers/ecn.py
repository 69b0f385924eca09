"""ECN and DSCP by name, over Scapy's one octet `IP.tos` / `IPv6.tc`.

    set_ecn(pkt, "CE")        get_ecn(pkt)  -> "CE"
    set_dscp(pkt, "CS6")      get_dscp(pkt) -> 48

They work on the IP header that carries the BTH (the inner one of a tunnel), else on the innermost.
Marking never touches the ICRC. An IPv4 header checksum that is already there is updated the way a
router does it, so a right one stays right and a wrong one stays wrong.
"""

from __future__ import annotations

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet

from roce_pkt.errors import InputError, nearest
from roce_pkt.layers.bth import BTH
from roce_pkt.wire import net

ECN_MASK = 0x03
DSCP_SHIFT = 2
DSCP_NAMES = (
    {f"CS{n}": 8 * n for n in range(8)}  # RFC 2474
    | {f"AF{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)}  # RFC 2597
    | {"EF": 46}  # RFC 3246
)


def get_ecn(pkt: Packet) -> str:
    """`Not-ECT`, `ECT(1)`, `ECT(0)` or `CE`.

    Raises:
        InputError: The packet has no IP header.
    """
    return net.ECN_NAMES[_octet(_ip_of(pkt)) & ECN_MASK]


def set_ecn(pkt: Packet, mark: str | int) -> Packet:
    """Write the ECN field in place and return the packet.

    Args:
        pkt: A packet with an IP header.
        mark: A name `get_ecn` returns, or 0..3.

    Raises:
        InputError: No IP header, or no such codepoint.
    """
    names = {name.upper(): value for value, name in enumerate(net.ECN_NAMES)}
    value = names.get(mark.upper()) if isinstance(mark, str) else mark
    if value is None or not 0 <= value <= ECN_MASK:
        raise InputError(f"ECN is one of {', '.join(net.ECN_NAMES)} or 0 to 3, not {mark!r}")
    ip = _ip_of(pkt)
    return _write(pkt, ip, _octet(ip) & ~ECN_MASK | value)


def get_dscp(pkt: Packet) -> int:
    """The DSCP, 0..63.

    Raises:
        InputError: The packet has no IP header.
    """
    return _octet(_ip_of(pkt)) >> DSCP_SHIFT


def set_dscp(pkt: Packet, dscp: str | int) -> Packet:
    """Write the DSCP in place and return the packet.

    Args:
        pkt: A packet with an IP header.
        dscp: 0..63, or a name such as "CS6", "AF31", "EF".

    Raises:
        InputError: No IP header, or no such codepoint.
    """
    value = DSCP_NAMES.get(dscp.upper()) if isinstance(dscp, str) else dscp
    if value is None or not 0 <= value < 64:
        hint = nearest(dscp.upper(), DSCP_NAMES) if isinstance(dscp, str) else ""
        raise InputError(f"a DSCP is 0 to 63 or a name such as CS6, AF31, EF, not {dscp!r}{hint}")
    ip = _ip_of(pkt)
    return _write(pkt, ip, _octet(ip) & ECN_MASK | value << DSCP_SHIFT)


def _ip_of(pkt: Packet) -> Packet:
    above = pkt.getlayer(BTH)
    below = above.underlayer if above is not None else pkt.lastlayer()
    while below is not None and not isinstance(below, IP | IPv6):
        below = below.underlayer
    if below is None:
        raise InputError(f"{pkt.summary()}: no IP header, so no ECN and no DSCP")
    return below


def _octet(ip: Packet) -> int:
    return int(ip.tos if isinstance(ip, IP) else ip.tc)


def _write(pkt: Packet, ip: Packet, octet: int) -> Packet:
    if isinstance(ip, IP):
        if ip.chksum is not None:
            ip.chksum = _updated(ip.chksum, ip.tos, octet)
        ip.tos = octet
    else:
        ip.tc = octet
    return pkt


def _updated(checksum: int, old: int, new: int) -> int:
    # spec: RFC 1624 equation 3: HC' = ~(~HC + ~m + m')
    total = (~checksum & 0xFFFF) + (~old & 0xFFFF) + new
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
