"""A port is told to pause: obey after the response delay, let the time run out, repeat one's own XOFF."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.engine import faults, recorder, rows
from roce_pkt.engine.memory import I64, U32, cold, far, group_at, line_at, packet_at, port_at
from roce_pkt.engine.pool import give
from roce_pkt.engine.port import cell_of, tell
from roce_pkt.engine.records import CLASSES, PAUSE_8023
from roce_pkt.engine.tree import arm
from roce_pkt.fabric.pause import pause, resume


@far(U32, U32, I64)
def pause_arrives(w, p, x, t):
    """A pause frame comes in; with a response delay it waits in line until it is obeyed."""
    d = port_at(w, p)
    f = packet_at(w, x)
    line_at(w, cell_of(p, f.class_)).pauses += 1
    f.time_ps = t + w.response_ps
    f.next = np.uint32(0)
    if d.obeying == np.uint32(0):
        d.obeying = x
    else:
        packet_at(w, d.obeying_last).next = x
    d.obeying_last = x
    if f.time_ps < d.pause_due_ps:
        d.pause_due_ps = f.time_ps
        arm(w, d.base, d.pause_leaf, d.pause_due_ps)


@cold
def obey(w, p, d, f, t):
    """A pause frame takes effect."""
    before = d.paused
    for class_ in range(CLASSES):
        if d.ignores >> class_ & 1:
            continue  # the watchdog has taken this class out of pausing
        if class_ == f.class_ or w.pause_mode == PAUSE_8023:
            pause(d, line_at(w, cell_of(p, class_)), 1 << class_, np.int64(f.count), t)
    if w.trace and d.paused != before:
        kind = rows.PFC_PAUSED if f.count else rows.PFC_RESUMED
        recorder.note(w, kind, np.uint32(rows.NO_HALF), p, np.int64(f.class_), t)


@far(U32, I64)
def pause_timers(w, p, t):
    """Something about pausing is due at port p: obey, expire, refresh."""
    d = port_at(w, p)
    due = np.int64(NEVER_PS)
    while d.obeying != np.uint32(0):
        x = d.obeying
        f = packet_at(w, x)
        if f.time_ps > t:
            due = f.time_ps
            break
        d.obeying = f.next
        obey(w, p, d, f, t)
        give(w, x)
    d.pause_due_ps = NEVER_PS
    for class_ in range(CLASSES):
        k = line_at(w, cell_of(p, class_))
        if k.paused_until_ps <= t:
            resume(d, k, 1 << class_, t)
            if w.trace:
                recorder.note(w, rows.PFC_EXPIRE, np.uint32(rows.NO_HALF), p, np.int64(class_), t)
        due = min(due, k.paused_until_ps)
        if d.xoff >> class_ & 1:
            if group_at(w, cell_of(p, class_)).refresh_due_ps <= t:
                tell(w, p, class_, w.quanta, t)
            due = min(due, group_at(w, cell_of(p, class_)).refresh_due_ps)
    if d.held != np.uint32(0):
        due = min(due, faults.release(w, d, np.uint32(0), np.int64(-1), t))
    d.pause_due_ps = due
    arm(w, d.base, d.pause_leaf, due)
