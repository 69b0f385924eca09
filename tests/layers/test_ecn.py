import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.layers.vxlan import VXLAN

from roce_pkt.errors import InputError
from roce_pkt.layers import BTH, get_dscp, get_ecn, set_dscp, set_ecn


@pytest.mark.parametrize("kind", ["ipv4", "ipv6"])
def test_marks_by_name(lower, kind):
    pkt = lower(kind) / BTH(dqpn=1) / b"abcd"
    set_dscp(pkt, "CS6")
    for value, name in enumerate(("Not-ECT", "ECT(1)", "ECT(0)", "CE")):
        assert set_ecn(pkt, name) is pkt
        assert (get_ecn(pkt), get_dscp(pkt)) == (name, 48)
        octet = pkt[IP].tos if kind == "ipv4" else pkt[IPv6].tc
        assert octet == 48 << 2 | value
        set_ecn(pkt, value)
        assert get_ecn(pkt) == name
    set_dscp(pkt, 26)
    assert (get_dscp(pkt), get_ecn(pkt)) == (26, "CE")


@pytest.mark.parametrize("kind", ["ipv4", "ipv6"])
def test_marking_on_the_way_leaves_checksum_and_icrc_right(lower, kind):
    for start in range(0, 256, 7):
        pkt = lower(kind) / BTH(dqpn=start) / b"abcd"
        set_dscp(pkt, start >> 2)
        set_ecn(pkt, start & 3)
        pkt = Ether(bytes(pkt))
        set_ecn(pkt, "CE")
        set_dscp(pkt, "EF")
        pkt = Ether(bytes(pkt))
        assert pkt[BTH].icrc_ok is True
        assert (get_dscp(pkt), get_ecn(pkt)) == (46, "CE")
        assert "CE" in pkt.summary()
        if kind == "ipv4":
            there = pkt[IP].chksum
            del pkt[IP].chksum
            assert Ether(bytes(pkt))[IP].chksum == there


def test_a_wrong_checksum_stays_wrong():
    pkt = IP(bytes(IP(src="1.1.1.1", chksum=0x1234) / UDP() / BTH()))
    set_ecn(pkt, "CE")
    there = pkt[IP].chksum
    del pkt[IP].chksum
    assert IP(bytes(pkt)).chksum != there


def test_the_inner_header_of_a_tunnel_is_marked(lower):
    outer = IP(src="1.1.1.1", tos=4) / UDP() / VXLAN()
    pkt = outer / lower("ipv6") / BTH()
    set_ecn(pkt, "CE")
    assert pkt[IPv6].tc & 3 == 3
    assert pkt[IP].tos == 4


def test_names_of_dscp():
    pkt = IP()
    for name, value in {"CS0": 0, "cs3": 24, "AF31": 26, "AF43": 38, "EF": 46}.items():
        assert get_dscp(set_dscp(pkt, name)) == value


def test_wrong_use_says_what_is_allowed():
    for call, value in ((set_ecn, "EC"), (set_ecn, 4), (set_dscp, 64), (set_dscp, "AF99"), (set_dscp, -1)):
        with pytest.raises(InputError, match=r"not|to 63"):
            call(IP(), value)
    for call in (get_ecn, get_dscp):
        with pytest.raises(InputError, match="no IP header"):
            call(Ether() / ARP())
