"""Queue pairs whose messages differ in length, verb or time: a list of messages for each requester.

`rc_requester` and `rc_responder` know messages of one length, one behind the other. Here `limit`,
`message_packets`, `offset` and what else belongs to the message at `snd` follow the list. All of it
is called once a message, or after something came back; never for a packet in the middle.
A READ's responses are a stream of the responder's own, at the positions the READ asks for; an
acknowledgement of what came behind the READ waits until they have left.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np
from numba import types

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint.rc_responder import AFRESH
from roce_pkt.engine import recorder, rows
from roce_pkt.engine.list_records import REQUESTS
from roce_pkt.engine.memory import HALF, I64, U32, cold, far, law, manner_at, message_at, wait_at, work_at
from roce_pkt.engine.records import DATA, RC

ONE = np.uint32(1)


@law
def end_of(w, number):
    """Position behind a message."""
    return message_at(w, np.uint32(number + ONE)).start


@law
def is_data(w, number):
    """Whether a message travels to the responder (not a READ or ATOMIC, which brings data back)."""
    return manner_at(w, message_at(w, number).manner).sends == DATA


@law
def verb_of(w, number):
    """What kind of request a message is."""
    return manner_at(w, message_at(w, number).manner).verb


@cold
def enter(w, q, number):
    """The message at `snd` is this one now."""
    m = message_at(w, number)
    how = manner_at(w, m.manner)
    q.message_packets = np.uint32(end_of(w, number) - m.start)
    q.last_payload = np.uint16(m.length - np.int64(q.message_packets - ONE) * w.mtu_bytes)
    q.offset = np.uint32(q.snd - m.start)
    if q.listed == REQUESTS:
        q.sends = how.sends
        q.first_bytes = how.first_bytes
        q.last_bytes = how.last_bytes
    else:  # an only READ response has one AETH, not that of a first and that of a last
        q.last_bytes = q.first_bytes if q.message_packets > ONE else np.uint16(0)


@cold
def locate(w, work, q):
    """After `snd` has moved: find its message."""
    if q.snd >= q.limit:
        return
    number = work.current
    if number >= work.posted or message_at(w, number).start > q.snd:
        number = work.open
    while end_of(w, number) <= q.snd:
        number = np.uint32(number + ONE)
    work.current = number
    enter(w, q, number)


@cold
def post(w, work, q, t):
    """Post messages: those whose time has come, as far as depth, outstanding READs and waits allow."""
    work.due_ps = NEVER_PS
    while work.posted < work.end and work.posted - work.open < work.depth:
        m = message_at(w, work.posted)
        if work.waits and wait_at(w, work.posted).needs != 0:
            break
        if m.ready_ps > t:
            work.due_ps = m.ready_ps
            break
        if not is_data(w, work.posted):
            if work.reads >= work.reads_most:
                break
            work.reads = np.uint32(work.reads + ONE)
        if m.ready_ps < 0:
            m.ready_ps = t
        work.posted = np.uint32(work.posted + ONE)
        q.limit = end_of(w, np.uint32(work.posted - ONE))


@cold
def settle(w, h, q, t):
    """Something came back, or a timer: messages that are complete, then what may be posted and sent."""
    work = work_at(w, q.work)
    while work.open < work.posted and end_of(w, work.open) <= q.una:
        message_at(w, work.open).done_ps = t
        if not is_data(w, work.open):
            work.reads = np.uint32(work.reads - ONE)
        work.open = np.uint32(work.open + ONE)
        q.messages += 1
        if w.trace:
            recorder.note(w, rows.RC_DONE, h, q.port, q.messages, t)
    if work.open == work.end and q.ended_ps < 0:
        q.ended_ps = t
    post(w, work, q, t)
    locate(w, work, q)


@far(U32, HALF, I64, returns=I64)
def sent(w, h, q, t):
    """A packet has left: the next message, and what is due when the last one has left.

    Returns:
        1 when the half's timers may have changed.
    """
    if q.snd < q.limit and q.offset != 0 and not w.selective:
        return 0
    work = work_at(w, q.work)
    if q.listed == REQUESTS:
        if q.service != RC:
            q.una = q.snd  # nobody acknowledges: done when sent
        settle(w, h, q, t)
        return 1
    if q.snd < q.limit:
        number = work.answering
        while is_data(w, number) or end_of(w, number) <= q.snd:
            number = np.uint32(number + ONE)
        q.snd = max(q.snd, message_at(w, number).start)
        work.answering = number
        enter(w, q, number)
        return 0
    if work.owed:
        work.owed_ps = t
        return 1
    return 0


@far(HALF, I64, I64)
def read(w, r, position, packets):
    """A READ request is answered from `position` on."""
    work = work_at(w, r.work)
    # spec: IBTA 9.7.5.1.9, 9.7.4.4.1: a duplicate READ is executed again
    if r.snd >= r.limit or position < r.snd:
        r.snd = position
        number = work.answering if message_at(w, work.answering).start <= position else work.first
        while end_of(w, number) <= position:
            number = np.uint32(number + ONE)
        work.answering = number
        enter(w, r, number)
        r.since_ack = AFRESH if r.offset != 0 else 0
    r.limit = max(r.limit, position + packets)


@far(HALF, returns=types.boolean)
def holds(w, r):
    """Whether an answer must wait behind READ responses; if so it is owed."""
    if r.snd >= r.limit:
        return False
    work = work_at(w, r.work)
    work.owed = 1
    work.owed_ps = NEVER_PS
    return True


@cold
def owed_from(w, q):
    """The first position whose data has not come back to the requester, or -1."""
    work = work_at(w, q.work)
    if work.reads == 0:
        return np.int64(-1)
    number = work.open
    while number < work.posted and message_at(w, number).start < q.high:
        if not is_data(w, number):
            return max(message_at(w, number).start, q.una)
        number = np.uint32(number + ONE)
    return np.int64(-1)


@cold
def ask_again(q, position, t):
    """A response is missing: everything before it has been executed."""
    if position > q.una:
        requester.acknowledged(q, position, t)
        q.repeating = 0
    # spec: IBTA 9.7.5.2.8: a gap in responses is an implied NAK: ask again from the first missing
    if not q.repeating:
        q.repeating = 1
        q.naks += 1
        requester.go_back(q, position)


@far(HALF, returns=I64)
def due_ps(w, q):
    """When the half wants to look at its list by itself."""
    work = work_at(w, q.work)
    return work.due_ps if q.listed == REQUESTS else work.owed_ps
