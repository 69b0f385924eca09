"""The next event of a node: a winner tree over its sources, smallest key at the root.

Each source (a port's arrivals, its sending, its pause timers; a host's queue pairs) has one leaf
that holds `time << SHIFT | leaf`. So equal times are settled by the source's number: arrivals by
port, then sending by port, then pause timers by port, then queue pairs.
A tree of n leaves takes 2n places from `base`: root at 1, leaves at n to 2n - 1. There are three
kinds: sources of a node, timers of a host's queue pairs (their earliest is one source of the node,
so that a host with many queue pairs still has a low tree), and queue pairs of a class by the time
they may send.
The nodes themselves stand in a row, each with its earliest event, and every block of them has a
bound: its earliest. A window looks only into blocks that have something in it.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.engine.memory import law, node_at, set_top, set_tree, set_turns, top_at, tree_at, turns_at
from roce_pkt.engine.records import BLOCK, BLOCK_SHIFT, FAR_PS, SHIFT


@law
def arm(w, base, leaf, time_ps):
    """A source's next event is at `time_ps`; a time that never comes disarms it."""
    key = (min(np.int64(time_ps), np.int64(FAR_PS)) << np.int64(SHIFT)) | np.int64(leaf)
    place = np.uint32(leaf)
    set_tree(w, np.uint32(base + place), key)
    while place > np.uint32(1):
        # the winner so far stays in a register; only its rival is read
        key = min(key, tree_at(w, np.uint32(base + np.uint32(place ^ np.uint32(1)))))
        place = np.uint32(place >> np.uint32(1))
        set_tree(w, np.uint32(base + place), key)


@law
def armed_ps(w, base, leaf):
    """When a source's next event is."""
    return tree_at(w, np.uint32(base + leaf)) >> np.int64(SHIFT)


@law
def set_turn_key(w, base, leaf, time_ps, half):
    """A queue pair (by its number at its host) may send from `time_ps`."""
    key = (np.int64(time_ps) << np.int64(SHIFT)) | np.int64(half)
    place = np.uint32(leaf)
    set_turns(w, np.uint32(base + place), key)
    while place > np.uint32(1):
        key = min(key, turns_at(w, np.uint32(base + np.uint32(place ^ np.uint32(1)))))
        place = np.uint32(place >> np.uint32(1))
        set_turns(w, np.uint32(base + place), key)


@law
def set_timer_leaf(w, n, leaf, time_ps):
    """A queue pair's next timer at host node n is at `time_ps`; the node learns the earliest of all."""
    arm(w, n.timers, leaf, time_ps)
    first_ps = armed_ps(w, n.timers, np.uint32(1))
    own = np.uint32(np.uint32(2) * n.leaves - np.uint32(1))
    if first_ps != armed_ps(w, n.base, own):
        arm(w, n.base, own, first_ps)


@law
def bound_of(w, block):
    """Place of a block's bound in the row of nodes."""
    return np.uint32(w.blocks * np.uint32(BLOCK) + np.uint32(block))


@law
def lift(w, node):
    """Bring a node's earliest event into the row of nodes."""
    key = tree_at(w, np.uint32(node_at(w, node).base + np.uint32(1)))
    set_top(w, node, key)
    bound = bound_of(w, np.uint32(node >> np.uint32(BLOCK_SHIFT)))
    set_top(w, bound, min(key, top_at(w, bound)))


@law
def settle_bound(w, block):
    """A block's nodes have run: its bound is the earliest of them."""
    first = np.uint32(block * np.uint32(BLOCK))
    key = top_at(w, first)
    for i in range(1, BLOCK):
        key = min(key, top_at(w, np.uint32(first + np.uint32(i))))
    set_top(w, bound_of(w, block), key)


@law
def earliest_key(w):
    """The earliest event of all nodes."""
    key = top_at(w, bound_of(w, np.uint32(0)))
    for block in range(1, w.blocks):
        key = min(key, top_at(w, bound_of(w, np.uint32(block))))
    return key
