"""Patched TIMELY: the middle region follows the round trip itself, so that there is one fair point.

At rest the round trip is t_low (1 + N ai_rate / (patch_beta C)) for N flows on a link of rate C.

Source: Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016,
cross-checked with an independent simulator's code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD, NO_WINDOW, begin, set_rate
from roce_pkt.cc.law import law, twin
from roce_pkt.cc.parameters import Parameter, ParameterTable
from roce_pkt.cc.rate import MAX_RATE, MIN_RATE, ceiling_bps
from roce_pkt.cc.timely import SAMPLED, SAMPLING, sampled

__all__ = ["FEEDBACK", "PARAMETERS", "STATE", "State", "on_ack", "start"]

FEEDBACK = feedback.RTT

PARAMETERS = ParameterTable(
    *SAMPLING,
    Parameter(
        "patch_beta", "ratio", "0.008", "Strength of the decrease in the middle region.",
        "ECN or Delay 2016, as an independent simulator has it", high=1,
    ),
    MIN_RATE,
    MAX_RATE,
)  # fmt: skip

STATE = np.dtype([*HEAD, *SAMPLED], align=True)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - as every law's start
    """A flow begins at the ceiling."""
    begin(s, ceiling_bps(p), NO_WINDOW)
    s.last_rtt_ps = 0
    s.difference_ps = 0.0
    s.look_after = 0
    s.acked_bytes = 0


@law
def weight(gradient: float) -> float:
    """How much of a decrease the gradient calls for, 0 to 1."""
    # spec: ECN or Delay 2016 sec. 5: w(g) = 0 below -1/4, 2 g + 1/2 between, 1 above 1/4
    return min(max(2.0 * gradient + 0.5, 0.0), 1.0)


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:  # noqa: ARG001
    """An acknowledgement arrives; returns `CUT`, `INCREASE` or 0."""
    if not sampled(p, s, ack):
        return 0
    rate = s.rate_bps
    if ack.rtt_ps < p.t_low_ps:
        return set_rate(p, s, rate + p.ai_rate_bps)
    if ack.rtt_ps > p.t_high_ps:
        return set_rate(p, s, rate * (1.0 - p.beta * (1.0 - p.t_high_ps / ack.rtt_ps)))
    # spec: ECN or Delay 2016 sec. 5: R := delta (1 - w) + R (1 - b w (rtt - T_low) / T_low)
    w = weight(s.alpha)
    error = (ack.rtt_ps - p.t_low_ps) / p.t_low_ps
    return set_rate(p, s, (1.0 - w) * p.ai_rate_bps + rate * (1.0 - p.patch_beta * w * error))
