"""Flows by number: the same keys, the same numbers, whatever the batches and the hashes."""

import numpy as np
import pytest
from crafted import ack, cnp, data, datagram, frame, pcap
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.capture.frames import Frames
from roce_pkt.flows import table as flow_table
from roce_pkt.flows.size import frame_octets
from roce_pkt.flows.survey import Survey

WORD = st.sampled_from([0, 1, 2**32, 2**64 - 1, 0xFFFF0A000001])
KEYS = st.lists(st.tuples(WORD, WORD, WORD, WORD, st.integers(0, 3)), min_size=1, max_size=30)


def columns(keys):
    arrays = np.array(keys, np.uint64).T
    return Frames(dict(zip(flow_table.KEY_COLUMNS, arrays, strict=True)) | {"number": arrays[0]})


@pytest.mark.parametrize("collide", [False, True])
@given(batches=st.lists(KEYS, min_size=1, max_size=4))
def test_numbers_follow_first_appearance_of_equal_keys(collide, batches):
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(flow_table, "_hash", lambda cols: cols[4] & np.uint64(1))
        table = flow_table.FlowTable()
        known = {}
        for keys in batches:
            numbers = table.number(columns(keys)).tolist()
            for key, number in zip(keys, numbers, strict=True):
                assert known.setdefault(key, number) == number
                assert table.keys[number] == key
        assert sorted(known.values()) == list(range(len(table)))
        for key, number in known.items():
            assert number in table.between(key[:2], key[2:4])
            assert table.find(key) == number


def test_names():
    table = flow_table.FlowTable()
    table.number(columns([(0, 0xFFFF0A000001, 0xFD00 << 48, 2, 0x12)]))
    assert str(table.name(0)) == "10.0.0.1 > fd00::2 QP 0x12"


def survey_of(tmp_path, frames):
    survey = Survey()
    for batch in open_capture(pcap(tmp_path / "c.pcap", frames)):
        survey.add(batch)
    return survey


def test_what_a_survey_counts(tmp_path):
    frames = [(10 * i, data(i, ce=i % 4 == 0)) for i in range(20)]
    frames += [(3, ack(3)), (4, cnp()), (5, cnp()), (6, cnp(dqpn=0x99)), (7, data(9, wrong_icrc=True))]
    survey = survey_of(tmp_path, frames)
    flows = {(survey.flows.name(flow.number).src, flow.frames): flow for flow in survey}
    sent = flows["10.0.0.1", 21]
    size = 14 + 20 + 8 + 12 + 1024 + 4
    assert (sent.octets, sent.ce, sent.data_frames) == (21 * size, 5, 21)
    assert sent.last_ns - sent.first_ns == 190_000
    assert flows["10.0.0.2", 1].data_frames == 0
    assert sorted(survey.cnp_counts) == [1, 2]
    assert (survey.wrong_icrc, survey.first_wrong_icrc) == (1, 25)
    assert (survey.backwards, survey.first_backwards) == (1, 21)
    assert (survey.frames, survey.roce) == (25, 25)


def test_frames_back_to_back_measure_as_the_line_rate(tmp_path):
    """1000 octets on the wire every 80 ns are 100 Gb/s."""
    size = 1000 - 24 - (14 + 20 + 8 + 12 + 4)
    survey = survey_of(tmp_path, [(0.08 * i, data(i, size=size)) for i in range(50)])
    (flow,) = survey
    assert flow.wire_rate_bps == pytest.approx(100e9)


def test_one_frame_has_no_rate(tmp_path):
    (flow,) = survey_of(tmp_path, [(0, data())])
    assert flow.wire_rate_bps is None


def test_datagrams_remember_who_sent_them(tmp_path):
    survey = survey_of(
        tmp_path, [(0, datagram(sqpn=0x11)), (1, datagram(sqpn=0x12)), (2, datagram(sqpn=0x11))]
    )
    assert survey.senders == {0: {0x11, 0x12}}


@pytest.mark.parametrize(
    ("octets", "size"),
    [
        (data(size=1024), 1082),
        (frame("fd00::1", "fd00::2", 4, 1, 1, bytes(1024)), 1102),
        (ack(), 62),
        (cnp(), 74),
        (data(size=0) + b"\0\0", 60),
        (data(size=1024) + b"\x12\x34\x56\x78", 1082),
    ],
    ids=["ipv4", "ipv6", "ack", "cnp", "padded", "with-fcs"],
)
def test_frame_sizes_from_ethernet_to_icrc(tmp_path, octets, size):
    frames = open_capture(pcap(tmp_path / "one.pcap", [(0, octets)])).frames()
    assert frame_octets(frames).tolist() == [size]


def test_frame_sizes_of_real_captures_equal_the_wire(pcaps):
    for name in ("vlan100_rc", "v6_rc_read", "rc_mtu256", "perftest_all"):
        frames = open_capture(pcaps / f"{name}.pcap").frames()
        frames = frames[(frames.kind == 1) & (frames.dqpn > 0)]
        assert len(frames)
        assert (frame_octets(frames) == np.maximum(frames.wire_len, 60)).all()
