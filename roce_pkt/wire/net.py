"""The headers around RoCE: Ethernet, VLAN, IPv4, IPv6, UDP, and the tunnels a mirror port adds.

Sources: IEEE 802.3 and 802.1Q; RFC 791, 8200, 768; RFC 7348 (VXLAN); RFC 2784 and 2890 (GRE);
draft-foschiano-erspan for ERSPAN I, II and III.
"""

from __future__ import annotations

from roce_pkt.wire.header import Field, Header, Octets

ETH = Header(
    "eth",
    "Ethernet",
    Field("dst", 48, "mac"),
    Field("src", 48, "mac"),
    Field("type", 16, "hex"),
)
VLAN = Header(
    "vlan",
    "802.1Q tag",
    Field("pcp", 3, title="priority code point"),
    Field("dei", 1, title="drop eligible"),
    Field("vid", 12, title="VLAN"),
    Field("type", 16, "hex"),
)
IPV4 = Header(
    "ip",
    "IPv4",
    Field("version", 4, default=4),
    Field("ihl", 4, default=5, title="header length in 4-octet words"),
    Field("dscp", 6),
    Field("ecn", 2, title="0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
    Field("len", 16, title="octets, this header included"),
    Field("id", 16, "hex"),
    Field("resv1", 1),
    Field("df", 1, title="do not fragment"),
    Field("mf", 1, title="more fragments"),
    Field("frag", 13, title="fragment offset in 8 octets"),
    Field("ttl", 8, default=64),
    Field("proto", 8, default=17),
    Field("chksum", 16, "hex"),
    Field("src", 32, "ipv4"),
    Field("dst", 32, "ipv4"),
)
IPV6 = Header(
    "ip",
    "IPv6",
    Field("version", 4, default=6),
    Field("dscp", 6),
    Field("ecn", 2, title="0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
    Field("flowlabel", 20, "hex"),
    Field("len", 16, title="octets after this header"),
    Field("nexthdr", 8, default=17),
    Field("ttl", 8, default=64, title="hop limit"),
    Field("src", 128, "ipv6"),
    Field("dst", 128, "ipv6"),
)
UDP = Header(
    "udp",
    "UDP",
    Field("sport", 16),
    Field("dport", 16, default=4791),
    Field("len", 16, title="octets, this header included"),
    Field("chksum", 16, "hex"),
)
VXLAN = Header(
    "vxlan", "VXLAN", Field("flags", 8, "hex", 8), Field("resv24", 24), Field("vni", 24), Field("resv8", 8)
)
GRE = Header("gre", "GRE", Field("flags", 16, "hex"), Field("type", 16, "hex"))
ERSPAN2 = Header(
    "erspan",
    "ERSPAN type II",
    Field("version", 4, default=1),
    Field("vlan", 12),
    Field("cos", 3),
    Field("encap", 2),
    Field("truncated", 1),
    Field("session", 10),
    Field("resv12", 12),
    Field("index", 20),
)
ERSPAN3 = Header(
    "erspan",
    "ERSPAN type III",
    Field("version", 4, default=2),
    Field("vlan", 12),
    Field("cos", 3),
    Field("bso", 2),
    Field("truncated", 1),
    Field("session", 10),
    Field("timestamp", 32),
    Field("sgt", 16),
    Field("flags", 16, "hex"),
)
ERSPAN3_SUBHEADER_BYTES = 8
SLL = Header(
    "sll",
    "Linux cooked capture",
    Field("packet_type", 16),
    Field("arphrd", 16),
    Field("address_len", 16),
    Field("address", 64, "hex"),
    Field("type", 16, "hex"),
)
SLL2 = Header(
    "sll",
    "Linux cooked capture v2",
    Field("type", 16, "hex"),
    Field("resv16", 16),
    Field("interface", 32),
    Field("arphrd", 16),
    Field("packet_type", 8),
    Field("address_len", 8),
    Field("address", 64, "hex"),
)

ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_ROCEV1 = 0x8915
ETHERTYPE_MAC_CONTROL = 0x8808
ETHERTYPE_TEB = 0x6558
ETHERTYPE_ERSPAN = 0x88BE
ETHERTYPE_ERSPAN3 = 0x22EB
VLAN_TYPES = (0x8100, 0x88A8, 0x9100)

PROTO_TCP = 6
PROTO_UDP = 17
PROTO_GRE = 47
# Extension headers whose length octet counts 8-octet units after the first (RFC 8200 section 4).
IPV6_EXTENSIONS = (0, 43, 60, 135, 139, 140)
IPV6_FRAGMENT = 44

PORT_ROCEV2 = 4791
PORT_VXLAN = 4789
NEIGHBOUR_PORTS = {4792: "unified-bus", 4793: "uet", 4794: "veroce"}
"""UDP ports beside RoCEv2's (IANA) that are often taken for it."""

GRE_CHECKSUM, GRE_ROUTING, GRE_KEY, GRE_SEQUENCE = 0x8000, 0x4000, 0x2000, 0x1000

ECN_NAMES = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")  # RFC 3168 section 5
NOT_ECT, ECT_1, ECT_0, CE = 0, 1, 2, 3

LINK_ETHERNET = 1
LINK_RAW = (12, 14, 101)
LINK_IPV4 = 228
LINK_IPV6 = 229
LINK_SLL = 113
LINK_SLL2 = 276
LINK_INFINIBAND = 247
LINK_ERF = 197


def internet_checksum(octets: Octets) -> int:
    """The ones' complement sum of RFC 1071 over `octets`, complemented."""
    data = bytes(octets) + b"\0" * (len(octets) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4_checksum_ok(header: Octets) -> bool:
    """True when an IPv4 header, its checksum included, sums to zero."""
    return internet_checksum(header) == 0
