"""Selective repeat as plain Python over a wire that loses, delays and repeats, beside go-back-N."""

import random
from types import SimpleNamespace as Record

from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint import rc_responder as responder
from roce_pkt.endpoint import rc_selective as selective

LOW_PS, HIGH_PS = 60, 100


class Wire:
    """One queue pair over a wire; time in steps.

    Args:
        packets: To send.
        message_packets: In a message.
        lost: (position, transmission) -> whether it is lost on its way.
        delays: (position, transmission) -> steps it takes.
        window: Most outstanding.
        reordering: As in the laws; 0 for go-back-N.
    """

    def __init__(self, packets, message_packets, lost, delays=lambda *_: 5, window=64, reordering=1):
        self.q = Record(
            snd=0, una=0, high=0, limit=packets, window=window, offset=0, message_packets=message_packets,
            message_end=message_packets, messages=0, progress_ps=0, timeout_ps=HIGH_PS, retry_at_ps=NEVER_PS,
            hold_until_ps=NEVER_PS, retries_left=1000, retry_cnt=1000, rnr_left=7, rnr_retry=7, failed=0,
        )  # fmt: skip
        self.r = Record(expected=0, refused=0, msn=0)
        self.s, self.rs = selective.State(), selective.State()
        self.lost, self.delays, self.reordering = lost, delays, reordering
        self.there, self.back, self.delivered, self.sent = [], [], [], {}
        self.again = 0

    def send(self, now):
        q = self.q
        position, turn = q.snd, self.sent.get(q.snd, 0)
        self.sent[position] = turn + 1
        last = q.offset + 1 == q.message_packets
        if requester.sent(q, 1, now):
            self.again += 1
            if self.reordering:
                selective.sent_again(q, self.s)
        if not self.lost(position, turn):
            self.there.append((now + self.delays(position, turn), position, last))

    def arrive(self, position, last):
        """What the receiver answers: (kind, expected, what arrived) or None."""
        if not self.reordering:
            verdict = responder.judge(self.r, position)
            if verdict == responder.ACCEPT:
                responder.accept(self.r, 1, last)
                self.delivered.append(position)
            kind = {responder.REFUSE: "nak", responder.IGNORE: None}.get(verdict, "ack")
            return kind and (kind, self.r.expected, position)
        verdict = selective.judge(self.r, self.rs, position)
        if verdict == selective.KEEP:
            selective.keep(self.rs, position, last)
            self.delivered.append(position)
            return "nak", self.r.expected, position
        if verdict == responder.ACCEPT:
            self.delivered.append(position)
            selective.deliver(self.r, self.rs, last)
        return "ack", self.r.expected, position

    def answer(self, kind, expected, position, now):
        q, before = self.q, self.q.una
        if kind == "nak" and expected < q.una:
            return
        requester.acknowledged(q, expected, now)
        if not self.reordering:
            if kind == "nak":
                requester.go_back(q, expected)
            return
        selective.acknowledged(q, self.s, before)
        if kind == "nak":
            selective.refused(q, self.s, position, self.reordering)
        selective.set_timeout(q, LOW_PS, HIGH_PS, now)

    def step(self, now):
        q = self.q
        if requester.may_send(q):
            self.send(now)
        for _, position, last in sorted(x for x in self.there if x[0] <= now):
            told = self.arrive(position, last)
            if told:
                self.back.append((now + 5, told))
        self.there = [x for x in self.there if x[0] > now]
        for _, told in [x for x in self.back if x[0] <= now]:
            self.answer(*told, now)
        self.back = [x for x in self.back if x[0] > now]
        if requester.on_timer(q, now) == requester.TIMER_RETRY and self.reordering:
            selective.timed_out(q, self.s)
        assert q.una <= self.r.expected
        assert q.una <= q.snd <= q.high <= q.una + q.window
        assert q.offset == q.snd % q.message_packets
        return q.una == q.limit

    def run(self, most=30_000):
        for now in range(most):
            if self.step(now):
                return now
        raise AssertionError("never finished")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    messages=st.integers(1, 8),
    message_packets=st.integers(1, 30),
    loss=st.floats(0, 0.4),
    spread=st.integers(0, 30),
    window=st.integers(1, 80),
    reordering=st.integers(1, 20),
)
def test_every_packet_is_delivered_exactly_once_whatever_the_wire_does(
    seed, messages, message_packets, loss, spread, window, reordering
):
    dice = random.Random(seed)
    packets = messages * message_packets
    wire = Wire(packets, message_packets, lambda *_: dice.random() < loss,
                lambda *_: 5 + dice.randrange(spread + 1), window, reordering)  # fmt: skip
    wire.run()
    assert sorted(wire.delivered) == list(range(packets))
    assert wire.r.expected == packets
    assert wire.q.messages == messages == wire.r.msn
    assert not any(wire.rs.kept)
    assert not any(wire.s.arrived)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    message_packets=st.integers(1, 30),
    loss=st.floats(0, 0.3),
    window=st.integers(4, 80),
)
def test_it_never_repeats_more_than_go_back_n_for_the_same_losses(seed, message_packets, loss, window):
    dice = random.Random(seed)
    packets = 4 * message_packets
    gone = {position for position in range(packets) if dice.random() < loss}
    one, many = (
        Wire(packets, message_packets, lambda p, turn: turn == 0 and p in gone, window=window, reordering=n)
        for n in (1, 0)
    )
    one.run()
    many.run()
    assert one.again <= many.again
    assert many.delivered == sorted(one.delivered) == list(range(packets))


def test_only_what_is_missing_is_sent_again():
    wire = Wire(200, 50, lambda p, turn: turn == 0 and p in (10, 11, 40, 90))
    wire.run()
    assert wire.again == 4
    assert {p for p, count in wire.sent.items() if count > 1} == {10, 11, 40, 90}
    assert wire.delivered[-1] == 199


def test_a_repeated_packet_lost_again_waits_for_the_timer():
    wire = Wire(100, 50, lambda p, turn: p == 30 and turn < 3)
    wire.run()
    assert wire.sent[30] == 4
    assert wire.q.una == 100


def test_a_tolerant_sender_takes_no_reordering_for_loss():
    def late(position, _):
        return 25 if position % 7 == 0 else 5

    hasty = Wire(300, 50, lambda *_: False, late)
    calm = Wire(300, 50, lambda *_: False, late, reordering=25)
    hasty.run()
    calm.run()
    assert calm.again == 0
    assert hasty.again > 20


def test_few_packets_outstanding_have_the_shorter_timer():
    q = Record(high=10, una=6, timeout_ps=0, retry_at_ps=500, progress_ps=100)
    selective.set_timeout(q, LOW_PS, HIGH_PS, 120)
    assert (q.timeout_ps, q.retry_at_ps) == (HIGH_PS, 200)
    q.una = 7
    selective.set_timeout(q, LOW_PS, HIGH_PS, 120)
    assert (q.timeout_ps, q.retry_at_ps) == (LOW_PS, 160)
    q.una = 10
    selective.set_timeout(q, LOW_PS, HIGH_PS, 120)
    assert q.retry_at_ps == 160


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.booleans()), max_size=60))
def test_a_ring_holds_the_bits_of_a_window(changes):
    words, model = [0] * selective.WORDS, {}
    for position, bit in changes:
        selective.put(words, position, int(bit))
        model[position % selective.WINDOW] = int(bit)
    assert all(selective.has(words, place) == bit for place, bit in model.items())
    assert sum(word.bit_count() for word in words) == sum(model.values())
    assert all(0 <= word < 1 << 32 for word in words)
