"""DCQCN's reaction point, for every published variant: one law, its differences named switches.

The paper cuts at once on each notification; the NIC family (and the simulators that model it)
raises a flag and polls it. Alpha's timer and the polling grid are not stepped: both are computed
when somebody looks, so an idle flow costs nothing and the result does not depend on who looks.

Sources: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015 (as
published artefacts agree on it; the paper's text was not at hand); NVIDIA's DCQCN parameter pages;
the HPCC and ns3-rdma simulators' sources for the variants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.dcqcn_parameters import (
    AFTER_ONE_STEP,
    ALPHA_FIRST,
    FREE,
    ONE_STEP_FEWER,
    PARAMETERS,
    POLLED,
)
from roce_pkt.cc.law import ALPHA, CUT, INCREASE, NEVER_PS, law, twin
from roce_pkt.cc.rate import ceiling_bps

__all__ = [
    "ALPHA", "CUT", "INCREASE", "PARAMETERS", "STATE", "ceiling_bps", "next_timer_ps", "on_bytes", "on_cnp",
    "on_increase_timer", "on_timer", "start",
]  # fmt: skip

NO_INCREASE, BY_TIMER, BY_BYTES = 0, 1, 2
UNLIMITED, REDUCED, FAST_RECOVERY, ADDITIVE_INCREASE, HYPER_INCREASE = range(5)
PHASES = ("unlimited", "reduced", "fast-recovery", "additive-increase", "hyper-increase")

CUT_CHECK_AFTER_ALPHA_PS = 1000
"""The polling grid stands this much after alpha's, so that alpha is up to date at a cut."""

STATE = np.dtype(
    [
        ("rate_bps", "f8"),  # RC
        ("target_bps", "f8"),  # RT
        ("alpha", "f8"),
        ("phase", "i8"),  # up to here as `feedback.HEAD`
        ("alpha_from", "f8"),  # alpha when its present decay began
        ("alpha_steps", "i8"),  # decay steps since then
        ("cnp_in_period", "i8"),  # free-running alpha: a CNP arrived in the present period
        ("alpha_due_ps", "i8"),
        ("poll_start_ps", "i8"),  # first point of the polling grid
        ("cut_due_ps", "i8"),
        ("increase_due_ps", "i8"),
        ("timer_steps", "i8"),  # T
        ("byte_steps", "i8"),  # BC
        ("bytes", "i8"),  # since the last byte step
        ("increased_by", "i8"),  # what raised the rate last since the last cut
    ],
    align=True,
)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:
    """A flow begins: no limiter until its first notification."""
    s.rate_bps = ceiling_bps(p)
    s.target_bps = s.rate_bps
    s.alpha = p.alpha0
    s.alpha_from = p.alpha0
    s.alpha_steps = 0
    s.cnp_in_period = 0
    s.alpha_due_ps = NEVER_PS
    s.poll_start_ps = now
    s.cut_due_ps = NEVER_PS
    s.increase_due_ps = NEVER_PS
    s.timer_steps = 0
    s.byte_steps = 0
    s.bytes = 0
    s.increased_by = NO_INCREASE
    s.phase = UNLIMITED


@law
def kept(share: float, steps: int) -> float:
    """`share` to the power of `steps`, by squaring: the same bits on every machine."""
    whole = 1.0
    while steps > 0:
        if steps & 1:
            whole *= share
        share *= share
        steps >>= 1
    return whole


@law
def raise_alpha(p: Any, s: Any) -> None:
    """A notification raises alpha: a := (1-g) a + g."""
    s.alpha = (1.0 - p.g) * s.alpha + p.g
    s.alpha_from = s.alpha
    s.alpha_steps = 0


@law
def settle_alpha(p: Any, s: Any, now: int) -> int:
    """Apply every alpha period that has ended by `now`."""
    if s.alpha_due_ps > now:
        return 0
    # spec: DCQCN 2015 sec. 3.1: a := (1-g) a after a period without a notification; a free-running
    # timer (NIC family) adds g for a period that had one
    ended = (now - s.alpha_due_ps) // p.alpha_period_ps + 1
    s.alpha_due_ps += ended * p.alpha_period_ps
    if s.cnp_in_period:
        s.cnp_in_period = 0
        raise_alpha(p, s)
        ended -= 1
    s.alpha_steps += ended
    s.alpha = s.alpha_from * kept(1.0 - p.g, s.alpha_steps)
    return ALPHA


@law
def cut(p: Any, s: Any, now: int) -> int:
    """Reduce the rate."""
    # spec: DCQCN 2015 sec. 3.1: RT := RC; NIC family: only if the rate was raised since the last cut
    by_timer = s.increased_by == BY_TIMER and p.clamp_after_timer
    if p.clamp_target or by_timer or s.increased_by == BY_BYTES:
        s.target_bps = s.rate_bps
    # spec: DCQCN 2015 sec. 3.1: RC := RC (1 - a/2); NIC family: at least min_dec_fac of the old rate is kept
    share = max(1.0 - s.alpha * p.cut_gain, p.min_dec_fac)
    s.rate_bps = max(p.min_rate_bps, s.rate_bps * share)
    # spec: DCQCN 2015 sec. 3.1: T := BC := 0, both restarted
    s.timer_steps = 0
    s.byte_steps = 0
    s.bytes = 0
    s.increased_by = NO_INCREASE
    s.cut_due_ps = NEVER_PS
    s.increase_due_ps = now + p.increase_period_ps
    s.phase = REDUCED
    return CUT


@law
def on_cnp(p: Any, s: Any, now: int) -> int:
    """A notification for this flow arrives at the sender.

    Args:
        p: Record of `PARAMETERS`.
        s: Record of `STATE`, or its plain twin.
        now: Picoseconds.

    Returns:
        Bits of `CUT` and `ALPHA`.
    """
    settle_alpha(p, s, now)
    first = s.phase == UNLIMITED
    if first:
        s.phase = REDUCED
        s.alpha_due_ps = now + p.alpha_period_ps
        s.poll_start_ps = now + p.cut_period_ps + CUT_CHECK_AFTER_ALPHA_PS
        if p.rate_on_first_cnp_bps > 0.0:
            s.rate_bps = max(p.min_rate_bps, min(s.rate_bps, p.rate_on_first_cnp_bps))
            s.target_bps = s.rate_bps
    happened = 0
    if p.alpha_timer == FREE:
        # spec: HPCC simulator: the first notification loads alpha0 and does not count in its period
        s.cnp_in_period = 0 if first else 1
    else:
        s.alpha_due_ps = now + p.alpha_period_ps
        happened = ALPHA
        if p.alpha_order == ALPHA_FIRST:
            raise_alpha(p, s)
    if p.cut_trigger == POLLED:
        if s.cut_due_ps == NEVER_PS:
            # spec: NVIDIA rate_reduce_monitor_period: a CNP seen in a period cuts at the start of the next
            s.cut_due_ps = s.poll_start_ps
            if now >= s.poll_start_ps:
                s.cut_due_ps += ((now - s.poll_start_ps) // p.cut_period_ps + 1) * p.cut_period_ps
    else:
        happened |= cut(p, s, now)
    if p.alpha_timer != FREE and p.alpha_order != ALPHA_FIRST:
        raise_alpha(p, s)
    return happened


@law
def increase(p: Any, s: Any, by: int) -> int:
    """One recovery step, from the timer or the byte counter."""
    top = ceiling_bps(p)
    most = max(s.timer_steps, s.byte_steps)
    least = min(s.timer_steps, s.byte_steps)
    recovery_steps = p.threshold - 1 if p.fast_recovery == ONE_STEP_FEWER else p.threshold
    after_one_step = p.hyper_increase == AFTER_ONE_STEP
    # spec: 802.1Qau extra fast recovery, as in ns3-rdma
    if p.extra_fast_recovery and most == 1 and s.target_bps > 10.0 * s.rate_bps:
        s.target_bps /= 8.0
    # spec: DCQCN 2015 sec. 3.1: fast recovery while max(T, BC) is within F: RT stays
    if most <= recovery_steps:
        s.phase = FAST_RECOVERY
    # spec: DCQCN 2015 sec. 3.1: hyper increase by i R_HAI once min(T, BC) is past F
    elif not after_one_step and least > recovery_steps:
        s.phase = HYPER_INCREASE
        s.target_bps += (least - recovery_steps) * p.hai_rate_bps
    # spec: HPCC simulator: hyper increase by R_HAI after exactly one additive step
    elif after_one_step and most > recovery_steps + 1:
        s.phase = HYPER_INCREASE
        s.target_bps += p.hai_rate_bps
    else:
        s.phase = ADDITIVE_INCREASE
        s.target_bps += p.ai_rate_bps
    if p.cap_target:
        s.target_bps = min(s.target_bps, top)
    s.increased_by = by
    before = s.rate_bps
    # spec: DCQCN 2015 sec. 3.1: RC := (RT + RC) / 2
    s.rate_bps = min(top, (s.target_bps + s.rate_bps) / 2.0)
    if p.cap_target and s.target_bps >= top and s.rate_bps == before:
        s.increase_due_ps = NEVER_PS  # back at the top: no further step can change anything
    return INCREASE


@law
def paced(p: Any, s: Any, period: int) -> int:
    """A period of the timer or the byte counter: half as long in hyper increase, where that is on."""
    # a choice of two: a division by one costs as much as the rest of a step
    return period // 2 if p.hyper_halves_periods and s.phase == HYPER_INCREASE else period


@law
def on_bytes(p: Any, s: Any, octets: int, now: int) -> int:  # noqa: ARG001 - `now` is every law's last argument
    """The flow sent `octets` (Ethernet header to ICRC); returns `INCREASE` or 0."""
    if not p.byte_counter or s.increase_due_ps == NEVER_PS:
        return 0
    s.bytes += octets
    if s.bytes < paced(p, s, p.byte_reset_bytes):
        return 0
    s.bytes = 0
    s.byte_steps += 1
    return increase(p, s, BY_BYTES)


@law
def next_timer_ps(p: Any, s: Any) -> int:  # noqa: ARG001 - other laws need `p` here
    """When `on_timer` must be called next for the rate to be right, or `NEVER_PS`."""
    due: int = min(s.cut_due_ps, s.increase_due_ps)
    return due


@law
def on_increase_timer(p: Any, s: Any, now: int) -> int:
    """A due increase alone: `on_timer` for those who settle alpha later; returns `INCREASE` or 0."""
    if s.increase_due_ps > now:
        return 0
    due = s.increase_due_ps
    s.timer_steps += 1
    increase(p, s, BY_TIMER)
    if s.increase_due_ps == due:  # not stopped at the top
        s.increase_due_ps = due + paced(p, s, p.increase_period_ps)
    return INCREASE


@law
def on_timer(p: Any, s: Any, now: int) -> int:
    """Time is `now`: a due cut, a due increase, and alpha brought up to date.

    Call it at each `next_timer_ps`; calling it in between only settles alpha.

    Returns:
        Bits of `CUT`, `INCREASE` and `ALPHA`.
    """
    happened = settle_alpha(p, s, now)
    if s.cut_due_ps <= now:
        happened |= cut(p, s, now)
    return happened | on_increase_timer(p, s, now)


@law
def stage(s: Any) -> int:
    """Recovery steps since the last cut: the larger of T and BC."""
    steps: int = max(s.timer_steps, s.byte_steps)
    return steps
