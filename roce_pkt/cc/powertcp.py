"""PowerTCP: the window follows power, the product of a queue's length and its growth.

Power at a hop is (bits it sends + growth of its queue) x (its queue + what the pipe holds); at rest
it is speed^2 x T, and the window stands still. Records of every hop are carried as HPCC's.

Sources: Addanki et al., "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI
2022, as its authors' simulator has it; the paper's text was not at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD, QUEUE_UNIT_BYTES, begin, sent_between, set_rate, time_between
from roce_pkt.cc.hpcc import LAST_HOPS, keep_hops
from roce_pkt.cc.law import law, twin
from roce_pkt.cc.parameters import OFF_ON, Parameter, ParameterTable
from roce_pkt.cc.rate import BASE_RTT, INT_SCALE, MAX_RATE, MIN_RATE, ceiling_bps

FEEDBACK = feedback.INT
REPACES = True
AUTHORS = "PowerTCP 2022 as its authors' simulator has it; paper text not at hand"

WINDOWED = (
    Parameter(
        "ai_rate", "bps", "150Mbps", "beta / T: additive step.", AUTHORS,
    ),
    BASE_RTT,
    Parameter(
        "update", "switch", "per-ack", "Whether the window moves on each acknowledgement or once a trip.",
        "PowerTCP 2022: per acknowledgement with INT, once a round trip without",
        choices=("per-ack", "per-rtt"),
    ),
    Parameter(
        "window", "switch", "on", "Whether octets outstanding are bounded too, not the rate alone.", AUTHORS,
        choices=OFF_ON,
    ),
    MIN_RATE,
    MAX_RATE,
)  # fmt: skip

PARAMETERS = ParameterTable(
    Parameter("gamma", "ratio", "0.9", "Weight of a new window in its average.", AUTHORS, low=0.001, high=1),
    *WINDOWED,
    INT_SCALE,
)  # fmt: skip

WINDOW_STATE = [
    ("reference_bps", "f8"),  # the rate a round trip ago
    ("look_after", "i8"),
]
"""State of both power laws."""

STATE = np.dtype([*HEAD, *LAST_HOPS, *WINDOW_STATE], align=True)
State = twin(STATE)

SMALLEST_POWER = 1e-3
PER_ACK = 0


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - as every law's start
    """A flow begins at line rate with a window of what the pipe holds."""
    s.last_hops = 0
    begin_window(p, s)


@law
def begin_window(p: Any, s: Any) -> None:
    """Rate and window of both power laws when a flow begins."""
    top = ceiling_bps(p)
    begin(s, top, feedback.NO_WINDOW)
    s.alpha = 1.0
    s.reference_bps = top
    s.look_after = 0
    if p.window:
        s.window_bytes = top * p.base_rtt_ps / 8e12


@law
def measure(p: Any, s: Any, ack: Any) -> None:
    """Bring the smoothed power up to date from the records of two acknowledgements."""
    strongest = 0.0
    elapsed_ps = 0
    trip_s = p.base_rtt_ps / 1e12
    for i in range(ack.hops):
        passed_ps = time_between(s.last_time[i], ack.time[i])
        if passed_ps == 0:
            continue
        speed = ack.speed_bps[i]
        sent_bps = sent_between(s.last_sent[i], ack.sent[i], p.int_scale) * 8e12 / passed_ps
        unit_bits = QUEUE_UNIT_BYTES * p.int_scale * 8.0
        growth_bps = (ack.queue[i] - s.last_queue[i]) * unit_bits * 1e12 / passed_ps
        # spec: PowerTCP 2022 sec. 3: current = growth + rate, voltage = queue + B T; power over B^2 T
        current = max(growth_bps + sent_bps, 0.0)
        voltage = ack.queue[i] * unit_bits + speed * trip_s
        power = current * voltage / (speed * speed * trip_s)
        if power > strongest:
            strongest = power
            elapsed_ps = passed_ps
    # spec: PowerTCP 2022 alg. 1: smoothed over T by the time between two records
    share = min(elapsed_ps, p.base_rtt_ps) / p.base_rtt_ps
    s.alpha = max((1.0 - share) * s.alpha + share * strongest, SMALLEST_POWER)


@law
def follow(p: Any, s: Any, ack: Any) -> int:
    """Move the window by the smoothed power."""
    whole_trip = ack.end > s.look_after
    happened = 0
    if whole_trip or p.update == PER_ACK:
        # spec: PowerTCP 2022 alg. 1: w := g (w_old / power + b) + (1 - g) w
        new = s.reference_bps / s.alpha + p.ai_rate_bps
        happened = set_rate(p, s, p.gamma * new + (1.0 - p.gamma) * s.rate_bps)
        if p.window:
            s.window_bytes = s.rate_bps * p.base_rtt_ps / 8e12
    if whole_trip:
        s.reference_bps = s.rate_bps
        s.look_after = ack.next
    return happened


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:  # noqa: ARG001
    """An acknowledgement arrives; returns `CUT`, `INCREASE` or 0."""
    if s.last_hops != ack.hops or ack.hops == 0:
        keep_hops(s, ack)
        return 0
    measure(p, s, ack)
    keep_hops(s, ack)
    return follow(p, s, ack)
