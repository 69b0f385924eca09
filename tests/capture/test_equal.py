"""The compiled columns say what the plain dissection says, of any octets."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roce_pkt import capture
from roce_pkt.capture import compiled, fill, kernel_crc
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.compiled import compiled_batches
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.model import Interface, Record
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.wire import ib, icrc, mac_control, net
from roce_pkt.wire.opcode import OPCODES

CAPTURES = Path(os.environ.get("ROCE_PKT_CAPTURES", "/nonexistent"))


def plain_frames(path, udp_port=4791):
    walk = capture.open(path, udp_port).walk()
    parts = []
    while not walk.over:
        parts.append(fill.plain_batch(walk, udp_port))
    return Frames.concat(parts)


def compiled_frames(path, udp_port=4791):
    walk = capture.open(path, udp_port).walk()
    return Frames.concat(compiled_batches(walk, udp_port, verify=True))


def assert_same(one, other):
    assert len(one) == len(other)
    for column in COLUMNS:
        np.testing.assert_array_equal(one.column(column.name), other.column(column.name), column.name)


def header(table, **values):
    """A header with random fields, except those given."""

    def build(drawn):
        return table.pack(dict(zip((f.name for f in table.fields), drawn, strict=True)) | values)

    return st.tuples(*(st.integers(0, (1 << f.bits) - 1) for f in table.fields)).map(build)


opcodes = st.one_of(st.sampled_from(sorted(OPCODES)), st.integers(0, 255))


@st.composite
def transports(draw):
    """BTH, its extended headers, payload, pads and four octets for the ICRC."""
    code = draw(opcodes)
    pad = draw(st.integers(0, 3))
    parts = [draw(header(ib.BTH, opcode=code, padcount=pad))]
    if code in OPCODES:
        parts += [draw(header(h)) for h in OPCODES[code].headers]
    return b"".join(parts) + draw(st.binary(max_size=70)) + bytes(4)


def length_of(draw, right):
    """Mostly right, sometimes not."""
    return draw(st.one_of(st.just(right), st.just(right), st.integers(0, 0xFFFF)))


@st.composite
def udps(draw, inside, dport):
    size = net.UDP.size_bytes + len(inside)
    return draw(header(net.UDP, dport=dport, len=length_of(draw, size))) + inside


@st.composite
def ips(draw, inside, proto):
    if draw(st.booleans()):
        options = draw(st.sampled_from([b"", b"", b"\x01" * 4, b"\x01" * 40]))
        total = net.IPV4.size_bytes + len(options) + len(inside)
        fragment = draw(
            st.sampled_from([{"mf": 0, "frag": 0}] * 3 + [{"mf": 1, "frag": 0}, {"mf": 0, "frag": 9}])
        )
        fixed = {"version": 4, "ihl": 5 + len(options) // 4, "proto": proto, "len": length_of(draw, total)}
        head = draw(header(net.IPV4, **fixed, **fragment, chksum=0)) + options
        if draw(st.booleans()):
            head = head[:10] + net.internet_checksum(head).to_bytes(2, "big") + head[12:]
        return net.ETHERTYPE_IPV4, head + inside
    extensions = b""
    following = proto
    for kind in draw(st.lists(st.sampled_from([0, 43, 44, 60]), max_size=2)):
        offset = draw(st.sampled_from([0, 0, 8]))
        extensions = bytes([following, 0]) + offset.to_bytes(2, "big") + bytes(4) + extensions
        following = kind
    size = len(extensions) + len(inside)
    head = draw(header(net.IPV6, version=6, nexthdr=following, len=length_of(draw, size)))
    return net.ETHERTYPE_IPV6, head + extensions + inside


def seal(network, octets):
    """Put the right ICRC at the end of an IP packet or GRH without options."""
    size = icrc.NETWORK_HEADERS[network].size_bytes + (0 if network == "grh" else net.UDP.size_bytes)
    cover = icrc.Coverage(network, 0, size, len(octets) - 4)
    return octets[:-4] + icrc.compute(octets, cover)


@st.composite
def layer3(draw, depth=2):
    """EtherType and octets of a network layer."""
    choice = draw(
        st.sampled_from(["roce", "roce", "roce", "v1", "pfc", "pause", "tcp", "udp", "arp", "tunnel", "junk"])
    )
    match choice:
        case "roce":
            kind, octets = draw(ips(draw(udps(draw(transports()), 4791)), 17))
            network = "ipv4" if kind == net.ETHERTYPE_IPV4 else "ipv6"
            return kind, seal(network, octets) if draw(st.booleans()) else octets
        case "v1":
            inside = draw(transports())
            following = draw(st.sampled_from([0x1B, 0x1B, 17]))
            octets = draw(header(ib.GRH, nexthdr=following, paylen=length_of(draw, len(inside)))) + inside
            return net.ETHERTYPE_ROCEV1, seal("grh", octets) if draw(st.booleans()) else octets
        case "pfc":
            return net.ETHERTYPE_MAC_CONTROL, b"\x01\x01" + draw(header(mac_control.PFC))
        case "pause":
            return net.ETHERTYPE_MAC_CONTROL, b"\x00\x01" + draw(header(mac_control.PAUSE))
        case "tcp":
            return draw(
                ips(bytes(20) + draw(st.sampled_from([b"", b"MPA ID Req Frame"])), draw(st.integers(0, 255)))
            )
        case "udp":
            return draw(ips(draw(udps(draw(st.binary(max_size=20)), draw(st.integers(4785, 4797)))), 17))
        case "tunnel" if depth:
            return draw(tunnels(depth))
        case "arp":
            return 0x0806, bytes(28)
        case _:
            return draw(st.integers(0, 0xFFFF)), draw(st.binary(max_size=60))


@st.composite
def tunnels(draw, depth):
    kind = draw(st.sampled_from(["vxlan", "gre", "ip", "erspan1", "erspan2", "erspan3"]))
    if kind == "ip":
        inner_type, inner = draw(layer3(depth - 1))
        return draw(ips(bytes(2) + inner_type.to_bytes(2, "big") + inner, 47))
    inner = draw(ethernets(depth - 1))
    if kind == "vxlan":
        return draw(
            ips(draw(udps(draw(header(net.VXLAN, flags=draw(st.sampled_from([8, 8, 0])))) + inner, 4789)), 17)
        )
    flags, optional = 0, b""
    for bit, octets in ((net.GRE_CHECKSUM, 4), (net.GRE_KEY, 4)):
        if draw(st.integers(0, 3)) == 0:
            flags, optional = flags | bit, optional + draw(st.binary(min_size=octets, max_size=octets))
    if kind in ("erspan2", "erspan3"):
        flags, optional = flags | net.GRE_SEQUENCE, optional + bytes(4)
    match kind:
        case "erspan1" | "erspan2":
            ethertype = net.ETHERTYPE_ERSPAN
            inner = (draw(header(net.ERSPAN2)) if kind == "erspan2" else b"") + inner
        case "erspan3":
            ethertype, more = net.ETHERTYPE_ERSPAN3, draw(st.integers(0, 1))
            inner = draw(header(net.ERSPAN3, flags=more)) + bytes(8 * more) + inner
        case _:
            ethertype = net.ETHERTYPE_TEB
    return draw(ips(flags.to_bytes(2, "big") + ethertype.to_bytes(2, "big") + optional + inner, 47))


@st.composite
def ethernets(draw, depth=2):
    kind, octets = draw(layer3(depth))
    tags = b""
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2, 3, 9]))):
        tags = draw(header(net.VLAN, type=kind)) + tags
        kind = draw(st.sampled_from(net.VLAN_TYPES))
    return draw(header(net.ETH, type=kind)) + tags + octets


@st.composite
def linked(draw):
    """Link type and octets of a frame."""
    link = draw(st.sampled_from([1] * 8 + [12, 101, 113, 197, 228, 229, 247, 276, 9]))
    if link == 1:
        octets = draw(ethernets())
    elif link in (113, 276):
        kind, inside = draw(layer3())
        octets = draw(header(net.SLL if link == 113 else net.SLL2, type=kind)) + inside
    elif link in (197, 247):
        inside = draw(transports())
        grh = draw(st.sampled_from([b"", bytes(40)]))
        lnh = draw(st.sampled_from([2, 3, 0])) if not grh else 3
        octets = draw(header(ib.LRH, lnh=lnh, pktlen=(8 + len(grh) + len(inside)) // 4)) + grh + inside
        if link == 197:
            kind = draw(st.sampled_from([21, 21, 2, 0x80 | 21, 7]))
            octets = bytes(8) + bytes([kind]) + bytes(7) + bytes(8 * (kind > 0x80) + 2 * (kind == 2)) + octets
    else:
        octets = draw(layer3())[1]
    trailer = draw(st.sampled_from([b"", b"", b"\xde\xad\xbe\xef", bytes(20)]))
    octets += trailer
    cut = draw(st.one_of(st.none(), st.none(), st.integers(0, len(octets))))
    wire_len = len(octets) + draw(st.sampled_from([0, 0, 0, 5, -3]))
    octets = octets[:cut]
    if octets and draw(st.integers(0, 7)) == 0:
        at = draw(st.integers(0, len(octets) - 1))
        octets = octets[:at] + bytes([octets[at] ^ 1 << draw(st.integers(0, 7))]) + octets[at + 1 :]
    return link, octets, max(0, wire_len)


def write(path, frames, ns=1_700_000_000_123_456_789):
    links = sorted({link for link, _, _ in frames})
    interfaces = [Interface(f"i{link}", link) for link in links]
    records = [
        Record(n + 1, ns + n, links.index(link), link, len(octets), wire_len, octets)
        for n, (link, octets, wire_len) in enumerate(frames)
    ]
    write_pcapng(path, records, interfaces, force=True)


@settings(
    max_examples=int(os.environ.get("ROCE_PKT_EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(frames=st.lists(linked(), min_size=1, max_size=12))
def test_both_fillers_agree_on_made_frames(tmp_path_factory, frames):
    path = tmp_path_factory.getbasetemp() / "made.pcapng"
    write(path, frames)
    one, other = plain_frames(path), compiled_frames(path)
    assert one.kernel == "plain"
    assert other.kernel == "compiled"
    assert_same(one, other)


@pytest.mark.parametrize("way", [0, kernel_crc.isal_address()], ids=["tables", "isal"])
def test_other_ways_to_compute_a_crc_say_the_same(monkeypatch, way):
    path = Path(__file__).parents[2] / "pcaps" / "corrupt_req_5pct.pcap"
    fast = compiled_frames(path)
    monkeypatch.setattr(compiled, "crc_way", lambda: way)
    assert_same(compiled_frames(path), fast)
    assert set(fast.icrc_ok.tolist()) == {-1, 0, 1}


def test_the_crc_of_the_wheel_is_believed_only_after_a_test(monkeypatch):
    assert kernel_crc.isal_address() != 0
    monkeypatch.setattr(kernel_crc.zlib, "crc32", lambda octets, seed=0: 5)
    assert kernel_crc.isal_address.__wrapped__() == 0


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="ROCE_PKT_CAPTURES names no folder of captures")
def test_both_fillers_agree_on_every_capture_of_a_folder():
    paths = sorted(CAPTURES.glob("*.pcap*"))
    assert paths
    for path in paths:
        assert_same(plain_frames(path), compiled_frames(path))
