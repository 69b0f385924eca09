"""What Scapy's own tests of contrib.roce and contrib.mac_control ask for, with the same calls."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from roce_pkt.layers import (
    AETH,
    BTH,
    CNP_OPCODE,
    ETHER_SPEED_MBIT_10,
    GRH,
    CNPPadding,
    MACControl,
    MACControlClassBasedFlowControl,
    MACControlPause,
    cnp,
    opcode,
)

MAC = "24:8a:07:a8:fa:22"
# a UC packet whose last two payload octets are its pads, as contrib wants them given
UC_PAYLOAD = bytes.fromhex("4630818be28935d90e9a95505401be885e500000")
UC = {"opcode": "UC_SEND_ONLY", "migreq": 1, "padcount": 2, "pkey": 0xFFFF, "dqpn": 211, "psn": 13571856}

CNP_FRAME = bytes.fromhex(
    "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201"
    "000012b7002800008100ffff40000118000000000000000000000000000000000000000082fd002a"
)
GID = "00000000000000000000ffff0f000002"
GRH_OCTETS = "7cfe90753cd87cfe90753cd88915" + "60200000%s1b40" + GID + GID
V1_WRITE = bytes.fromhex(
    GRH_OCTETS % "0028" + "0a70ffff0000010a80a788bc000055d4c0726000000047b3000000050000000001000000e3d856bb"
)
V1_ACK = bytes.fromhex(GRH_OCTETS % "0014" + "1140ffff0000010900a788c00000000525f0c038")


def test_ipv4_packet_with_pads_in_the_payload():
    pkt = (
        Ether(dst=MAC, src=MAC)
        / IP(
            version=4,
            ihl=5,
            tos=0x1,
            id=1144,
            flags="DF",
            frag=0,
            ttl=64,
            src="192.168.0.7",
            dst="192.168.0.7",
            len=64,
        )
        / UDP(sport=49152, dport=4791, len=44)
        / BTH(**UC)
        / Raw(UC_PAYLOAD)
    )
    pkt = Ether(pkt.build() + b"\x00" * 4)
    assert IP in pkt.layers()
    assert pkt[IP].chksum == 0xB4D5
    assert UDP in pkt.layers()
    assert pkt[UDP].chksum == 0xACA2
    assert BTH in pkt.layers()
    assert pkt[BTH].icrc == 0x78F353F3


def test_cnp_helper():
    pkt = (
        Ether(dst=MAC, src=MAC)
        / IP(src="22.22.22.8", dst="22.22.22.7", id=0x98C6, flags="DF", ttl=0x20, tos=0x89)
        / UDP(sport=56238, dport=4791, chksum=0)
        / cnp(dqpn=0xD2)
    )
    pkt = Ether(pkt.build())
    assert pkt[IP].len == 60
    assert pkt[UDP].len == 40
    assert pkt[BTH].opcode == 0x81
    assert pkt[BTH].becn
    assert pkt[BTH].dqpn == 0xD2
    assert pkt[BTH].pkey == 0xFFFF
    for name in ("fecn", "resv6", "resv7", "version", "solicited", "migreq", "padcount", "ackreq", "psn"):
        assert getattr(pkt[BTH], name) == 0
    assert pkt[CNPPadding].reserved1 == 0
    assert pkt[CNPPadding].reserved2 == 0


def test_cnp_captured_from_hardware():
    pkt = Ether(CNP_FRAME)
    assert BTH in pkt.layers()
    assert pkt.opcode == CNP_OPCODE
    assert pkt[BTH].icrc_ok is True
    del pkt.icrc
    pkt = Ether(pkt.build())
    assert pkt.icrc == 0x82FD002A


def test_v1_write_only_from_hardware():
    pkt = Ether(V1_WRITE)
    assert GRH in pkt.layers()
    assert BTH in pkt.layers()
    assert pkt[GRH].ipver == 6
    assert pkt[GRH].tclass == 2
    assert pkt[GRH].flowlabel == 0
    assert pkt[GRH].paylen == 40
    assert pkt[BTH].opcode == 0xA
    assert pkt[BTH].padcount == 3
    assert pkt[BTH].dqpn == 0x10A
    assert pkt[BTH].ackreq
    assert pkt.icrc == 0xE3D856BB
    # beyond contrib, which cannot compute the ICRC of RoCEv1
    assert pkt[BTH].icrc_ok is True
    assert pkt[Raw].load == b"\x00\x00\x00\x00\x01"
    del pkt.icrc, pkt[GRH].paylen, pkt[BTH].padcount, pkt[BTH].pad
    assert pkt.build() == V1_WRITE


def test_v1_acknowledge_from_hardware():
    pkt = Ether(V1_ACK)
    assert pkt.layers()[1:] == [GRH, BTH, AETH]
    assert pkt[GRH].paylen == 20
    assert pkt[BTH].opcode == 0x11
    assert pkt[BTH].padcount == 0
    assert pkt[BTH].dqpn == 0x109
    assert not pkt[BTH].ackreq
    assert pkt[AETH].syndrome == 0
    assert pkt[AETH].msn == 5
    assert pkt.icrc == 0x25F0C038
    assert pkt[BTH].icrc_ok is True


def test_ipv6_packet():
    pkt = (
        Ether(dst=MAC, src=MAC)
        / IPv6(nh=17, src="2022::1023", dst="2023::1024", version=6, hlim=255, plen=44, fl=0x1FACE, tc=226)
        / UDP(sport=49152, dport=4791, len=44)
        / BTH(**UC)
        / Raw(UC_PAYLOAD)
    )
    pkt = Ether(pkt.build() + b"\x00" * 4)
    assert IPv6 in pkt.layers()
    assert pkt[UDP].chksum == 0xE7C5
    assert pkt[BTH].icrc == 0x3E5B743B


def test_calls_on_a_bth_that_contrib_users_make():
    pkt = Ether(CNP_FRAME)
    octets = bytes(pkt[BTH])
    assert pkt[BTH].compute_icrc(octets) == octets[-4:]
    assert BTH.pack_icrc(0x2A00FD82) == bytes.fromhex("82fd002a")
    assert opcode("RC", "ACKNOWLEDGE") == (0x11, "RC_ACKNOWLEDGE")


def test_pause_frame():
    frm = Ether(src="00:01:01:01:01:01", dst=MACControl.DEFAULT_DST_MAC) / MACControlPause(pause_time=0x1234)
    frm = Ether(frm.do_build())
    assert frm[MACControlPause].pause_time == 0x1234
    assert frm[MACControlPause].get_pause_time(ETHER_SPEED_MBIT_10) == pytest.approx(0.238592)


def test_class_based_flow_control_frame():
    frm = Ether(src="00:01:01:01:01:01", dst=MACControl.DEFAULT_DST_MAC) / MACControlClassBasedFlowControl(
        c0_enabled=1, c0_pause_time=0x4321, c5_enabled=1, c5_pause_time=0x1234
    )
    cbfc = Ether(frm.do_build())[MACControlClassBasedFlowControl]
    assert cbfc.c0_enabled
    assert cbfc.c0_pause_time == 0x4321
    assert cbfc.c5_enabled
    assert cbfc.c5_pause_time == 0x1234
    for n in (1, 2, 3, 4, 6, 7):
        assert not getattr(cbfc, f"c{n}_enabled")
        assert getattr(cbfc, f"c{n}_pause_time") == 0
    assert cbfc._reserved == 0
    assert cbfc._op_code == 0x0101


@pytest.mark.parametrize("tags", [0, 1, 2])
def test_pause_is_padded_to_the_least_frame(tags):
    frm = Ether(src="00:01:01:01:01:01")
    for _ in range(tags):
        frm = frm / Dot1Q(vlan=42)
    assert len((frm / MACControlPause(pause_time=1)).do_build()) == 60
