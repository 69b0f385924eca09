"""One direction of requests on a connection, with both of its sides, when frames can be lost.

The laws are those of `endpoint/`; here is what they leave open: which message a position belongs to, what a
lost response means, and the answers that are owed. Positions do not wrap.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint import rc_responder as responder
from roce_pkt.endpoint import uc
from roce_pkt.jit import fast_law as law
from roce_pkt.traffic import react_state as st
from roce_pkt.traffic.react_events import look_at
from roce_pkt.traffic.rows import REQUESTER
from roce_pkt.traffic.verbs import MESSAGE, ORDER, READ, SHAPE, UC, UD
from roce_pkt.wire import aeth

NAK_SEQUENCE = aeth.TYPES.index("nak") << 5
RNR_NAK = aeth.TYPES.index("rnr") << 5
RNR_WAITS_PS = np.array([aeth.RNR_TIMERS_US[code] * 1_000_000 for code in range(32)]).astype(np.int64)
IS_SEND = np.array([verb.wire == "SEND" for verb in ORDER], np.uint8)
IMMEDIATE = np.array(["IMMEDIATE" in verb.suffix for verb in ORDER], np.uint8)
NONE_OWED = -1


@law
def copy_work(to, work):
    """The same work request in another record."""
    to.number = work.number
    to.verb = work.verb
    to.length = work.length
    to.start = work.start
    to.end = work.end


@law
def work_of(w, h, number):
    """An open work request by its number."""
    return w.work[h * w.control[0].ring + (number & (w.control[0].ring - 1))]


@law
def oldest(w, h, q):
    """Number of the oldest open work request; that of the next one when none is open."""
    if q.una >= q.limit:
        q.oldest = q.works
    else:
        while work_of(w, h, q.oldest).end <= q.una:
            q.oldest += 1
    return q.oldest


@law
def current(w, h, q):
    """The work request that the next packet belongs to."""
    q.current = max(q.current, oldest(w, h, q))
    while work_of(w, h, q.current).end <= q.snd:
        q.current += 1
    while work_of(w, h, q.current).start > q.snd:
        q.current -= 1
    return work_of(w, h, q.current)


@law
def post_one(w, h, q):
    """Post the next work request, if there is one now."""
    c = w.control[0]
    n = q.works
    if n >= q.count:
        return False
    if q.scripted:
        m = w.message[q.first_message + n]
        if m.needs:
            return False
        if m.ready_ps > c.now:
            look_at(w, m.ready_ps, 2 * h + REQUESTER)
            return False
        verb = np.int64(m.verb)
        length = m.length
    else:
        if c.now >= c.until_ps:
            return False
        verb = q.rule_verb
        length = q.length
        if q.sized:
            length = w.sizes[h, n % w.sizes.shape[1]]
            if n + q.depth + 2 > q.sized:
                c.stop = st.SIZES_USED
    work = work_of(w, h, n)
    work.number = n
    work.verb = verb
    work.length = length
    work.start = q.limit
    work.end = q.limit + 1
    if SHAPE[verb] == MESSAGE or SHAPE[verb] == READ:
        work.end = q.limit + max(np.int64(1), -(-length // c.mtu))
    q.answered_by_data += SHAPE[verb] != MESSAGE
    q.works += 1
    q.limit = work.end
    return True


@law
def ready(w, h, q):
    """Whether a request could leave now."""
    while q.works - oldest(w, h, q) < q.depth:
        if not post_one(w, h, q):
            break
    if not requester.may_send(q):
        return False
    work = current(w, h, q)
    if SHAPE[work.verb] == MESSAGE or q.snd > work.start:
        return True
    reads = 0
    for number in range(oldest(w, h, q), work.number):
        reads += SHAPE[work_of(w, h, number).verb] != MESSAGE
    return reads < w.control[0].max_rd_atomic


@law
def request(w, h, q, flight, now):
    """The next request leaves."""
    work = current(w, h, q)
    copy_work(flight, work)
    flight.position = q.snd
    flight.count = work.end - q.snd if SHAPE[work.verb] == READ else 1
    ends = flight.position + flight.count == work.end
    unreliable = q.service == UC or q.service == UD  # noqa: PLR1714
    q.since_ack += 1
    flight.ask = not unreliable and (ends or q.since_ack >= w.control[0].ack_every)
    if flight.ask:
        q.since_ack = 0
    flight.syndrome = -1
    flight.msn = flight.data = flight.first = 0
    requester.sent(q, flight.count, now)
    if unreliable:
        q.una = q.snd


@law
def owed_from(w, h, q):
    """The first position whose data has not come back, or `NONE_OWED`."""
    if not q.answered_by_data:
        return np.int64(NONE_OWED)
    for number in range(oldest(w, h, q), q.works):
        work = work_of(w, h, number)
        if work.start >= q.high:
            break
        if SHAPE[work.verb] != MESSAGE:
            return max(work.start, q.una)
    return np.int64(NONE_OWED)


@law
def done(w, q, number, now):
    """A message has arrived: scripted ones that wait for it may start."""
    if not q.scripted:
        return
    m = w.message[q.first_message + number]
    for k in range(m.first_next, m.first_next + m.nexts):
        n = w.message[w.nexts[k]]
        n.needs -= np.uint32(1)
        n.ready_ps = max(n.ready_ps, now + n.delay_ps)
        if n.needs == 0:
            look_at(w, n.ready_ps, 2 * np.int64(n.half) + REQUESTER)


@law
def answered(w, h, q, flight, now):
    """An answer reaches the requester; number of the message that has arrived with it, or `NOBODY`."""
    nothing = np.int64(st.NOBODY)
    owed = owed_from(w, h, q)
    refused = not flight.data and flight.syndrome >= RNR_NAK
    end = flight.position + (0 if refused else 1)
    if flight.data and (owed == NONE_OWED or flight.position < owed):
        return nothing  # an answer to an earlier transmission
    if not flight.data and (end < q.una or end > q.high):
        return nothing
    # a response is missing: everything before it has been executed
    missing = owed != NONE_OWED and owed < (flight.position if flight.data else end)
    before = q.una
    requester.acknowledged(q, owed if missing else end, now)
    if q.una > before:
        q.repeating = 0
    back = nothing
    if missing:
        # spec: IBTA 9.7.5.2.8: a gap in responses is an implied NAK: ask again from the first missing
        if not q.repeating:
            q.repeating = 1
            back = owed
    elif refused and flight.syndrome & NAK_SEQUENCE == NAK_SEQUENCE:
        back = flight.position
    elif refused:
        requester.not_ready(q, flight.position, RNR_WAITS_PS[flight.syndrome & 31], now)
    if back != nothing:
        requester.go_back(q, back)
    if flight.data and not missing and flight.number >= 0 and flight.position + 1 >= flight.end:
        return flight.number
    return nothing


@law
def timer(w, q, now):
    """A timer of the requester may be due."""
    if w.control[0].endless_retries and q.retry_cnt == 7:
        q.retries_left = max(q.retries_left, 1)
    if requester.on_timer(q, now) == requester.TIMER_RETRY:
        q.repeating = 0


# -- responder


@law
def owe(w, q, flight, syndrome, position, data):
    """An answer to a request joins those that are owed: an acknowledgement, or data from a position on."""
    c = w.control[0]
    n = c.answer_free
    a = w.answer[n]
    c.answer_free = a.next
    c.answers += 1
    copy_work(a, flight)
    a.position = position
    a.answer_end = position
    if data:
        a.answer_end = flight.end if SHAPE[flight.verb] == READ else position + 1
    a.syndrome = syndrome
    a.first = position
    a.msn = q.msn
    a.next = st.NOBODY
    if q.answer_head == st.NOBODY:
        q.answer_head = n
    else:
        w.answer[q.answer_tail].next = n
    q.answer_tail = n


@law
def arrive(w, q, flight, now):
    """A request reaches the responder; number of the message that has arrived with it, or `NOBODY`."""
    c = w.control[0]
    nothing = np.int64(st.NOBODY)
    if flight.number < 0:
        return nothing
    ends = flight.position + flight.count == flight.end
    if q.service == UD:
        return flight.number
    if q.service == UC:
        counts = uc.receive(q, flight.position, np.int64(flight.position == flight.start))
        return flight.number if counts and ends else nothing
    message = SHAPE[flight.verb] == MESSAGE
    syndrome = np.int64(-1)
    position = flight.position
    data = False
    arrived = nothing
    verdict = responder.judge(q, flight.position)
    if verdict == responder.ACCEPT:
        first = flight.position == flight.start
        needs = first if IS_SEND[flight.verb] else ends and IMMEDIATE[flight.verb] != 0
        if needs and not responder.take_receive(q, c.repost_ps, now):
            q.refused = 0 if c.naks_behind_rnr else 1
            syndrome = RNR_NAK | c.min_rnr_timer
        else:
            responder.accept(q, flight.count, np.int64(ends))
            data = not message
            if message and ends:
                arrived = flight.number
            if not message or flight.ask:
                syndrome = c.credits
    elif verdict == responder.DUPLICATE:
        data = not message
        if not message or flight.ask or c.acks_duplicates:
            syndrome = c.credits
            position = flight.position if data else q.expected - 1
    elif verdict == responder.REFUSE:
        syndrome = np.int64(NAK_SEQUENCE)
        position = q.expected
    if syndrome >= 0:
        owe(w, q, flight, syndrome, position, data)
    return arrived


@law
def answer(w, q, flight):
    """The next answer leaves."""
    c = w.control[0]
    n = q.answer_head
    a = w.answer[n]
    copy_work(flight, a)
    flight.position = a.position
    flight.count = 1
    flight.ask = 0
    flight.syndrome = a.syndrome
    flight.msn = a.msn
    flight.data = a.answer_end > a.position
    flight.first = a.first
    a.position += 1
    if a.position >= a.answer_end:
        q.answer_head = a.next
        a.next = c.answer_free
        c.answer_free = n
        c.answers -= 1
