"""What the layers fill in on build, and that each of it can be overridden with a wrong value."""

import pytest
from scapy.config import conf
from scapy.fields import ByteField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw, fuzz

from roce_pkt.errors import InputError
from roce_pkt.layers import (
    AETH,
    BTH,
    DETH,
    FETH,
    GRH,
    IETH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    CNPPadding,
    ImmDt,
)
from roce_pkt.layers.extended import LAYERS
from roce_pkt.layers.fields import fields_of
from roce_pkt.wire import frame, ib
from roce_pkt.wire.opcode import BY_NAME, OPCODES

INFERRED = [
    (BTH(), "RC_SEND_ONLY"),
    (BTH() / b"x", "RC_SEND_ONLY"),
    (BTH() / ImmDt() / b"x", "RC_SEND_ONLY_WITH_IMMEDIATE"),
    (BTH() / IETH() / b"x", "RC_SEND_ONLY_WITH_INVALIDATE"),
    (BTH() / RETH() / b"x", "RC_RDMA_WRITE_ONLY"),
    (BTH() / RETH() / ImmDt() / b"x", "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE"),
    (BTH() / RETH(), "RC_RDMA_READ_REQUEST"),
    (BTH() / AETH() / b"x", "RC_RDMA_READ_RESPONSE_ONLY"),
    (BTH() / AETH(), "RC_ACKNOWLEDGE"),
    (BTH() / AETH() / AtomicAckETH(), "RC_ATOMIC_ACKNOWLEDGE"),
    (BTH() / AtomicETH(swap=1, compare=0), "RC_COMPARE_SWAP"),
    (BTH() / AtomicETH(swap=1), "RC_FETCH_ADD"),
    (BTH() / FETH() / RETH(), "RC_FLUSH"),
    (BTH() / DETH() / b"x", "UD_SEND_ONLY"),
    (BTH() / DETH() / ImmDt() / b"x", "UD_SEND_ONLY_WITH_IMMEDIATE"),
    (BTH() / RDETH() / DETH() / b"x", "RD_SEND_ONLY"),
    (BTH() / RDETH() / DETH() / RETH(), "RD_RDMA_READ_REQUEST"),
    (BTH() / RDETH() / AETH(), "RD_ACKNOWLEDGE"),
    (BTH() / XRCETH() / b"x", "XRC_SEND_ONLY"),
    (BTH() / XRCETH() / RETH() / b"x", "XRC_RDMA_WRITE_ONLY"),
    (BTH() / CNPPadding(), "CNP"),
    (BTH() / AETH() / RETH(), "RC_SEND_ONLY"),  # no opcode has this stack
]


@pytest.mark.parametrize(("packet", "name"), INFERRED, ids=[f"{n}-{i}" for i, (_, n) in enumerate(INFERRED)])
def test_opcode_is_inferred_from_the_stack(packet, name):
    assert packet.opcode == BY_NAME[name].value
    assert bytes(IP(src="10.0.0.1") / UDP() / packet)[28] == BY_NAME[name].value
    packet.opcode = 0xE0
    assert bytes(IP(src="10.0.0.1") / UDP() / packet)[28] == 0xE0


def test_opcode_takes_names_short_forms_and_numbers_and_helps_with_wrong_ones():
    assert BTH(opcode="RC_SEND_ONLY_INV").opcode == 0x17
    assert BTH(opcode="XRC_WRITE_ONLY").opcode == 0xAA
    assert BTH(opcode=0x81).sprintf("%BTH.opcode%") == "CNP"
    assert BTH(opcode=0xE0).sprintf("%BTH.opcode%") == "0xe0"
    with pytest.raises(InputError, match="RC_SEND_ONLY"):
        BTH(opcode="RC_SENT_ONLY")


@pytest.mark.parametrize("size", range(6))
def test_pads_fill_up_to_four_octets(lower, stack, size):
    for value, op in OPCODES.items():
        packet = lower("ipv4") / stack(value, bytes(range(1, 1 + size)))
        octets = bytes(packet)
        pads = -size % 4 if op.payload else 0
        assert octets[43] >> 4 & 3 == pads
        assert octets[-4 - pads : -4] == bytes(pads)
        assert len(octets) % 4 == 2


def test_padcount_and_pads_can_be_wrong(lower):
    base = lower("ipv4")
    assert bytes(base / BTH(padcount=1) / b"abcde")[43] >> 4 == 1
    assert bytes(base / BTH(padcount=1) / b"abcde")[54:62] == b"abcde\0\0\0"
    assert bytes(base / BTH(pad=b"") / b"abcde")[54:-4] == b"abcde"
    assert bytes(base / BTH(pad=b"\xff") / b"abcde")[54:-4] == b"abcde\xff"
    assert bytes(base / BTH(pad=b"\xff") / b"abcde")[43] >> 4 == 1


def test_lengths_and_icrc_can_be_wrong(lower):
    wrong = (
        Ether(src="02:00:00:00:00:01")
        / GRH(sgid="10.0.0.1", dgid="10.0.0.2", paylen=99)
        / BTH(icrc=0x01020304)
        / AETH()
    )
    octets = bytes(wrong)
    assert octets[18:20] == (99).to_bytes(2, "big")
    assert octets[-4:] == bytes([1, 2, 3, 4])
    assert len(bytes(lower("ipv4") / BTH(icrc=b""))) == 54
    assert bytes(lower("ipv4") / BTH(icrc=b"\1\2\3\4")) == bytes(lower("ipv4") / BTH(icrc=0x01020304))
    # the ICRC covers the lengths as they go out, right or wrong
    lying = lower("ipv4")
    lying[UDP].len = 999
    packet = IP(bytes(lying / BTH() / b"abcd")[14:])
    assert packet[UDP].len == 999
    assert packet[BTH].icrc == int.from_bytes(bytes(lying / BTH() / b"abcd")[-4:], "big")


def test_udp_below_learns_what_roce_wants():
    udp = (IP(src="10.0.0.1") / UDP() / BTH())[UDP]
    assert (udp.sport, udp.dport, udp.chksum) == (0xC000, 4791, 0)
    assert UDP().sport == 53
    kept = IP(bytes(IP(src="10.0.0.1") / UDP(sport=1, dport=2, chksum=3) / BTH()))
    assert (kept[UDP].sport, kept[UDP].dport, kept[UDP].chksum) == (1, 2, 3)


def test_udp_checksum_is_computed_when_asked_for():
    addresses = {"src": "10.0.0.1", "dst": "10.0.0.2"}
    for udp in (UDP(chksum=None), UDP(len=24)):
        packet = IP(**addresses) / udp / BTH(dqpn=1)
        as_raw = IP(**addresses) / UDP(sport=0xC000, dport=4791) / Raw(bytes(packet)[28:])
        assert bytes(packet)[26:28] == bytes(as_raw)[26:28] != b"\0\0"


OUTSIDES = {
    "vlan": Ether() / Dot1Q(vlan=100, prio=3),
    "qinq": Ether() / Dot1AD(vlan=5) / Dot1Q(vlan=6),
    "vxlan": Ether() / IP(src="1.1.1.1", dst="2.2.2.2") / UDP() / VXLAN(vni=7) / Ether(),
    "vxlan-vlan": Ether()
    / IPv6(src="fd00::9", dst="fd00::8")
    / UDP()
    / VXLAN(vni=7)
    / Ether()
    / Dot1Q(vlan=1),
}


@pytest.mark.parametrize("outside", OUTSIDES)
@pytest.mark.parametrize("kind", ["ipv4", "ipv6", "grh"])
@pytest.mark.usefixtures("strict_scapy")
def test_icrc_does_not_depend_on_what_is_outside(lower, outside, kind):
    inner = lower(kind).payload / BTH(dqpn=5) / b"payload"
    packet = OUTSIDES[outside] / inner
    for layer in packet.iterpayloads():
        if isinstance(layer, Ether):
            layer.src, layer.dst = "02:00:00:00:00:01", "02:00:00:00:00:02"
    octets = bytes(packet)
    assert octets.endswith(bytes(inner))
    back = Ether(octets)
    assert back[BTH].icrc_ok is True
    assert bytes(back) == octets
    assert frame.dissect(octets).icrc.ok is True


@pytest.mark.usefixtures("strict_scapy")
def test_icrc_is_right_inside_erspan_and_gre(lower):
    from scapy.contrib.erspan import ERSPAN_II
    from scapy.layers.l2 import GRE

    inner = lower("ipv4") / BTH(dqpn=5) / b"payload"
    outer = Ether(src="02:00:00:00:00:03", dst="02:00:00:00:00:04") / IP(src="1.1.1.1", dst="2.2.2.2")
    for tunnel in (
        GRE(proto=0x88BE, seqnum_present=1, sequence_number=9) / ERSPAN_II(session_id=1),
        GRE(proto=0x6558),
    ):
        octets = bytes(outer / tunnel / inner)
        assert octets.endswith(bytes(inner))
        back = Ether(octets)
        assert back[BTH].icrc_ok is True
        assert bytes(back) == octets
        assert frame.dissect(octets).icrc.ok is True


@pytest.mark.parametrize(
    ("below", "why"),
    [
        (None, "no UDP"),
        (UDP(), "no IP"),
        (IP(src="1.1.1.1", flags="MF") / UDP(), "fragment"),
        (IPv6(src="::1") / IPv6ExtHdrHopByHop() / UDP(), "extension header"),
        (IP(src="1.1.1.1", options=[b"\x01\x01\x01\x01"]) / UDP(), "options"),
    ],
)
def test_where_the_icrc_is_not_defined_zeros_go_out_with_a_warning(below, why, caplog, monkeypatch):
    monkeypatch.setattr(conf, "warning_threshold", 0)  # Scapy holds back repeated warnings
    packet = BTH() / b"abcd" if below is None else below / BTH() / b"abcd"
    assert bytes(packet).endswith(b"abcd\0\0\0\0")
    assert why in caplog.text


def test_copies_and_fuzz_build():
    packet = IP(src="10.0.0.1") / UDP() / BTH(psn=3) / RETH() / b"abc"
    assert bytes(packet.copy()) == bytes(packet)
    assert bytes(next(iter(packet))) == bytes(packet)
    several = IP(src="10.0.0.1") / UDP() / BTH(psn=[1, 2, 3]) / b"abcd"
    assert [p.psn for p in several] == [1, 2, 3]
    assert len({bytes(p) for p in several}) == 3
    for _ in range(20):
        again = IP(bytes(IP(src="10.0.0.1") / UDP() / fuzz(BTH(opcode=0x0A) / RETH()) / b"abc"))
        assert again[BTH].icrc_ok is True


def test_fields_are_the_tables_in_order_and_width():
    assert set(LAYERS) == {header.name for header in ib.EXTENDED}
    for layer in (BTH, GRH, *LAYERS.values()):
        assert layer.header in (ib.BTH, ib.GRH, *ib.EXTENDED)
        if layer is not CNPPadding:
            names = [f.name for f in layer.fields_desc if f.name not in ("pad", "icrc")]
            assert names == [f.name for f in layer.header.fields]
    with pytest.raises(ValueError, match="bits wide"):
        fields_of(ib.AETH, {"msn": [ByteField("msn", 0)]})
