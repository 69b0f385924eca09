"""Theta-PowerTCP: power from round trips alone, without records of hops.

Power is (growth of the round trip + 1) x round trip / T.

Sources: Addanki et al., "PowerTCP", NSDI 2022, as its authors' simulator has it, whose extra scale
and floor are parameters here; the paper's text was not at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD
from roce_pkt.cc.law import law, twin
from roce_pkt.cc.parameters import Parameter, ParameterTable
from roce_pkt.cc.powertcp import WINDOW_STATE, WINDOWED, begin_window, follow

__all__ = ["FEEDBACK", "PARAMETERS", "STATE", "State", "on_ack", "start"]

FEEDBACK = feedback.RTT
REPACES = True
CODE = "the PowerTCP authors' simulator; not in the paper as far as is known"

PARAMETERS = ParameterTable(
    Parameter("gamma", "ratio", "0.7", "Weight of a new window in its average.", CODE, low=0.001, high=1),
    *WINDOWED,
    Parameter("scale", "ratio", "1.05", "Round trip over T that counts as empty.", CODE, low=1, high=10),
    Parameter("power_floor", "ratio", "0.5", "Smallest power that the window is divided by.", CODE,
        low=0.001, high=1),
)  # fmt: skip

STATE = np.dtype([*HEAD, *WINDOW_STATE, ("last_rtt_ps", "i8"), ("last_ps", "i8")], align=True)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:
    """A flow begins at line rate with a window of what the pipe holds."""
    s.last_rtt_ps = 0
    s.last_ps = now
    begin_window(p, s)


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:
    """An acknowledgement arrives; returns `CUT`, `INCREASE` or 0."""
    passed_ps = now - s.last_ps
    if s.last_rtt_ps == 0 or passed_ps == 0:
        if s.last_rtt_ps == 0:
            s.last_rtt_ps = ack.rtt_ps
            s.last_ps = now
        return 0
    growth = (ack.rtt_ps - s.last_rtt_ps) / passed_ps
    # spec: PowerTCP 2022 alg. 2: power = (growth of rtt + 1) x rtt / T, smoothed over T
    power = max(growth + 1.0, 0.0) * ack.rtt_ps / (p.base_rtt_ps * p.scale)
    share = min(passed_ps, p.base_rtt_ps) / p.base_rtt_ps
    s.alpha = max((1.0 - share) * s.alpha + share * power, p.power_floor)
    s.last_rtt_ps = ack.rtt_ps
    s.last_ps = now
    return follow(p, s, ack)
