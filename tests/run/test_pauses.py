"""Pauses in constructed captures: exact times, who disobeyed, what a watchdog would have said."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
from crafted import START_NS, ack, data, pause, pcap, pcapng, pfc
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.run import machines
from roce_pkt.run.checks import WATCHDOG
from roce_pkt.run.obedience import RESPONSE_QUANTA, response_ps
from roce_pkt.run.observe import observe
from roce_pkt.run.storms import paused_in, storms

SPEEDS = sorted(RESPONSE_QUANTA)
SWITCH, SENDER, RECEIVER = "10.0.0.9", "10.0.0.1", "10.0.0.2"
US = 1_000_000


def seen_in(tmp_path, frames, speed_bps=100e9, **settings):
    path = pcap(tmp_path / "c.pcap", sorted(frames, key=lambda f: f[0]))
    events = []
    settings = {name.replace("_", ".", 1): value for name, value in settings.items()}
    seen = observe(open_capture(path), settings=settings, line_rate_bps=speed_bps, on_event=events.append)
    return seen, [e for e in events if e.kind.startswith("pfc.")]


def only(seen):
    (found,) = seen.pauses
    return found


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("whole_port", [False, True])
def test_expiry_is_exact_at_every_speed(tmp_path, speed, whole_port):
    """1000 quanta of 512 bit times; a second pause is cut short by a refresh, a third by XON."""
    make = (lambda q: pause(q, src=SWITCH)) if whole_port else (lambda q: pfc({3: q}, src=SWITCH))
    quantum_us = 512 / speed * 1e6
    long = 1000 * quantum_us
    frames = [(0.0, make(1000)), (10_000.0, make(1000)), (10_000.0 + long / 2, make(10))]
    frames += [(20_000.0, make(0xFFFF)), (20_001.0, make(0)), (30_000.0, data())]
    seen, events = seen_in(tmp_path, frames, speed)
    refreshed_ns = round((10_000.0 + long / 2) * 1000) - 10_000_000
    expected = 512_000 * 1e9 / speed + refreshed_ns + 5120 * 1e9 / speed + 1000
    assert only(seen).paused_ns == int(expected + 1e-6)
    assert only(seen).priority == (None if whole_port else 3)
    assert [e.kind for e in events] == ["pfc.xoff", "pfc.expire"] + ["pfc.xoff"] * 2 + [
        "pfc.expire",
        "pfc.xoff",
        "pfc.xon",
    ]
    assert events[1].time_ns - START_NS == int(512_000 * 1e9 / speed + 1e-6)


def test_several_classes_in_one_frame(tmp_path):
    frames = [
        (0.0, pfc({0: 1000, 3: 2000, 7: 10}, src=SWITCH)),
        (3.0, pfc({3: 0}, src=SWITCH)),
        (100.0, data()),
    ]
    seen, _ = seen_in(tmp_path, frames)
    assert {p.priority: (p.paused_ns, p.xoff, p.xon) for p in seen.pauses} == {
        0: (5120, 1, 0), 3: (3000, 1, 1), 7: (51, 1, 0)
    }  # fmt: skip


def test_zero_with_enable_resumes_and_quanta_without_enable_do_nothing(tmp_path):
    frames = [(0.0, pfc({3: 0xFFFF}, src=SWITCH)), (5.0, pfc({3: 0, 4: 500}, src=SWITCH, enable=0)),
              (8.0, pfc({3: 0}, src=SWITCH)), (100.0, data())]  # fmt: skip
    seen, events = seen_in(tmp_path, frames)
    assert (only(seen).paused_ns, only(seen).xoff, only(seen).xon) == (8000, 1, 1)
    assert len(events) == 2


def test_an_xon_without_a_pause_is_counted_and_changes_nothing(tmp_path):
    seen, events = seen_in(tmp_path, [(0.0, pfc({3: 0}, src=SWITCH)), (9.0, data())])
    assert (only(seen).paused_ns, only(seen).xon) == (0, 1)
    assert "paused_ns" not in events[0].state


# -- who disobeyed


def stream(start, stop, step=1.0, **how):
    return [(float(t), data(int(t), **how)) for t in np.arange(start, stop, step)]


ACKS = [(t + 0.5, ack(int(t))) for t in range(0, 40, 4)]


def test_frames_inside_a_pause_are_named_and_those_in_the_response_are_not(tmp_path):
    """Class 3 is DSCP 26; paused from 10 us on, at 100G a sender may take 394 quanta, 2.017 us."""
    frames = [*stream(0, 12.5), (10.0, pfc({3: 0xFFFF}, src=SWITCH)), (15.0, data(15)), *ACKS[:3]]
    seen, events = seen_in(tmp_path, [*frames, (20.0, pfc({3: 0}, src=SWITCH)), *stream(21, 30)])
    assert only(seen).violations == 1
    (found,) = [f for f in seen.findings if f.rule == "pfc.violation"]
    assert found.severity == "error"
    assert seen.failed
    (event,) = [e for e in events if e.kind == "pfc.violation"]
    assert (event.frame, event.state["after_ns"]) == (found.frame, 5000.0)
    quiet = [f for f in frames if f[0] != 15.0]
    seen, _ = seen_in(tmp_path, [*quiet, (20.0, pfc({3: 0}, src=SWITCH)), *stream(21, 30)])
    assert only(seen).violations == 0
    assert "pfc.violation" not in {f.rule for f in seen.findings}


@pytest.mark.parametrize(("late_ns", "violations"), [(-1, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("speed", SPEEDS)
def test_the_response_allowed_to_the_nanosecond(tmp_path, speed, late_ns, violations):
    """The response, and the frame that had begun: 1106 octets with preamble and gap."""
    limit_ns = response_ps(speed) / 1000 + 1106 * 8e9 / speed
    at = 10.0 + (int(limit_ns) + late_ns) / 1000
    frames = [(0.0, data()), *ACKS[:2], (10.0, pfc({3: 0xFFFF}, src=SWITCH)), (at, data(1))]
    assert only(seen_in(tmp_path, frames, speed)[0]).violations == violations


def test_other_classes_and_other_directions_do_not_disobey(tmp_path):
    frames = [(0.0, data()), *ACKS, (10.0, pfc({3: 0xFFFF}, src=SWITCH)), (30.0, data(1, dscp=48))]
    assert only(seen_in(tmp_path, frames)[0]).violations == 0
    assert only(seen_in(tmp_path, frames, pfc_trust="pcp")[0]).violations == 0
    zero = [*frames[:-2], (10.0, pfc({0: 0xFFFF}, src=SWITCH)), (30.0, data(1))]
    assert only(seen_in(tmp_path, zero, pfc_trust="pcp")[0]).violations == 1


def test_a_tag_says_the_class(tmp_path):
    tagged = data(1)
    tagged = tagged[:12] + struct.pack("!HH", 0x8100, 5 << 13 | 100) + tagged[12:]
    for class_, violations in ((5, 1), (3, 0)):
        frames = [(0.0, data()), *ACKS[:2], (10.0, pfc({class_: 0xFFFF}, src=SWITCH)), (30.0, tagged)]
        assert only(seen_in(tmp_path, frames)[0]).violations == violations
    frames = [(0.0, data()), *ACKS[:2], (10.0, pfc({3: 0xFFFF}, src=SWITCH)), (30.0, tagged)]
    assert only(seen_in(tmp_path, frames, pfc_trust="dscp")[0]).violations == 1


def test_a_station_stops_what_travels_to_it(tmp_path):
    """The receiver itself pauses; what it sends is not meant."""
    frames = [(0.0, data()), *ACKS, (10.0, pfc({3: 0xFFFF}, src=RECEIVER)), (30.0, data(1))]
    assert only(seen_in(tmp_path, frames)[0]).violations == 1
    frames[-1] = (30.0, data(1, src=RECEIVER, dst=SENDER, dqpn=0x11))
    assert only(seen_in(tmp_path, frames)[0]).violations == 0


def test_a_link_of_many_stations_is_not_judged(tmp_path):
    frames = [
        (0.0, data()),
        (1.0, data(src="10.0.0.3", dst="10.0.0.4")),
        (10.0, pfc({3: 0xFFFF}, src=SWITCH)),
        (30.0, data(1)),
    ]
    seen, _ = seen_in(tmp_path, frames)
    assert only(seen).violations is None
    assert "pfc.unclear" in {f.rule for f in seen.findings}
    assert not seen.failed


def test_a_response_asked_for_counts(tmp_path):
    frames = [(0.0, data()), *ACKS[:2], (10.0, pfc({3: 0xFFFF}, src=SWITCH)), (15.0, data(1))]
    assert only(seen_in(tmp_path, frames, pfc_response="1us")[0]).violations == 1
    assert only(seen_in(tmp_path, frames, pfc_response="6us")[0]).violations == 0


# -- speeds


def test_the_speed_a_capture_states_times_its_pauses(tmp_path):
    path = pcapng(
        tmp_path / "c.pcapng", [(0.0, pfc({3: 1000}, src=SWITCH)), (900.0, data())], speed_bps=25_000_000_000
    )
    seen = observe(open_capture(path))
    assert only(seen).paused_ns == 20_480


@pytest.mark.parametrize(("gap_ns", "speed"), [(8.848, None), (88.48, 100e9), (221.2, 40e9), (120.0, None)])
def test_a_speed_that_bursts_show(tmp_path, gap_ns, speed):
    """1106 octets every 88.48 ns are 100 Gb/s; every 120 ns are no link's speed."""
    frames = [(n * gap_ns / 1000, data(n)) for n in range(200)]
    seen = observe(
        open_capture(
            pcap(tmp_path / "c.pcap", [*frames, (50.0, pfc({3: 1000}, src=SWITCH)), (900.0, data())])
        )
    )
    assert only(seen).speed_bps == speed
    assert seen.setup.line_rate_bps is None
    assert ("pfc.speed" if speed else "pfc.no-speed") in {f.rule for f in seen.findings}


# -- storms


def watchdog(**changes):
    return WATCHDOG.twin(WATCHDOG.record(changes, 1e11))


MS = 10**9
NOTHING = np.zeros(0, np.int64)


def test_a_continuous_pause_is_a_storm_at_the_second_poll():
    starts, stops, frames = np.array([5 * MS]), np.array([900 * MS]), np.arange(5 * MS, 900 * MS, 300_000_000)
    (storm,) = storms(starts, stops, frames, NOTHING, 2000 * MS, watchdog())
    assert (storm.at_ps, storm.over_ps) == (300 * MS, 1100 * MS)


def test_what_is_no_storm():
    p = watchdog()
    frames = np.arange(0, 500 * MS, 300_000_000)
    whole = np.array([0]), np.array([500 * MS])
    assert storms(*whole, frames, NOTHING, 500 * MS, p)
    assert not storms(np.array([0, 151 * MS]), np.array([149 * MS, 300 * MS]), frames, NOTHING, 300 * MS, p)
    moved = np.array([50 * MS, 250 * MS])
    assert not storms(*whole, frames, moved, 300 * MS, p)
    assert not storms(np.array([0]), np.array([199 * MS]), frames, NOTHING, 500 * MS, p)


def test_a_storm_in_a_capture(tmp_path):
    frames = [(float(t), pfc({3: 0xFFFF}, src=SWITCH)) for t in range(0, 400_000, 300)] + [
        (900_000.0, data())
    ]
    seen, _ = seen_in(tmp_path, frames)
    assert [(s.at_ps, s.over_ps) for s in only(seen).storms] == [(200 * MS, 600 * MS)]
    assert "pfc.storm" in {f.rule for f in seen.findings}
    assert 0.4 < only(seen).share < 0.5


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=20), st.integers(1, 60))
def test_time_paused_between_edges(script, step):
    starts, stops, at = [], [], 0
    for gap, length in script:
        starts.append(at + gap)
        at += gap + length
        stops.append(at)
    edges = np.arange(0, at + 2 * step, step)
    slots = np.zeros(at + 3 * step, int)
    for start, stop in zip(starts, stops, strict=True):
        slots[start:stop] = 1
    expected = [slots[a:b].sum() for a, b in pairwise(edges)]
    assert paused_in(np.array(starts, np.int64), np.array(stops, np.int64), edges).tolist() == expected


@examples(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from([0, 0, 1, 50, 500, 0xFFFF]), st.integers(0, 2)),
        max_size=30,
    )
)
def test_spans_equal_a_walk_in_small_steps_and_compiled_equals_plain(tmp_path_factory, script):
    """The law of a link, written down once more as a walk over nanoseconds."""
    script = sorted(script, key=lambda s: s[0])
    frames = [(t / 1000, pfc({class_: quanta}, src=SWITCH)) for t, quanta, class_ in script]
    folder = tmp_path_factory.mktemp("p")
    both = []
    for many in (10**9, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machines, "MANY_PAUSES", many)
            both.append(seen_in(folder, [*frames, (5.0, data())], 512e9)[0].as_json()["pauses"])
    assert both[0] == both[1]
    expected = {}
    origin = min([t for t, _, _ in script], default=0)
    for class_ in {c for _, _, c in script}:
        until, paused, at = 0, 0, origin
        told = {}
        for t, quanta, c in script:
            if c == class_:
                told.setdefault(t, []).append(quanta)
        for at in range(origin, 5000):
            for quanta in told.get(at, ()):
                until = at + quanta
            paused += at < until
        expected[class_] = paused
    assert {p["priority"]: p["paused_ns"] for p in both[0]} == expected
