"""How fast the links of a capture are: as asked for, as the capture states, or as its bursts show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roce_pkt.capture.model import Interface
from roce_pkt.flows.rows import Rows
from roce_pkt.flows.size import LINK_OVERHEAD_BYTES

ETHERNET_BPS = (1e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9, 800e9)
BURST_FRAMES = 32
"""Frames in a row that must have come at full speed."""
LEAST_SHARE, MOST_SHARE = 0.97, 1.005
"""How near to a link's speed the fastest burst must be to name it."""


def stated(interfaces: Sequence[Interface]) -> list[float | None]:
    """What the capture says of each interface."""
    return [float(interface.speed_bps) if interface.speed_bps else None for interface in interfaces]


def shown(rows: Rows, interface: int) -> float | None:
    """The speed that back-to-back frames of one sender show, or None.

    Args:
        rows: Frames in time order.
        interface: Whose.
    """
    here = rows.interface == interface
    best = None
    for mac in np.unique(rows.eth_src[here]).tolist():
        own = np.flatnonzero(here & (rows.eth_src == mac))
        if len(own) <= BURST_FRAMES:
            continue
        octets = np.cumsum(rows.octets[own].astype(np.int64) + LINK_OVERHEAD_BYTES)
        # stamps may be of the first or of the last octet: a burst's frames but one lie between its stamps
        bits = 8 * (octets[BURST_FRAMES:] - octets[:-BURST_FRAMES])
        first = 8 * (octets[BURST_FRAMES - 1 : -1] - np.concatenate(([0], octets[: -BURST_FRAMES - 1])))
        span_ns = rows.time_ns[own][BURST_FRAMES:] - rows.time_ns[own][:-BURST_FRAMES]
        moving = span_ns > 0
        if moving.any():
            rate = float((np.minimum(bits, first)[moving] / span_ns[moving]).max()) * 1e9
            best = rate if best is None else max(best, rate)
    if best is None:
        return None
    fits = [speed for speed in ETHERNET_BPS if LEAST_SHARE * speed <= best <= MOST_SHARE * speed]
    return fits[0] if fits else None
