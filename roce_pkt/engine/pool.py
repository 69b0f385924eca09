"""Packets: one bounded pool; lists through it are queues, wires and the free list.

Packet 0 is none. When the pool is empty the run is told to stop and packet 0 takes the writes.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.engine.memory import law, packet_at
from roce_pkt.engine.records import POOL_EMPTY


@law
def take(w):
    """A packet to fill in; the most recently freed first, because it is still in the cache."""
    x = w.free
    if x != np.uint32(0):
        w.free = packet_at(w, x).next
    elif w.fresh < w.packets:
        x = w.fresh
        w.fresh = np.uint32(x + np.uint32(1))
    else:
        w.stop = POOL_EMPTY
    return x


@law
def give(w, x):
    """A packet is no longer needed."""
    packet_at(w, x).next = w.free
    w.free = x


@law
def line_up(w, d, x):
    """A packet will leave port d before all that wait in a class, behind those that do so already."""
    packet_at(w, x).next = np.uint32(0)
    if d.control == np.uint32(0):
        d.control = x
    else:
        packet_at(w, d.control_last).next = x
    d.control_last = x
