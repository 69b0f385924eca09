"""A simulated capture, taken at the sender and replayed, gives the senders' own history again."""

from __future__ import annotations

import itertools

import pytest

from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.run.observe import observe
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario.reader import read_text

SCENARIO = """
name = "round-trip"
seed = 3
duration = "800us"
measure_from = "0us"
taps = ["host0"]
[fabric]
hosts = 3
rate = "40Gbps"
[switch.ecn]
kmin = "5KB"
kmax = "200KB"
pmax = 0.01
[host]
cc = {{ algorithm = "dcqcn", profile = "{profile}" }}
[[traffic]]
pattern = "incast"
receiver = 2
message = "1MB"
qps = {qps}
"""
SENDER = "10.0.0.1"


def both(tmp_path, profile, qps):
    """What the engine's senders did, and what a replay of the sender's port finds, by flow."""
    events, frames, interfaces = [], [], []

    def take(frame, known):
        frames.append(frame)
        interfaces[:] = known

    scenario = read_text(SCENARIO.format(profile=profile, qps=qps))
    simulate(scenario, on_event=events.append, on_frame=take)
    path = tmp_path / "sender.pcapng"
    write_pcapng(path, frames, interfaces)
    replayed = []
    seen = observe(open_capture(path), profile, tap="sender", on_event=replayed.append)
    last_ns = frames[-1].time_ns
    out = []
    for found in (events, replayed):
        flows = {}
        for event in found:
            # alpha's own steps are told by a replay only; what comes after the last frame, by the engine only
            told = event.kind in ("rp.cut", "rp.increase") and event.flow.src == SENDER
            if told and event.time_ns < last_ns - 1:
                flows.setdefault(event.flow, []).append(event)
        out.append(flows)
    return *out, seen


@pytest.mark.parametrize("profile", ["paper", "mlx", "hpcc-ns3"])
@pytest.mark.parametrize("qps", [1, 4, 64])
def test_the_same_steps_at_the_same_times(tmp_path, profile, qps):
    """Stamps are whole nanoseconds, so a notification within one of a tick of alpha's timer is a tie."""
    engine, replay, seen = both(tmp_path, profile, qps)
    assert len(engine) == qps
    assert engine.keys() == replay.keys()
    g = float(seen.setup.rp["g"])
    ties, steps = [], 0
    for flow, events in engine.items():
        assert [event.kind for event in events] == [event.kind for event in replay[flow]]
        tied = False
        for one, other in zip(events, replay[flow], strict=True):
            steps += 1
            assert abs(one.time_ns - other.time_ns) <= 1
            same = all(
                one.state[name] == pytest.approx(other.state[name], rel=1e-9)
                for name in ("rate_bps", "target_bps", "alpha")
            )
            if not same and not tied:
                ratio = one.state["alpha"] / other.state["alpha"]
                # one period more or less, or a notification counted in the period beside
                assert any(
                    ratio == pytest.approx(expected, abs=2 * g * g + 1e-6)
                    for expected in (1 - g, 1 / (1 - g), 1.0)
                )
                ties.append((flow.dqpn, one.time_ns))
                tied = True
    assert steps > 10 * qps / 4
    assert len(ties) <= max(1, qps // 20), ties


def test_a_replay_with_other_parameters_is_another_history(tmp_path):
    """The near miss: the wrong profile does not pass for the right one."""
    engine, replay, _ = both(tmp_path, "paper", 1)
    (flow,) = engine
    path = tmp_path / "sender.pcapng"
    other = []
    observe(open_capture(path), "mlx", tap="sender", on_event=other.append)
    rates = [event.state["rate_bps"] for event in other if event.kind in ("rp.cut", "rp.increase")]
    assert [e.state["rate_bps"] for e in replay[flow]] == [e.state["rate_bps"] for e in engine[flow]]
    assert any(a != b.state["rate_bps"] for a, b in itertools.zip_longest(rates, engine[flow][: len(rates)]))
