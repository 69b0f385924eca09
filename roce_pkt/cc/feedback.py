"""What an acknowledgement brings back to a sender's law, and what every law keeps for its engine.

A law that acts on acknowledgements has `FEEDBACK`, one of the words below, and

    on_ack(p, s, ack, now)

with `ack` a record of `ACK`. Its state begins with the fields of `HEAD`, which are all an engine
looks at. Telemetry (HPCC's INT) is carried as it would be on a wire, in fields of few bits that go
round; `time_between` and the like take differences of them.

Sources: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, figure 7, for the fields
of a hop (4 bits of speed, 24 of time, 20 of octets sent, 16 of queue); the HPCC simulator's source
for their units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.law import CUT, INCREASE, NEVER_PS, law, twin
from roce_pkt.cc.rate import bounded

ECHO, RTT, INT = "echo", "rtt", "int"
"""What a law needs back: the congestion mark, also the round trip, also a record of every hop."""

MAX_HOPS = 5
TIME_BITS, SENT_BITS, QUEUE_BITS = 24, 20, 16
TIME_MASK, SENT_MASK, QUEUE_MASK = (1 << TIME_BITS) - 1, (1 << SENT_BITS) - 1, (1 << QUEUE_BITS) - 1
TIME_UNIT_PS = 1000
SENT_UNIT_BYTES = 128
QUEUE_UNIT_BYTES = 80
SPEEDS_BPS = (0.0, 1e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9, 800e9, 1600e9)
"""What the 4 bits of speed stand for; the paper leaves the code to the operator, this one is ours."""

HEAD = [
    ("rate_bps", "f8"),  # of the pacer
    ("target_bps", "f8"),  # where it is going, for laws that have such a thing
    ("alpha", "f8"),  # the law's own measure of congestion: alpha, U, gradient, power, delay over target
    ("phase", "i8"),  # 0 before the first reaction
    ("window_bytes", "f8"),  # payload that may be outstanding
    ("timer_ps", "i8"),  # when `on_timer` must be called, or NEVER_PS
]
"""First fields of a state record, and all that an engine reads of it."""

UNLIMITED, RAISED, LOWERED = range(3)
PHASES = ("unlimited", "raised", "lowered")

NO_WINDOW = 1e18
"""Octets: more than any sender has outstanding."""

ACK = np.dtype(
    [
        ("end", "i8"),  # position in packets: everything before it has arrived
        ("next", "i8"),  # position the sender will send next
        ("acked_bytes", "i8"),  # payload this acknowledgement adds
        ("mtu_bytes", "i8"),  # payload of a full packet
        ("rtt_ps", "i8"),  # from the start of the acknowledged packet to now
        ("marked", "i8"),  # 1: the packet met congestion (ECN echo)
        ("hops", "i8"),  # switches the packet went through
        ("speed_bps", "f8", (MAX_HOPS,)),
        ("time", "i8", (MAX_HOPS,)),  # when it left, in TIME_UNIT_PS, goes round
        ("sent", "i8", (MAX_HOPS,)),  # octets the port had sent, in units, goes round
        ("queue", "i8", (MAX_HOPS,)),  # octets it left behind, in units
    ],
    align=True,
)
Ack = twin(ACK)


@law
def time_between(earlier: int, later: int) -> int:
    """Picoseconds between two time fields, less than one turn apart."""
    return ((later - earlier) & TIME_MASK) * TIME_UNIT_PS


@law
def sent_between(earlier: int, later: int, scale: int) -> int:
    """Octets between two fields of octets sent, less than one turn apart."""
    return ((later - earlier) & SENT_MASK) * SENT_UNIT_BYTES * scale


@law
def begin(s: Any, rate_bps: float, window_bytes: float) -> None:
    """The fields of `HEAD` when a flow begins."""
    s.rate_bps = rate_bps
    s.target_bps = rate_bps
    s.alpha = 0.0
    s.phase = UNLIMITED
    s.window_bytes = window_bytes
    s.timer_ps = NEVER_PS


@law
def set_rate(p: Any, s: Any, rate_bps: float) -> int:
    """A law's new rate, kept within its bounds.

    Returns:
        `CUT` or `INCREASE`, or 0 when the rate is the old one.
    """
    before = s.rate_bps
    s.rate_bps = bounded(p, rate_bps)
    s.target_bps = s.rate_bps
    if s.rate_bps < before:
        s.phase = LOWERED
        return CUT
    if s.rate_bps > before:
        s.phase = RAISED
        return INCREASE
    return 0
