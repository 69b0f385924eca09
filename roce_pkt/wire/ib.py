"""InfiniBand transport headers as RoCE carries them, octet by octet.

      0                   1                   2                   3
      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
     +---------------+-+-+---+-------+-------------------------------+
 BTH |    opcode     |S|M|Pad| TVer  |            P_Key              |
     +-+-+-----------+-+-+---+-------+-------------------------------+
     |F|B|   resv6   |              destination QP                   |
     +-+-+-----------+-----------------------------------------------+
     |A|    resv7    |                     PSN                       |
     +-+-------------+-----------------------------------------------+

Sources: IBTA Vol 1 chapter 9 as laid out in the Linux kernel (rxe_hdr.h, ib_hdrs.h); FETH from the
summary of IBTA 1.5 annex A19; XRCETH from public XRC implementations.
"""

from __future__ import annotations

from roce_pkt.wire.header import Field, Header

BTH = Header(
    "bth",
    "Base Transport Header",
    Field("opcode", 8, "hex"),
    Field("solicited", 1, title="solicited event"),
    Field("migreq", 1, title="path migration state"),
    Field("padcount", 2, title="pad octets after the payload"),
    Field("version", 4, title="transport version"),
    Field("pkey", 16, "hex", 0xFFFF, "partition key"),
    Field("fecn", 1, title="forward congestion notification"),
    Field("becn", 1, title="backward congestion notification"),
    Field("resv6", 6),
    Field("dqpn", 24, "hex", title="destination queue pair"),
    Field("ackreq", 1, title="acknowledge requested"),
    Field("resv7", 7),
    Field("psn", 24, title="packet sequence number"),
)

GRH = Header(
    "grh",
    "Global Routing Header",
    Field("ipver", 4, default=6),
    Field("tclass", 8, "hex", title="traffic class"),
    Field("flowlabel", 20, "hex"),
    Field("paylen", 16, title="octets after this header, ICRC included"),
    Field("nexthdr", 8, "hex", 0x1B, "0x1b = BTH follows"),
    Field("hoplmt", 8, default=64, title="hop limit"),
    Field("sgid", 128, "ipv6", title="source GID"),
    Field("dgid", 128, "ipv6", title="destination GID"),
)
GRH_NEXT_BTH = 0x1B

LRH = Header(
    "lrh",
    "Local Routing Header",
    Field("vl", 4, title="virtual lane"),
    Field("lver", 4, title="link version"),
    Field("sl", 4, title="service level"),
    Field("resv2", 2),
    Field("lnh", 2, title="link next header: 2 BTH, 3 GRH"),
    Field("dlid", 16, "hex", title="destination LID"),
    Field("resv5", 5),
    Field("pktlen", 11, title="length in 4-octet words"),
    Field("slid", 16, "hex", title="source LID"),
)

RDETH = Header(
    "rdeth", "Reliable Datagram ETH", Field("resv8", 8), Field("eec", 24, "hex", title="EE context")
)
XRCETH = Header("xrceth", "XRC ETH", Field("resv8", 8), Field("srqn", 24, "hex", title="XRC SRQ number"))
DETH = Header(
    "deth",
    "Datagram ETH",
    Field("qkey", 32, "key", title="queue key"),
    Field("resv8", 8),
    Field("sqpn", 24, "hex", title="source queue pair"),
)
RETH = Header(
    "reth",
    "RDMA ETH",
    Field("va", 64, "key", title="virtual address"),
    Field("rkey", 32, "key", title="remote key"),
    Field("dmalen", 32, title="DMA length in octets"),
)
ATOMICETH = Header(
    "atomiceth",
    "Atomic ETH",
    Field("va", 64, "key", title="virtual address"),
    Field("rkey", 32, "key", title="remote key"),
    Field("swap", 64, "key", title="swap (or add) data"),
    Field("compare", 64, "key", title="compare data"),
)
AETH = Header(
    "aeth", "ACK ETH", Field("syndrome", 8, "hex"), Field("msn", 24, title="message sequence number")
)
ATOMICACKETH = Header(
    "atomicacketh", "Atomic ACK ETH", Field("orig", 64, "key", title="original remote data")
)
IMMDT = Header("immdt", "Immediate Data", Field("data", 32, "hex"))
IETH = Header("ieth", "Invalidate ETH", Field("rkey", 32, "key", title="remote key to invalidate"))
FETH = Header(
    "feth",
    "Flush ETH",
    Field("resv26", 26),
    Field("sel", 2, title="selectivity: 0 range, 1 memory region"),
    Field("plt", 4, title="placement: 1 global visibility, 2 persistence"),
)
CNP = Header("cnp", "Congestion Notification Packet body", Field("resv128", 128, "key"))

EXTENDED = (RDETH, XRCETH, DETH, FETH, RETH, ATOMICETH, AETH, ATOMICACKETH, IMMDT, IETH, CNP)
"""Every header that may follow a BTH."""

ICRC_BYTES = 4
GSI_QKEY = 0x80010000
GSI_QPN = 1
MULTICAST_QPN = 0xFFFFFF
PATH_MTUS_BYTES = (256, 512, 1024, 2048, 4096)
