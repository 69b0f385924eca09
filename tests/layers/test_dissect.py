"""What dissection gives: the stack by opcode, pads and ICRC by length, and the octets back."""

from typing import ClassVar

import pytest
from scapy.fields import IntField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import CookedLinux, Ether
from scapy.packet import Packet, Padding, Raw, bind_layers, split_layers

from roce_pkt.layers import AETH, BTH, GRH, RETH, bind, cnp, unbind
from roce_pkt.layers.extended import LAYERS
from roce_pkt.wire.opcode import OPCODES

pytestmark = pytest.mark.usefixtures("strict_scapy")


@pytest.mark.parametrize("kind", ["ipv4", "ipv6", "grh"])
def test_opcode_decides_the_stack(lower, stack, kind, header_values):
    for value, op in OPCODES.items():
        octets = bytes(lower(kind) / stack(value, b"payload"))
        packet = Ether(octets)
        layers = [type(p) for p in packet[BTH].iterpayloads()][1:]
        assert layers == [LAYERS[h.name] for h in op.headers] + [Raw] * op.payload, op.name
        for header in op.headers:
            for name, wanted in header_values[header.name].items():
                assert getattr(packet[LAYERS[header.name]], name) == wanted
        if op.payload:
            assert packet[Raw].load == b"payload"
            assert (packet[BTH].padcount, packet[BTH].pad) == (1, b"\0")
        assert packet[BTH].icrc_ok is True, op.name
        assert bytes(packet) == octets


def test_unknown_opcodes_have_a_raw_payload(lower, stack):
    for value in set(range(256)) - OPCODES.keys():
        octets = bytes(lower("ipv4") / stack(value, b"vendor"))
        packet = Ether(octets)
        assert packet[BTH].opcode == value
        assert packet[BTH].payload.load == b"vendor"
        assert packet[BTH].icrc_ok is True
        assert f"0x{value:02x}" in packet.summary()
        assert bytes(packet) == octets


def test_v1_trailer_is_padding_and_not_the_icrc(lower):
    octets = bytes(lower("grh") / BTH(dqpn=1) / b"abcd")
    packet = Ether(octets + b"\xde\xad\xbe\xef")
    assert packet[Padding].load == b"\xde\xad\xbe\xef"
    assert packet[Raw].load == b"abcd"
    assert packet[BTH].icrc == int.from_bytes(octets[-4:], "big")
    assert packet[BTH].icrc_ok is True
    assert bytes(packet) == octets + b"\xde\xad\xbe\xef"


def test_v1_with_another_next_header_is_not_a_bth(lower):
    packet = Ether(bytes(lower("grh") / BTH())[:20] + b"\x11" + bytes(lower("grh") / BTH())[21:])
    assert packet[GRH].nexthdr == 0x11
    assert BTH not in packet


@pytest.mark.parametrize("kind", ["ipv4", "ipv6", "grh"])
def test_a_wrong_icrc_is_visible(lower, kind):
    octets = bytes(lower(kind) / BTH(dqpn=1) / b"abcd")
    good, bad = Ether(octets), Ether(octets[:-5] + bytes([octets[-5] ^ 1]) + octets[-4:])
    assert "(right)" in good.show(dump=True)
    assert "WRONG" not in good.show(dump=True) + good.summary()
    assert bad[BTH].icrc_ok is False
    assert f"WRONG, should be 0x{bad[BTH].icrc_expected:08x}" in bad.show(dump=True)
    assert "ICRC WRONG" in bad.summary()
    del bad[BTH].icrc
    assert Ether(bytes(bad))[BTH].icrc_ok is True


def test_first_fragment_has_no_icrc(lower):
    octets = bytes(lower("ipv4") / BTH(dqpn=1, psn=9) / bytes(range(64)))
    first = bytearray(octets[: 14 + 20 + 40])
    first[16:18] = (60).to_bytes(2, "big")
    first[20] |= 0x20
    packet = Ether(bytes(first))
    assert packet[BTH].psn == 9
    assert packet[BTH].icrc == b""
    assert packet[BTH].icrc_ok is None
    assert packet[Raw].load == bytes(range(20))
    assert "WRONG" not in packet.summary() + packet.show(dump=True)
    assert bytes(packet) == bytes(first)


def test_ipv6_extension_headers_leave_the_icrc_unchecked():
    base = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IPv6(src="fd00::1", dst="fd00::2")
    plain = Ether(bytes(base / IPv6ExtHdrHopByHop() / UDP() / BTH(icrc=0x01020304) / b"abcd"))
    assert plain[BTH].icrc == 0x01020304
    assert plain[Raw].load == b"abcd"
    assert plain[BTH].icrc_ok is None
    assert "cannot be checked: IPv6 extension header" in plain.show(dump=True)
    fragment = Ether(bytes(base / IPv6ExtHdrFragment(m=1) / UDP() / BTH(icrc=0x01020304) / b"abcd"))
    assert fragment[BTH].icrc == b""
    assert fragment[BTH].icrc_ok is None
    for packet in (plain, fragment):
        assert "WRONG" not in packet.summary()


@pytest.mark.parametrize("kind", ["ipv4", "ipv6", "grh"])
def test_cut_frames_show_what_is_there(lower, kind):
    octets = bytes(lower(kind) / BTH(dqpn=1) / RETH() / b"abcde")
    for missing in range(1, 12):
        packet = Ether(octets[:-missing])
        assert bytes(packet) == octets[:-missing]
        assert packet[BTH].icrc_ok is None
        assert packet[BTH].icrc == octets[-4 : len(octets) - missing]
        assert packet[Raw].load == b"abcde"[: max(0, 5 + 7 - missing)]
        assert "WRONG" not in packet.summary() + packet.show(dump=True)
        assert bytes(packet.copy()) == octets[:-missing]


@pytest.mark.parametrize("sport", [53, 123, 161, 500, 1812, 4789, 4791, 0])
def test_any_source_port_is_roce(lower, sport):
    packet = lower("ipv4")
    packet[UDP].sport = sport
    back = Ether(bytes(packet / BTH(dqpn=3)))
    assert back[BTH].dqpn == 3


def test_words_of_show_and_summary(lower):
    for syndrome, text in ((0x60, "NAK, PSN sequence error"), (0x2C, "wait 0.64 ms"), (0x07, "12 credits")):
        packet = Ether(bytes(lower("ipv4") / BTH(dqpn=0x11, psn=7) / AETH(syndrome=syndrome, msn=2)))
        assert text in packet.show(dump=True)
        assert text in packet.summary()
        assert "RC_ACKNOWLEDGE qp 0x11 psn 7" in packet.summary()
        assert "10.0.0.1:49152 > 10.0.0.2:4791" in packet.summary()
    assert "CNP qp 0x5" in (lower("ipv6") / cnp(5)).summary()
    assert "GRH fe80::1 > fe80::2" in (lower("grh") / BTH()).summary()


def test_every_opcode_has_words(lower, stack):
    for value, op in OPCODES.items():
        packet = Ether(bytes(lower("ipv4") / stack(value, b"abcd")))
        assert f"BTH {op.name} " in packet.summary()
        assert f"= {op.name}\n" in packet.show(dump=True)
        assert op.name in repr(packet)


def test_gids_are_numbers_and_text():
    grh = GRH(sgid="fe80::1", dgid=0xFFFF0A000001)
    assert grh.sgid == "fe80::1" == str(grh.sgid)
    assert grh.sgid == 0xFE80 << 112 | 1
    assert grh.sgid != "fe80::2"
    assert grh.dgid == "10.0.0.1"
    assert GRH(sgid=bytes(15) + b"\1").sgid == 1
    assert "sgid      = fe80::1" in grh.show(dump=True)


def test_v1_on_linux_cooked_capture(lower):
    octets = bytes(CookedLinux() / lower("grh")[GRH] / BTH(dqpn=4))
    assert CookedLinux(octets)[BTH].icrc_ok is True


def test_a_user_can_bind_own_layers_above():
    class Storage(Packet):
        name = "Storage"
        fields_desc: ClassVar = [IntField("block", 0)]

    bind_layers(RETH, Storage, rkey=77)
    try:
        packet = IP(bytes(IP(src="10.0.0.1") / UDP() / BTH(opcode=0x0A) / RETH(rkey=77) / Storage(block=5)))
        assert packet[Storage].block == 5
        assert packet[BTH].icrc_ok is True
    finally:
        split_layers(RETH, Storage, rkey=77)


def test_another_port_can_be_bound(lower):
    packet = lower("ipv4")
    packet[UDP].dport = 1021
    octets = bytes(packet / BTH(dqpn=3))
    assert BTH not in Ether(octets)
    bind(port=1021)
    try:
        assert Ether(octets)[BTH].icrc_ok is True
    finally:
        unbind(port=1021)
        bind()
