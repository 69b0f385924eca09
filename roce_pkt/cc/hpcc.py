"""HPCC: the window follows what the fullest hop says it carries, from records in the packets.

U is the fullest hop's load over a round trip: queue over what the pipe holds, plus rate over speed.
At rest U = eta / (1 - W_AI / W), a little above eta, so queues are all but empty.

Sources: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1, as the HPCC
simulator's source has it; IETF HPCC++ drafts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import (
    HEAD,
    MAX_HOPS,
    NO_WINDOW,
    QUEUE_UNIT_BYTES,
    begin,
    sent_between,
    set_rate,
    time_between,
)
from roce_pkt.cc.law import law, twin
from roce_pkt.cc.parameters import OFF_ON, Parameter, ParameterTable
from roce_pkt.cc.rate import BASE_RTT, INT_SCALE, MAX_RATE, MIN_RATE, ceiling_bps

FEEDBACK = feedback.INT
REPACES = True
"""A new rate also moves the packet that waits for its turn."""
PAPER = "HPCC 2019 as its authors' simulator has it"
ONE_TRIP_SMALLEST = 0

PARAMETERS = ParameterTable(
    Parameter("eta", "ratio", "0.95", "Load every link is kept at.", PAPER, low=0.01, high=1),
    Parameter(
        "max_stage", "count", "5", "Additive steps, one a round trip, before the window follows U again.",
        "HPCC 2019; the simulator's sample has 0: it always follows", high=1000,
    ),
    Parameter(
        "ai_rate", "bps", "0", "W_AI / T: additive step; 0 is line rate (1 - eta) / flows.",
        "HPCC 2019 sec. 3.3: W_AI = W_init (1 - eta) / N; the simulator states a rate",
    ),
    Parameter(
        "flows", "count", "100", "N: flows that may share a link (with ai_rate = 0).",
        "HPCC 2019: the expected number of concurrent flows; this number is ours", low=1, high=1 << 20,
    ),
    BASE_RTT,
    Parameter(
        "fast_reaction", "switch", "on", "Whether the window moves on every acknowledgement, from one"
        " reference a round trip, or only once a round trip.", PAPER, choices=OFF_ON,
    ),
    Parameter(
        "window", "switch", "on", "Whether octets outstanding are bounded too, not the rate alone.", PAPER,
        choices=OFF_ON,
    ),
    Parameter(
        "queue", "switch", "smaller", "Which of the last two queue lengths of a hop counts.",
        "HPCC 2019: the smaller, against noise; drafts also take the newer", choices=("smaller", "newer"),
    ),
    Parameter(
        "u0", "ratio", "1", "U before the first measurement.", "HPCC simulator; not in the paper", high=10,
    ),
    MIN_RATE,
    MAX_RATE,
    INT_SCALE,
)  # fmt: skip

LAST_HOPS = [
    ("last_hops", "i8"),  # 0: no record yet
    ("last_time", "i8", (MAX_HOPS,)),
    ("last_sent", "i8", (MAX_HOPS,)),
    ("last_queue", "i8", (MAX_HOPS,)),
]
"""The previous acknowledgement's records, for laws that compare two."""

STATE = np.dtype(
    [
        *HEAD,
        *LAST_HOPS,
        ("reference_bps", "f8"),  # Wc / T: the rate a round trip's reactions start from
        ("stage", "i8"),  # incStage
        ("look_after", "i8"),  # position that must be acknowledged before the reference moves
    ],
    align=True,
)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - as every law's start
    """A flow begins at line rate with a window of what the pipe holds."""
    top = ceiling_bps(p)
    begin(s, top, NO_WINDOW)
    s.alpha = p.u0
    s.reference_bps = top
    s.stage = 0
    s.look_after = 0
    s.last_hops = 0
    set_window(p, s)


@law
def set_window(p: Any, s: Any) -> None:
    """The window of the present rate."""
    # spec: HPCC 2019 sec. 3.2: R = W / T
    if p.window:
        s.window_bytes = s.rate_bps * p.base_rtt_ps / 8e12


@law
def keep_hops(s: Any, ack: Any) -> None:
    """Remember an acknowledgement's records for the next one."""
    s.last_hops = ack.hops
    for i in range(ack.hops):
        s.last_time[i] = ack.time[i]
        s.last_sent[i] = ack.sent[i]
        s.last_queue[i] = ack.queue[i]


@law
def measure(p: Any, s: Any, ack: Any) -> None:
    """Bring U up to date from the records of two acknowledgements."""
    fullest = 0.0
    elapsed_ps = 0
    for i in range(ack.hops):
        passed_ps = time_between(s.last_time[i], ack.time[i])
        if passed_ps == 0:
            continue
        sent_bps = sent_between(s.last_sent[i], ack.sent[i], p.int_scale) * 8e12 / passed_ps
        queue = ack.queue[i]
        if p.queue == ONE_TRIP_SMALLEST:
            queue = min(queue, s.last_queue[i])
        queue_bits = queue * QUEUE_UNIT_BYTES * p.int_scale * 8.0
        # spec: HPCC 2019 alg. 1: u' = min(qlen, qlen') / (B T) + txRate / B
        load = queue_bits / (ack.speed_bps[i] * p.base_rtt_ps / 1e12) + sent_bps / ack.speed_bps[i]
        if load > fullest:
            fullest = load
            elapsed_ps = passed_ps
    # spec: HPCC 2019 alg. 1: tau := min(tau, T); U := (1 - tau / T) U + tau / T u
    share = min(elapsed_ps, p.base_rtt_ps) / p.base_rtt_ps
    s.alpha = (1.0 - share) * s.alpha + share * fullest


@law
def step_bps(p: Any) -> float:
    """The additive step."""
    if p.ai_rate_bps > 0.0:
        step: float = p.ai_rate_bps
        return step
    return p.line_rate_bps * (1.0 - p.eta) / p.flows


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:  # noqa: ARG001
    """An acknowledgement arrives; returns `CUT`, `INCREASE` or 0."""
    whole_trip = ack.end > s.look_after
    if s.last_hops != ack.hops or ack.hops == 0:
        # the first record, or another path: nothing to compare with yet
        keep_hops(s, ack)
        if whole_trip:
            s.look_after = ack.next
        return 0
    if not whole_trip and not p.fast_reaction:
        return 0
    measure(p, s, ack)
    keep_hops(s, ack)
    # spec: HPCC 2019 alg. 1: U >= eta or incStage >= maxStage: W := Wc / (U / eta) + W_AI,
    # else W := Wc + W_AI
    follows = s.alpha >= p.eta or s.stage >= p.max_stage
    rate = s.reference_bps
    if follows:
        rate = rate / max(s.alpha / p.eta, 1e-9)
    happened = set_rate(p, s, rate + step_bps(p))
    set_window(p, s)
    # spec: HPCC 2019 alg. 1: once a round trip incStage is counted and Wc := W
    if whole_trip:
        s.stage = 0 if follows else s.stage + 1
        s.reference_bps = s.rate_bps
        s.look_after = ack.next
    return happened
