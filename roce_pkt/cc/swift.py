"""Swift: a congestion window that keeps the round trip at a target.

The target grows with the hops a packet takes, and for flows with small windows, so that many flows
on one link settle. Below one packet the window becomes a pause between packets.

Sources: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
Datacenter", SIGCOMM 2020, as htsim's swift.cpp has it (whose comments call several of its values
guesses); the paper's text was not at hand.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD, LOWERED, RAISED, begin
from roce_pkt.cc.law import CUT, INCREASE, law, twin
from roce_pkt.cc.parameters import OFF_ON, Parameter, ParameterTable
from roce_pkt.cc.rate import BASE_RTT, LONGEST_PS, MAX_RATE, MIN_RATE, SHORTEST_PS, bounded, ceiling_bps

FEEDBACK = feedback.RTT
REPACES = True
HTSIM = "htsim's swift.cpp; paper text not at hand"
GUESS = "htsim's swift.cpp, where it is called a guess; paper text not at hand"

PARAMETERS = ParameterTable(
    Parameter(
        "base_target", "ps", "20us", "Target round trip without hops and with a large window.", HTSIM,
        low=SHORTEST_PS, high=LONGEST_PS,
    ),
    Parameter(
        "hop_delay", "ps", "3053ns", "h: added to the target for each switch.", "htsim: base / 6.55",
        high=LONGEST_PS,
    ),
    Parameter(
        "flow_scaling", "switch", "on", "Whether flows with small windows have a higher target.", HTSIM,
        choices=OFF_ON,
    ),
    Parameter(
        "fs_range", "ps", "100us", "Most that flow scaling adds.", "htsim: 5 x base", high=LONGEST_PS,
    ),
    Parameter("fs_min", "ratio", "0.1", "Window in packets at and below which all of it is added.", GUESS,
        low=0.001, high=1e6),
    Parameter("fs_max", "ratio", "100", "Window in packets from which nothing is added.", GUESS,
        low=0.002, high=1e6),
    Parameter("ai", "ratio", "1", "Packets that the window grows by in a round trip.", HTSIM, high=1000),
    Parameter("beta", "ratio", "0.8", "Strength of a decrease.", HTSIM, high=1),
    Parameter("max_mdf", "ratio", "0.5", "Largest share one decrease takes.", HTSIM, high=0.999),
    Parameter(
        "min_window", "ratio", "0.001", "Smallest window, in packets.", GUESS, low=1e-6, high=1,
    ),
    BASE_RTT,
    Parameter(
        "pacing", "switch", "below-one",
        "Whether packets are paced at window over round trip only below one packet, or always.",
        "Swift 2020 paces below one packet; NICs that pace in hardware always do",
        choices=("below-one", "always"),
    ),
    Parameter(
        "decrease", "switch", "per-rtt", "How often the window may fall.",
        "Swift 2020: once a round trip", choices=("per-rtt", "per-ack"),
    ),
    MIN_RATE,
    MAX_RATE,
)  # fmt: skip

PER_RTT = 0
ALWAYS = 1

STATE = np.dtype(
    [
        *HEAD,
        ("window_packets", "f8"),  # cwnd
        ("may_fall_ps", "i8"),  # no decrease before
        ("target_ps", "f8"),
    ],
    align=True,
)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:
    """A flow begins with what the pipe holds."""
    top = ceiling_bps(p)
    begin(s, top, max(top * p.base_rtt_ps / 8e12, 1.0))
    s.window_packets = 0.0  # in packets only once an acknowledgement says how large they are
    s.may_fall_ps = now
    s.target_ps = 0.0


@law
def target_ps(p: Any, window_packets: float, hops: int) -> float:
    """The round trip a flow with this window aims at."""
    target: float = p.base_target_ps + hops * p.hop_delay_ps
    if p.flow_scaling and p.fs_max > p.fs_min:
        # spec: Swift 2020 sec. 3.4: a = range / (1 / sqrt(min) - 1 / sqrt(max)), b = -a / sqrt(max)
        alpha = p.fs_range_ps / (1.0 / sqrt(p.fs_min) - 1.0 / sqrt(p.fs_max))
        beta = -alpha / sqrt(p.fs_max)
        target += min(max(alpha / sqrt(window_packets) + beta, 0.0), float(p.fs_range_ps))
    return target


@law
def on_ack(p: Any, s: Any, ack: Any, now: int) -> int:
    """An acknowledgement arrives; returns `CUT`, `INCREASE` or 0."""
    mtu = float(ack.mtu_bytes)
    if s.window_packets == 0.0:
        s.window_packets = max(s.window_bytes / mtu, p.min_window)
    before = s.window_packets
    acked = ack.acked_bytes / mtu
    s.target_ps = target_ps(p, before, ack.hops)
    s.alpha = ack.rtt_ps / s.target_ps
    if ack.rtt_ps < s.target_ps:
        # spec: Swift 2020 sec. 3.1: cwnd += ai / cwnd x acked from one packet up, ai x acked below
        s.window_packets += p.ai * acked / max(before, 1.0)
    elif now >= s.may_fall_ps:
        # spec: Swift 2020 sec. 3.1: cwnd *= max(1 - b (delay - target) / delay, 1 - max_mdf)
        share = max(1.0 - p.beta * (ack.rtt_ps - s.target_ps) / ack.rtt_ps, 1.0 - p.max_mdf)
        s.window_packets *= share
        if p.decrease == PER_RTT:
            s.may_fall_ps = now + ack.rtt_ps
    most = max(ceiling_bps(p) * ack.rtt_ps / 8e12 / mtu, 1.0)
    s.window_packets = min(max(s.window_packets, p.min_window), 2.0 * most)
    pace(p, s, mtu, ack.rtt_ps)
    if s.window_packets < before:
        s.phase = LOWERED
        return CUT
    if s.window_packets > before:
        s.phase = RAISED
        return INCREASE
    return 0


@law
def pace(p: Any, s: Any, mtu: float, rtt_ps: int) -> None:
    """Turn the window into what an engine looks at."""
    s.window_bytes = max(s.window_packets, 1.0) * mtu
    s.target_bps = s.window_packets * mtu * 8e12 / rtt_ps
    # spec: Swift 2020 sec. 3.1: a window below one packet is a delay of rtt / cwnd between packets
    if p.pacing == ALWAYS or s.window_packets < 1.0:
        s.rate_bps = bounded(p, s.target_bps)
    else:
        s.rate_bps = ceiling_bps(p)
