"""Messages found in captures: real ones with known counts, and constructed ones with losses and wraps."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from crafted import RECEIVER, SENDER, START_NS, frame, pcap

from roce_pkt.capture import open as open_capture
from roce_pkt.flows import pairs
from roce_pkt.flows.messages import Messages
from roce_pkt.flows.survey import Survey

FIRST, MIDDLE, LAST, ONLY = 0x06, 0x07, 0x08, 0x0A
READ, ANSWER_FIRST, ANSWER_LAST = 0x0C, 0x0D, 0x0F


def found_in(path):
    survey, messages = Survey(), Messages()
    capture = open_capture(path)
    for frames in capture:
        survey.add(frames)
        messages.add(frames, survey)
    evidence = pairs.Evidence(survey, range(len(survey.flows)))
    for frames in capture:
        evidence.add(survey.rows(frames))
    return messages.found(evidence.partners())


def reth(length):
    return struct.pack("!QII", 0x1000, 0x1234, length)


def write(psn, length, packets, time, *, mtu=1024):
    """A WRITE of some packets, a microsecond apart."""
    out = []
    for n in range(packets):
        code = FIRST if n == 0 else LAST if n == packets - 1 else MIDDLE
        head = reth(length) if n == 0 else b""
        size = mtu if n < packets - 1 else length - mtu * (packets - 1)
        out.append(
            (
                time + n,
                frame(SENDER, RECEIVER, code, 0x22, psn + n & 0xFFFFFF, head + bytes((size + 3) // 4 * 4)),
            )
        )
    return out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ecn_ce_write", {("write", 4096): 60}),
        ("v6_rc_send", {("send", 2503): 20}),
        ("v6_rc_read", {("read", 5002): 20}),
        ("write_4qp", {("write", 2048): 80}),
    ],
)
def test_real_captures(pcaps, name, expected):
    """Counts and lengths are those of the commands that made the captures (see their descriptions)."""
    found = found_in(pcaps / f"{name}.pcap")
    assert Counter((m.verb, m.octets) for m in found) == expected
    assert all(m.last_ns is not None and m.last_ns >= m.first_ns for m in found)


def test_a_message_sent_again_counts_once_with_its_last_end(tmp_path):
    whole = write(100, 3000, 3, 0.0)
    again = [(t + 50, octets) for t, octets in whole]
    (message,) = found_in(pcap(tmp_path / "c.pcap", whole + again))
    assert (message.octets, message.packets) == (3000, 3)
    assert message.first_ns == START_NS
    assert message.last_ns == START_NS + 52_000


def test_psns_wrap(tmp_path):
    frames = [*write(0xFFFFFE, 4000, 4, 0.0), *write(2, 2048, 2, 10.0)]
    found = found_in(pcap(tmp_path / "c.pcap", frames))
    assert [(m.octets, m.packets) for m in found] == [(4000, 4), (2048, 2)]


def test_a_message_without_its_end_is_unfinished_not_joined_to_the_next(tmp_path):
    frames = [*write(0, 3000, 3, 0.0)[:2], *write(3, 2048, 2, 10.0)]
    found = found_in(pcap(tmp_path / "c.pcap", frames))
    assert [(m.octets, m.last_ns is None) for m in found] == [(3000, True), (2048, False)]


def test_a_read_ends_with_its_answer(tmp_path):
    aeth = b"\x1f\0\0\1"
    frames = [
        (0.0, frame(SENDER, RECEIVER, READ, 0x22, 7, reth(2048))),
        (5.0, frame(RECEIVER, SENDER, ANSWER_FIRST, 0x11, 7, aeth + bytes(1024))),
        (6.0, frame(RECEIVER, SENDER, ANSWER_LAST, 0x11, 8, aeth + bytes(1024))),
        (9.0, frame(SENDER, RECEIVER, READ, 0x22, 9, reth(64))),
    ]
    found = found_in(pcap(tmp_path / "c.pcap", frames))
    assert [(m.verb, m.octets, m.packets, m.last_ns) for m in found] == [
        ("read", 2048, 2, START_NS + 6000), ("read", 64, 1, None)
    ]  # fmt: skip
