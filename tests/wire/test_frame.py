"""Reading frames: every opcode, every cut, every encapsulation, and whatever else arrives."""

from __future__ import annotations

import struct

import pytest
from cases import CASES, IPV4, TAGGED, VALUES
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.wire import ib, net
from roce_pkt.wire.build import mac_control_frame, roce_frame
from roce_pkt.wire.dissection import Dissection
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.mac_control import MAC_CONTROL, PAUSE, PFC
from roce_pkt.wire.opcode import OPCODES
from roce_pkt.wire.present import frame_json, summary, tree

LINK_TYPES = [1, 101, 113, 276, 228, 229, 247, 197, 147]


def show_all(read: Dissection, octets: bytes) -> None:
    """Every way to present a frame works on it."""
    frame_json(read, 1, 0, len(octets), len(octets))
    assert "\n" not in summary(read)
    list(tree(read, len(octets), len(octets)))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_what_was_built_is_read(case):
    frame = case.octets
    read = dissect(frame)
    op = OPCODES[case.opcode]
    assert read.status == "ok"
    assert read.icrc.ok is True
    assert (read.kind, read.bth["opcode"]) == ("rocev1" if case.path.v1 else "rocev2", case.opcode)
    after = [layer.header for layer in read.layers if layer.offset > read.find(ib.BTH).offset]
    assert after[: len(op.headers)] == list(op.headers)
    for header in op.headers:
        expected = {f.name: f.default for f in header.fields} | VALUES[header.name]
        assert read.find(header).values == expected
    assert frame[read.payload_offset :][: read.payload_len] == case.payload
    assert read.padcount == -len(case.payload) % 4
    show_all(read, frame)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_layers_give_the_octets_back(case):
    frame = case.octets
    read = dissect(frame)
    at = 0
    for layer in read.layers:
        assert layer.offset >= at
        assert layer.header.pack(layer.values) == frame[layer.offset : layer.end]
        at = layer.end
    tail = frame[read.payload_offset : read.payload_offset + read.payload_len + read.padcount]
    assert at <= read.payload_offset or read.payload_len == 0
    assert tail == case.payload + bytes(read.padcount)


@pytest.mark.parametrize("opcode", range(256))
def test_every_opcode_at_every_length(opcode):
    """256 opcodes, cut everywhere: by the wire (lengths agree) and by the capture."""
    stack = {h.name: VALUES[h.name] for h in OPCODES[opcode].headers} if opcode in OPCODES else {}
    frame = roce_frame(
        IPV4, opcode, stack, b"" if opcode in OPCODES and not OPCODES[opcode].payload else b"\xa5" * 12
    )
    for size in range(len(frame)):
        cut = dissect(frame[:size], len(frame))
        assert cut.icrc is None or cut.icrc.ok is None
        short = dissect(frame[:size])
        assert short.icrc is None or short.icrc.ok is not True
        assert size < 14 or short.status != "ok" or short.kind == "other"
        if size % 7 == 0:
            show_all(cut, frame[:size])
            show_all(short, frame[:size])


def test_a_cut_names_the_header_and_what_it_lacks():
    frame = roce_frame(IPV4, 0x0A, {"reth": {"dmalen": 8}}, bytes(8))
    assert dissect(frame[:50], len(frame)).status == "bth at octet 42 needs 12 octets, 8 left"
    assert dissect(frame[:60], len(frame)).status == "reth at octet 54 needs 16 octets, 6 left"
    assert dissect(frame[:30], len(frame)).status == "ip at octet 14 needs 20 octets, 16 left"
    assert dissect(frame[:3], len(frame)).status == "eth at octet 0 needs 14 octets, 3 left"
    headers_only = dissect(frame[:70], len(frame))
    assert (headers_only.status, headers_only.icrc.why) == ("ok", "cut by the capture")
    assert headers_only.payload_len == 8


def test_an_ack_without_room_for_its_icrc():
    frame = roce_frame(IPV4, 0x11, {"aeth": {"syndrome": 0x1F}})
    udp = net.UDP.unpack(frame, 34) | {"len": 24}
    ip = net.IPV4.unpack(frame, 14) | {"len": 44, "chksum": 0}
    ip["chksum"] = net.internet_checksum(net.IPV4.pack(ip))
    read = dissect(frame[:14] + net.IPV4.pack(ip) + net.UDP.pack(udp) + frame[42:58])
    assert read.status == "aeth at octet 54 needs 4 octets, 0 left"


@pytest.mark.parametrize("extra", [1, 4, 20])
def test_what_follows_the_packet_is_a_trailer(extra):
    for path in (IPV4, TAGGED):
        frame = roce_frame(path, 0x04, {}, b"abcde")
        read = dissect(frame + b"\xde\xad\xbe\xef"[:1] * extra)
        assert (read.icrc.ok, read.payload_len, read.padcount, read.trailer_len) == (True, 5, 3, extra)


def test_lying_lengths_are_told():
    frame = roce_frame(IPV4, 0x04, {}, b"abcdefgh")

    def changed(ip=None, udp=None):
        fields = net.IPV4.unpack(frame, 14) | (ip or {})
        ports = net.UDP.unpack(frame, 34) | (udp or {})
        return dissect(frame[:14] + net.IPV4.pack(fields) + net.UDP.pack(ports) + frame[42:])

    assert "runs past the frame" in changed(ip={"len": 1000}).status
    assert "is less than its own header" in changed(ip={"len": 19}).status
    assert changed(udp={"len": 9}).status == "bth at octet 42 needs 12 octets, 0 left"
    assert "disagrees with IP" in changed(udp={"len": 28}).status
    assert "disagrees with IP" in changed(udp={"len": 65535}).status
    assert "header length 4" in changed(ip={"ihl": 4}).status
    for read in (changed(ip={"len": 1000}), changed(udp={"len": 65535})):
        assert read.icrc.ok is False


def test_pads_beyond_the_payload_do_not_go_negative():
    frame = bytearray(roce_frame(IPV4, 0x04, {}, b""))
    frame[43] |= 0x30  # padcount 3, and nothing that could be pads
    read = dissect(bytes(frame))
    assert (read.payload_len, read.padcount) == (0, 0)


# -- encapsulations


def _outer_ipv4(proto: int, body: bytes) -> bytes:
    ip = {"len": 20 + len(body), "proto": proto, "src": 1, "dst": 2, "ttl": 9}
    return net.ETH.pack({"type": 0x0800, "src": 7, "dst": 8}) + net.IPV4.pack(ip) + body


INNER = roce_frame(IPV4, 0x04, {"bth": {"psn": 77}}, b"abcdefgh")
GRE_BODIES = {
    "erspan1": struct.pack(">HH", 0, 0x88BE) + INNER,
    "erspan2": struct.pack(">HHI", 0x1000, 0x88BE, 5) + net.ERSPAN2.pack({"session": 300}) + INNER,
    "erspan3": struct.pack(">HHI", 0x1000, 0x22EB, 5) + net.ERSPAN3.pack({"session": 300}) + INNER,
    "erspan3-sub": struct.pack(">HHI", 0x1000, 0x22EB, 5)
    + net.ERSPAN3.pack({"session": 300, "flags": 1}) + bytes(8) + INNER,
    "gre-eth": struct.pack(">HHI", 0x2000, 0x6558, 300) + INNER,
    "gre-ip": struct.pack(">HHI", 0x2000, 0x0800, 300) + INNER[14:],
}  # fmt: skip


def _vxlan() -> bytes:
    body = net.VXLAN.pack({"vni": 300}) + INNER
    return _outer_ipv4(17, net.UDP.pack({"sport": 1, "dport": 4789, "len": 8 + len(body)}) + body)


TUNNELLED = {"vxlan": _vxlan()} | {name: _outer_ipv4(47, body) for name, body in GRE_BODIES.items()}


@pytest.mark.parametrize(("name", "frame"), TUNNELLED.items(), ids=TUNNELLED)
def test_tunnels(name, frame):
    read = dissect(frame + bytes(4))
    assert read.icrc.ok is True
    assert read.bth["psn"] == 77
    assert [t.kind for t in read.tunnels] == [name.split("-")[0]]
    assert read.tunnels[0].ident == (0 if name == "erspan1" else 300)
    document = frame_json(read, 1, 0, len(frame), len(frame))
    assert document["tunnel"][0]["ip"]["ttl"] == 9
    assert document["ip"]["src"] == "10.0.0.1"
    show_all(read, frame)


def test_tunnels_in_tunnels_end():
    frame = INNER
    for _ in range(12):
        body = net.VXLAN.pack({}) + frame
        frame = _outer_ipv4(17, net.UDP.pack({"dport": 4789, "len": 8 + len(body)}) + body)
    assert dissect(frame).status == "more than 4 tunnels in each other"


def test_double_tags():
    qinq = INNER[:12] + bytes.fromhex("88a8 6064 8100 2005".replace(" ", "")) + INNER[12:]
    read = dissect(qinq)
    assert [(v.values["pcp"], v.values["vid"]) for v in read.layers if v.header is net.VLAN] == [
        (3, 100),
        (1, 5),
    ]
    assert read.icrc.ok is True
    many = INNER[:12] + bytes.fromhex("81000001") * 40 + INNER[12:]
    assert dissect(many).status == "more than 8 VLAN tags"


def test_other_link_types():
    raw = INNER[14:]
    assert dissect(raw, link_type=101).icrc.ok is True
    assert dissect(raw, link_type=228).icrc.ok is True
    cooked = net.SLL.pack({"type": 0x0800, "arphrd": 1, "address_len": 6}) + raw
    assert dissect(cooked, link_type=113).icrc.ok is True
    cooked2 = net.SLL2.pack({"type": 0x0800, "arphrd": 1, "address_len": 6}) + raw
    assert dissect(cooked2, link_type=276).icrc.ok is True
    assert dissect(raw, link_type=147).status == "link type 147 is not read"


def test_native_infiniband_is_named_and_read():
    transport = ib.BTH.pack({"opcode": 4, "dqpn": 9, "psn": 3}) + b"abcd" + b"\1\2\3\4"
    lrh = ib.LRH.pack({"lnh": 2, "dlid": 5, "slid": 6, "pktlen": (8 + len(transport)) // 4})
    read = dissect(lrh + transport + b"\xee\xee", link_type=247)
    assert (read.kind, read.hint, read.bth["dqpn"], read.payload_len) == ("other", "infiniband", 9, 4)
    assert (read.icrc.ok, read.icrc.value) == (None, b"\1\2\3\4")
    erf = bytes(8) + bytes([21]) + bytes(7)
    assert dissect(erf + lrh + transport, link_type=197).bth["dqpn"] == 9


def test_neighbours_are_named():
    for port, hint in {4793: "uet", 4794: "veroce", 4792: "unified-bus", 53: "udp"}.items():
        body = net.UDP.pack({"dport": port, "len": 8})
        assert dissect(_outer_ipv4(17, body)).hint == hint
    assert dissect(_outer_ipv4(6, bytes(20) + b"MPA ID Req Frame")).hint == "iwarp"
    assert dissect(_outer_ipv4(6, bytes(20))).hint == "tcp"
    assert dissect(net.ETH.pack({"type": 0x0806}) + bytes(28)).hint == "arp"
    moved = roce_frame(IPV4, 0x04, {"udp": {"dport": 1021}}, b"abcd")
    assert dissect(moved).hint == "udp"
    assert dissect(moved, udp_port=1021).icrc.ok is True


def test_a_grh_that_leads_elsewhere():
    frame = bytearray(roce_frame(CASES[2].path, 0x04, {}, b"abcd"))
    frame[14 + 6] = 17
    read = dissect(bytes(frame))
    assert (read.kind, read.icrc) == ("rocev1", None)
    assert "next header 0x11 is not 0x1b" in read.status


def test_mac_control():
    read = dissect(
        mac_control_frame(1, PAUSE.pack({"quanta": 9}).join([MAC_CONTROL.pack({"opcode": 1}), b""]))
    )
    assert (read.kind, summary(read)) == ("pause", "PAUSE 9 quanta")
    assert dissect(mac_control_frame(1, MAC_CONTROL.pack({"opcode": 6}))).hint == "mac-control"
    short = net.ETH.pack({"type": 0x8808}) + MAC_CONTROL.pack({"opcode": 0x0101}) + bytes(PFC.size_bytes - 1)
    assert dissect(short).status == "pfc at octet 16 needs 18 octets, 17 left"


# -- anything at all


@given(st.binary(max_size=200), st.sampled_from(LINK_TYPES), st.integers(0, 300))
def test_any_octets(octets, link_type, wire_len):
    read = dissect(octets, wire_len, link_type)
    assert read.payload_len >= 0
    assert all(layer.end <= len(octets) for layer in read.all_layers())
    show_all(read, octets)


@given(st.sampled_from([*(c.octets for c in CASES), *TUNNELLED.values()]), st.data())
def test_mutated_frames(frame, data):
    octets = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    read = dissect(bytes(octets), data.draw(st.integers(0, 2000)))
    assert all(layer.end <= len(octets) for layer in read.all_layers())
    assert all(
        layer.header.pack(layer.values) == octets[layer.offset : layer.end] for layer in read.all_layers()
    )
    show_all(read, bytes(octets))
