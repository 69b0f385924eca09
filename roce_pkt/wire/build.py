"""Make one frame from tables: headers in, octets out, with lengths, pads, checksums and ICRC filled.

The plain way, for a frame or a few thousand; bulk writing has its own compiled path made from the
same tables.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from roce_pkt.wire import entropy, ib, icrc, mac_control, net
from roce_pkt.wire.opcode import OPCODES

Values = dict[str, int]
Stack = Mapping[str, Values]
"""Header values by header name, e.g. `{"bth": {"psn": 7}, "reth": {"dmalen": 8}}`."""


@dataclass(frozen=True, slots=True)
class Path:
    """Everything below the BTH for one direction of a queue pair.

    Args:
        src: Source address (IPv4 or IPv6; a GID for RoCEv1).
        dst: Destination address.
        src_mac: Source MAC.
        dst_mac: Destination MAC.
        sport: UDP source port; None takes the port the kernel gives to a flow label of 0.
        dport: UDP destination port.
        dscp: Differentiated services code point.
        ecn: ECN field, 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
        ttl: TTL or hop limit.
        ip_id: IPv4 identification.
        flow_label: IPv6 or GRH flow label.
        vid: VLAN, or None for an untagged frame.
        pcp: Priority code point of the tag.
        v1: RoCEv1: a GRH straight on Ethernet.
    """

    src: str = "10.0.0.1"
    dst: str = "10.0.0.2"
    src_mac: int = 0x020000000001
    dst_mac: int = 0x020000000002
    sport: int | None = None
    dport: int = net.PORT_ROCEV2
    dscp: int = 26
    ecn: int = net.ECT_0
    ttl: int = 64
    ip_id: int = 0
    flow_label: int = 0
    vid: int | None = None
    pcp: int = 3
    v1: bool = False

    def reversed(self) -> Path:
        """The way back."""
        from dataclasses import replace

        return replace(self, src=self.dst, dst=self.src, src_mac=self.dst_mac, dst_mac=self.src_mac)


def pad_count(payload_len: int) -> int:
    """Pad octets after a payload. spec: IBTA Vol 1 9.2.3, the packet ends on a 4-octet boundary."""
    return -payload_len & 3


def _ethernet(path: Path, ethertype: int, given: Mapping[str, Values]) -> bytes:
    eth = {"dst": path.dst_mac, "src": path.src_mac, "type": ethertype}
    if path.vid is None:
        return net.ETH.pack(eth | given.get("eth", {}))
    tag = {"pcp": path.pcp, "vid": path.vid, "type": ethertype} | given.get("vlan", {})
    return net.ETH.pack(eth | {"type": net.VLAN_TYPES[0]} | given.get("eth", {})) + net.VLAN.pack(tag)


def _ip(path: Path, after: int, given: Values) -> tuple[bytes, icrc.Network, int]:
    """IP header for `after` octets behind it, its kind, and its EtherType."""
    source, destination = ipaddress.ip_address(path.src), ipaddress.ip_address(path.dst)
    if source.version != destination.version:
        raise ValueError(f"{path.src} and {path.dst} are of different IP versions")
    values = {
        "dscp": path.dscp,
        "ecn": path.ecn,
        "ttl": path.ttl,
        "src": int(source),
        "dst": int(destination),
    }
    if source.version == 6:
        values |= {"flowlabel": path.flow_label, "len": after}
        return net.IPV6.pack(values | given), "ipv6", net.ETHERTYPE_IPV6
    values |= {"len": net.IPV4.size_bytes + after, "id": path.ip_id, "df": 1}
    values |= given
    if "chksum" not in given:
        values["chksum"] = net.internet_checksum(net.IPV4.pack(values))
    return net.IPV4.pack(values), "ipv4", net.ETHERTYPE_IPV4


def gid_of(text: str) -> int:
    """An address as a GID; IPv4 in its mapped form (IBTA annex A17.4.1)."""
    address = ipaddress.ip_address(text)
    return int(address) if address.version == 6 else 0xFFFF00000000 | int(address)


def roce_frame(path: Path, opcode: int, stack: Stack | None = None, payload: bytes = b"") -> bytes:
    """Build one RoCE frame.

    Args:
        path: Everything below the BTH.
        opcode: Any octet; an unknown one gets no header after its BTH.
        stack: Values that are not their defaults, by header and field name. A length, a checksum
            or `bth.padcount` given here stands, even when it is wrong; `icrc.value` (an integer in
            wire order) too.
        payload: Payload octets; pads follow it by `bth.padcount`.

    Raises:
        KeyError: A field that its header does not have.
        ValueError: A value that does not fit, or addresses of two IP versions.
    """
    given: dict[str, Values] = dict(stack or {})
    op = OPCODES.get(opcode)
    carries = op is not None and op.payload
    bth = {"opcode": opcode, "padcount": pad_count(len(payload)) if carries else 0} | given.get("bth", {})
    body = ib.BTH.pack(bth)
    for header in op.headers if op else ():
        body += header.pack(given.get(header.name, {}))
    body += payload + bytes(bth["padcount"] if carries else 0)
    front, cover = _fronts(path, len(body) + ib.ICRC_BYTES, given)
    frame = front + body
    if "icrc" in given:
        return frame + given["icrc"]["value"].to_bytes(ib.ICRC_BYTES, "big")
    start = len(front)
    value = icrc.compute(frame, icrc.Coverage(cover[0], cover[1], start, len(frame)))
    return frame + value


def _fronts(path: Path, size: int, given: Mapping[str, Values]) -> tuple[bytes, tuple[icrc.Network, int]]:
    """The octets before the BTH, and the coverage's network header and offset."""
    if path.v1:
        link = _ethernet(path, net.ETHERTYPE_ROCEV1, given)
        grh = {
            "tclass": path.dscp << 2 | path.ecn,
            "flowlabel": path.flow_label,
            "paylen": size,
            "hoplmt": path.ttl,
            "sgid": gid_of(path.src),
            "dgid": gid_of(path.dst),
        }
        return link + ib.GRH.pack(grh | given.get("grh", {})), ("grh", len(link))
    udp_len = net.UDP.size_bytes + size
    sport = entropy.sport_from_flow_label(path.flow_label) if path.sport is None else path.sport
    udp = {"sport": sport, "dport": path.dport, "len": udp_len} | given.get("udp", {})
    ip, network, ethertype = _ip(path, udp_len, given.get("ip", {}))
    link = _ethernet(path, ethertype, given)
    return link + ip + net.UDP.pack(udp), (network, len(link))


def cnp_frame(path: Path, dqpn: int, stack: Stack | None = None) -> bytes:
    """A congestion notification packet for the sender whose queue pair is `dqpn`.

    Source: IBTA annex A17.9.3: opcode 0x81, BECN set, PSN 0, sixteen reserved octets.
    """
    given = dict(stack or {})
    given["bth"] = {"becn": 1, "dqpn": dqpn} | dict(given.get("bth", {}))
    return roce_frame(path, 0x81, given)


def mac_control_frame(src_mac: int, body: bytes, eth: Values | None = None) -> bytes:
    """A PAUSE or PFC frame padded to the smallest Ethernet frame.

    Args:
        src_mac: MAC of the port that asks for the pause.
        body: From the MAC control opcode on (`mac_control.pfc_octets`, `pause_octets`).
        eth: Fields of the Ethernet header that are not as they should be.
    """
    right = {"dst": mac_control.DESTINATION, "src": src_mac, "type": net.ETHERTYPE_MAC_CONTROL}
    return (net.ETH.pack(right | (eth or {})) + body).ljust(mac_control.MIN_FRAME_BYTES, b"\0")
