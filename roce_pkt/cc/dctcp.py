"""DCTCP on a rate: cut by the share of marked packets, once a round trip.

The mark comes back in the acknowledgement (BECN), packet by packet: no notification packets.

Sources: Alizadeh et al., "Data Center TCP", SIGCOMM 2010; the HPCC simulator's rate version of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD, NO_WINDOW, begin, set_rate
from roce_pkt.cc.law import ALPHA, law, twin
from roce_pkt.cc.parameters import Parameter, ParameterTable
from roce_pkt.cc.rate import MAX_RATE, MIN_RATE, ceiling_bps

FEEDBACK = feedback.ECHO
SIMULATOR = "the HPCC simulator's DCTCP"
AT_FIRST_MARK = 0

PARAMETERS = ParameterTable(
    Parameter("g", "ratio", "1/16", "Weight of a new share in alpha's average.", "DCTCP 2010", high=1),
    Parameter("alpha0", "ratio", "1", "Alpha before the first round trip.", SIMULATOR, high=1),
    Parameter(
        "ai_rate", "bps", "615Mbps", "Additive increase in a round trip without marks.",
        "the HPCC simulator's run.py: 1 KB in 13 us",
    ),
    Parameter(
        "cut", "switch", "first-mark", "Whether a round trip cuts at its first mark, or at its end.",
        "DCTCP 2010 and the HPCC simulator: at the first; others at the end of the window",
        choices=("first-mark", "end-of-rtt"),
    ),
    MIN_RATE,
    MAX_RATE,
)  # fmt: skip

STATE = np.dtype(
    [
        *HEAD,
        ("acks", "i8"),  # of this round trip
        ("marks", "i8"),
        ("look_after", "i8"),  # position that ends this round trip
        ("reduced_until", "i8"),  # position until which the last cut lasts
    ],
    align=True,
)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - as every law's start
    """A flow begins at the ceiling."""
    begin(s, ceiling_bps(p), NO_WINDOW)
    s.alpha = p.alpha0
    s.acks = 0
    s.marks = 0
    s.look_after = 0
    s.reduced_until = -1


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:  # noqa: ARG001
    """An acknowledgement arrives; returns bits of `CUT`, `INCREASE` and `ALPHA`."""
    happened = 0
    s.acks += 1
    s.marks += ack.marked
    marked = ack.marked != 0
    whole_trip = ack.end > s.look_after
    if whole_trip:
        # spec: DCTCP 2010 sec. 3.1: a := (1-g) a + g F, F the marked share of a window
        if s.look_after != 0:
            s.alpha = (1.0 - p.g) * s.alpha + p.g * s.marks / s.acks
            happened = ALPHA
        marked = marked or (p.cut != AT_FIRST_MARK and s.marks > 0)
        s.acks = 0
        s.marks = 0
        s.look_after = ack.next
    may_cut = ack.end > s.reduced_until
    if marked and may_cut and (whole_trip or p.cut == AT_FIRST_MARK):
        # spec: DCTCP 2010 sec. 3.1: cwnd := cwnd (1 - a / 2), once a window
        s.reduced_until = ack.next
        return happened | set_rate(p, s, s.rate_bps * (1.0 - s.alpha / 2.0))
    if whole_trip and may_cut:
        happened |= set_rate(p, s, s.rate_bps + p.ai_rate_bps)
    return happened
