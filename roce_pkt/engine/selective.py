"""Selective repeat in the engine: what replaces going back where `w.selective` says so."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

from roce_pkt.endpoint import rc_responder as responder
from roce_pkt.endpoint import rc_selective as selective
from roce_pkt.engine.memory import HALF, I64, PACKET, U32, cold, far, selective_at
from roce_pkt.engine.queue_pair import set_timer
from roce_pkt.engine.records import ACK, ACK_REQUEST, LAST, NAK

NO_ANSWER = 255


@cold
def execute(w, h, r, f):
    """A SEND or WRITE packet arrives at its responder.

    Returns:
        The kind of packet that answers it, or NO_ANSWER.
    """
    s = selective_at(w, h)
    verdict = selective.judge(r, s, f.psn)
    if verdict == responder.IGNORE:
        return NO_ANSWER
    wanted = f.flags & ACK_REQUEST
    if verdict == selective.KEEP:
        selective.keep(s, f.psn, f.flags & LAST)
        r.received_bytes += f.payload
        return NAK
    if verdict == responder.ACCEPT:
        r.received_bytes += f.payload
        if selective.deliver(r, s, f.flags & LAST) > 1:
            return ACK  # a gap is closed: the sender goes on
    return ACK if wanted else NO_ANSWER


@far(U32, HALF, I64, I64)
def acknowledged(w, h, q, before, t):
    """An acknowledgement has moved a sender on from position `before`."""
    s = selective_at(w, h)
    selective.acknowledged(q, s, before)
    selective.set_timeout(q, w.rto_low_ps, w.rto_high_ps, t)
    set_timer(w, h, q)


@far(U32, HALF, PACKET, I64, I64)
def refused(w, h, q, f, before, t):
    """A refusal tells what arrived instead of what was expected."""
    s = selective_at(w, h)
    selective.acknowledged(q, s, before)
    selective.refused(q, s, f.psn + f.payload, w.reordering)
    selective.set_timeout(q, w.rto_low_ps, w.rto_high_ps, t)


@far(U32, HALF)
def timed_out(w, h, q):
    """A retry timer has run out."""
    selective.timed_out(q, selective_at(w, h))
