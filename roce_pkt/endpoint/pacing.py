"""A sender's pacer: the gap behind a packet that keeps it at its rate."""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law


@law
def next_start_ps(q: Any, rate_bps: float, size: int, quantum_ps: int, now: int) -> int:
    """When the queue pair may start its next packet, after one of `size` octets that starts now.

    Credit does not build up: time spent waiting for the port or under pause is lost.

    Args:
        q: `limit_bps`, the queue pair's own ceiling.
        rate_bps: Congestion control's rate.
        size: Octets on the wire.
        quantum_ps: Times are cut to multiples of it.
        now: Picoseconds.
    """
    rate = min(rate_bps, q.limit_bps)
    gap = int(size * 8e12 / rate)
    if quantum_ps > 1:
        gap -= gap % quantum_ps
    return now + gap
