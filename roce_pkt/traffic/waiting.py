"""Who waits for what: a tree of the next events, and the queue in front of each host's line."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.cc.law import NEVER_PS as FAR_PS
from roce_pkt.jit import law
from roce_pkt.traffic.rows import REQUESTER
from roce_pkt.traffic.verbs import MESSAGE, SHAPE


@law
def set_leaf(w, leaf, time_ps):
    """The next event of a source; equal times are settled by its number."""
    place = w.control[0].leaves + leaf
    w.tree[place] = time_ps
    place >>= 1
    while place:
        w.tree[place] = min(w.tree[2 * place], w.tree[2 * place + 1])
        place >>= 1


@law
def first_leaf(w):
    """The source whose event is next."""
    place = 1
    leaves = w.control[0].leaves
    while place < leaves:
        place *= 2
        if w.tree[place + 1] < w.tree[place]:
            place += 1
    return place - leaves


@law
def wait_for_line(w, sender, n, now):
    """A sender joins the queue of its host's line."""
    host = w.host[n]
    w.follows[sender] = -1
    if host.first < 0:
        host.first = sender
        set_leaf(w, 2 * w.control[0].halves + n, max(now, host.free_ps))
    else:
        w.follows[host.last] = sender
    host.last = sender


@law
def request_due_ps(w, h, q, now):
    """When the requester has a packet, as far as is known now."""
    while q.free_head != q.free_tail:
        f = w.free[np.int64(h) * w.control[0].ring + q.free_head % w.control[0].ring]
        if f.time_ps > now:
            break
        q.outstanding -= f.ends
        q.rd_outstanding -= f.reads
        q.free_head += np.uint32(1)
    if q.packet < q.packets:
        return q.due_ps
    if q.next_message >= q.count:
        return FAR_PS
    at = max(q.due_ps, now)
    verb = q.rule_verb
    if q.scripted:
        m = w.message[q.first_message + q.next_message]
        if m.needs:
            return FAR_PS
        at = max(at, m.ready_ps)
        verb = m.verb
    if at >= w.control[0].end_ps:
        return FAR_PS
    if q.outstanding >= q.depth or (SHAPE[verb] != MESSAGE and q.rd_outstanding >= q.rd_atomic):
        if q.free_head == q.free_tail:
            return FAR_PS
        return max(at, w.free[np.int64(h) * w.control[0].ring + q.free_head % w.control[0].ring].time_ps)
    return at


@law
def answer_due_ps(w, h, q):
    """When the responder owes its next answer."""
    if q.answer_head == q.answer_tail:
        return FAR_PS
    return w.answer[np.int64(h) * w.control[0].ring + q.answer_head % w.control[0].ring].ready_ps


@law
def look(w, sender, now):
    """A sender waits for its host's line, or for the time when it has something to send."""
    h = sender // 2
    q = w.half[h]
    if sender % 2 == REQUESTER:
        due = request_due_ps(w, h, q, now)
        n = q.src
        q.queued = due <= now
    else:
        due = answer_due_ps(w, h, q)
        n = q.dst
        q.answer_queued = due <= now
    if due <= now:
        set_leaf(w, sender, FAR_PS)
        wait_for_line(w, sender, n, now)
    else:
        set_leaf(w, sender, due)


@law
def poke_requester(w, h, q, now):
    """Let the requester look again, now."""
    if not q.queued:
        set_leaf(w, 2 * h + REQUESTER, now)
