"""Header tables, AETH codes, source ports, pause quanta."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt import psn
from roce_pkt.wire import aeth, entropy, ib, mac_control, net
from roce_pkt.wire.build import mac_control_frame
from roce_pkt.wire.frame import dissect

SIZES = {
    "eth": 14, "vlan": 4, "udp": 8, "bth": 12, "grh": 40, "lrh": 8, "rdeth": 4, "xrceth": 4, "deth": 8,
    "reth": 16, "atomiceth": 28, "aeth": 4, "atomicacketh": 8, "immdt": 4, "ieth": 4, "feth": 4, "cnp": 16,
    "vxlan": 8, "gre": 4, "pfc": 18, "pause": 2, "mac_control": 2,
}  # fmt: skip
HEADERS = [net.ETH, net.VLAN, net.UDP, net.VXLAN, net.GRE, ib.BTH, ib.GRH, ib.LRH, *ib.EXTENDED]
HEADERS += [
    mac_control.PFC,
    mac_control.PAUSE,
    mac_control.MAC_CONTROL,
    net.IPV4,
    net.IPV6,
    net.ERSPAN2,
    net.ERSPAN3,
]


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: h.title)
def test_sizes(header):
    by_title = {"IPv4": 20, "IPv6": 40, "ERSPAN type II": 8, "ERSPAN type III": 12}
    assert header.size_bytes == by_title.get(header.title, SIZES.get(header.name))


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: h.title)
@given(data=st.data())
def test_octets_and_values_agree(header, data):
    octets = data.draw(st.binary(min_size=header.size_bytes, max_size=header.size_bytes))
    values = header.unpack(octets)
    assert header.pack(values) == octets
    assert header.unpack(b"\xa5\xa5\xa5" + octets + b"\xa5", 3) == values


def test_bth_bits():
    octets = bytes.fromhex("0af3ffffc012345680fedcba")
    assert ib.BTH.unpack(octets) == {
        "opcode": 10, "solicited": 1, "migreq": 1, "padcount": 3, "version": 3, "pkey": 0xFFFF,
        "fecn": 1, "becn": 1, "resv6": 0, "dqpn": 0x123456, "ackreq": 1, "resv7": 0, "psn": 0xFEDCBA,
    }  # fmt: skip


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="padcount holds 2 bits"):
        ib.BTH.pack({"padcount": 4})
    with pytest.raises(KeyError, match="no field"):
        ib.BTH.pack({"pdacount": 1})


def test_rnr_timers():
    milliseconds = [
        655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56, 3.84,
        5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
    ]  # fmt: skip
    assert [us / 1000 for us in aeth.RNR_TIMERS_US] == pytest.approx(milliseconds, rel=1e-12)


def test_credits_grow_by_half_and_a_third():
    assert len(aeth.CREDITS) == 31
    assert aeth.CREDITS[-1] == 32768
    for i in range(4, 31):
        assert aeth.CREDITS[i] == aeth.CREDITS[i - 2] * 2


@pytest.mark.parametrize(
    ("syndrome", "text"),
    [
        (0x1F, "ACK"),
        (0x0A, "ACK, 32 credits"),
        (0x20, "RNR NAK, wait 655.36 ms"),
        (0x2C, "RNR NAK, wait 0.64 ms"),
        (0x60, "NAK, PSN sequence error"),
        (0x63, "NAK, remote operational error"),
        (0x65, "NAK, reserved code 5"),
        (0x5F, "reserved type, value 31"),
    ],
)
def test_syndromes_in_words(syndrome, text):
    assert aeth.describe(syndrome) == text


@pytest.mark.parametrize(
    ("label", "sport"), [(0, 0xC000), (1, 0xC001), (0x4000, 0xC001), (0x12345, 0xE341), (0xFFFFF, 0xFFC0)]
)
def test_source_port_of_a_flow_label(label, sport):
    assert entropy.sport_from_flow_label(label) == sport


@pytest.mark.parametrize(
    ("a", "b", "label", "sport"),
    [(0x11, 0x12, 0x132, 0xC132), (0x123, 0x456, 0x4EDC2, 0xEDD1), (0xFFFFFF, 0xFFFFFF, 0xFFF1E, 0xFF21)],
)
def test_flow_label_of_queue_pairs(a, b, label, sport):
    assert entropy.flow_label_from_qpns(a, b) == entropy.flow_label_from_qpns(b, a) == label
    assert entropy.sport_from_qpns(a, b) == sport


@pytest.mark.parametrize(
    ("speed_bps", "ps"),
    [(10e9, 51_200), (40e9, 12_800), (100e9, 5_120), (400e9, 1_280), (800e9, 640), (1e9, 512_000)],
)
def test_a_quantum_is_512_bit_times_at_every_speed(speed_bps, ps):
    assert mac_control.pause_time_ps(1, speed_bps) == ps
    assert mac_control.pause_time_ps(0xFFFF, speed_bps) == 0xFFFF * ps


@given(st.dictionaries(st.integers(0, 7), st.integers(0, 0xFFFF)))
def test_pfc_frames(quanta):
    frame = mac_control_frame(0x020000000001, mac_control.pfc_octets(quanta))
    assert len(frame) == 60
    assert frame[:6].hex(":") == "01:80:c2:00:00:01"
    read = dissect(frame)
    values = read.layers[-1].values
    assert read.kind == "pfc"
    assert mac_control.enabled_classes(values["enable"]) == sorted(quanta)
    assert mac_control.quanta_of(values) == [quanta.get(n, 0) for n in range(8)]


@given(st.integers(0, psn.MASK), st.integers(-psn.HALF, psn.HALF - 1))
def test_serial_arithmetic(start, step):
    later = psn.add(start, step)
    assert psn.distance(later, start) == step
    assert psn.before(start, later) is (step > 0)
