"""The clockwork: octets in blocks equal octets one by one, compiled equals plain, and nothing hangs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.cc import dcqcn
from roce_pkt.cc.profiles import PROFILES
from roce_pkt.run import clockwork as cw
from roce_pkt.run.reaction import Senders, Sent, told

US = 1_000_000


def record(profile="paper", **changes):
    return dcqcn.PARAMETERS.record(PROFILES[profile].settings() | changes, 40e9)


class Sender:
    """One sender, the only one of a run."""

    def __init__(self, p, *, compiled=False, events=None, span_us=1000):
        self.events = events
        self.all = Senders(p, (0, span_us * US), 8, telling=events is not None, compiled=compiled)
        self.all._meet(np.array([7]))
        self.sent = None

    def notify(self, *cnps):
        """Notifications by (time, frame)."""
        columns = np.array(cnps, np.int64).reshape(-1, 2)
        self.all.notify(np.full(len(cnps), 7), columns[:, 0], columns[:, 1])

    def send(self, frames):
        """Frames by (time, octets)."""
        columns = np.array(frames, np.int64).reshape(-1, 2)
        none = np.zeros(len(frames), np.int64)
        self.sent = Sent.of(none, columns[:, 0].copy(), columns[:, 1].copy(), none, 1)

    def take(self, steps):
        if self.events is not None:
            found = list(told(steps))
            assert all(flow == 7 for flow, *_ in found)
            self.events.extend(event[1:] for event in found)

    def advance(self, until):
        self.take(self.all.advance(until, self.sent))

    def finish(self, until):
        self.take(self.all.finish(until))
        return self.all.of(7)


def one_by_one(p, cnps, frames, until):
    """The plain law, an operation at a time: timers first, then notifications, then octets."""
    p, s = dcqcn.PARAMETERS.twin(p), dcqcn.State()
    dcqcn.start(p, s, 0)
    operations = [(t, 1, 0) for t in cnps] + [(t, 2, octets) for t, octets in frames]
    for time, what, octets in [*sorted(operations, key=lambda o: o[:2]), (until, 3, 0)]:
        while (due := dcqcn.next_timer_ps(p, s)) <= time:
            dcqcn.on_timer(p, s, due)
        if what == 1:
            dcqcn.on_cnp(p, s, time)
        elif what == 2:
            dcqcn.on_bytes(p, s, octets, time)
        else:
            dcqcn.on_timer(p, s, time)
    return s


TIMES = st.integers(0, 900 * US)
SCENE = st.fixed_dictionaries(
    {
        "profile": st.sampled_from(sorted(PROFILES)),
        "changes": st.fixed_dictionaries(
            {"byte_counter": st.sampled_from(["on", "off"])},
            optional={
                "byte_reset": st.sampled_from(["1KB", "3KB", "20KB"]),
                "threshold": st.integers(1, 4),
                "increase_period": st.sampled_from(["20us", "55us", "300us"]),
                "hyper_halves_periods": st.sampled_from(["on", "off"]),
            },
        ),
        "cnps": st.lists(TIMES, max_size=12).map(sorted),
        "frames": st.lists(st.tuples(TIMES, st.integers(60, 4000)), max_size=40).map(sorted),
        "stops": st.lists(TIMES, max_size=4).map(sorted),
    }
)


def in_batches(sender, scene):
    """Advance in several steps, each with the frames and notifications up to it."""
    sent_cnps = sent = 0
    for stop in [*scene["stops"], 1000 * US]:
        frames = [f for f in scene["frames"][sent:] if f[0] <= stop]
        cnps = [t for t in scene["cnps"][sent_cnps:] if t <= stop]
        sent, sent_cnps = sent + len(frames), sent_cnps + len(cnps)
        sender.notify(*((time, number) for number, time in enumerate(cnps, start=1)))
        sender.send(frames)
        sender.advance(stop)
    return sender.finish(1000 * US)


@pytest.mark.parametrize("compiled", [False, True])
@settings(max_examples=80)
@given(scene=SCENE)
def test_blocks_and_batches_change_nothing(compiled, scene):
    p = record(scene["profile"], **scene["changes"])
    expected = one_by_one(p, scene["cnps"], scene["frames"], 1000 * US)
    rp = in_batches(Sender(p, compiled=compiled), scene)
    assert repr(rp.s) == repr(expected)


@settings(max_examples=40)
@given(scene=SCENE)
def test_both_forms_tell_the_same_events_and_history(scene):
    p = record(scene["profile"], **scene["changes"])
    heard = {False: [], True: []}
    histories = {}
    for compiled, events in heard.items():
        rp = in_batches(Sender(p, compiled=compiled, events=events), scene)
        histories[compiled] = (rp.history, rp.rate_min_bps, rp.cuts)
    assert heard[False] == heard[True]
    assert histories[False] == histories[True]
    times = [event[0] for event in heard[False]]
    assert times == sorted(times)


def test_a_full_log_is_emptied_and_filled_again(monkeypatch):
    whole, parts = [], []
    for events, rows in ((whole, 4096), (parts, 3)):
        monkeypatch.setattr(cw, "LOG_ROWS", rows)
        rp = Sender(record(), events=events)
        for at in (0, 50, 100):
            rp.notify((at * US, 1))
        rp.advance(2000 * US)
    assert len(whole) == 3 + 2 * 34
    assert parts == whole


def test_history_keeps_the_lowest_rate_of_each_part():
    rp = Sender(record(), span_us=600)
    for at in (100, 101, 102):
        rp.notify((at * US, 1))
    rp = rp.finish(600 * US)
    parts = 600 / cw.BUCKETS
    assert rp.history[int(95 / parts)] == 40e9
    assert rp.history[int(105 / parts)] == rp.rate_min_bps == 5e9
    assert rp.history[-1] == pytest.approx(10.06546875e9)  # until the last step, at 597 us
    assert rp.rate_bps == pytest.approx(10.112734375e9)


def test_a_gap_that_would_take_forever_is_jumped_and_said(monkeypatch):
    monkeypatch.setattr(cw, "MOST_STEPS", 100)
    rp = Sender(record(cap_target="off"))  # an uncapped target never rests
    rp.notify((0, 1))
    rp.advance(10**15)
    assert rp.all.of(7).skipped_ps > 0.99 * 10**15
    rp.notify((10**15 + 5, 2))
    rp.advance(10**15 + 10)
    assert rp.all.of(7).cuts == 2


@pytest.mark.parametrize("halves", ["on", "off"])
def test_the_byte_counter_runs_twice_as_fast_in_hyper_increase(halves):
    """A frame each 2 us and a counter of ten: the very frames that the plain law steps at."""
    p = record(
        threshold=1, byte_reset="10KB", increase_period="20us", hyper_halves_periods=halves, byte_counter="on"
    )
    frames = [(t * 2 * US, 1000) for t in range(1, 300)]
    twin, s, expected = dcqcn.PARAMETERS.twin(p), dcqcn.State(), []
    dcqcn.start(twin, s, 0)
    for cnp in (1, 2, 3):
        dcqcn.on_cnp(twin, s, cnp)
    for time, octets in frames:
        while (due := dcqcn.next_timer_ps(twin, s)) <= time:
            dcqcn.on_timer(twin, s, due)
        if dcqcn.on_bytes(twin, s, octets, time):
            expected.append((time, s.rate_bps))
    events = []
    sender = Sender(p, events=events)
    sender.notify((1, 1), (2, 2), (3, 3))
    sender.send(frames)
    sender.advance(600 * US)
    found = [(e[0], e[3]["rate_bps"]) for e in events if e[1] == "rp.increase"]
    assert set(expected) <= set(found)
    assert (len(expected) > 29) == (halves == "on")
