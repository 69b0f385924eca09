"""Faults done to frames as they leave their host, by the rules of the scenario.

Looked at only where a host has rules. Which frames a rule hits is `edit.choose`, what is done to
several rules' frames goes in the order of `edit.impair`. A damaged frame travels as kind DAMAGED:
its receiver counts it and drops it; its octets are made where it is recorded.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np
from numba import types

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.edit.choose import chooses, fits
from roce_pkt.engine import fault_records as fault
from roce_pkt.engine import recorder
from roce_pkt.engine.frame_sizes import FCS_BYTES
from roce_pkt.engine.memory import (
    I64,
    PORT,
    U32,
    cold,
    far,
    half_at,
    headers_at,
    hit_at,
    message_at,
    opcode_at,
    packet_at,
    rule_at,
    seen_at,
    set_telemetry,
    telemetry_at,
    unchecked_at,
    work_at,
)
from roce_pkt.engine.pool import give, line_up, take
from roce_pkt.engine.records import (
    ATOMIC_REQUEST,
    ATOMIC_RESPONSE,
    CNP,
    DAMAGED,
    DATA,
    FAULTS_FULL,
    FIRST,
    LAST,
    PASSED,
    PAUSE,
    READ_REQUEST,
    READ_RESPONSE,
    STRUCK,
)
from roce_pkt.engine.tree import arm
from roce_pkt.fabric.red import CE
from roce_pkt.scenario.dice import throw

KINDS_SHIFT, PLACES_SHIFT = 4, 2
"""The table of opcodes: manner, kind, FIRST and LAST."""
UNCHECKED_BITS = 1024
"""Bits of a frame, from its first, that may lie outside every check."""


@cold
def message_of(w, r, position):
    """Index of the message of a list that a position belongs to."""
    work = work_at(w, r.work)
    low, high = work.first, work.end
    while high - low > 1:
        middle = np.uint32((low + high) >> 1)
        if message_at(w, middle).start <= position:
            low = middle
        else:
            high = middle
    return low


@cold
def times_sent(w, half, position, space):
    """How often a packet has been sent, this time included."""
    key = ((position * 4 + space) << 20 | np.int64(half)) + 1
    place = np.uint32((key * 0x9E3779B1 >> 12) & np.int64(w.seen_slots - np.uint32(1)))
    while seen_at(w, place).key != 0 and seen_at(w, place).key != key:
        place = np.uint32((place + np.uint32(1)) & (w.seen_slots - np.uint32(1)))
    s = seen_at(w, place)
    if s.key == 0:
        s.key = key
        w.seen_used = np.uint32(w.seen_used + np.uint32(1))
        if 2 * w.seen_used > w.seen_slots:
            w.stop = FAULTS_FULL
    s.times += 1
    return s.times


@cold
def note(w, f, i, opcode, bit, t):
    """Write down that rule i was done to a frame."""
    if w.hits + np.uint32(1) >= w.hit_limit:
        w.stop = FAULTS_FULL
        return
    w.hits = np.uint32(w.hits + np.uint32(1))
    h = hit_at(w, w.hits)
    h.time_ps = t
    h.psn = 0 if f.kind == CNP else f.psn
    h.bit = bit
    h.half = f.half
    h.before = f.hit if f.flags & STRUCK else np.uint32(0)
    h.count = f.count
    h.size = f.size
    h.rule = i
    h.opcode = opcode
    h.kind = hit_at(w, h.before).kind if f.kind == DAMAGED else f.kind
    f.hit = w.hits
    f.flags |= STRUCK


@cold
def damage(w, f, i, opcode, t):
    """Corrupt or truncate, where the frame has what the rule asks for."""
    rule = rule_at(w, i)
    if rule.do == fault.TRUNCATE:
        if rule.kept_bytes >= np.int64(f.size) - FCS_BYTES:
            return
        note(w, f, i, opcode, -1, t)
        f.size = max(rule.kept_bytes + FCS_BYTES, np.int64(w.min_bytes))
        f.kind = DAMAGED
        return
    bit = np.int64(-1)
    if rule.what == fault.FIELD:
        if rule.harmless < 0:
            return  # no frame has it
        if rule.headers and np.int64(headers_at(w, np.uint32(opcode))) & rule.headers == 0:
            return
        note(w, f, i, opcode, bit, t)
        if not rule.harmless:
            f.kind = DAMAGED
        return
    bits = (np.int64(f.size) - FCS_BYTES) * 8
    if rule.what == fault.PAYLOAD:
        if (f.kind != DATA and f.kind != READ_RESPONSE) or f.payload == 0:
            return
        pads = -np.int64(f.payload) & 3
        bit = bits - (np.int64(f.payload) + pads + 4) * 8 + throw(rule) % (np.int64(f.payload) * 8)
    elif rule.bit >= 0:
        bit = rule.bit
        if bit >= bits:
            return
    else:
        bit = throw(rule) % bits
    note(w, f, i, opcode, bit, t)
    if bit >= UNCHECKED_BITS or unchecked_at(w, np.uint32(bit)) == 0:
        f.kind = DAMAGED


@cold
def copy_of(w, x):
    """A second packet, equal to x."""
    y = take(w)
    f, g = packet_at(w, x), packet_at(w, y)
    g.psn = f.psn
    g.half = f.half
    g.hash = f.hash
    g.count = f.count
    g.dst = f.dst
    g.size = f.size
    g.payload = f.payload
    g.kind = f.kind
    g.class_ = f.class_
    g.ecn = f.ecn
    g.flags = f.flags
    g.hit = f.hit
    words = w.telemetry_words
    for k in range(words):
        word = telemetry_at(w, np.uint32(np.uint32(x) * words + np.uint32(k)))
        set_telemetry(w, np.uint32(np.uint32(y) * words + np.uint32(k)), word)
    return y


@cold
def send_next(w, d, x):
    """Let a packet leave a port before all others, its faults decided."""
    packet_at(w, x).flags |= PASSED
    line_up(w, d, x)


@cold
def hold(w, d, x, rule, t):
    """Keep a packet back: until other packets of its flow have passed, or until a time."""
    f = packet_at(w, x)
    timed = rule.do == fault.DELAY or rule.do == fault.DUPLICATE
    f.group = np.uint32(0) if timed else np.uint32(rule.distance)
    f.time_ps = t + rule.time_ps
    # the list is in the order in which packets came
    f.next = np.uint32(0)
    if d.held == np.uint32(0):
        d.held = x
    else:
        last = d.held
        while packet_at(w, last).next != np.uint32(0):
            last = packet_at(w, last).next
        packet_at(w, last).next = x
    if timed and f.time_ps < d.pause_due_ps:
        d.pause_due_ps = f.time_ps
        arm(w, d.base, d.pause_leaf, f.time_ps)


@far(PORT, U32, I64, I64, returns=I64)
def release(w, d, qpn, dst, t):
    """A packet of a flow passes (or none: `dst` is negative): those that waited for it, or for now, leave.

    Returns:
        When the next one leaves by its time.
    """
    due = np.int64(NEVER_PS)
    before, x = np.uint32(0), d.held
    while x != np.uint32(0):
        f = packet_at(w, x)
        following = f.next
        ready = f.group == 0 and f.time_ps <= t
        if f.group != 0 and np.int64(f.dst) == dst and half_at(w, f.half).qpn == qpn:
            f.group = np.uint32(f.group - np.uint32(1))
            ready = f.group == 0
        if ready:
            if before == np.uint32(0):
                d.held = following
            else:
                packet_at(w, before).next = following
            send_next(w, d, x)
        else:
            if f.group == 0:
                due = min(due, f.time_ps)
            before = x
        x = following
    return due


@cold
def chosen(w, d, f):
    """The rules that hit a frame, as bits, and its opcode."""
    r = half_at(w, f.half)
    manner, message = np.int64(r.manner), np.int64(0)
    request = f.kind == DATA or f.kind == READ_REQUEST or f.kind == ATOMIC_REQUEST
    if request:
        message = f.psn // r.message_packets + 1
        if r.listed:
            number = message_of(w, r, f.psn)
            message = np.int64(number) - work_at(w, r.work).first + 1
            manner = np.int64(message_at(w, number).manner)
    place = ((manner << KINDS_SHIFT | np.int64(f.kind)) << PLACES_SHIFT) | np.int64(f.flags & (FIRST | LAST))
    opcode = np.int64(opcode_at(w, np.uint32(place)))
    psn = np.int64(0)
    if f.kind != CNP:
        psn = (f.psn + r.start_psn) & 0xFFFFFF
    src, dst, qpn = np.int64(d.node), np.int64(f.dst), np.int64(r.qpn)
    found, sent = np.int64(0), np.int64(0)
    for i in range(w.rules):
        rule = rule_at(w, np.uint32(i))
        if not fits(rule, src, dst, qpn, opcode, psn, message, rule.occurrence):
            continue
        if rule.occurrence != 0:
            if sent == 0:
                space = np.int64(2)
                if request:
                    space = np.int64(0)
                elif f.kind == READ_RESPONSE or f.kind == ATOMIC_RESPONSE:
                    space = np.int64(1)
                sent = times_sent(w, f.half, f.psn, space)
            if sent != rule.occurrence:
                continue
        if chooses(rule):
            found |= np.int64(1) << np.int64(i)
    return found, opcode


@far(U32, PORT, U32, I64, returns=types.boolean)
def strike(w, p, d, x, t):
    """Do what rules say to a frame that leaves its host now.

    Returns:
        True when it does not go on the wire now.
    """
    f = packet_at(w, x)
    if f.kind == PAUSE or f.flags & PASSED:
        return False
    found, opcode = chosen(w, d, f)
    place, copies = np.int64(-1), np.int64(0)
    for k in range(w.rules):
        i = np.uint32(k)
        rule = rule_at(w, i)
        if found >> np.int64(k) & 1 == 0:
            continue
        if rule.do == fault.DROP:
            note(w, f, i, opcode, -1, t)
            if rule.seen and d.tap:
                recorder.record(w, p, x, 1, t)
            if f.kind == CNP:
                half_at(w, f.half).cnps_lost += 1
            give(w, x)
            return True
        if rule.do == fault.REORDER or rule.do == fault.DELAY:
            if place < 0:
                place = np.int64(k)
        elif rule.do == fault.DUPLICATE or rule.do == fault.REPLAY:
            copies |= np.int64(1) << np.int64(k)
        elif rule.do == fault.CE:
            if f.ecn != CE:
                note(w, f, i, opcode, -1, t)
                f.ecn = CE
        else:
            damage(w, f, i, opcode, t)
    f.flags |= PASSED
    for k in range(w.rules):
        if copies >> np.int64(k) & 1:
            rule = rule_at(w, np.uint32(k))
            y = copy_of(w, x)
            note(w, packet_at(w, y), np.uint32(k), opcode, -1, t)
            if rule.do == fault.DUPLICATE and rule.time_ps == 0:
                send_next(w, d, y)
            else:
                hold(w, d, y, rule, t)
    if place < 0:
        if d.held != np.uint32(0):
            release(w, d, half_at(w, f.half).qpn, np.int64(f.dst), t)
        return False
    note(w, f, np.uint32(place), opcode, -1, t)
    hold(w, d, x, rule_at(w, np.uint32(place)), t)
    d.free_ps = t  # it has not left: the line is free for others
    return True
