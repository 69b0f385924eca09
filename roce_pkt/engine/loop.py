"""The event loop: windows of time in which nodes cannot reach each other, node after node.

A frame that starts at t is at its next node no earlier than t + delay + the time of the shortest
frame. Within a window of that length every node runs on its own, so its small tree and its ports
stay in the cache, and the result does not depend on the order of nodes.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.cc import dcqcn
from roce_pkt.cc.law import compile_laws
from roce_pkt.engine import recorder
from roce_pkt.engine.host import receive, timers
from roce_pkt.engine.memory import (
    I64,
    cc_of,
    far,
    half_at,
    node_at,
    packet_at,
    part,
    port_at,
    rates_at,
    rp_at,
    set_queues,
    set_top,
    top_at,
    tree_at,
)
from roce_pkt.engine.pausing import pause_arrives, pause_timers
from roce_pkt.engine.port import serve
from roce_pkt.engine.prefetch import arrival_ahead, is_large, packet_ahead, ports_ahead
from roce_pkt.engine.records import BLOCK, FAR_PS, GO, PAUSE, SAMPLES_FULL, SHIFT, SOURCE_MASK
from roce_pkt.engine.switch import forward
from roce_pkt.engine.tree import arm, bound_of, earliest_key, settle_bound

compile_laws()


@part
def arrive(w, p, t):
    """The first frame on the wire towards port p has arrived.

    Returns:
        The port that may now have something to send.
    """
    d = port_at(w, p)
    x = d.arriving
    f = packet_at(w, x)
    d.arriving = f.next
    if is_large(w):
        arrival_ahead(w, d, f.next)
    else:
        packet_ahead(w, f.next)
    arm(w, d.base, d.arrival_leaf, f.time_ps if f.next != np.uint32(0) else np.int64(FAR_PS))
    if d.tap:
        recorder.record(w, p, x, 0, t)
    if f.kind == PAUSE:
        pause_arrives(w, p, x, t)
        return p
    if d.host:
        receive(w, p, x, t)
        return p
    return forward(w, p, x, t)


@part
def run_node(w, number, end_key):
    """Run one node's events before `end_key`."""
    n = node_at(w, number)
    if is_large(w):
        ports_ahead(w, n)
    events = 0
    while True:
        key = tree_at(w, np.uint32(n.base + np.uint32(1)))
        if key >= end_key or w.stop != GO:
            break
        events += 1
        t = key >> np.int64(SHIFT)
        source = np.uint32(np.uint32(key & SOURCE_MASK) - n.leaves)
        if source < n.ports:
            p = arrive(w, np.uint32(n.first_port + source), t)
        elif source < np.uint32(2) * n.ports:
            p = np.uint32(n.first_port + source - n.ports)
        elif source < np.uint32(3) * n.ports:
            p = np.uint32(n.first_port + source - np.uint32(2) * n.ports)
            pause_timers(w, p, t)
        else:
            leaf = np.uint32(tree_at(w, np.uint32(n.timers + np.uint32(1))) & SOURCE_MASK)
            p = timers(w, np.uint32(n.first_half + np.uint32(leaf - n.halves)), t)
        serve(w, p, t)
    w.events += events
    set_top(w, number, tree_at(w, np.uint32(n.base + np.uint32(1))))


@part
def run_block(w, block, end_key):
    """Run a block's nodes, each on its own, to the end of the window."""
    for i in range(BLOCK):
        number = np.uint32(block * np.uint32(BLOCK) + np.uint32(i))
        if top_at(w, number) < end_key and w.stop == GO:
            run_node(w, number, end_key)
    settle_bound(w, block)


@far()
def sample(w):
    """Write queues and rates as they are now into the next row of samples."""
    t = w.next_sample_ps
    for i in range(w.ports):
        set_queues(w, np.uint32(w.samples * w.ports + i), port_at(w, i).queued_bytes)
    for i in range(w.halves):
        s = rp_at(w, i)
        if w.reacts:
            dcqcn.settle_alpha(cc_of(w), s, t)
        row = rates_at(w, np.uint32(w.samples * w.halves + i))
        row.rate_bps = s.rate_bps
        row.target_bps = s.target_bps
        row.alpha = s.alpha
        row.received_bytes = half_at(w, i).received_bytes
    w.samples = np.uint32(w.samples + np.uint32(1))
    w.next_sample_ps += w.sample_every_ps
    if w.samples >= w.sample_limit:
        w.stop = SAMPLES_FULL


@far(I64)
def run(w, until_ps):
    """Run until `until_ps`, or until something asks to stop (`w.stop` says what)."""
    while w.stop == GO:
        earliest = min(earliest_key(w) >> np.int64(SHIFT), until_ps)
        while w.next_sample_ps <= earliest and w.stop == GO:
            sample(w)
        if earliest >= until_ps or w.stop != GO:
            break
        w.now_ps = earliest
        end = min(earliest + w.lookahead_ps, until_ps, w.next_sample_ps)
        end_key = end << np.int64(SHIFT)
        for block in range(w.blocks):
            if top_at(w, bound_of(w, np.uint32(block))) < end_key:
                run_block(w, np.uint32(block), end_key)
    if w.stop == GO:
        w.now_ps = until_ps
