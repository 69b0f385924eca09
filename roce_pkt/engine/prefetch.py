"""What a packet will need soon is asked for before it is needed: large fabrics do not fit a cache.

Asking changes no result; a wrong or early guess only costs the asking.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.engine.layout import LINE_BYTES
from roce_pkt.engine.memory import law, node_at, packet_at, port_at
from roce_pkt.engine.records import ACK, HALF, PACKET, PORT, ROUTE
from roce_pkt.jit import prefetch

HALF_BYTES, PACKET_BYTES, ROUTE_BYTES = HALF.itemsize, PACKET.itemsize, ROUTE.itemsize
PORT_BYTES = PORT.itemsize


@law
def line_ahead(array, octet):
    """Ask for the cache line at an octet of an array."""
    prefetch((array, np.uint64(0)), np.uint64(octet))


@law
def packet_ahead(w, x):
    """Ask for a packet that will be looked at soon."""
    line_ahead(w.packet_array, np.uint64(x) * np.uint64(PACKET_BYTES))


@law
def is_large(w):
    """Whether a fabric has more than a cache holds; in a small one asking would only cost time."""
    return w.blocks > np.uint32(1)


@law
def ports_ahead(w, n):
    """Ask for a node's ports, which its window is about to look at, then for the first frames to each."""
    place = np.uint64(n.first_port) * np.uint64(PORT_BYTES)
    for _ in range(n.ports):
        for line in range(PORT_BYTES // LINE_BYTES):
            line_ahead(w.port_array, place + np.uint64(line * LINE_BYTES))
        place += np.uint64(PORT_BYTES)
    for i in range(n.ports):
        packet_ahead(w, port_at(w, np.uint32(n.first_port + np.uint32(i))).arriving)


@law
def arrival_ahead(w, d, x):
    """Ask for what the arrival behind this one at port d will touch, and for the frame behind that."""
    f = packet_at(w, x)
    packet_ahead(w, f.next)
    if d.host:
        receiver_ahead(w, f)
    else:
        route = node_at(w, d.node).route + np.uint32(f.dst)
        line_ahead(w.route_array, np.uint64(route) * np.uint64(ROUTE_BYTES))


@law
def receiver_ahead(w, f):
    """Ask for what a frame changes at the queue pair it is on its way to."""
    place = np.uint64(f.half) * np.uint64(HALF_BYTES)
    line_ahead(w.half_array, place + np.uint64(LINE_BYTES))
    line_ahead(w.half_array, place + np.uint64(2 * LINE_BYTES))
    if f.kind >= ACK:
        line_ahead(w.half_array, place)


@law
def sender_ahead(w, h):
    """Ask for the queue pair that sends next."""
    place = np.uint64(h) * np.uint64(HALF_BYTES)
    line_ahead(w.half_array, place)
    line_ahead(w.half_array, place + np.uint64(LINE_BYTES))
    line_ahead(w.half_array, place + np.uint64(2 * LINE_BYTES))
    state = np.uint64(h) * w.rp_bytes
    line_ahead(w.rp_array, state)
    line_ahead(w.rp_array, state + np.uint64(LINE_BYTES))
