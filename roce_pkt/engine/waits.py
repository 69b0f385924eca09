"""Messages that wait for others: told when those arrive, or are complete for their requester.

A host knows of a message when it has received it, or when its own request is complete. Who waits at
a third host is told no sooner than a frame could tell it.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.endpoint.rc_requester import may_send
from roce_pkt.engine import messages
from roce_pkt.engine.list_records import REQUESTS
from roce_pkt.engine.memory import (
    HALF,
    I64,
    U32,
    cold,
    far,
    half_at,
    message_at,
    next_at,
    port_at,
    wait_at,
    work_at,
)
from roce_pkt.engine.messages import ONE
from roce_pkt.engine.queue_pair import set_timer, set_turn
from roce_pkt.engine.tree import lift


@cold
def tell(w, node, first, count, t):
    """What some messages wait for has happened, at a node."""
    for k in range(count):
        number = next_at(w, np.uint32(first + np.uint32(k)))
        n = wait_at(w, number)
        m = message_at(w, number)
        work = work_at(w, n.work)
        q = half_at(w, work.requester)
        there = port_at(w, q.port).node
        n.needs = np.uint32(n.needs - ONE)
        after = n.delay_ps if there == node else max(n.delay_ps, w.lookahead_ps)
        m.ready_ps = max(m.ready_ps, t + after)
        if n.needs == 0 and work.posted == number:
            work.due_ps = m.ready_ps
            set_timer(w, work.requester, q)
            if there != node:
                lift(w, there)


@far(HALF, I64)
def arrived(w, r, t):
    """The last packet of the next message of its list has reached a responder."""
    work = work_at(w, r.work)
    if work.waits:
        n = wait_at(w, work.arriving)
        tell(w, port_at(w, r.port).node, n.first_next, n.arrivals, t)
    work.arriving = np.uint32(work.arriving + ONE)
    if work.arriving < work.end:
        r.verb = messages.verb_of(w, work.arriving)


@far(U32, HALF, I64)
def follow(w, h, q, t):
    """Something happened to half h, beyond a packet in the middle of a message."""
    if q.listed == REQUESTS:
        work = work_at(w, q.work)
        if work.waits:
            number = work.open
            while number < work.posted and messages.end_of(w, number) <= q.una:
                n = wait_at(w, number)
                tell(w, port_at(w, q.port).node, np.uint32(n.first_next + n.arrivals), n.completions, t)
                number = np.uint32(number + ONE)
        messages.settle(w, h, q, t)
    if q.idle == may_send(q):
        set_turn(w, h, q)
    set_timer(w, h, q)
