"""What lies below a BTH: how long the packet is on the wire, and the octets its ICRC covers."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, _IPv6ExtHdr
from scapy.packet import Packet

from roce_pkt.layers.extended import header_of
from roce_pkt.wire import ib, icrc, net

FRAGMENT = "IP fragment"


def ip_below(udp: UDP) -> tuple[Packet | None, int, str]:
    """The IP header below a UDP header.

    Returns:
        The header or None, the octets between it and the UDP header, and why the ICRC's coverage
        is not defined there (empty when it is).
    """
    below, between, why = udp.underlayer, 0, ""
    while isinstance(below, _IPv6ExtHdr):
        if isinstance(below, IPv6ExtHdrFragment):
            why = FRAGMENT
        between += len(below.self_build())
        below, why = below.underlayer, why or "IPv6 extension header"
    if isinstance(below, IP):
        if below.flags.MF or below.frag:
            why = FRAGMENT
        elif below.options or below.ihl not in (None, net.IPV4.field("ihl").default):
            why = "IPv4 options"
        return below, len(below.self_build()) - net.IPV4.size_bytes, why
    if isinstance(below, IPv6):
        return below, between, why
    return None, 0, "no IP header below"


def why_uncheckable(lower: Packet | None) -> str:
    """Why no ICRC can be computed over these lower layers; empty when it can."""
    if isinstance(lower, UDP):
        return ip_below(lower)[2]
    return "" if header_of(lower) is ib.GRH else "no UDP or GRH header below"


def octets_on_wire(lower: Packet | None, captured: int) -> int:
    """Octets from the BTH to the end of the ICRC, as the length fields below say.

    Args:
        lower: The dissected layer below the BTH.
        captured: Octets that are there; the answer is never less.
    """
    said = []
    if header_of(lower) is ib.GRH:
        said.append(lower.paylen)
    elif isinstance(lower, UDP):
        said.append((lower.len or 0) - net.UDP.size_bytes)
        ip, between, _ = ip_below(lower)
        if isinstance(ip, IP):
            said.append((ip.len or 0) - net.IPV4.size_bytes - between - net.UDP.size_bytes)
        elif isinstance(ip, IPv6):
            said.append((ip.plen or 0) - between - net.UDP.size_bytes)
    return max(captured, min((length for length in said if length > 0), default=captured))


def _filled(octets: bytes, place_offset: int, value: int) -> bytes:
    return octets[:place_offset] + (value & 0xFFFF).to_bytes(2, "big") + octets[place_offset + 2 :]


def network_octets(lower: Packet, length: int) -> tuple[icrc.Network, bytes]:
    """The network header (and UDP header) below a BTH, with the lengths that a build will fill in.

    Args:
        lower: UDP over IP, or a GRH, for which `why_uncheckable` is empty.
        length: Octets from the BTH to the end of the ICRC.
    """
    if header_of(lower) is ib.GRH:
        grh = lower.self_build()
        return "grh", grh if lower.paylen is not None else _filled(
            grh, ib.GRH.places["paylen"].offset, length
        )
    udp = lower.self_build()
    length += net.UDP.size_bytes
    if lower.len is None:
        udp = _filled(udp, net.UDP.places["len"].offset, length)
    ip = lower.underlayer
    octets = ip.self_build()
    if isinstance(ip, IPv6):
        if ip.plen is None:
            octets = _filled(octets, net.IPV6.places["len"].offset, length)
        return "ipv6", octets + udp
    if ip.ihl is None:
        octets = bytes([octets[0] & 0xF0 | net.IPV4.field("ihl").default]) + octets[1:]
    if ip.len is None:
        octets = _filled(octets, net.IPV4.places["len"].offset, length + net.IPV4.size_bytes)
    return "ipv4", octets + udp


def compute_icrc(lower: Packet, covered: bytes) -> bytes:
    """The ICRC in wire order.

    Args:
        lower: The layer below the BTH, for which `why_uncheckable` is empty.
        covered: BTH, extended headers, payload and pads.
    """
    network, below = network_octets(lower, len(covered) + ib.ICRC_BYTES)
    frame = below + covered
    return icrc.compute(frame, icrc.Coverage(network, 0, len(below), len(frame)))
