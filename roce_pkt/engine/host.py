"""A host's adapter: a frame arrives for a queue pair; answers go out, senders react."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np
from numba import types

from roce_pkt.cc import dcqcn
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import notification, uc
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint import rc_responder as responder
from roce_pkt.engine import messages, reaction, recorder, rows, selective, waits
from roce_pkt.engine.list_records import RESPONDS
from roce_pkt.engine.memory import (
    HALF,
    I64,
    PACKET,
    U32,
    cc_of,
    cold,
    far,
    half_at,
    law,
    np_of,
    packet_at,
    rp_at,
    watch_at,
    work_at,
)
from roce_pkt.engine.pool import give, take
from roce_pkt.engine.port import enqueue
from roce_pkt.engine.queue_pair import note_rate, set_timer, set_turn
from roce_pkt.engine.records import (
    ACK,
    ACK_REQUEST,
    ATOMIC_REQUEST,
    ATOMIC_RESPONSE,
    CNP,
    DAMAGED,
    DATA,
    ECHO,
    FIRST,
    LAST,
    NAK,
    RC,
    READ_REQUEST,
    READ_RESPONSE,
    RNR_NAK,
    SEND,
    UC,
)
from roce_pkt.fabric.red import CE, NOT_ECT

NO_ANSWER = 255
ATOMIC_BYTES = 8


@law
def receive(w, p, x, t):
    """A frame has arrived whole at host port p."""
    f = packet_at(w, x)
    h = f.half
    q = half_at(w, h)
    kind = f.kind
    if kind <= ATOMIC_RESPONSE:
        if f.ecn == CE:
            q.ce += 1
            if w.notifies and notification.on_marked(np_of(w), watch_at(w, q.np), t):
                notify(w, p, h, q, t)
        if kind == READ_RESPONSE or kind == ATOMIC_RESPONSE:
            take_response(w, h, q, f, t)
            answer = NO_ANSWER
        else:
            answer = execute(w, h, q, f, t)
    else:
        answer = NO_ANSWER
        react(w, h, q, x, f, t)
    if kind != DATA and q.idle == requester.may_send(q):
        set_turn(w, h, q)
    if w.called or q.np_timed or (kind != DATA and kind != ACK):  # data and ACKs bring no timer forward
        set_timer(w, h, q)
    if answer == NO_ANSWER:
        give(w, x)
    else:
        reply(w, p, x, q, f, answer)


@law
def execute(w, h, r, f, t):
    """A request arrives at its responder.

    Returns:
        The kind of packet that answers it, or NO_ANSWER.
    """
    if r.service != RC:
        if r.service != UC or uc.receive(r, f.psn, f.flags & FIRST):
            r.received_bytes += f.payload
            if f.flags & LAST:
                r.msn = (r.msn + 1) & 0xFFFFFF
        return NO_ANSWER
    if w.selective:
        return execute_selective(w, h, r, f, t)
    verdict = responder.judge(r, f.psn)
    if verdict == responder.ACCEPT:
        begins_send = f.kind == DATA and r.verb == SEND and f.flags & FIRST
        if begins_send and not responder.take_receive(r, w.repost_ps, t):
            r.refused = 1
            return RNR_NAK
        responder.accept(r, np.int64(f.count), f.flags & LAST)
        r.received_bytes += f.payload
        if r.listed and f.flags & LAST:
            waits.arrived(w, r, t)
    if verdict == responder.REFUSE:
        if w.cnp_on_nack and notification.on_marked(np_of(w), watch_at(w, r.np), t):
            notify(w, r.port, h, r, t)
        if r.listed and messages.holds(w, r):
            return NO_ANSWER
        return NAK
    if verdict == responder.IGNORE:
        return NO_ANSWER
    if f.kind == READ_REQUEST:
        if r.listed:
            messages.read(w, r, f.psn, np.int64(f.count))
        else:
            responder.read(r, f.psn, np.int64(f.count))
        return NO_ANSWER
    if f.kind == ATOMIC_REQUEST:
        return ATOMIC_RESPONSE
    if r.listed and f.flags & ACK_REQUEST and messages.holds(w, r):
        return NO_ANSWER
    return ACK if f.flags & ACK_REQUEST else NO_ANSWER


@far(U32, HALF, PACKET, I64, returns=I64)
def execute_selective(w, h, r, f, t):
    """`execute` where packets that come early are kept."""
    before = r.msn
    answer = selective.execute(w, h, r, f)
    if r.listed:
        for _ in range((r.msn - before) & 0xFFFFFF):
            waits.arrived(w, r, t)
    if answer == NAK and w.cnp_on_nack and notification.on_marked(np_of(w), watch_at(w, r.np), t):
        notify(w, r.port, h, r, t)
    return answer


@law
def reply(w, p, x, r, f, kind):
    """The request's own packet becomes its answer."""
    f.kind = kind
    f.payload = 0
    if w.selective:
        f.payload = max(f.psn - r.expected, 0)  # a refusal tells what arrived
    if kind != ATOMIC_RESPONSE:
        # spec: IBTA 9.7.5.2.1: an ACK names the last packet accepted, a NAK the one expected
        f.psn = r.expected - 1 if kind == ACK else r.expected
    f.size = w.atomic_response_bytes if kind == ATOMIC_RESPONSE else w.ack_bytes
    f.count = r.msn
    f.half = r.peer
    f.hash = r.hash
    f.dst = r.dst
    f.class_ = w.ack_class
    f.flags = FIRST | LAST | ECHO if w.echoes and f.ecn == CE else FIRST | LAST
    f.ecn = NOT_ECT
    enqueue(w, p, x)


@far(U32, U32, HALF, I64)
def notify(w, p, h, r, t):
    """Send a congestion notification packet to the other half."""
    x = take(w)
    f = packet_at(w, x)
    f.kind = CNP
    f.psn = t  # a notification has no place in a stream: when it was sent, for whoever takes it
    f.size = w.cnp_bytes
    f.payload = 0
    f.count = 0
    f.half = r.peer
    f.hash = r.hash
    f.dst = r.dst
    f.class_ = w.cnp_class
    f.ecn = NOT_ECT
    f.flags = FIRST | LAST
    r.cnps += 1
    if w.trace:
        recorder.note(w, rows.NP_CNP, h, p, r.ce, t)
    enqueue(w, p, x)


@far(U32, HALF, PACKET, I64)
def take_response(w, h, q, f, t):
    """READ or ATOMIC data comes back to its requester."""
    if q.listed:
        returned(w, h, q, f, t)
    elif f.psn == q.una:
        q.received_bytes += f.payload if f.kind == READ_RESPONSE else ATOMIC_BYTES
        q.repeating = 0
        done(w, h, q, requester.acknowledged(q, f.psn + 1, t), t)
    elif f.psn > q.una and not q.repeating:
        # spec: IBTA 9.7.5.2.8: a gap in responses is an implied NAK: ask again from the first missing
        q.repeating = 1
        q.naks += 1
        requester.go_back(q, q.una)


@far(U32, HALF, PACKET, I64)
def returned(w, h, q, f, t):
    """The same for a requester whose messages differ: what lies before the data is complete too."""
    position = messages.owed_from(w, q)
    if f.psn < position or position < 0:
        return  # an answer to an earlier transmission
    if f.psn > position:
        messages.ask_again(q, position, t)
    else:
        q.received_bytes += f.payload if f.kind == READ_RESPONSE else ATOMIC_BYTES
        q.repeating = 0
        requester.acknowledged(q, f.psn + 1, t)
    waits.follow(w, h, q, t)


@far(U32, HALF, I64, I64, returns=types.boolean)
def answered(w, h, q, end, t):
    """An acknowledgement of everything before `end`, or a refusal, reaches a list's requester.

    Returns:
        False when data is missing that should have come before it; it is asked for again.
    """
    position = messages.owed_from(w, q)
    if position < 0 or position >= end:
        return True
    messages.ask_again(q, position, t)
    waits.follow(w, h, q, t)
    return False


@far(HALF, I64)
def answer_held(w, r, t):
    """What was owed behind READ responses leaves."""
    work = work_at(w, r.work)
    if not work.owed or work.owed_ps > t or r.snd < r.limit:
        return
    work.owed = 0
    work.owed_ps = NEVER_PS
    x = take(w)
    f = packet_at(w, x)
    f.ecn = NOT_ECT
    reply(w, r.port, x, r, f, NAK if r.refused else ACK)


@far(U32, HALF, U32, PACKET, I64)
def react(w, h, q, x, f, t):
    """An acknowledgement, a refusal or a notification reaches the sender."""
    kind = f.kind
    trace = w.trace
    if kind == DAMAGED:
        q.damaged += 1  # a wrong ICRC: dropped silently
        return
    if q.listed and kind != CNP and not answered(w, h, q, f.psn + 1 if kind == ACK else f.psn, t):
        return
    if kind == ACK:
        una = q.una
        done(w, h, q, requester.acknowledged(q, f.psn + 1, t), t)
        if w.selective:
            selective.acknowledged(w, h, q, una, t)
        if w.on_ack:
            happened = reaction.on_ack(w, h, q, x, f, una, t)
            if trace and happened:
                note_rate(w, h, q, happened, t)
            if w.repaces and happened and requester.may_send(q):
                set_turn(w, h, q)
    elif kind == CNP:
        notified(w, h, q, t - f.psn, t)
        happened = 0
        if w.reacts:
            happened = dcqcn.on_cnp(cc_of(w), rp_at(w, h), t)
        elif w.on_cnp:
            happened = reaction.on_cnp(w, h, q, t)
        if trace and happened:
            note_rate(w, h, q, happened, t)
    elif f.psn >= q.una:
        before = q.una
        done(w, h, q, requester.acknowledged(q, f.psn, t), t)
        q.naks += 1
        if w.selective:
            selective.refused(w, h, q, f, before, t)
        elif kind == NAK:
            requester.go_back(q, f.psn)
        else:
            requester.not_ready(q, f.psn, w.rnr_wait_ps, t)
            if q.failed:
                fail(w, h, q, t)
        if trace:
            recorder.note(w, rows.RC_NAK if kind == NAK else rows.RC_RNR, h, q.port, f.psn, t)
    if q.listed and kind != CNP:
        waits.follow(w, h, q, t)


@cold
def notified(w, h, q, delay_ps, t):
    """A notification has reached its sender: account how long it took."""
    q.cnps_taken += 1
    q.cnp_delay_ps += delay_ps
    q.cnp_delay_max_ps = max(q.cnp_delay_max_ps, delay_ps)
    if w.trace:
        recorder.note(w, rows.CNP_ARRIVED, h, q.port, delay_ps, t)


@cold
def done(w, h, q, messages, t):
    """Messages are complete."""
    if messages == 0:
        return
    if q.una >= q.limit:
        q.ended_ps = t
    if w.trace:
        recorder.note(w, rows.RC_DONE, h, q.port, q.messages, t)


@cold
def fail(w, h, q, t):
    """A queue pair has used up its retries."""
    if w.trace:
        recorder.note(w, rows.RC_FAILED, h, q.port, q.una, t)


@far(U32, I64, returns=U32)
def timers(w, h, t):
    """A timer of half h is due."""
    q = half_at(w, h)
    trace = w.trace
    q.timer_ps = -1
    happened = 0
    if w.reacts:
        happened = dcqcn.on_timer(cc_of(w), rp_at(w, h), t)
    elif w.on_timer:
        happened = reaction.on_timer(w, h, q, t)
    if trace and happened & ~dcqcn.ALPHA:
        note_rate(w, h, q, happened, t)
    happened = requester.on_timer(q, t)
    if happened == requester.TIMER_RETRY:
        q.timeouts += 1
        q.repeating = 0
        if w.selective:
            selective.timed_out(w, h, q)
        if trace:
            recorder.note(w, rows.RC_TIMEOUT, h, q.port, q.una, t)
    elif happened == requester.TIMER_FAILED:
        fail(w, h, q, t)
    if q.listed:
        if q.listed == RESPONDS:
            answer_held(w, q, t)
        waits.follow(w, h, q, t)
    if q.np_timed and notification.on_timer(np_of(w), watch_at(w, q.np), t):
        notify(w, q.port, h, q, t)
    if q.idle == requester.may_send(q):
        set_turn(w, h, q)
    set_timer(w, h, q)
    return q.port
