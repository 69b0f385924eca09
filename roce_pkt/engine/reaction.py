"""A sender's law when it is called by address: what it is told, and what follows from its answer.

Telemetry of a packet is words beside it: when it was sent, how many switches it went through, then
for each a word as HPCC lays it out: speed code 4 bits, time 24, octets sent 20, queue 16.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.cc import dcqcn
from roce_pkt.cc.feedback import (
    QUEUE_BITS,
    QUEUE_MASK,
    QUEUE_UNIT_BYTES,
    SENT_BITS,
    SENT_MASK,
    SENT_UNIT_BYTES,
    SPEEDS_BPS,
    TIME_BITS,
    TIME_MASK,
    TIME_UNIT_PS,
)
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint.pacing import next_start_ps
from roce_pkt.engine.by_address import DONE, call_ack_law, call_law, copy_octets
from roce_pkt.engine.memory import (
    HALF,
    I64,
    PACKET,
    PORT,
    U32,
    ack_of,
    cc_of,
    cold,
    far,
    head_at,
    law,
    rp_at,
    set_telemetry,
    telemetry_at,
)
from roce_pkt.engine.records import DATA, ECHO, LAW_FAILED, OWN

SENT_AT, HOPS, FIRST_HOP = 0, 1, 2
"""Words of a packet's telemetry."""
ON_ACK, ON_CNP, ON_TIMER = range(3)
SENT_SHIFT, TIME_SHIFT, SPEED_SHIFT = QUEUE_BITS, QUEUE_BITS + SENT_BITS, QUEUE_BITS + SENT_BITS + TIME_BITS


@law
def next_timer_ps(w, h):
    """When the law of half h must be called."""
    if w.called:
        return head_at(w, h).timer_ps
    return dcqcn.next_timer_ps(cc_of(w), rp_at(w, h))


@law
def place_of(w, x):
    """First word of a packet's telemetry."""
    return np.uint32(np.uint32(x) * np.uint32(w.telemetry_words))


@far(HALF, U32, I64, I64)
def leave_sender(w, q, x, size, t):
    """A packet is sent by its host: its telemetry begins."""
    place = place_of(w, x)
    set_telemetry(w, np.uint32(place + np.uint32(SENT_AT)), np.uint64(t))
    set_telemetry(w, np.uint32(place + np.uint32(HOPS)), np.uint64(0))
    q.paced_bytes = size


@far(PORT, U32, PACKET, I64)
def leave_switch(w, d, x, f, t):
    """A packet leaves a switch by port d: data gets the port's record."""
    if f.kind == DATA:
        place = place_of(w, x)
        hops = telemetry_at(w, np.uint32(place + np.uint32(HOPS)))
        set_telemetry(w, np.uint32(place + np.uint32(HOPS)), np.uint64(hops + np.uint64(1)))
        if np.int64(hops) + FIRST_HOP < np.int64(w.telemetry_words):
            scale = w.int_scale
            queue = min(d.queued_bytes // (QUEUE_UNIT_BYTES * scale), QUEUE_MASK)
            sent = (d.sent_bytes // (SENT_UNIT_BYTES * scale)) & SENT_MASK
            time = (t // TIME_UNIT_PS) & TIME_MASK
            word = np.int64(d.speed) << SPEED_SHIFT | time << TIME_SHIFT | sent << SENT_SHIFT | queue
            set_telemetry(w, np.uint32(place + np.uint32(FIRST_HOP) + np.uint32(hops)), np.uint64(word))


@far(U32, HALF, U32, PACKET, I64, I64, returns=I64)
def on_ack(w, h, q, x, f, una, t):
    """An acknowledgement reaches the law of half h; `una` is what was acknowledged before."""
    a = ack_of(w)
    end = f.psn + 1
    a.end = end
    a.next = q.snd
    a.mtu_bytes = w.mtu_bytes
    a.acked_bytes = max(end - una, 0) * w.mtu_bytes
    a.marked = 1 if f.flags & ECHO else 0
    place = place_of(w, x)
    a.rtt_ps = t - np.int64(telemetry_at(w, np.uint32(place + np.uint32(SENT_AT))))
    a.hops = np.int64(telemetry_at(w, np.uint32(place + np.uint32(HOPS))))
    told = min(a.hops, np.int64(w.telemetry_words) - FIRST_HOP)
    for i in range(told):
        word = np.int64(telemetry_at(w, np.uint32(place + np.uint32(FIRST_HOP + i))))
        a.speed_bps[i] = SPEEDS_BPS[(word >> SPEED_SHIFT) & 15]
        a.time[i] = (word >> TIME_SHIFT) & TIME_MASK
        a.sent[i] = (word >> SENT_SHIFT) & SENT_MASK
        a.queue[i] = word & QUEUE_MASK
    before = head_at(w, h).rate_bps
    keep(w, h)
    happened = call_ack_law(w.on_ack, w.cc_array, state_of(w, h), w.ack_array, t)
    return settle(w, h, q, happened, before, np.uint32(ON_ACK), t)


@far(U32, HALF, I64, returns=I64)
def on_cnp(w, h, q, t):
    """A notification reaches the law of half h."""
    before = head_at(w, h).rate_bps
    keep(w, h)
    happened = call_law(w.on_cnp, w.cc_array, state_of(w, h), t)
    return settle(w, h, q, happened, before, np.uint32(ON_CNP), t)


@far(U32, HALF, I64, returns=I64)
def on_timer(w, h, q, t):
    """The timer of the law of half h may be due."""
    s = head_at(w, h)
    if s.timer_ps > t:
        return 0
    s.timer_ps = NEVER_PS
    before = s.rate_bps
    keep(w, h)
    happened = call_law(w.on_timer, w.cc_array, state_of(w, h), t)
    return settle(w, h, q, happened, before, np.uint32(ON_TIMER), t)


@law
def state_of(w, h):
    """Address of the state of half h."""
    return np.uint64(w.rp_array + np.uint64(h) * w.rp_bytes)


@law
def keep(w, h):
    """Before a call of a user's law, keep its state: should it fail, it is run again in plain Python."""
    if w.called == OWN:
        copy_octets(w.before_array, state_of(w, h), w.rp_bytes)


@cold
def settle(w, h, q, happened, before, call, t):
    """Take over the law's window and rate; stop the run when a user's law failed."""
    if w.called == OWN:
        if happened & DONE == 0:
            w.failed_call = call
            w.failed_ps = t
            w.stop = LAW_FAILED
            return 0
        happened &= ~DONE
    s = head_at(w, h)
    packets = (s.window_bytes + w.mtu_bytes - 1) / w.mtu_bytes
    q.window = np.int64(min(max(packets, 1.0), np.float64(q.window_most)))
    if w.repaces and s.rate_bps != before:
        # spec: HPCC simulator: a new rate also moves the packet that already waits for its turn
        size = np.int64(q.paced_bytes) + w.gap_bytes
        old = next_start_ps(q, before, size, w.quantum_ps, t)
        q.avail_ps += next_start_ps(q, s.rate_bps, size, w.quantum_ps, t) - old
    return happened
