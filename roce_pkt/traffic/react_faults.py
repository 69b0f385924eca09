"""What rules do to frames between their sender and the place where they are recorded, when both sides react.

Octets are not changed here: a frame whose octets a rule changes makes the loop come back first.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type"
# ruff: noqa: ANN001, ANN201, ANN202, PLR1714 - compiled code compares; it does not search tuples

from __future__ import annotations

import numpy as np

from roce_pkt.edit.choose import chooses, fits
from roce_pkt.edit.pick import REQUEST, SPACE, STARTS
from roce_pkt.jit import fast_law as law
from roce_pkt.psn import HALF, MASK
from roce_pkt.scenario.fault import KINDS
from roce_pkt.scenario.pace import L1_BYTES
from roce_pkt.traffic import react_state as st
from roce_pkt.traffic.react_events import at
from roce_pkt.traffic.rows import REQUESTER
from roce_pkt.units import PS_PER_NS, PS_PER_S

DROP, DUPLICATE, REORDER, DELAY, REPLAY = (
    KINDS.index(kind) for kind in ("drop", "duplicate", "reorder", "delay", "replay")
)
CHANGES = np.array([kind in ("ce", "corrupt", "truncate") for kind in KINDS], np.uint8)
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)
NOT_IT = -2
"""A number of a message that no rule names."""


@law
def transmission(w, key):
    """How often a packet was sent, this time included."""
    mask = w.seen_key.size - 1
    place = ((key + 1) * _MIX >> 20) & mask
    while w.seen_key[place] != 0 and w.seen_key[place] != key + 1:
        place = (place + 1) & mask
    if w.seen_key[place] == 0:
        w.seen_key[place] = key + 1
        w.control[0].seen += 1
    w.seen[place] += 1
    return w.seen[place]


@law
def note_message(w, n, opcode, psn):
    """A request of flow `n` is sent; its position, which messages are found by."""
    f = w.flow[n]
    if not f.known:
        f.known = 1
        f.psn = psn
        f.messages = 1
        for k in range(w.rule.size):
            w.begins[n, k, 0] = w.begins[n, k, 1] = -1
            if w.rule[k].message == 1:
                w.begins[n, k, 0] = 0
    position = f.at + ((psn - f.psn + HALF) & MASK) - HALF
    if STARTS[opcode] and position > f.begun:
        f.begun = position
        f.at = position
        f.psn = psn
        f.messages += 1
        for k in range(w.rule.size):
            if w.rule[k].message == f.messages:
                w.begins[n, k, 0] = position
            elif w.rule[k].message + 1 == f.messages:
                w.begins[n, k, 1] = position
    return position


@law
def pick(w, flight):
    """Let every rule look at a frame; whether one hits it, and whether one that hits changes octets."""
    c = w.control[0]
    n = w.of_sender[flight.sender, 0]
    opcode = flight.opcode
    times = np.int64(0)
    if c.count_packets:
        times = transmission(w, n << 26 | SPACE[opcode] << 24 | flight.psn)
    position = np.int64(0)
    if c.count_messages and REQUEST[opcode]:
        position = note_message(w, n, opcode, flight.psn)
    hit = False
    changed = False
    for k in range(w.rule.size):
        rule = w.rule[k]
        message = np.int64(0)
        if c.count_messages and REQUEST[opcode]:
            first = w.begins[n, k, 0]
            behind = w.begins[n, k, 1]
            inside = first >= 0 and position >= first and (behind < 0 or position < behind)
            message = rule.message if inside else np.int64(NOT_IT)
        rule.hit = fits(
            rule, w.of_sender[flight.sender, 1], w.of_sender[flight.sender, 2], w.of_sender[flight.sender, 3],
            opcode, flight.psn, message, times,
        ) and chooses(rule)  # fmt: skip
        hit = hit or rule.hit != 0
    for k in range(w.rule.size):
        if w.rule[k].hit:
            if w.rule[k].kind == DROP:
                break
            changed = changed or CHANGES[w.rule[k].kind] != 0
    return hit, changed


@law
def tell(w, time_ps, flight, what, rule):
    """A line of the log."""
    c = w.control[0]
    line = w.log[c.logs]
    c.logs += 1
    line.event = c.event
    line.time_ps = time_ps
    line.sent = flight.sent
    line.what = what
    line.rule = rule
    line.sender = flight.sender
    line.opcode = flight.opcode
    line.psn = flight.psn
    line.touched = flight.touched


@law
def release_flight(w, slot):
    """One use of a flight is over."""
    c = w.control[0]
    flight = w.flight[slot]
    flight.uses -= 1
    if flight.uses == 0:
        flight.next = c.flight_free
        c.flight_free = slot
        c.flights -= 1


@law
def leave(w, slot, what, rule, now):
    """A frame passes the place where it is recorded, and goes on to its receiver."""
    flight = w.flight[slot]
    tell(w, now, flight, what, rule)
    if what == st.LOST or not flight.intact:
        return
    half = w.half[flight.sender // 2]
    host = w.host[half.src if flight.sender % 2 == REQUESTER else half.dst]
    bits_ps = (flight.octets + L1_BYTES) * 8 * PS_PER_S
    flight.uses += 1
    at(w, now + bits_ps // host.bps + w.control[0].delay_ps, st.ARRIVE, slot)


@law
def _before(one, other):
    return one.due_ns < other.due_ns or (one.due_ns == other.due_ns and one.tie < other.tie)


@law
def hold_by_time(w, slot, rule, copy):
    """A frame, or a copy of it, leaves at a time."""
    c = w.control[0]
    place = c.timed
    c.timed += 1
    due = w.flight[slot].time_ns + w.rule[rule].time_ns
    while place > 0 and w.timed[(place - 1) >> 1].due_ns > due:
        w.timed[place] = w.timed[(place - 1) >> 1]
        place = (place - 1) >> 1
    t = w.timed[place]
    t.due_ns = due
    t.tie = c.held_ties
    t.slot = slot
    t.rule = rule
    t.copy = copy


@law
def late(w, now_ns, now):
    """What leaves by itself up to a time."""
    c = w.control[0]
    while c.timed and w.timed[0].due_ns <= now_ns:
        slot = w.timed[0].slot
        rule = w.timed[0].rule
        what = st.COPY if w.timed[0].copy else st.OUT
        c.timed -= 1
        last = w.timed[c.timed]
        place = 0
        while 2 * place + 1 < c.timed:
            below = 2 * place + 1
            if below + 1 < c.timed and _before(w.timed[below + 1], w.timed[below]):
                below += 1
            if _before(last, w.timed[below]):
                break
            w.timed[place] = w.timed[below]
            place = below
        w.timed[place] = last
        leave(w, slot, np.int64(what), rule, now)
        release_flight(w, slot)


@law
def hold_behind(w, slot, rule, copy, n):
    """A frame, or a copy of it, leaves when others of its flow have gone by."""
    c = w.control[0]
    place = c.queue_free
    h = w.queued[place]
    c.queue_free = h.next
    c.queued += 1
    h.slot = slot
    h.rule = rule
    h.copy = copy
    h.tie = c.held_ties
    h.left = w.rule[rule].distance
    h.next = st.NOBODY
    if w.flow[n].first == st.NOBODY:
        w.flow[n].first = place
    else:
        w.queued[w.flow[n].last].next = place
    w.flow[n].last = place


@law
def pass_by(w, n, now):
    """A frame of the flow has gone by; those that waited for it leave behind it."""
    c = w.control[0]
    f = w.flow[n]
    place = f.first
    before = np.int64(st.NOBODY)
    while place != st.NOBODY:
        h = w.queued[place]
        after = h.next
        h.left -= 1
        if h.left <= 0:
            if before == st.NOBODY:
                f.first = after
            else:
                w.queued[before].next = after
            if after == st.NOBODY:
                f.last = before
            h.next = c.queue_free
            c.queue_free = place
            c.queued -= 1
            leave(w, h.slot, np.int64(st.COPY if h.copy else st.OUT), h.rule, now)
            release_flight(w, h.slot)
        else:
            before = place
        place = after


@law
def hold(w, slot, rule, copy, n):
    """A frame, or a copy of it, waits."""
    w.control[0].held_ties += 1
    w.flight[slot].uses += 1
    if w.rule[rule].kind == DELAY or w.rule[rule].kind == DUPLICATE:
        hold_by_time(w, slot, rule, copy)
    else:
        hold_behind(w, slot, rule, copy, n)


@law
def judge(w, slot, now):
    """Do to a frame what the rules that hit it say, octets excepted."""
    flight = w.flight[slot]
    n = w.of_sender[flight.sender, 0]
    place = dropped = np.int64(-1)
    for k in range(w.rule.size):
        rule = w.rule[k]
        if rule.hit and dropped < 0:
            if rule.kind == DROP:
                dropped = np.int64(k)
            elif (rule.kind == REORDER or rule.kind == DELAY) and place < 0:
                place = np.int64(k)
    if dropped >= 0 and not w.rule[dropped].seen:
        tell(w, now, flight, st.DROPPED, dropped)
        return
    gone = bool(dropped >= 0 or place < 0)
    if gone:
        leave(w, slot, np.int64(st.LOST if dropped >= 0 else st.OUT), dropped, now)
    if dropped < 0:
        for k in range(w.rule.size):
            if w.rule[k].hit and w.rule[k].kind == DUPLICATE and not w.rule[k].time_ns:
                leave(w, slot, np.int64(st.COPY), np.int64(k), now)
                gone = True
    if gone:
        pass_by(w, n, now)
    if dropped >= 0:
        return
    for k in range(-1, w.rule.size):
        rule = w.rule[max(k, 0)]
        later = (
            k >= 0 and rule.hit and (rule.kind == REPLAY or (rule.kind == DUPLICATE and rule.time_ns != 0))
        )
        if later or (k < 0 and place >= 0):
            hold(w, slot, place if k < 0 else np.int64(k), np.int64(k >= 0), n)


@law
def wake(w):
    """Frames held back by time leave when it is over, whether or not others come."""
    c = w.control[0]
    if c.timed:
        due_ps = w.timed[0].due_ns * PS_PER_NS
        if due_ps < c.at_impairer:
            c.at_impairer = due_ps
            at(w, due_ps, st.LATE, 0)
