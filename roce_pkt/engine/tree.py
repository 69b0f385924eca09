"""The next event of a node: a winner tree over its sources, smallest key at the root.

Each source (a port's arrivals, its sending, its pause timers, a queue pair's timers) has one leaf
that holds `time << SHIFT | leaf`. So equal times are settled by the source's number: arrivals by
port, then sending by port, then pause timers by port, then queue pairs.
A tree of n leaves takes 2n places from `base`: root at 1, leaves at n to 2n - 1. There are three
kinds: sources of a node, queue pairs of a class by the time they may send, and nodes.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.engine.memory import law, node_at, set_top, set_tree, set_turns, top_at, tree_at, turns_at
from roce_pkt.engine.records import FAR_PS, SHIFT


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
def lift(w, node):
    """Bring a node's earliest event into the tree of nodes."""
    root = tree_at(w, np.uint32(node_at(w, node).base + np.uint32(1)))
    key = (root >> np.int64(SHIFT) << np.int64(SHIFT)) | np.int64(node)
    place = np.uint32(w.nodes + node)
    set_top(w, place, key)
    while place > np.uint32(1):
        key = min(key, top_at(w, np.uint32(place ^ np.uint32(1))))
        place = np.uint32(place >> np.uint32(1))
        set_top(w, place, key)
