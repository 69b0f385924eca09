"""The columns: one row of this table for each, with the header field it comes from.

Both fillers (plain and compiled), `Frames`, `--where`, `--fields` and the Parquet export are made
from this table; offsets, shifts and masks come from the header tables of `roce_pkt.wire`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from roce_pkt.wire import frame, ib, mac_control, net
from roce_pkt.wire.header import Header

Type = Literal["i1", "u1", "u2", "u4", "u8", "i8"]
Part = Literal["", "hi", "lo"]
Show = Literal["dec", "hex", "mac", "name"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `Frames`.

    Args:
        name: Attribute, `--where`, `--fields` and Parquet name.
        dtype: numpy type of one element, without byte order.
        doc: What it holds.
        sources: (header, field) pairs it is read from; the innermost header of the frame counts.
        part: Which half of a 128-bit address.
        index: Which of several headers of the kind (VLAN tags).
        width: Elements in a row; 8 for the PFC quanta.
        show: How people read it.
    """

    name: str
    dtype: Type
    doc: str
    sources: tuple[tuple[Header, str], ...] = ()
    part: Part = ""
    index: int = 0
    width: int = 1
    show: Show = "dec"

    @property
    def row_bytes(self) -> int:
        """Octets of one row."""
        return int(self.dtype[1]) * self.width


def _of(header: Header, name: str, dtype: Type, source: str = "", show: Show = "dec") -> Column:
    """A column that is one field of one header; its text is the field's title."""
    source = source or name
    found = header.field(source)
    shown: Show = "hex" if found.show in ("hex", "key") else show
    return Column(name, dtype, found.title or f"{header.name} {source}", ((header, source),), show=shown)


_IP = (net.IPV4, net.IPV6)
_IPV4_PROTO, _IPV6_NEXT = (net.IPV4, "proto"), (net.IPV6, "nexthdr")


def _ip(name: str, dtype: Type, source: str, doc: str, show: Show = "dec") -> Column:
    return Column(name, dtype, doc, tuple((header, source) for header in _IP), show=show)


def _address(name: str, source: str, gid: str, part: Part, doc: str) -> Column:
    sources = ((net.IPV4, source), (net.IPV6, source), (ib.GRH, gid))
    return Column(f"{name}_{part}", "u8", doc, sources, part, show="hex")


def _vlan(name: str, dtype: Type, source: str, index: int) -> Column:
    which = "outer" if index == 0 else "inner"
    return Column(name, dtype, f"{which} VLAN tag: {source}", ((net.VLAN, source),), index=index)


COLUMNS: tuple[Column, ...] = (
    # the record
    Column("number", "i8", "1-based frame number"),
    Column("time_ns", "i8", "nanoseconds since 1970"),
    Column("offset", "u8", "octet offset of the frame in the (unpacked) capture"),
    Column("wire_len", "u4", "octets on the wire"),
    Column("cap_len", "u4", "octets captured"),
    Column("interface_id", "u2", "index into the capture's interfaces"),
    Column("link_type", "u2", "LINKTYPE number of the interface"),
    # what it is
    Column("kind", "u1", "other, rocev2, rocev1, pfc or pause", show="name"),
    Column("hint", "u1", "for other frames, what they look like", show="name"),
    Column("hint_value", "u2", "number that goes with the hint, e.g. the EtherType"),
    Column("status", "u1", "ok, or why decoding stopped", show="name"),
    Column("headers", "u4", "bit set of the headers that are there", show="hex"),
    # link
    _of(net.ETH, "eth_dst", "u8", "dst", "mac"),
    _of(net.ETH, "eth_src", "u8", "src", "mac"),
    _of(net.ETH, "eth_type", "u2", "type"),
    Column("vlan_count", "u1", "VLAN tags"),
    _vlan("pcp", "u1", "pcp", 0),
    _vlan("dei", "u1", "dei", 0),
    _vlan("vid", "u2", "vid", 0),
    _vlan("pcp2", "u1", "pcp", 1),
    _vlan("dei2", "u1", "dei", 1),
    _vlan("vid2", "u2", "vid", 1),
    _of(ib.LRH, "vl", "u1"),
    _of(ib.LRH, "sl", "u1"),
    _of(ib.LRH, "lnh", "u1"),
    _of(ib.LRH, "pktlen", "u2"),
    _of(ib.LRH, "dlid", "u2"),
    _of(ib.LRH, "slid", "u2"),
    # the outermost tunnel
    Column("tunnel_count", "u1", "tunnels around the frame"),
    Column("tunnel_kind", "u1", "outermost tunnel: vxlan, gre, erspan1, erspan2 or erspan3", show="name"),
    Column("tunnel_id", "u4", "VNI, GRE key or ERSPAN session of the outermost tunnel"),
    Column("outer_src_hi", "u8", "source of the outermost tunnel, upper half", show="hex"),
    Column("outer_src_lo", "u8", "source of the outermost tunnel, lower half", show="hex"),
    Column("outer_dst_hi", "u8", "destination of the outermost tunnel, upper half", show="hex"),
    Column("outer_dst_lo", "u8", "destination of the outermost tunnel, lower half", show="hex"),
    # network
    _ip("ip_version", "u1", "version", "4, 6, or 0 without IP"),
    _address("src", "src", "sgid", "hi", "source address or GID, upper half; IPv4 as ::ffff:a.b.c.d"),
    _address("src", "src", "sgid", "lo", "source address or GID, lower half"),
    _address("dst", "dst", "dgid", "hi", "destination address or GID, upper half"),
    _address("dst", "dst", "dgid", "lo", "destination address or GID, lower half"),
    _ip("dscp", "u1", "dscp", "differentiated services code point"),
    _ip("ecn", "u1", "ecn", "0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
    _ip("ttl", "u1", "ttl", "time to live or hop limit"),
    _ip("ip_len", "u2", "len", "IPv4: octets with the header; IPv6: octets after it"),
    _of(net.IPV4, "ip_id", "u2", "id"),
    _of(net.IPV4, "df", "u1"),
    _of(net.IPV4, "mf", "u1"),
    _of(net.IPV4, "frag", "u2"),
    _of(net.IPV4, "ip_chksum", "u2", "chksum"),
    Column(
        "ip_proto", "u1", "IPv4 protocol or IPv6 next header", ((net.IPV4, "proto"), (net.IPV6, "nexthdr"))
    ),
    Column("flowlabel", "u4", "IPv6 or GRH flow label", ((net.IPV6, "flowlabel"), (ib.GRH, "flowlabel"))),
    _of(net.UDP, "sport", "u2"),
    _of(net.UDP, "dport", "u2"),
    _of(net.UDP, "udp_len", "u2", "len"),
    _of(net.UDP, "udp_chksum", "u2", "chksum"),
    _of(ib.GRH, "tclass", "u1"),
    _of(ib.GRH, "paylen", "u2"),
    _of(ib.GRH, "nexthdr", "u1"),
    _of(ib.GRH, "hoplmt", "u1"),
    # transport
    _of(ib.BTH, "opcode", "u1"),
    _of(ib.BTH, "solicited", "u1"),
    _of(ib.BTH, "migreq", "u1"),
    _of(ib.BTH, "padcount", "u1"),
    _of(ib.BTH, "bth_version", "u1", "version"),
    _of(ib.BTH, "pkey", "u2"),
    _of(ib.BTH, "fecn", "u1"),
    _of(ib.BTH, "becn", "u1"),
    _of(ib.BTH, "resv6", "u1"),
    _of(ib.BTH, "dqpn", "u4"),
    _of(ib.BTH, "ackreq", "u1"),
    _of(ib.BTH, "resv7", "u1"),
    _of(ib.BTH, "psn", "u4"),
    _of(ib.RDETH, "eec", "u4"),
    _of(ib.XRCETH, "srqn", "u4"),
    _of(ib.DETH, "qkey", "u4"),
    _of(ib.DETH, "sqpn", "u4"),
    Column("va", "u8", "virtual address", ((ib.RETH, "va"), (ib.ATOMICETH, "va")), show="hex"),
    Column("rkey", "u4", "remote key", ((ib.RETH, "rkey"), (ib.ATOMICETH, "rkey")), show="hex"),
    _of(ib.RETH, "dmalen", "u4"),
    _of(ib.ATOMICETH, "swap", "u8"),
    _of(ib.ATOMICETH, "compare", "u8"),
    _of(ib.AETH, "syndrome", "u1"),
    _of(ib.AETH, "msn", "u4"),
    _of(ib.ATOMICACKETH, "orig", "u8"),
    _of(ib.IMMDT, "imm", "u4", "data"),
    _of(ib.IETH, "inv_rkey", "u4", "rkey"),
    _of(ib.FETH, "sel", "u1"),
    _of(ib.FETH, "plt", "u1"),
    # places in the frame
    Column("l3_offset", "u2", "first octet of the IP header or GRH"),
    Column("bth_offset", "u2", "first octet of the BTH"),
    Column("payload_offset", "u2", "first payload octet"),
    Column("payload_len", "u4", "payload octets on the wire, pads excluded"),
    Column("trailer_len", "u4", "captured octets behind the last one that the length fields speak for"),
    Column("icrc", "u4", "ICRC, wire octets read big-endian", show="hex"),
    Column("icrc_ok", "i1", "1 right, 0 wrong, -1 cannot be checked"),
    # pauses
    _of(mac_control.PFC, "pfc_enabled", "u1", "enable"),
    Column(
        "pfc_quanta",
        "u2",
        "pause quanta of class 0 to 7",
        tuple((mac_control.PFC, f"quanta{n}") for n in range(mac_control.CLASSES)),
        width=mac_control.CLASSES,
    ),
    _of(mac_control.PAUSE, "pause_quanta", "u2", "quanta"),
)
BY_NAME = {column.name: column for column in COLUMNS}

HEADERS: tuple[Header, ...] = (
    net.ETH, net.VLAN, net.SLL, net.SLL2, ib.LRH, net.IPV4, net.IPV6, net.UDP, ib.GRH, ib.BTH,
    *ib.EXTENDED, mac_control.MAC_CONTROL, mac_control.PFC, mac_control.PAUSE,
)  # fmt: skip
"""Headers with a bit in the `headers` column; bit n is the n-th."""
HEADER_BITS = {id(header): 1 << n for n, header in enumerate(HEADERS)}


def header_bit(header: Header) -> int:
    """The bit of a header in the `headers` column; 0 for one that has none."""
    return HEADER_BITS.get(id(header), 0)


def presence_mask(column: Column) -> int:
    """Bits of which one must be set for the column to mean something; 0 for columns that always do."""
    return sum({header_bit(header) for header, _ in column.sources})


# -- codes

KINDS = ("other", "rocev2", "rocev1", "pfc", "pause")
KIND_OTHER, KIND_ROCEV2, KIND_ROCEV1, KIND_PFC, KIND_PAUSE = range(len(KINDS))

TUNNELS = ("", "vxlan", "gre", "erspan1", "erspan2", "erspan3")

GENERIC_HINTS = {
    "ethertype": "0x{:04x}",
    "ip-proto": "{}",
    "linktype": "{}",
    "erf": "{}",
    "grh-nexthdr": "0x{:02x}",
}
"""Hints that carry a number, and how it is written."""
HINTS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            "",
            *("802.3", "udp", "gre", "fragment", "iwarp", "infiniband", "mac-control"),
            *frame.ETHERTYPE_HINTS.values(),
            *frame.PROTOCOL_HINTS.values(),
            *net.NEIGHBOUR_PORTS.values(),
            *GENERIC_HINTS,
        )
    )
)
HINT_CODES = {hint: code for code, hint in enumerate(HINTS)}


def hint_text(code: int, value: int) -> str:
    """A hint as `Dissection.hint` says it."""
    hint = HINTS[code]
    return f"{hint}-{GENERIC_HINTS[hint].format(value)}" if hint in GENERIC_HINTS else hint


def hint_code(text: str) -> tuple[int, int]:
    """Code and number of a hint text."""
    if text in HINT_CODES:
        return HINT_CODES[text], 0
    hint, _, number = text.rpartition("-")
    return HINT_CODES[hint], int(number, 0)


@dataclass(frozen=True, slots=True)
class Status:
    """Why decoding a frame stopped, or what is odd about it.

    Args:
        name: Short name.
        pattern: What `Dissection.status` says then.
    """

    name: str
    pattern: re.Pattern[str] = field(repr=False)


def _status(name: str, pattern: str) -> Status:
    return Status(name, re.compile(pattern))


STATUSES = (
    _status("ok", r"^ok$"),
    _status("cut", r" needs \d+ octets, \d+ left$"),
    _status("ip-version", r"^ip at octet \d+: version"),
    _status("ip-length-short", r"is less than its own header$"),
    _status("ip-length-long", r"runs past the frame"),
    _status("udp-length", r"disagrees with IP"),
    _status("fragment", r"^IP fragment"),
    _status("fragment-unbelieved", r"fragment bits not believed$"),
    _status("grh-nexthdr", r"is not 0x1b"),
    _status("link-type", r"^link type \d+ is not read$"),
    _status("too-deep", r"^more than \d+ (tunnels|VLAN)"),
)
STATUS_NAMES = tuple(status.name for status in STATUSES)
STATUS_CODES = {name: code for code, name in enumerate(STATUS_NAMES)}


def status_code(text: str) -> int:
    """The code of a status text.

    Raises:
        ValueError: A status that this table does not know.
    """
    for code, status in enumerate(STATUSES):
        if status.pattern.search(text):
            return code
    raise ValueError(f"unknown status {text!r}")


NAMES_OF: dict[str, tuple[str, ...]] = {
    "kind": KINDS,
    "hint": HINTS,
    "status": STATUS_NAMES,
    "tunnel_kind": TUNNELS,
}
"""Names of the columns that hold codes."""
