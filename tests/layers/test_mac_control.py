"""PAUSE and PFC: destination, enable bits, padding, and how long a quantum lasts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Padding, Raw

from roce_pkt.layers import PAUSE, PFC, MACControl, MACControlClassBasedFlowControl, MACControlPause, pfc
from roce_pkt.wire import mac_control as wire
from roce_pkt.wire.frame import dissect

SRC = "02:00:00:00:00:01"
HEAD = "0180c2000001" + "020000000001" + "8808"


def test_octets_of_pause_and_pfc():
    assert bytes(Ether(src=SRC) / PAUSE(pause_time=0xFFFF)).hex() == HEAD + "0001" + "ffff" + "00" * 42
    assert bytes(Ether(src=SRC) / pfc({3: 0xFFFF, 4: 0})).hex() == (
        HEAD + "0101" + "0018" + "0000" * 3 + "ffff" + "0000" * 4 + "00" * 26
    )


def test_destination_can_be_another():
    octets = bytes(Ether(src=SRC, dst="02:00:00:00:00:02") / PFC())
    assert octets[:6].hex() == "020000000002"
    assert bytes(Ether(src=SRC) / Dot1Q(vlan=1) / PFC())[:6].hex() == "0180c2000001"


@given(st.dictionaries(st.integers(0, 7), st.integers(0, 0xFFFF)), st.binary(max_size=30))
@settings(max_examples=60, deadline=None)
def test_pfc_both_ways(quanta, trailer):
    octets = bytes(Ether(src=SRC) / pfc(quanta))
    assert octets[14:34] == wire.pfc_octets(quanta)
    assert octets[34:] == bytes(26)
    packet = Ether(octets + trailer)
    assert packet[PFC].classes == sorted(quanta)
    assert {n: getattr(packet, f"quanta{n}") for n in packet[PFC].classes} == quanta
    assert packet[Padding].load == bytes(26) + trailer
    assert Raw not in packet
    assert bytes(packet) == octets + trailer
    frame = dissect(octets + trailer)
    assert frame.kind == "pfc"
    assert wire.quanta_of(frame.layers[-1].values) == [
        packet[PFC].getfieldval(f"c{n}_pause_time") for n in range(8)
    ]


def test_enable_bits_can_be_wrong():
    octets = bytes(Ether(src=SRC) / PFC(c3_pause_time=5, c3_enabled=0, c1_enabled=1, resv8=0xAA))
    assert octets[16:18].hex() == "aa02"
    assert Ether(octets)[PFC].classes == [1]


def test_changed_after_dissection_the_frame_keeps_its_length():
    packet = Ether(bytes(Ether(src=SRC) / pfc({0: 1})))
    packet[PFC].c0_pause_time = 9
    assert len(bytes(packet)) == 60
    assert Ether(bytes(packet)).c0_pause_time == 9


@pytest.mark.parametrize(
    ("speed", "nanoseconds"),
    [
        ("10Gbps", 51.2),
        ("25Gbps", 20.48),
        ("100Gbps", 5.12),
        ("400Gbps", 1.28),
        (1e9, 512),
        (10_000_000, 51200),
    ],
)
def test_a_quantum_is_512_bit_times_at_every_speed(speed, nanoseconds):
    for quanta in (1, 1000, 0xFFFF):
        wanted = pytest.approx(quanta * nanoseconds * 1e-9, rel=1e-6)
        assert PAUSE(pause_time=quanta).get_pause_time(speed) == wanted
        assert pfc({6: quanta}).get_pause_time(6, speed) == wanted


def test_words():
    assert (Ether(src=SRC) / pfc({3: 7, 4: 0})).summary().endswith("PFC 3: pause 7 quanta; 4: resume")
    assert (Ether(src=SRC) / PFC()).summary().endswith("PFC no class enabled")
    assert (Ether(src=SRC) / PAUSE(quanta=2)).summary().endswith("PAUSE 2 quanta")
    assert (Ether(src=SRC) / PAUSE()).summary().endswith("PAUSE resume")


def test_names_of_contrib_are_the_same_classes():
    assert MACControlPause is PAUSE
    assert MACControlClassBasedFlowControl is PFC
    assert PAUSE(pause_time=3).quanta == 3
    assert PAUSE(_op_code=9).opcode == 9


@pytest.mark.usefixtures("strict_scapy")
def test_other_opcodes_and_short_frames():
    other = Ether(bytes.fromhex(HEAD + "0006" + "01020304"))
    assert other[MACControl].opcode == 6
    assert other[Raw].load == b"\1\2\3\4"
    for octets in ("", "01", "0101", "0101" + "00" * 17, "0001", "000100"):
        whole = bytes.fromhex(HEAD + octets)
        packet = Ether(whole)
        assert PFC not in packet
        assert PAUSE not in packet
        assert bytes(packet) == whole
