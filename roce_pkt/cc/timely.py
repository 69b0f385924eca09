"""TIMELY: the rate follows the gradient of the round-trip time.

It has no single operating point: any queue whose round trip stands still, between `t_low` and
`t_high`, is one. So do not look for fairness; `patched_timely` is the law that has it.

Sources: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, as
two simulators agree on it (ns3-rdma's TIMELY branch, the HPCC simulator); where they differ, a
switch. The paper's text was not at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD, NO_WINDOW, begin, set_rate
from roce_pkt.cc.law import law, twin
from roce_pkt.cc.parameters import OFF_ON, Parameter, ParameterTable
from roce_pkt.cc.rate import LONGEST_PS, MAX_RATE, MIN_RATE, SHORTEST_PS, ceiling_bps

FEEDBACK = feedback.RTT

BOTH = "TIMELY 2015 as ns3-rdma and the HPCC simulator have it; paper text not at hand"
PER_RTT, PER_SEGMENT = 0, 1
STEPS, OWN_RATE = 0, 1
AT_ZERO_INCREASE = 0

SAMPLING = (
    Parameter(
        "update", "switch", "per-segment",
        "Whether the law looks once a round trip, or once `segment` octets are acknowledged.",
        "TIMELY 2015: each completion of a segment of 16 to 64 KB; the HPCC simulator: once a round trip",
        choices=("per-rtt", "per-segment"),
    ),
    Parameter(
        "segment", "bytes", "16KB", "Octets between two looks (with update = per-segment).",
        "ns3-rdma; the paper names 16 to 64 KB", low=1,
    ),
    Parameter(
        "ewma", "ratio", "0.875", "Weight of a new difference of round trips in their average.", BOTH, high=1,
    ),
    Parameter("beta", "ratio", "0.8", "Strength of a decrease.", BOTH, high=1),
    Parameter(
        "t_low", "ps", "50us", "Round trip below which the rate always rises.", BOTH,
        low=SHORTEST_PS, high=LONGEST_PS,
    ),
    Parameter(
        "t_high", "ps", "500us", "Round trip above which the rate always falls.", BOTH,
        low=SHORTEST_PS, high=LONGEST_PS,
    ),
    Parameter(
        "min_rtt", "ps", "20us", "What differences of round trips are measured in.", BOTH,
        low=SHORTEST_PS, high=LONGEST_PS,
    ),
    Parameter("ai_rate", "bps", "10Mbps", "delta: additive increase.", BOTH),
)  # fmt: skip

PARAMETERS = ParameterTable(
    *SAMPLING,
    Parameter(
        "hai_after", "count", "5", "Rises in a row after which they grow larger.", BOTH, high=1000,
    ),
    Parameter(
        "hyper_increase", "switch", "steps",
        "What they grow to: `hai_steps` times ai_rate, or `hai_rate`.",
        "TIMELY 2015: N delta with N = 5; the HPCC simulator: a rate of its own",
        choices=("steps", "own-rate"),
    ),
    Parameter("hai_steps", "count", "5", "N (with hyper_increase = steps).", BOTH, low=1, high=1000),
    Parameter(
        "hai_rate", "bps", "50Mbps", "Large increase (with hyper_increase = own-rate).",
        "HPCC simulator's sample; not in the paper",
    ),
    Parameter(
        "hai_below_t_low", "switch", "off", "Whether rises below t_low count, and grow, too.",
        "off: TIMELY 2015, ns3-rdma; on: the HPCC simulator",
        choices=OFF_ON,
    ),
    Parameter(
        "flat_gradient", "switch", "increase", "What a gradient of exactly zero does.",
        "the HPCC simulator raises the rate, ns3-rdma leaves it",
        choices=("increase", "hold"),
    ),
    MIN_RATE,
    MAX_RATE,
)  # fmt: skip

SAMPLED = [
    ("last_rtt_ps", "i8"),  # 0: none yet
    ("difference_ps", "f8"),  # average of differences of round trips
    ("look_after", "i8"),  # position, or octets, where the next look is due
    ("acked_bytes", "i8"),
]
"""State that both TIMELYs keep."""

STATE = np.dtype([*HEAD, *SAMPLED, ("rises", "i8")], align=True)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - as every law's start
    """A flow begins at the ceiling."""
    begin(s, ceiling_bps(p), NO_WINDOW)
    s.last_rtt_ps = 0
    s.difference_ps = 0.0
    s.look_after = 0
    s.acked_bytes = 0
    s.rises = 0


@law
def sampled(p: Any, s: Any, ack: Any) -> bool:
    """Whether this acknowledgement is looked at; then the gradient is up to date in `s.alpha`."""
    s.acked_bytes += ack.acked_bytes
    if p.update == PER_RTT:
        if ack.end <= s.look_after:
            return False
        s.look_after = ack.next
    else:
        if s.acked_bytes < p.segment_bytes and s.last_rtt_ps != 0:
            return False
        s.acked_bytes = 0
    first = s.last_rtt_ps == 0
    # spec: TIMELY 2015 sec. 4.3: rtt_diff := (1-a) rtt_diff + a (rtt - prev_rtt); gradient over minRTT
    if not first:
        s.difference_ps = (1.0 - p.ewma) * s.difference_ps + p.ewma * (ack.rtt_ps - s.last_rtt_ps)
    s.last_rtt_ps = ack.rtt_ps
    s.alpha = s.difference_ps / p.min_rtt_ps
    return not first


@law
def raised(p: Any, s: Any, counts: bool) -> int:
    """An additive increase, larger after many in a row."""
    step = p.ai_rate_bps
    if counts:
        if s.rises >= p.hai_after:
            step = p.ai_rate_bps * p.hai_steps if p.hyper_increase == STEPS else p.hai_rate_bps
        s.rises += 1
    return set_rate(p, s, s.rate_bps + step)


@law
def lowered(p: Any, s: Any, share: float) -> int:
    """A multiplicative decrease; a share below zero ends at the floor."""
    s.rises = 0
    return set_rate(p, s, s.rate_bps * share)


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:  # noqa: ARG001
    """An acknowledgement arrives; returns `CUT`, `INCREASE` or 0."""
    if not sampled(p, s, ack):
        return 0
    # spec: TIMELY 2015 sec. 4.3: below T_low additive increase
    if ack.rtt_ps < p.t_low_ps:
        return raised(p, s, p.hai_below_t_low == 1)
    # spec: TIMELY 2015 sec. 4.3: above T_high R := R (1 - b (1 - T_high / rtt))
    if ack.rtt_ps > p.t_high_ps:
        return lowered(p, s, 1.0 - p.beta * (1.0 - p.t_high_ps / ack.rtt_ps))
    # spec: TIMELY 2015 sec. 4.3: R := R + N delta, N = 5 after five such events; else R := R (1 - b gradient)
    if s.alpha < 0.0 or (s.alpha == 0.0 and p.flat_gradient == AT_ZERO_INCREASE):
        return raised(p, s, True)
    return lowered(p, s, 1.0 - p.beta * s.alpha)
