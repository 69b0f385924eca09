"""From the engine's own log, in its own picoseconds, the reaction points step again bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from rounds import LAWS, QUEUE_PAIRS, scenario
from simulated import Run

from roce_pkt.cc import dcqcn
from roce_pkt.engine import records, rows
from roce_pkt.run import clockwork as cw
from roce_pkt.run.follow import follow

RATES = ("rate_bps", "target_bps", "alpha")


def engine_steps(run):
    """Each sender's steps as the engine logged them."""
    found = {}
    kinds = (rows.RP_CUT, rows.RP_INCREASE)
    for row in run.rows[np.isin(run.rows["kind"], kinds)]:
        state = (int(row["number"]), int(row["phase"]), *(float(row[name]) for name in RATES))
        found.setdefault(int(row["half"]), []).append((int(row["time_ps"]), int(row["kind"]), *state))
    return found


def followed_steps(steps):
    """The same of the law stepped from the log; alpha's own steps are told by it only."""
    found = {}
    for half, whole, parts in zip(
        steps.flow.tolist(), steps.whole.tolist(), steps.parts.tolist(), strict=True
    ):
        what = whole[cw.LOG_WHAT]
        for bit, kind in ((dcqcn.CUT, rows.RP_CUT), (dcqcn.INCREASE, rows.RP_INCREASE)):
            if what & bit:
                state = (whole[cw.LOG_STAGE], whole[cw.LOG_PHASE], *parts)
                found.setdefault(half, []).append((whole[cw.LOG_TIME], kind, *state))
    return found


def both(text, compiled):
    run = Run(text)
    steps = follow(run.session, run.frames, compiled=compiled)
    # the engine looks up to, not at, its last instant
    before = steps.whole[:, cw.LOG_TIME] < run.session.now_ps
    return engine_steps(run), followed_steps(type(steps)(*(part[before] for part in steps)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("qps", QUEUE_PAIRS)
def test_the_same_steps_times_and_bits(law, qps):
    engine, followed = both(scenario(law, qps, taps=2), compiled=qps == 64)
    assert followed == engine
    assert len(engine) == 2 * qps
    assert sum(map(len, engine.values())) > 20 * qps


@pytest.mark.parametrize(
    "changes",
    [
        'profile = "paper", byte_reset = "40KB"',
        'profile = "paper", byte_reset = "40KB", threshold = 2, hyper_halves_periods = "on"',
        'profile = "primer", byte_counter = "on", byte_reset = "30KB"',
        'profile = "mlx", alpha_timer = "restart", extra_fast_recovery = "on"',
    ],
)
def test_steps_by_octets_too(changes):
    """With a byte counter that runs over every few packets, the order of octets and timers shows."""
    engine, followed = both(scenario(changes, 4, taps=2), compiled=False)
    assert followed == engine
    assert sum(map(len, engine.values())) > 100


def test_a_notification_moved_is_another_history():
    """The near miss: the last notifications a microsecond, one period of alpha, late."""
    run = Run(scenario("hpcc-ns3", 4, taps=2))
    frames = run.frames.copy()
    told = np.flatnonzero((frames["kind"] == records.CNP) & (frames["sent"] == 0))
    frames["at_ps"][told[-8:]] += 1_000_000
    assert followed_steps(follow(run.session, frames)) != engine_steps(run)
