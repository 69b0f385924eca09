"""A switch: a frame arrives, is admitted to the buffer, routed, marked and queued."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.engine import recorder
from roce_pkt.engine.memory import (
    cold,
    flowlet_at,
    group_at,
    law,
    line_at,
    node_at,
    packet_at,
    path_at,
    port_at,
    route_at,
)
from roce_pkt.engine.port import cell_of, enqueue, lose, mark, tell
from roce_pkt.engine.records import FLOWLET_MASK, PER_PACKET
from roce_pkt.fabric.buffer import admit, must_pause
from roce_pkt.fabric.ecmp import flowlet_path, packet_path, path
from roce_pkt.fabric.red import ECT0, ECT1, marks


@law
def way_out(w, n, f, t):
    """The port a packet leaves a switch by."""
    route = route_at(w, np.uint32(n.route + f.dst))
    if route.count == 1:
        return route.first
    if w.routing:
        return path_at(w, np.uint32(route.first + balanced(w, n, f, route, t)))
    choice = path(np.int64(f.hash), np.int64(n.salt), np.int64(route.count))
    return path_at(w, np.uint32(route.first + choice))


@cold
def balanced(w, n, f, route, t):
    """Which of several equal ways a packet takes when they do not stay with the flow."""
    flow, salt, count = np.int64(f.hash), np.int64(n.salt), np.int64(route.count)
    if w.routing == PER_PACKET:
        return packet_path(flow, f.psn, salt, count)
    entry = flowlet_at(w, np.uint32(n.flowlets + np.uint32(flow & FLOWLET_MASK)))
    return flowlet_path(entry, flow, salt, count, w.flowlet_gap_ps, t)


@law
def forward(w, p, x, t):
    """Take a frame from port p into the switch.

    Returns:
        The port it waits at, or p itself when it was dropped (nothing to do there).
    """
    d = port_at(w, p)
    f = packet_at(w, x)
    n = node_at(w, d.node)
    out = way_out(w, n, f, t)
    o = port_at(w, out)
    size = np.int64(f.size)
    cell = cell_of(p, f.class_)
    g = group_at(w, cell)
    if not admit(n, g, size):
        lose(w, out, o, x, f, t)
        return p
    f.group = cell
    if g.lossless and d.xoff >> f.class_ & 1 == 0 and must_pause(n, g):
        tell(w, p, f.class_, w.quanta, t)
    ect = f.ecn == ECT0 or f.ecn == ECT1
    if ect and w.ecn and not w.mark_at_dequeue:
        k = line_at(w, cell_of(out, f.class_))
        if marks(o, o, k.queued_bytes):
            mark(w, out, o, f, t)
    recorder.queue_changes(w, out, o, size, t)
    enqueue(w, out, x)
    return out
