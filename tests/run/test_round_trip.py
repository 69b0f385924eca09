"""A simulated capture, taken at the sender and replayed, gives the senders' own history again."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from rounds import LAWS, QUEUE_PAIRS, scenario

from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.run.observe import observe
from roce_pkt.run.reaction import Senders
from roce_pkt.run.simulate import simulate

SENDER = "10.0.0.1"
RATES = ("rate_bps", "target_bps", "alpha")
NEAR_PS = 1
"""By how much a notification is moved to be on the other side of what it ties with."""


@cache
def simulated(law, qps, seed=3):
    """What the engine's senders did, and the frames at the first one's port."""
    events, frames, interfaces = [], [], []

    def take(frame, known):
        frames.append(frame)
        interfaces[:] = known

    simulate(scenario(law, qps, seed=seed), on_event=events.append, on_frame=take)
    return events, frames, interfaces


def steps(events, last_ns):
    """Cuts and increases of the tapped sender, by flow."""
    flows = {}
    for event in events:
        # alpha's own steps are told by a replay only; what comes after the last frame, by the engine only
        told = event.kind in ("rp.cut", "rp.increase") and event.flow.src == SENDER
        if told and event.time_ns < last_ns - 1:
            flows.setdefault(event.flow, []).append(event)
    return flows


def replayed(path, law, last_ns):
    """What a replay of the capture finds, and its result."""
    events = []
    seen = observe(open_capture(path), law, tap="sender", on_event=events.append)
    return steps(events, last_ns), seen


def first_difference(engine, replay):
    """Place of the first step whose rates differ, or None; kinds and times never do."""
    assert [event.kind for event in engine] == [event.kind for event in replay]
    for place, (one, other) in enumerate(zip(engine, replay, strict=True)):
        assert abs(one.time_ns - other.time_ns) <= 1
        if any(one.state[name] != other.state[name] for name in RATES):
            return place
    return None


def move(monkeypatch, moved):
    """Have notifications of some frames arrive a picosecond earlier or later."""
    notify = Senders.notify

    def moving(self, flow, time_ps, frame):
        shift = np.array([moved.get(number, 0) for number in frame.tolist()], np.int64)
        notify(self, flow, time_ps + shift, frame)

    monkeypatch.setattr(Senders, "notify", moving)


def resolve(again, engine, flow, listed):
    """Break a flow's listed ties the other way, one after the other, until its rates are the engine's.

    Returns:
        The frames of the ties that went the other way.
    """
    moved = {}
    place = first_difference(engine, again(moved)[flow])
    while place is not None:
        before = [tie for tie in listed if tie.frame is not None and tie.frame not in moved]
        reached = {}
        for tie in before:
            for shift in (-NEAR_PS, NEAR_PS):
                tried = moved | {tie.frame: shift}
                at = first_difference(engine, again(tried)[flow])
                reached[len(engine) if at is None else at] = tried
        best = max(reached, default=-1)
        assert best > place, f"{flow}: step {place} differs and no listed tie explains it"
        moved, place = reached[best], None if best == len(engine) else best
    return moved


def round_trip(tmp_path, monkeypatch, law, qps, seed):
    """Simulate, replay, and hold one against the other.

    Returns:
        Engine's steps by flow, all ties listed by flow, frames of those that had to go the other way.
    """
    events, frames, interfaces = simulated(law, qps, seed)
    last_ns = frames[-1].time_ns
    path = tmp_path / f"{seed}.pcapng"
    write_pcapng(path, frames, interfaces)
    engine, (replay, seen) = steps(events, last_ns), replayed(path, law, last_ns)
    assert engine.keys() == replay.keys()
    ties = {flow.key: flow.rp.ties for flow in seen.flows if flow.rp is not None}
    assert [f.rule for f in seen.findings if f.rule == "rp.tie"] == ["rp.tie"] * any(ties.values())

    def again(moved):
        with monkeypatch.context() as patch:
            move(patch, moved)
            return replayed(path, law, last_ns)[0]

    other_way = []
    for flow, expected in engine.items():
        if first_difference(expected, replay[flow]) is not None:
            other_way += resolve(again, expected, flow, ties[flow])
    return engine, ties, other_way


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("qps", QUEUE_PAIRS)
def test_the_same_steps_at_the_same_times(tmp_path, monkeypatch, law, qps):
    """Stamps are whole nanoseconds: where two things share one, the replay lists a tie.

    Flows without one have the engine's bits, with no tolerance at all. The others have them too once
    the tie is broken the other way: nothing but the listed ties may make a difference.
    """
    engine, _, _ = round_trip(tmp_path, monkeypatch, law, qps, 3)
    assert len(engine) == qps
    assert sum(map(len, engine.values())) > 10 * qps / 4


def test_ties_are_listed_and_the_other_order_is_the_engine_s(tmp_path, monkeypatch):
    """Alpha's microsecond and the poll's four in a dozen runs: some notifications share a tick's stamp."""
    listed, needed = 0, 0
    for seed in range(1, 13):
        _, ties, other_way = round_trip(tmp_path, monkeypatch, "hpcc-ns3", 4, seed)
        frames = {tie.frame for found in ties.values() for tie in found}
        assert set(other_way) <= frames
        listed, needed = listed + len(frames), needed + len(other_way)
    assert listed > needed > 0


def test_a_replay_with_other_parameters_is_another_history(tmp_path):
    """The near miss: the wrong profile does not pass for the right one."""
    events, frames, interfaces = simulated("paper", 1)
    path = tmp_path / "sender.pcapng"
    write_pcapng(path, frames, interfaces)
    engine, (replay, _) = steps(events, frames[-1].time_ns), replayed(path, "paper", frames[-1].time_ns)
    (flow,) = engine
    other = []
    observe(open_capture(path), "mlx", tap="sender", on_event=other.append)
    rates = [event.state["rate_bps"] for event in other if event.kind in ("rp.cut", "rp.increase")]
    assert [e.state["rate_bps"] for e in replay[flow]] == [e.state["rate_bps"] for e in engine[flow]]
    assert any(a != b.state["rate_bps"] for a, b in itertools.zip_longest(rates, engine[flow][: len(rates)]))
