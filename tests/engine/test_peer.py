"""Against the ns-3 simulator's own runs, with its accounting: a star of hosts around one switch."""

from functools import cache

import numpy as np
import pytest
from simulated import PEER, Run, peer_scenario, text_scenario

from roce_pkt.engine import rows

SEEDS = range(1, 6)
US = 1_000_000
PAPER = {
    "host__cc": '{ profile = "paper" }',
    "host__np": '{ interval = "50us" }',
}


@cache
def fixed_point(senders, paper):
    """Per seed: mean queue, mean alpha, payload rate, fairness; after 60 ms of 200."""
    found = []
    for seed in SEEDS:
        changes = {"fabric__hosts": str(senders + 1), "seed": str(seed)} | (PAPER if paper else {})
        run = Run(peer_scenario("star-dcqcn-40g", **changes), every_ps=100 * US, events=False)
        window_s = 0.14
        octets = run.responder["received_bytes"].astype(float)
        late = run.times >= 60_000 * US
        found.append(
            (
                run.port("switch0:0")["queue_byte_ps"] / (window_s * 1e12),
                run.rates[late][:, run.pairs.requester]["alpha"].mean(),
                octets.sum() * 8 / window_s,
                octets.sum() ** 2 / (senders * (octets**2).sum()),
            )
        )
    return np.array(found)


ROWS = {int(row["senders"]): row for row in PEER["fixed_points"]}
# the peer cuts frame times to whole nanoseconds: 1000 octets every 209 ns
CEILING_BPS = 8000 / 209e-9


@pytest.mark.parametrize("senders", ROWS)
def test_fixed_point_of_the_simulators_law(senders):
    queue, alpha, payload, fairness = fixed_point(senders, False).mean(axis=0)
    assert queue == pytest.approx(ROWS[senders]["queue_kb"] * 1e3, rel=0.05)
    assert alpha == pytest.approx(ROWS[senders]["alpha"], rel=0.05)
    assert payload >= 0.98 * CEILING_BPS
    assert fairness >= 0.995


@pytest.mark.parametrize("senders", ROWS)
def test_fixed_point_of_the_papers_law_is_near_the_fluid_model(senders):
    queue, alpha, payload, fairness = fixed_point(senders, True).mean(axis=0)
    assert 0.9 <= queue / (ROWS[senders]["fluid_kb"] * 1e3) <= 1.4
    assert 0.9 <= alpha / ROWS[senders]["fluid_alpha"] <= 1.4
    assert payload >= 0.98 * CEILING_BPS
    assert fairness >= 0.995


def test_run_c_pauses_with_the_peers_period_share_and_queue():
    peer = PEER["star-pfc-100g"]
    run = Run(peer_scenario("star-pfc-100g"), every_ps=US)
    for host in (0, 1):
        paused, resumed = (
            e[e["port"] == host]["time_ps"] / 1000
            for e in (run.events(rows.PFC_PAUSED), run.events(rows.PFC_RESUMED))
        )
        period = np.diff(paused).mean()
        share = (resumed - paused[: len(resumed)]).mean() / period
        assert period == pytest.approx(peer["pause_period_ns"], rel=0.05)
        assert share == pytest.approx(peer["pause_share"], rel=0.05)
        assert paused[0] == pytest.approx(17_320, abs=50)  # the peer's first pauses: 17 275 and 17 358 ns
    late = run.times >= 100 * US
    assert run.queues[late][:, -1].mean() == pytest.approx(peer["queue_mean_bytes"], rel=0.05)
    assert run.queues[:, -1].max() == pytest.approx(peer["queue_max_bytes"], rel=0.05)
    goodput = run.responder["received_bytes"] * 8 / 2e-3
    assert goodput == pytest.approx(peer["goodput_bps"], rel=0.02)
    assert run.arrays.port["drops"].sum() == 0


def test_run_f_queue_and_goodput():
    peer = PEER["star-dcqcn-40g"]
    found = fixed_point(2, False)
    # the peer's run F is one of its five seeds, 25.2 to 27.7 KB
    assert found[:, 0].mean() == pytest.approx(ROWS[2]["queue_kb"] * 1e3, rel=0.05)
    assert found[:, 0].min() * 0.95 <= peer["queue_mean_bytes"] <= found[:, 0].max()
    assert found[:, 2].mean() == pytest.approx(sum(peer["goodput_bps"]), rel=0.02)


@cache
def run_a():
    return [
        Run(peer_scenario("star-dcqcn-100g", seed=str(s)), every_ps=US, events=False) for s in range(1, 21)
    ]


def test_run_a_is_the_peers_to_the_octet_until_chance_comes_in():
    # both flows at line rate, the queue below kmin: nothing is random for the first 30 us
    start = PEER["star-dcqcn-100g"]["start"]
    for run in run_a():
        assert run.queues[1:41, -1] == pytest.approx(start["queue_bytes"], abs=0)
        rates = run.rates[1:41][:, run.pairs.requester]["rate_bps"].max(axis=1)
        assert rates == pytest.approx(start["rate_bps"], rel=0.02)


@pytest.mark.parametrize("value", ["queue_mean_bytes", "first_peak_bytes", "queue_max_bytes", "rate_min_bps"])
def test_run_a_lies_among_twenty_of_our_seeds(value):
    ours = {
        "queue_mean_bytes": [r.port("switch0:2")["queue_byte_ps"] / 3e9 for r in run_a()],
        "first_peak_bytes": [r.queues[r.times <= 80 * US][:, -1].max() for r in run_a()],
        "queue_max_bytes": [r.queues[:, -1].max() for r in run_a()],
        "rate_min_bps": [r.rates[:, r.pairs.requester]["rate_bps"].min() for r in run_a()],
    }[value]
    assert min(ours) <= PEER["star-dcqcn-100g"][value] <= max(ours)


def test_first_cuts_of_run_a_have_the_values_the_law_gives():
    # cuts every 4 us while marks last; alpha (255/256)^3 or ^4 at the first
    first = {100e9 * (1 - (255 / 256) ** k / 2) for k in (3, 4)}
    for run in run_a():
        rates = run.rates[:80][:, run.pairs.requester]["rate_bps"]
        below = rates[rates < 100e9]
        assert any(below.max() == pytest.approx(value, rel=1e-12) for value in first)


RED = 'ecn = { kmin = "5KB", kmax = "200KB", pmax = 0.01 }'


def stable(senders, delay):
    text = f'hosts = {senders + 1}\nrate = "40Gbps"\ndelay = "{delay}"\nframe_overhead = "48B"'
    scenario = text_scenario(
        'message = "1GB"\nreceiver = 0',
        top='duration = "200ms"\nmeasure_from = "60ms"',
        fabric=text,
        switch='buffer = "64MiB"\npfc = { mode = "off" }\n' + RED,
        host="mtu = 1000",
    )
    run = Run(scenario, every_ps=20 * US, events=False)
    late = run.queues[run.times >= 60_000 * US][:, senders + 1].astype(float)
    octets = float(run.responder["received_bytes"].sum())
    return late.std() / late.mean(), octets * 8 / 0.14


def test_delay_makes_ten_flows_swing_and_cost_throughput():
    # phase margin at N = 10: 8.7 degrees at 4 us of feedback delay, -3.4 at 85 us
    near, near_bps = stable(10, "0.5us")
    far, far_bps = stable(10, "20us")
    assert far > 1.3 * near
    assert far_bps < near_bps
