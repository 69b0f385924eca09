"""A host's queue pairs: whose turn it is, the packet they send, their timers."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.cc import dcqcn
from roce_pkt.endpoint import notification
from roce_pkt.endpoint.pacing import next_start_ps
from roce_pkt.endpoint.rc_requester import may_send, next_timer_ps, sent
from roce_pkt.endpoint.rc_responder import AFRESH
from roce_pkt.endpoint.rc_selective import sent_again
from roce_pkt.engine import messages, reaction, recorder, rows
from roce_pkt.engine.memory import (
    cc_of,
    cold,
    half_at,
    law,
    line_at,
    node_at,
    np_of,
    packet_at,
    port_at,
    rp_at,
    selective_at,
    turns_at,
    watch_at,
)
from roce_pkt.engine.pool import take
from roce_pkt.engine.prefetch import sender_ahead
from roce_pkt.engine.records import (
    ACK_REQUEST,
    AGAIN,
    ATOMIC_REQUEST,
    FAR_PS,
    FIRST,
    LAST,
    RC,
    READ_REQUEST,
    SOURCE_MASK,
)
from roce_pkt.engine.tree import set_timer_leaf, set_turn_key
from roce_pkt.fabric.red import ECT0

FCS_BYTES = 4


@law
def set_turn(w, h, q):
    """Tell the class's tree when this half may send."""
    ready = may_send(q)
    k = line_at(w, q.cell)
    local = np.uint32(h - node_at(w, port_at(w, q.port).node).first_half)
    q.idle = not ready
    set_turn_key(w, k.tree, q.tree_leaf, min(q.avail_ps, FAR_PS) if ready else FAR_PS, local)


@law
def set_timer(w, h, q):
    """Arm the half's leaf for the earliest of its timers."""
    at = min(next_timer_ps(q), reaction.next_timer_ps(w, h))
    if q.np_timed:
        at = min(at, notification.next_timer_ps(np_of(w), watch_at(w, q.np)))
    if q.listed:
        at = min(at, messages.due_ps(w, q))
    if at != q.timer_ps:
        q.timer_ps = at
        set_timer_leaf(w, node_at(w, port_at(w, q.port).node), q.timer_leaf, at)


@law
def compose(w, d, k, t):
    """The next packet of the queue pair whose turn it is in a class."""
    local = turns_at(w, np.uint32(k.tree + np.uint32(1))) & SOURCE_MASK
    h = np.uint32(node_at(w, d.node).first_half + np.uint32(local))
    q = half_at(w, h)
    x = take(w)
    f = packet_at(w, x)
    flags = 0
    count = np.int64(1)
    payload = np.int64(0)
    size = np.int64(q.head_bytes)
    f.psn = q.snd
    if q.sends == READ_REQUEST:
        count = q.message_packets - q.offset
        flags = FIRST | LAST
        size = np.int64(w.read_request_bytes)
    elif q.sends == ATOMIC_REQUEST:
        flags = FIRST | LAST
        size = np.int64(w.atomic_request_bytes)
    else:
        payload = np.int64(w.mtu_bytes)
        if q.offset == 0:
            flags |= FIRST
            size += q.first_bytes
        q.since_ack += 1
        if q.offset + 1 == q.message_packets:
            flags |= LAST
            payload = np.int64(q.last_payload)
            size += q.last_bytes
        if flags & LAST or q.since_ack >= w.ack_every:
            if q.since_ack > AFRESH:
                flags |= FIRST
                size += 0 if flags & LAST else q.first_bytes
            flags |= ACK_REQUEST
            q.since_ack = 0
        size += (payload + 3) & ~3
    armed = q.retry_at_ps
    if sent(q, count, t):
        flags |= AGAIN
        q.again += 1
        if w.selective:
            sent_again(q, selective_at(w, h))
        if w.trace:
            recorder.note(w, rows.RC_RETRANSMIT, h, q.port, f.psn, t)
    f.size = max(size, w.min_bytes)
    f.payload = payload
    f.half = q.peer
    f.hash = q.hash
    f.dst = q.dst
    f.kind = q.sends
    f.class_ = q.class_
    f.ecn = ECT0
    f.flags = flags
    f.count = count
    q.sent += 1
    if q.service != RC and q.snd >= q.limit and not q.listed:
        q.ended_ps = t  # nobody acknowledges: done when sent
    w.data_sent += 1
    happened = 0
    if w.reacts:
        happened = dcqcn.on_bytes(cc_of(w), rp_at(w, h), np.int64(f.size) - FCS_BYTES, t)
        if happened and w.trace:
            note_rate(w, h, q, happened, t)
    if w.telemetry_words:
        reaction.leave_sender(w, q, x, f.size, t)
    q.avail_ps = next_start_ps(q, rp_at(w, h).rate_bps, np.int64(f.size) + w.gap_bytes, w.quantum_ps, t)
    if q.listed:
        happened |= messages.sent(w, h, q, t)
    set_turn(w, h, q)
    following = turns_at(w, np.uint32(k.tree + np.uint32(1))) & SOURCE_MASK
    sender_ahead(w, np.uint32(node_at(w, d.node).first_half + np.uint32(following)))
    if happened or armed != q.retry_at_ps:
        set_timer(w, h, q)
    return x


@cold
def note_rate(w, h, q, happened, t):
    """Write what the reaction point did, cut before increase before alpha."""
    stage = dcqcn.stage(rp_at(w, h)) if w.reacts else 0
    if happened & dcqcn.CUT:
        recorder.note(w, rows.RP_CUT, h, q.port, stage, t)
    if happened & dcqcn.INCREASE:
        recorder.note(w, rows.RP_INCREASE, h, q.port, stage, t)
    if happened == dcqcn.ALPHA:
        recorder.note(w, rows.RP_ALPHA, h, q.port, stage, t)
