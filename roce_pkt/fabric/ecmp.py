"""Equal-cost paths: a hash of the flow's five-tuple picks one, each switch with its own seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import law
from roce_pkt.scenario.dice import mixed

UDP = 17
ROCE_PORT = 4791


@law
def path(flow_hash: int, switch_seed: int, paths: int) -> int:
    """Which of `paths` equal paths a flow takes at a switch."""
    return (mixed((flow_hash ^ switch_seed) & 0xFFFFFFFF) * paths) >> 32


@law
def packet_path(flow_hash: int, position: int, switch_seed: int, paths: int) -> int:
    """Which of `paths` equal paths a packet takes when packets are spread one by one."""
    return path(flow_hash ^ mixed((position * 0x9E3779B1) & 0xFFFFFFFF), switch_seed, paths)


@law
def flowlet_path(entry: Any, flow_hash: int, switch_seed: int, paths: int, gap_ps: int, now: int) -> int:
    """Which of `paths` equal paths a flow takes now: it may change after a pause of `gap_ps`.

    Args:
        entry: The switch's memory of flows with this hash: `last_ps`, `turn`.
        flow_hash: Of the flow.
        switch_seed: Of the switch.
        paths: Their number.
        gap_ps: A pause long enough that no packet overtakes one before it.
        now: Picoseconds.
    """
    # spec: Vanini et al., "Let It Flow", NSDI 2017: a flowlet begins after a gap, and picks at random
    if now - entry.last_ps > gap_ps:
        entry.turn += 1
    entry.last_ps = now
    return path(flow_hash ^ mixed((entry.turn * 0x85EBCA77) & 0xFFFFFFFF), switch_seed, paths)


def flow_hashes(
    src: NDArray[np.int64], dst: NDArray[np.int64], sport: NDArray[np.int64], seed: int
) -> NDArray[np.uint32]:
    """Hash of the five-tuple of many flows (protocol and destination port are constant).

    Args:
        src: Source address numbers, (n,).
        dst: Destination address numbers, (n,).
        sport: UDP source ports, (n,).
        seed: Of the fabric.
    """
    value = np.full(src.shape, (seed ^ (UDP << 16 | ROCE_PORT)) & 0xFFFFFFFF, np.uint64)
    for part in (src, dst, sport):
        value = _mixed_many(value ^ part.astype(np.uint64))
    return value.astype(np.uint32)


def _mixed_many(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`dice.mixed` of an array."""
    low = np.uint64(0xFFFFFFFF)
    value ^= value >> np.uint64(16)
    value = (value * np.uint64(0x85EBCA6B)) & low
    value ^= value >> np.uint64(13)
    value = (value * np.uint64(0xC2B2AE35)) & low
    return value ^ (value >> np.uint64(16))
