"""Read one frame, octets to headers, as far as they make sense.

This is the plain reading: easy to follow, a few tens of thousands of frames a second. The compiled
columns (`roce_pkt.capture`) are made from the same tables and checked against it. Nothing here
raises on octets, whatever they are: `status` says why decoding stopped.
"""

from __future__ import annotations

from roce_pkt.errors import Shortfall
from roce_pkt.wire import ib, icrc, mac_control, management, net, telemetry
from roce_pkt.wire.dissection import Dissection, Icrc, Layer, Tunnel
from roce_pkt.wire.header import Header, Octets
from roce_pkt.wire.opcode import OPCODES

MAX_TUNNELS = 4
MAX_VLAN_TAGS = 8


class _StopReadingError(Exception):
    """Internal: a header did not fit."""


class _Reader:
    """One pass over a frame's octets; every step either moves forward or stops."""

    def __init__(self, octets: Octets, wire_len: int, udp_port: int) -> None:
        self.octets, self.cap_len = octets, len(octets)
        self.wire_len, self.udp_port = max(wire_len, self.cap_len), udp_port
        self.at = 0
        self.end = self.wire_len  # first octet beyond what the length fields speak for
        self.out = Dissection()

    def take(self, header: Header, limit: int | None = None) -> dict[str, int]:
        """Read a header at the current place and step over it."""
        stop = self.cap_len if limit is None else min(limit, self.cap_len)
        if self.at + header.size_bytes > stop:
            left = max(0, stop - self.at)
            raise _StopReadingError(str(Shortfall(header.name, self.at, header.size_bytes, left)))
        values = header.unpack(self.octets, self.at)
        self.out.layers.append(Layer(header, self.at, values))
        self.at += header.size_bytes
        return values

    def skip(self, name: str, count: int) -> None:
        """Step over octets without a table of their own (options, extension headers)."""
        if self.at + count > self.cap_len:
            raise _StopReadingError(str(Shortfall(name, self.at, count, max(0, self.cap_len - self.at))))
        self.at += count

    def enter_tunnel(self, kind: str, ident: int) -> None:
        """What was read so far becomes the outside of a tunnel."""
        if len(self.out.tunnels) >= MAX_TUNNELS:
            raise _StopReadingError(f"more than {MAX_TUNNELS} tunnels in each other")
        self.out.tunnels.append(Tunnel(kind, ident, self.out.layers))
        self.out.layers = []

    # -- link layers

    def link(self, link_type: int) -> None:
        if link_type == net.LINK_ETHERNET:
            self.ethernet()
        elif link_type in net.LINK_RAW or link_type in (net.LINK_IPV4, net.LINK_IPV6):
            self.raw_ip()
        elif link_type in (net.LINK_SLL, net.LINK_SLL2):
            values = self.take(net.SLL if link_type == net.LINK_SLL else net.SLL2)
            self.ethertype(values["type"])
        elif link_type == net.LINK_INFINIBAND:
            self.infiniband()
        elif link_type == net.LINK_ERF:
            self.erf()
        else:
            self.out.hint = f"linktype-{link_type}"
            self.out.status = f"link type {link_type} is not read"

    def ethernet(self) -> None:
        self.ethertype(self.take(net.ETH)["type"])

    def raw_ip(self) -> None:
        if self.at >= self.cap_len:
            raise _StopReadingError(str(Shortfall("ip", self.at, 20, 0)))
        version = self.octets[self.at] >> 4
        self.ethertype({4: net.ETHERTYPE_IPV4, 6: net.ETHERTYPE_IPV6}.get(version, 0))

    def erf(self) -> None:
        # ERF record header: timestamp 8, type 1, flags 1, rlen 2, loss 2, wlen 2 (Endace ERF types)
        self.skip("erf", 16)
        kind = self.octets[8]
        extensions = 0
        while kind & 0x80 and extensions < 8:  # an extension header's first bit says that one more follows
            self.skip("erf", 8)
            kind = (self.octets[self.at - 8] & 0x80) | kind & 0x7F
            extensions += 1
        if self.octets[8] & 0x7F == 21:
            self.infiniband()
        elif self.octets[8] & 0x7F == 2:
            self.skip("erf", 2)
            self.ethernet()
        else:
            self.out.hint = f"erf-{self.octets[8] & 0x7F}"

    def infiniband(self) -> None:
        self.out.hint = "infiniband"
        start = self.at
        lrh = self.take(ib.LRH)
        # spec: IBTA Vol 1 7.7: packet length counts 4-octet words from the LRH to the ICRC
        self.end = min(start + 4 * lrh["pktlen"], self.wire_len)
        if lrh["lnh"] == 3:
            self.take(ib.GRH)
        if lrh["lnh"] >= 2:
            self.transport(None)
            self.uncheckable("native InfiniBand")

    def ethertype(self, ethertype: int) -> None:
        while ethertype in net.VLAN_TYPES:
            if sum(layer.header is net.VLAN for layer in self.out.layers) >= MAX_VLAN_TAGS:
                raise _StopReadingError(f"more than {MAX_VLAN_TAGS} VLAN tags")
            ethertype = self.take(net.VLAN)["type"]
        match ethertype:
            case net.ETHERTYPE_IPV4:
                self.ipv4()
            case net.ETHERTYPE_IPV6:
                self.ipv6()
            case net.ETHERTYPE_ROCEV1:
                self.rocev1()
            case net.ETHERTYPE_MAC_CONTROL:
                self.mac_control()
            case _:
                self.out.hint = ETHERTYPE_HINTS.get(ethertype) or (
                    f"ethertype-0x{ethertype:04x}" if ethertype >= 0x600 else "802.3"
                )

    def mac_control(self) -> None:
        self.out.hint = "mac-control"
        opcode = self.take(mac_control.MAC_CONTROL)["opcode"]
        if opcode == mac_control.OPCODE_PFC:
            self.take(mac_control.PFC)
            self.out.kind, self.out.hint = "pfc", ""
        elif opcode == mac_control.OPCODE_PAUSE:
            self.take(mac_control.PAUSE)
            self.out.kind, self.out.hint = "pause", ""

    # -- network layers

    def ipv4(self) -> None:
        start = self.at
        values = self.take(net.IPV4)
        if values["version"] != 4 or values["ihl"] < 5:
            raise _StopReadingError(
                f"ip at octet {start}: version {values['version']}, header length {values['ihl']}"
            )
        options = 4 * values["ihl"] - net.IPV4.size_bytes
        self.skip("ip options", options)
        self.length(start, values["len"], self.at - start)
        why = "IPv4 options" if options else ""
        fragment = values["mf"] or values["frag"]
        if fragment and not net.ipv4_checksum_ok(self.octets[start : self.at]):
            # A damaged header says nothing about fragments: read on, the ICRC covers those bits.
            self.out.status = f"ip at octet {start}: header checksum wrong, fragment bits not believed"
            fragment = 0
        self.protocol(
            values["proto"],
            "ipv4",
            start,
            "IP fragment" if fragment else why,
            later_fragment=bool(fragment and values["frag"]),
        )

    def ipv6(self) -> None:
        start = self.at
        values = self.take(net.IPV6)
        if values["version"] != 6:
            raise _StopReadingError(f"ip at octet {start}: version {values['version']}")
        self.length(start, net.IPV6.size_bytes + values["len"], net.IPV6.size_bytes)
        following, why, later_fragment = values["nexthdr"], "", False
        for _ in range(16):
            if following in net.IPV6_EXTENSIONS:
                at = self.at
                self.skip("ipv6 extension", 8)
                self.skip("ipv6 extension", 8 * self.octets[at + 1])
                following, why = self.octets[at], why or "IPv6 extension header"
            elif following == net.IPV6_FRAGMENT:
                at = self.at
                self.skip("ipv6 fragment", 8)
                following, why = self.octets[at], "IP fragment"
                later_fragment = int.from_bytes(self.octets[at + 2 : at + 4], "big") >> 3 > 0
            else:
                break
        self.protocol(following, "ipv6", start, why, later_fragment=later_fragment)

    def length(self, start: int, total: int, header: int) -> None:
        """Obey an IP length field, as far as the frame agrees."""
        if total < header:
            raise _StopReadingError(f"ip at octet {start}: length {total} is less than its own header")
        if start + total > self.end:
            self.out.status = (
                f"ip at octet {start}: length {total} runs past the frame, {self.end - start} left"
            )
        else:
            self.end = start + total

    def protocol(
        self, proto: int, network: icrc.Network, start: int, why: str, *, later_fragment: bool
    ) -> None:
        if later_fragment:
            self.out.hint = "fragment"
        elif proto == net.PROTO_UDP:
            self.udp(network, start, why)
        elif proto == net.PROTO_GRE:
            self.gre()
        else:
            self.out.hint = PROTOCOL_HINTS.get(proto, f"ip-proto-{proto}")
            if proto == net.PROTO_TCP and b"MPA ID Re" in bytes(self.octets[self.at : self.at + 80]):
                self.out.hint = "iwarp"  # RFC 5044 section 7.1: MPA request and reply frames name themselves

    def udp(self, network: icrc.Network, network_offset: int, why: str) -> None:
        self.out.hint = "udp"
        start = self.at
        values = self.take(net.UDP)
        if values["dport"] == net.PORT_VXLAN and self.udp_port != net.PORT_VXLAN:
            self.vxlan()
            return
        if values["dport"] != self.udp_port:
            self.out.hint = net.NEIGHBOUR_PORTS.get(values["dport"], "udp")
            return
        self.out.kind, self.out.hint = "rocev2", ""
        if why == "IP fragment":
            self.out.status = "IP fragment: only the first part of the packet is here"
            self.transport(None, fragment=True)
            self.uncheckable(why)
            return
        udp_end = start + values["len"]
        if udp_end != self.end and self.out.status == "ok":
            self.out.status = (
                f"udp at octet {start}: length {values['len']} disagrees with IP, {self.end - start} there"
            )
        if values["len"] >= net.UDP.size_bytes:
            self.end = min(self.end, udp_end)
        try:
            self.transport(None if why else (network, network_offset))
        finally:
            if why:  # also when a header after the BTH did not fit
                self.uncheckable(why)

    def vxlan(self) -> None:
        values = self.take(net.VXLAN)
        if not values["flags"] & 8:
            return
        self.out.hint = ""
        self.enter_tunnel("vxlan", values["vni"])
        self.ethernet()

    def gre(self) -> None:
        self.out.hint = "gre"
        values = self.take(net.GRE)
        flags, ident = values["flags"], 0
        if flags & 7:  # RFC 2784: version 0
            return
        if flags & (net.GRE_CHECKSUM | net.GRE_ROUTING):
            self.skip("gre checksum", 4)
        if flags & net.GRE_KEY:
            self.skip("gre key", 4)
            ident = int.from_bytes(self.octets[self.at - 4 : self.at], "big")
        if flags & net.GRE_SEQUENCE:
            self.skip("gre sequence", 4)
        match values["type"]:
            case net.ETHERTYPE_ERSPAN if flags & net.GRE_SEQUENCE:
                self.enter_tunnel("erspan2", self.take(net.ERSPAN2)["session"])
                self.ethernet()
            case net.ETHERTYPE_ERSPAN:
                self.enter_tunnel("erspan1", 0)
                self.ethernet()
            case net.ETHERTYPE_ERSPAN3:
                erspan = self.take(net.ERSPAN3)
                if erspan["flags"] & 1:
                    self.skip("erspan subheader", net.ERSPAN3_SUBHEADER_BYTES)
                self.enter_tunnel("erspan3", erspan["session"])
                self.ethernet()
            case net.ETHERTYPE_TEB:
                self.enter_tunnel("gre", ident)
                self.ethernet()
            case net.ETHERTYPE_IPV4 | net.ETHERTYPE_IPV6 as inner:
                self.enter_tunnel("gre", ident)
                self.ethertype(inner)
            case _:
                pass

    # -- transport

    def rocev1(self) -> None:
        start = self.at
        grh = self.take(ib.GRH)
        self.length(start, ib.GRH.size_bytes + grh["paylen"], ib.GRH.size_bytes)
        if grh["nexthdr"] != ib.GRH_NEXT_BTH:
            self.out.hint = f"grh-nexthdr-0x{grh['nexthdr']:02x}"
            self.out.kind = "rocev1"
            self.out.status = f"grh at octet {start}: next header 0x{grh['nexthdr']:02x} is not 0x1b (BTH)"
            return
        self.out.kind = "rocev1"
        self.transport(("grh", start))

    def transport(self, cover: tuple[icrc.Network, int] | None, *, fragment: bool = False) -> None:
        """BTH, the headers its opcode asks for, payload, pads, ICRC."""
        tail = 0 if fragment else ib.ICRC_BYTES
        limit = self.end - tail
        start = self.at
        if self.end - start >= ib.BTH.size_bytes + tail:
            self.read_icrc(cover, start, tail)
        bth = self.take(ib.BTH, limit)
        op = OPCODES.get(bth["opcode"])
        try:
            for header in op.headers if op else ():
                self.take(header, limit)
        finally:
            # what is left is payload, also when a header did not fit
            self.out.payload_offset = self.at
            left = max(0, limit - self.at)
            self.out.padcount = min(bth["padcount"], left) if op and op.payload and not fragment else 0
            self.out.payload_len = left - self.out.padcount
            self.out.trailer_len = max(0, self.cap_len - self.end)
            self.out.telemetry = telemetry.read(bytes(self.octets[self.end : self.cap_len]))
        if op and op.transport == "UD" and not fragment:
            self.management(bth)

    def management(self, bth: dict[str, int]) -> None:
        """Read a datagram's payload as a management datagram where it is one."""
        deth, start = self.out.find(ib.DETH), self.out.payload_offset
        end = min(start + self.out.payload_len, self.cap_len)
        if deth and management.carries(bth, deth.values, self.octets[start:end]):
            self.out.management = management.read(self.octets, start, end)

    def read_icrc(self, cover: tuple[icrc.Network, int] | None, bth_offset: int, tail: int) -> None:
        if not tail:
            return
        at = self.end - tail
        out = self.out.icrc = Icrc()
        if self.end > self.cap_len:
            out.why = "cut by the capture" if self.cap_len < self.wire_len else "frame ends before its ICRC"
            return
        out.value = bytes(self.octets[at : self.end])
        if cover is None:
            return
        self.out.cover = icrc.Coverage(cover[0], cover[1], bth_offset, at)
        out.expected = icrc.compute(self.octets, self.out.cover)

    def uncheckable(self, why: str) -> None:
        """The ICRC's coverage is not defined or not here: say so, never guess."""
        self.out.cover = None
        value = self.out.icrc.value if self.out.icrc else None
        self.out.icrc = Icrc(value, None, why)


ETHERTYPE_HINTS = {
    net.ETHERTYPE_ARP: "arp",
    0x88CC: "lldp",
    0x8847: "mpls",
    0x88F7: "ptp",
    0x8906: "fcoe",
    0x8809: "slow-protocols",
    0: "unknown",
}
PROTOCOL_HINTS = {
    1: "icmp",
    2: "igmp",
    6: "tcp",
    58: "icmpv6",
    59: "ipv6-empty",
    89: "ospf",
    103: "pim",
    132: "sctp",
}


def dissect(
    octets: Octets,
    wire_len: int | None = None,
    link_type: int = net.LINK_ETHERNET,
    udp_port: int = net.PORT_ROCEV2,
) -> Dissection:
    """Read one frame.

    Args:
        octets: The captured octets.
        wire_len: Octets the frame had on the wire; more than captured when the capture cut it.
        link_type: LINKTYPE number of the capture's interface.
        udp_port: Destination port that carries RoCEv2.

    Returns:
        Everything that could be read; `status` is `ok` or says why reading stopped.
    """
    reader = _Reader(octets, len(octets) if wire_len is None else wire_len, udp_port)
    try:
        reader.link(link_type)
    except _StopReadingError as stop:
        reader.out.status = str(stop)
    return reader.out
