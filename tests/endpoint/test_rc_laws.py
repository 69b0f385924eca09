"""Requester and responder as plain Python over a wire that loses, delays and repeats."""

import random
from types import SimpleNamespace as Record

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import pacing, uc
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint import rc_responder as responder

TIMEOUT_PS = 100


def pair(packets, message_packets):
    q = Record(
        snd=0, una=0, high=0, limit=packets, window=1 << 23, offset=0, message_packets=message_packets,
        message_end=message_packets, messages=0, progress_ps=0, timeout_ps=TIMEOUT_PS, retry_at_ps=NEVER_PS,
        hold_until_ps=NEVER_PS, retries_left=7, retry_cnt=7, rnr_left=7, rnr_retry=7, failed=0,
    )  # fmt: skip
    return q, Record(expected=0, refused=0, msn=0, receives=-1, receives_posted=-1, receives_due_ps=NEVER_PS)


@given(
    seed=st.integers(0, 1 << 30),
    messages=st.integers(1, 6),
    message_packets=st.integers(1, 7),
    loss=st.floats(0, 0.5),
)
def test_whatever_the_wire_does_every_packet_is_delivered_once_and_in_order(
    seed, messages, message_packets, loss
):
    dice = random.Random(seed)
    q, r = pair(messages * message_packets, message_packets)
    q.retry_cnt = q.retries_left = 1000
    there, back, delivered = [], [], []
    for now in range(40_000):
        if requester.may_send(q):
            position = q.snd
            last = q.offset + 1 == message_packets
            requester.sent(q, 1, now)
            if dice.random() >= loss:
                there.append((now + dice.choice((3, 3, 3, 9)), position, last))
        arrived = sorted(x for x in there if x[0] <= now)
        there = [x for x in there if x[0] > now]
        for _, position, last in arrived:
            verdict = responder.judge(r, position)
            if verdict == responder.ACCEPT:
                responder.accept(r, 1, last)
                delivered.append(position)
            answer = {responder.ACCEPT: "ack", responder.DUPLICATE: "ack", responder.REFUSE: "nak"}.get(
                verdict
            )
            if answer and dice.random() >= loss:
                back.append((now + 3, answer, r.expected))
        for _, answer, expected in [x for x in back if x[0] <= now]:
            if answer == "ack":
                requester.acknowledged(q, expected, now)
            elif expected >= q.una:
                requester.acknowledged(q, expected, now)
                requester.go_back(q, expected)
        back = [x for x in back if x[0] > now]
        requester.on_timer(q, now)
        assert q.una <= r.expected
        assert q.una <= q.snd <= q.high
        assert q.offset == q.snd % message_packets
        if q.una == q.limit:
            break
    assert delivered == list(range(messages * message_packets))
    assert q.messages == messages == r.msn


@pytest.mark.parametrize(
    ("code", "ps"), [(0, NEVER_PS), (1, 8_192_000), (14, 4_096_000 << 14), (31, 4_096_000 << 31)]
)
def test_retry_timer_codes(code, ps):
    assert requester.timeout_ps(code) == ps


def test_one_refusal_until_the_missing_packet_arrives():
    _, r = pair(10, 10)
    assert responder.judge(r, 2) == responder.REFUSE
    assert responder.judge(r, 3) == responder.IGNORE
    assert responder.judge(r, 0) == responder.ACCEPT
    responder.accept(r, 1, 0)
    assert responder.judge(r, 0) == responder.DUPLICATE
    assert responder.judge(r, 5) == responder.REFUSE


def test_an_acknowledgement_covers_everything_before_it_and_restores_retries():
    q, _ = pair(10, 4)
    for now in range(6):
        requester.sent(q, 1, now)
    q.retries_left = 2
    assert requester.acknowledged(q, 5, 50) == 1
    assert (q.una, q.retries_left, q.message_end) == (5, 7, 8)
    assert requester.acknowledged(q, 3, 60) == 0
    assert (q.una, q.progress_ps) == (5, 50)


def test_retries_run_out():
    q, _ = pair(4, 4)
    requester.sent(q, 1, 0)
    happened = [requester.on_timer(q, now) for now in range(0, 2000, 10)]
    assert happened.count(requester.TIMER_RETRY) == 7
    assert happened.count(requester.TIMER_FAILED) == 1
    assert q.failed
    assert not requester.may_send(q)


def test_not_ready_waits_then_sends_again_and_seven_means_without_end():
    q, _ = pair(4, 4)
    for now in range(3):
        requester.sent(q, 1, now)
    for _ in range(20):
        requester.not_ready(q, 1, 500, 10)
        assert not requester.may_send(q)
        assert requester.next_timer_ps(q) <= 510
    assert requester.on_timer(q, 509) == requester.TIMER_NOTHING
    assert requester.on_timer(q, 510) == requester.TIMER_RESUMED
    assert (q.snd, q.offset) == (1, 1)
    q.rnr_retry = q.rnr_left = 1
    requester.not_ready(q, 1, 500, 600)
    assert not q.failed
    requester.not_ready(q, 1, 500, 700)
    assert q.failed


def test_receives_are_posted_again_one_at_a_time():
    r = Record(receives=2, receives_posted=2, receives_due_ps=NEVER_PS)
    assert responder.take_receive(r, 100, 0)
    assert responder.take_receive(r, 100, 10)
    assert not responder.take_receive(r, 100, 99)
    assert responder.take_receive(r, 100, 100)
    assert not responder.take_receive(r, 100, 150)
    assert responder.take_receive(r, 100, 200)
    assert responder.take_receive(Record(receives=-1), 100, 0)


def test_a_repeated_read_sends_the_stream_back():
    r = Record(snd=7, offset=1, limit=9, message_packets=3, since_ack=1)
    responder.read(r, 4, 2)
    assert (r.snd, r.offset, r.limit, r.since_ack) == (4, 1, 9, responder.AFRESH)
    responder.read(r, 9, 3)
    assert (r.snd, r.limit, r.since_ack) == (4, 12, responder.AFRESH)
    assert responder.owed(r) == 8
    responder.read(r, 3, 3)  # from a message's own beginning nothing has to be said
    assert (r.snd, r.offset, r.since_ack) == (3, 0, 0)


def test_unreliable_connections_drop_a_broken_message_only():
    r = Record(expected=0, refused=0)
    stream = [(0, 1), (1, 0), (3, 0), (4, 0), (5, 1), (6, 0)]
    assert [uc.receive(r, p, first) for p, first in stream] == [True, True, False, False, True, True]


def test_pacing_keeps_the_lower_of_two_rates_and_saves_no_credit():
    q = Record(limit_bps=10e9)
    assert pacing.next_start_ps(q, 40e9, 1250, 1, 1_000_000) == 1_000_000 + 1_000_000
    q.limit_bps = float("inf")
    assert pacing.next_start_ps(q, 40e9, 1048, 1000, 5) == 5 + 209_000
