"""One list of cases for both directions: packet -> octets, octets -> packet, and `wire`'s reading."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from roce_pkt.layers import AETH, BTH, GRH, RETH, CNPPadding, ImmDt, cnp
from roce_pkt.wire.frame import dissect

MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
V4 = {"src": "10.0.0.1", "dst": "10.0.0.2", "id": 0x1234, "flags": "DF"}
V6 = {"src": "fd00::1", "dst": "fd00::2", "tc": 0x69, "fl": 0x12345}
MAC_OCTETS = "020000000002020000000001"
ADDRESSES_6 = "fd000000000000000000000000000001fd000000000000000000000000000002"
GIDS = "fe800000000000000000000000000001fe800000000000000000000000000002"

# name, packet, octets (written out header by header), layers above the network, fields by layer
CASES = [
    (
        "v4 send only",
        Ether(**MACS) / IP(**V4) / UDP() / BTH(dqpn=1, psn=2) / b"abcdefgh",
        MAC_OCTETS + "0800" + "45000034123440004011" + "14830a0000010a000002" + "c00012b700200000"
        "0400ffff0000000100000002" + "6162636465666768" + "78df3e91",
        [BTH, Raw],
        {BTH: {"opcode": 0x04, "dqpn": 1, "psn": 2, "padcount": 0, "icrc": 0x78DF3E91}},
    ),
    (
        "v4 ack",
        Ether(**MACS) / IP(**V4) / UDP() / BTH(dqpn=5) / AETH(syndrome=0x1F, msn=1),
        MAC_OCTETS + "0800" + "45000030123440004011" + "14870a0000010a000002" + "c00012b7001c0000"
        "1100ffff0000000500000000" + "1f000001" + "04e7e305",
        [BTH, AETH],
        {BTH: {"opcode": 0x11, "dqpn": 5}, AETH: {"syndrome": 0x1F, "msn": 1}},
    ),
    (
        "v6 write only",
        Ether(**MACS)
        / IPv6(**V6)
        / UDP()
        / BTH(migreq=1, dqpn=5, psn=1)
        / RETH(va=1, rkey=2, dmalen=8)
        / (b"\xa5" * 8),
        MAC_OCTETS + "86dd" + "6691234500301140" + ADDRESSES_6 + "c00012b700300000"
        "0a40ffff0000000500000001" + "00000000000000010000000200000008" + "a5a5a5a5a5a5a5a5" + "92054f11",
        [BTH, RETH, Raw],
        {BTH: {"opcode": 0x0A, "migreq": 1}, RETH: {"va": 1, "rkey": 2, "dmalen": 8}},
    ),
    (
        "v1 write only",
        Ether(**MACS)
        / GRH(sgid="fe80::1", dgid="fe80::2")
        / BTH(migreq=1, dqpn=5, psn=1)
        / RETH(va=1, rkey=2, dmalen=8)
        / (b"\xa5" * 8),
        MAC_OCTETS + "8915" + "6000000000281b40" + GIDS + "0a40ffff0000000500000001"
        "00000000000000010000000200000008" + "a5a5a5a5a5a5a5a5" + "41932c8e",
        [GRH, BTH, RETH, Raw],
        {GRH: {"sgid": "fe80::1", "dgid": 0xFE80 << 112 | 2, "paylen": 40}, BTH: {"icrc": 0x41932C8E}},
    ),
    (
        "v4 cnp",
        Ether(**MACS) / IP(**V4, tos=0xC0) / UDP() / cnp(5),
        MAC_OCTETS + "0800" + "45c0003c123440004011" + "13bb0a0000010a000002" + "c00012b700280000"
        "8100ffff4000000500000000" + "00" * 16 + "821c3c26",
        [BTH, CNPPadding],
        {BTH: {"opcode": 0x81, "becn": 1, "dqpn": 5}},
    ),
    (
        "v4 uc send last with immediate, three pads",
        Ether(**MACS)
        / IP(**V4)
        / UDP()
        / BTH(opcode="UC_SEND_LAST_IMM", dqpn=7, psn=0xFFFFFF)
        / ImmDt(data=0xDEADBEEF)
        / b"abcde",
        MAC_OCTETS + "0800" + "45000038123440004011" + "147f0a0000010a000002" + "c00012b700240000"
        "2330ffff0000000700ffffff" + "deadbeef" + "6162636465" + "000000" + "79e7de12",
        [BTH, ImmDt, Raw],
        {BTH: {"padcount": 3, "pad": b"\0\0\0", "psn": 0xFFFFFF}, Raw: {"load": b"abcde"}},
    ),
]


@pytest.mark.parametrize(("packet", "octets"), [c[1:3] for c in CASES], ids=[c[0] for c in CASES])
def test_packet_to_octets(packet, octets):
    assert bytes(packet).hex() == octets


@pytest.mark.parametrize(("octets", "layers", "fields"), [c[2:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.usefixtures("strict_scapy")
def test_octets_to_packet(octets, layers, fields, same_fields):
    octets = bytes.fromhex(octets)
    packet = Ether(octets)
    assert [kind for kind in packet.layers() if kind not in (Ether, IP, IPv6, UDP)] == layers
    for kind, values in fields.items():
        for name, value in values.items():
            assert getattr(packet[kind], name) == value, (kind, name)
    assert packet[BTH].icrc_ok is True
    assert bytes(packet) == octets
    frame = dissect(octets)
    assert frame.status == "ok"
    assert frame.icrc.ok is True
    same_fields(packet, frame)
