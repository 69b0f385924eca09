"""Storms, the watchdog's quantised clock, deadlock while it forms and how it is cleared."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated import Run, text_scenario

from roce_pkt.engine import rows
from roce_pkt.engine.deadlock import Wait, find_circle
from roce_pkt.errors import ScenarioError
from roce_pkt.fabric import watchdog

US, MS = 10**6, 10**9


class Settings:
    def __init__(self, detection_ps=200 * MS, restoration_ps=200 * MS):
        self.detection_ps, self.restoration_ps = detection_ps, restoration_ps


def polls(paused_from_ps, poll_ps, settings, count=20):
    """Time of the poll that calls a storm when a queue is stuck and paused from some time on."""
    state = watchdog.State()
    for n in range(1, count):
        now = n * poll_ps
        if watchdog.poll(settings, state, 5, max(now - paused_from_ps, 0), 7, poll_ps) == watchdog.STORM:
            return now
    return None


@given(st.integers(0, 10**12), st.sampled_from([50, 100, 200]), st.sampled_from([100, 200, 400, 450]))
def test_a_storm_is_called_within_one_poll_of_the_detection_time(onset, poll_ms, detection_ms):
    poll, settings = poll_ms * MS, Settings(detection_ms * MS)
    onset = poll + onset % (2 * poll)  # somewhere between polls
    fired = polls(onset, poll, settings)
    whole = math.ceil(detection_ms * 0.99 / poll_ms) * poll  # intervals that must be paused throughout
    first = math.ceil((onset - 0.01 * poll) / poll) * poll  # a hundredth of an interval is forgiven
    assert fired == first + whole
    if detection_ms % poll_ms == 0:
        assert 0 <= fired - onset - detection_ms * MS + poll // 100 <= poll + poll // 100


@pytest.mark.parametrize(
    ("heads", "paused_share"),
    [([5, 6, 5, 6], 1.0), ([-1, -1, -1, -1], 1.0), ([5, 5, 5, 5], 0.98)],
    ids=["moves", "empty", "not paused throughout"],
)
def test_what_is_no_storm(heads, paused_share):
    state, settings = watchdog.State(), Settings(100 * MS)
    found = [
        watchdog.poll(settings, state, head, int((n + 1) * 100 * MS * paused_share), 0, 100 * MS)
        for n, head in enumerate(heads)
    ]
    assert set(found) == {watchdog.NOTHING}


def test_any_pause_frame_puts_restoration_off():
    state, settings = watchdog.State(), Settings(100 * MS, 300 * MS)
    counts = [0, 0, 1, 1, 2, 2, 2, 2, 2]
    found = [
        watchdog.poll(settings, state, 5, (n + 1) * 100 * MS, pauses, 100 * MS)
        for n, pauses in enumerate(counts)
    ]
    assert found.index(watchdog.STORM) == 1
    assert [n for n, what in enumerate(found) if what == watchdog.RESTORE] == [7]


def storm(action="drop", restoration="4ms", **more):
    return text_scenario(
        'pattern = "flows"\npairs = [[0, 1], [0, 2]]\nmessage = "100MB"\nrate = "10Gbps"',
        top='duration = "30ms"',
        fabric="hosts = 3",
        switch="[switch.ecn]\nenabled = false",
        host='[host.cc]\nalgorithm = "fixed"\n[storm]\nhosts = [1]\nstart = "2.3ms"\nduration = "12ms"\n'
        '[watchdog]\nenabled = true\ndetection = "4ms"\npoll = "2ms"\n'
        f'restoration = "{restoration}"\naction = "{action}"',
        **more,
    )


def test_a_storm_is_found_dropped_and_over():
    run = Run(storm())
    found, over = run.events(rows.WD_STORM), run.events(rows.WD_RESTORE)
    onset = run.events(rows.PFC_PAUSED)["time_ps"].min()
    assert len(found) == len(over) == 1
    assert found["time_ps"][0] == 8 * MS
    assert 4 * MS <= found["time_ps"][0] - onset <= 4 * MS + 2 * MS
    assert run.port("switch0:1")["drops"] > 0
    # the storm ends at 14.3 ms; a poll sees the last pause frame at 16 ms, two quiet ones follow
    assert over["time_ps"][0] == 20 * MS
    [seen] = [s for o in run.session.overseers for s in o.seen]
    assert (seen.rule, seen.time_ps) == ("pfc-storm", 8 * MS)
    assert seen.text.startswith("switch0:1 priority 3 was paused for 4 ms")
    # the other receiver was a victim until then
    late = run.responder["received_bytes"][1]
    assert late > Run(storm("alert")).responder["received_bytes"][1] * 1.3


def test_forward_ignores_pauses_and_loses_nothing():
    run = Run(storm("forward"))
    assert run.arrays.port["drops"].sum() == 0
    assert run.requester["again"].sum() == 0
    assert run.events(rows.WD_STORM)["time_ps"].tolist() == [8 * MS]


RING = """kind = "ring"
ring = 5
hosts = 5"""


def ring(top='duration = "3ms"', more=""):
    return text_scenario(
        'pattern = "flows"\npairs = [[0, 2], [1, 3], [2, 4], [3, 0], [4, 1]]\nmessage = "1GB"',
        top=top,
        fabric=RING,
        switch='buffer = "1MiB"\npfc = { headroom = "100KB" }\n[switch.ecn]\nenabled = false',
        host=f'[host.cc]\nalgorithm = "fixed"\n{more}',
    )


def test_a_ring_of_two_hop_flows_deadlocks_and_is_named_while_it_forms():
    run = Run(ring())
    [seen] = [s for o in run.session.overseers for s in o.seen]
    assert (seen.rule, seen.severity) == ("deadlock", "error")
    last_moved = run.events(rows.RC_DONE)["time_ps"].max(initial=0)
    assert last_moved <= seen.time_ps <= 200 * US
    assert seen.text.startswith("5 ports have stopped each other in a circle: ")
    assert all(f"switch{n}:" in seen.text for n in range(5))
    assert sorted(run.pairs.flow_of_half[list(seen.halves)].tolist()) == [0, 1, 2, 3, 4]
    assert run.events(rows.DEADLOCK)["time_ps"].tolist() == [seen.time_ps]
    stuck = run.responder["received_bytes"].copy()
    run.session.advance(6 * MS)
    assert (run.responder["received_bytes"] == stuck).all()


def test_the_watchdog_clears_a_deadlock_when_its_poll_predicts():
    clock = 'detection = "2ms"\npoll = "1ms"\nrestoration = "50ms"\naction = "forward"'
    run = Run(ring('duration = "5ms"', f"[watchdog]\nenabled = true\n{clock}"))
    found = run.events(rows.WD_STORM)
    # stuck within the first interval: the second and third are paused throughout
    assert set(found["time_ps"].tolist()) == {3 * MS}
    assert len(found) == 5
    moved = run.events(rows.PFC_EXPIRE)
    assert (moved["time_ps"] >= 3 * MS).sum() >= 5
    assert (run.responder["received_bytes"] > 2 * Run(ring()).responder["received_bytes"]).all()


def test_no_deadlock_is_told_of_pausing_that_moves():
    run = Run(
        text_scenario(
            'receiver = 7\nmessage = "1MB"',
            top='duration = "2ms"',
            fabric='kind = "leaf-spine"\nhosts = 8\nleaves = 4\nspines = 2',
            switch='buffer = "1MiB"\npfc = { headroom = "50KB" }\n[switch.ecn]\nenabled = false',
            host='[host.cc]\nalgorithm = "fixed"',
        )
    )
    assert run.arrays.port["xoffs"].sum() > 100
    assert [s for o in run.session.overseers for s in o.seen] == []


@given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=4), max_size=8))
def test_a_circle_is_found_exactly_when_there_is_one(edges):
    graph = {a: [Wait(b, (0, 0), set()) for b in to] for a, to in edges.items()}
    circle = find_circle(graph)
    left = {a: set(to) for a, to in edges.items()}
    while ends := [a for a, to in left.items() if not to & left.keys()]:
        for a in ends:
            del left[a]
    assert bool(circle) == bool(left)
    for (_, wait), (after, _) in zip(circle, circle[1:] + circle[:1], strict=True):
        assert wait.after == after


def test_a_storm_in_a_class_without_pfc_is_refused():
    with pytest.raises(ScenarioError, match="class 4 is not lossless"):
        text_scenario("receiver = 2", host="[storm]\nhosts = [1]\npriority = 4")
