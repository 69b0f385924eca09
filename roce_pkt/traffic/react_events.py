"""The heap of events, equal times in the order in which they were asked for."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202 - compiled code compares; it does not search tuples

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from roce_pkt.jit import fast_law as law
from roce_pkt.kernel_cache import CHECKED
from roce_pkt.traffic import react_state as st


def cold(function):
    """Called, not inlined: keeps the compiled loop small."""
    return register_jitable(error_model="numpy", boundscheck=CHECKED)(function)


@cold
def _push(control, event, time_ps, kind, of):
    c = control[0]
    c.ties += 1
    place = c.events
    c.events += 1
    while place > 0:
        above = (place - 1) >> 1
        if event[above].time_ps <= time_ps:
            break
        event[place] = event[above]
        place = above
    e = event[place]
    e.time_ps = time_ps
    e.tie = c.ties
    e.kind = kind
    e.of = of


@law
def at(w, time_ps, kind, of):
    """Something shall happen at a time."""
    _push(w.control, w.event, np.int64(time_ps), np.int64(kind), np.int64(of))


@law
def look_at(w, time_ps, sender):
    """A sender shall look at a time whether it has something to send."""
    at(w, time_ps, st.LOOK, sender)


@law
def take_first(w):
    """Remove the first event; what it was."""
    c = w.control[0]
    kind = w.event[0].kind
    of = w.event[0].of
    c.events -= 1
    last = w.event[c.events]
    time_ps = last.time_ps
    tie = last.tie
    place = 0
    while True:
        below = 2 * place + 1
        if below >= c.events:
            break
        if below + 1 < c.events:
            one = w.event[below]
            other = w.event[below + 1]
            if other.time_ps < one.time_ps or (other.time_ps == one.time_ps and other.tie < one.tie):
                below += 1
        e = w.event[below]
        if time_ps < e.time_ps or (time_ps == e.time_ps and tie < e.tie):
            break
        w.event[place] = e
        place = below
    w.event[place] = last
    return kind, of
