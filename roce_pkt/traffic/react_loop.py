"""A workload with faults, compiled: events in order, packets as rows, and what became of each frame."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, PLR1714, SIM109 - compiled code compares; it does not search tuples

from __future__ import annotations

import numpy as np

from roce_pkt.cc.law import NEVER_PS, compile_laws
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.jit import borrow
from roce_pkt.jit import fast_kernel as kernel
from roce_pkt.jit import fast_law as law
from roce_pkt.scenario.pace import L1_BYTES
from roce_pkt.traffic import react_faults as faults
from roce_pkt.traffic import react_peer as peer
from roce_pkt.traffic import react_state as st
from roce_pkt.traffic import verbs
from roce_pkt.traffic.react_events import at, look_at, take_first
from roce_pkt.traffic.rows import REQUESTER
from roce_pkt.traffic.schedule import SOLICITS, place_of_packet
from roce_pkt.units import PS_PER_NS, PS_PER_S

MESSAGE, READ, ATOMIC = verbs.MESSAGE, verbs.READ, verbs.ATOMIC
REQUEST, READ_RESPONSE, SHAPE, CARRIES = verbs.REQUEST, verbs.READ_RESPONSE, verbs.SHAPE, verbs.CARRIES
ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE = verbs.ACKNOWLEDGE, verbs.ATOMIC_ACKNOWLEDGE
HEADER_BYTES, LAST, ONLY = verbs.HEADER_BYTES, verbs.LAST, verbs.ONLY
CATCH_UP = 16
"""Gaps that a queue pair held up may make good by packets in a row; more is lost."""

compile_laws()


@law
def fill_row(w, h, q, flight, row, now):
    """The row that a packet's frame is made from."""
    c = w.control[0]
    row.time_ps = now
    row.message = row.offset = 0
    row.va = 0
    row.half = h
    row.psn = (q.start_psn + flight.position) & 0xFFFFFF
    row.dmalen = row.msn = 0
    row.payload = 0
    row.role = flight.sender % 2
    row.ackreq = row.solicited = row.syndrome = row.ecn = 0
    if flight.sender % 2 == REQUESTER:
        index = flight.position - flight.start
        offset = index * c.mtu
        shape = SHAPE[flight.verb]
        place = place_of_packet(index, flight.end - flight.start) if shape == MESSAGE else np.int64(ONLY)
        row.opcode = REQUEST[q.service, flight.verb, place]
        row.message = flight.number
        row.offset = offset
        if shape == MESSAGE:
            row.payload = min(c.mtu, flight.length - offset)
        elif CARRIES[row.opcode]:
            row.payload = flight.length
        # a READ asks for what is missing, from where it lies
        again = offset if shape == READ else np.int64(0)
        row.va = q.va + again
        row.dmalen = flight.length - again
        row.ackreq = flight.ask
        ends = place == LAST or place == ONLY
        row.solicited = c.solicited and ends and SOLICITS[flight.verb]
        return
    row.syndrome = flight.syndrome
    row.msn = flight.msn
    if not flight.data or flight.number < 0:
        row.opcode = ACKNOWLEDGE[q.service]
        return
    row.message = flight.number
    if SHAPE[flight.verb] == ATOMIC:
        row.opcode = ATOMIC_ACKNOWLEDGE[q.service]
        return
    place = place_of_packet(flight.position - flight.first, flight.end - flight.first)
    row.opcode = READ_RESPONSE[q.service, place]
    if SHAPE[flight.verb] == READ:
        row.offset = (flight.position - flight.start) * c.mtu
        row.payload = min(c.mtu, flight.length - row.offset)


@law
def look(w, sender, now):
    """Join the queue of the host's line when there is something to send."""
    if w.follows[sender] != st.NOBODY - 1:
        return  # in it already
    h = sender // 2
    q = w.half[h]
    if sender % 2 == REQUESTER:
        if not peer.ready(w, h, q):
            return
        if q.due_ps > now:
            look_at(w, q.due_ps, sender)
            return
    elif q.answer_head == st.NOBODY:
        return
    n = q.src if sender % 2 == REQUESTER else q.dst
    host = w.host[n]
    w.follows[sender] = st.NOBODY
    if host.first == st.NOBODY:
        host.first = sender
        at(w, max(now, host.free_ps), st.SERVE, n)
    else:
        w.follows[host.last] = sender
    host.last = sender


@law
def arm(w, h, q):
    """The requester's timer."""
    time_ps = requester.next_timer_ps(q)
    if time_ps < q.timer_at:
        q.timer_at = time_ps
        at(w, time_ps, st.TIMER, h)


@law
def occupy(host, octets, now):
    """A frame leaves a host's line."""
    if now > host.free_ps:
        host.rest = 0
    cost = (octets + L1_BYTES) * 8 * PS_PER_S + host.rest
    host.free_ps = now + cost // host.bps
    host.rest = cost % host.bps


@law
def send(w, sender, q, now):
    """A packet leaves: its row and its flight; true when its octets are to be changed first."""
    c = w.control[0]
    h = sender // 2
    slot = c.flight_free
    flight = w.flight[slot]
    c.flight_free = flight.next
    c.flights += 1
    c.sent += 1
    flight.sent = c.sent
    flight.sender = sender
    if sender % 2 == REQUESTER:
        peer.request(w, h, q, flight, now)
    else:
        peer.answer(w, q, flight)
    row = w.row[c.rows]
    c.rows += 1
    fill_row(w, h, q, flight, row, now)
    octets = q.overhead + HEADER_BYTES[row.opcode] + ((np.int64(row.payload) + 3) & ~3)
    flight.octets = octets
    flight.opcode = row.opcode
    flight.psn = row.psn
    flight.intact = 1
    flight.touched = 0
    flight.time_ns = now // PS_PER_NS
    flight.uses = 1
    occupy(w.host[q.src if sender % 2 == REQUESTER else q.dst], octets, now)
    if sender % 2 == REQUESTER and q.rate:
        cost = q.octet_cost * (octets + q.extra) + q.packet_cost + q.due_rest
        base = max(q.due_ps, now - CATCH_UP * (cost // q.rate))
        q.due_ps = base + cost // q.rate
        q.due_rest = cost % q.rate
    c.slot = slot
    c.sender = sender
    _, changed = faults.pick(w, flight)
    return changed


@law
def serve(w, n, now):
    """The line is free: the first that waits sends one packet. True when its octets are to be changed."""
    c = w.control[0]
    host = w.host[n]
    sender = host.first
    host.first = w.follows[sender]
    w.follows[sender] = st.NOBODY - 1
    h = sender // 2
    q = w.half[h]
    c.line = n
    c.sender = sender
    able = peer.ready(w, h, q) if sender % 2 == REQUESTER else q.answer_head != st.NOBODY
    return able and send(w, sender, q, now)


@law
def arrived(w, slot, now):
    """A packet reaches the other side; who may have something to send then."""
    flight = w.flight[slot]
    h = flight.sender // 2
    if flight.sender % 2 == REQUESTER:
        number = peer.arrive(w, w.half[h], flight, now)
    else:
        number = peer.answered(w, h, w.half[h], flight, now)
    if number != st.NOBODY:
        peer.done(w, w.half[h], number, now)
    other = flight.sender ^ 1
    faults.release_flight(w, slot)
    return other


@law
def expire(w, h, now):
    """A requester's timer rings; who may have something to send then, or nobody."""
    q = w.half[h]
    q.timer_at = NEVER_PS
    if requester.next_timer_ps(q) > now:
        return np.int64(st.NOBODY)
    peer.timer(w, q, now)
    return 2 * h + REQUESTER


@law
def go_on(w, kind, of, now):
    """An event, from where octets have been changed that it sends."""
    c = w.control[0]
    looks = of
    h = of // 2
    if kind == st.SERVE or kind == st.LATE:
        if kind == st.LATE:
            c.at_impairer = NEVER_PS
        if kind == st.LATE or c.slot != st.NOBODY:
            faults.late(w, now // PS_PER_NS, now)
        if c.slot != st.NOBODY:
            faults.judge(w, c.slot, now)
            faults.release_flight(w, c.slot)
            c.slot = st.NOBODY
        faults.wake(w)
        if kind == st.LATE:
            return
        host = w.host[c.line]
        if host.first != st.NOBODY:
            at(w, max(now, host.free_ps), st.SERVE, c.line)
        looks = c.sender
        h = looks // 2
    elif kind == st.ARRIVE:
        looks = arrived(w, of, now)
        h = looks // 2
    elif kind == st.TIMER:
        looks = expire(w, of, now)
        h = of
    if looks != st.NOBODY:
        look(w, looks, now)
    if kind != st.LOOK:
        arm(w, h, w.half[h])


@law
def full(w):
    """What there is no room for left, before an event begins."""
    c = w.control[0]
    room = c.room + c.timed + c.queued
    if c.stop != st.GO:
        return c.stop
    if w.row.size - c.rows < 1 or w.log.size - c.logs < room:
        return np.int64(st.ROWS_FULL)
    if w.event.size - c.events < room:
        return np.int64(st.EVENTS_FULL)
    if w.flight.size - c.flights < 1:
        return np.int64(st.FLIGHTS_FULL)
    if w.answer.size - c.answers < 1:
        return np.int64(st.ANSWERS_FULL)
    if w.timed.size - c.timed < c.room or w.queued.size - c.queued < c.room:
        return np.int64(st.HELD_FULL)
    if 2 * c.seen >= w.seen_key.size:
        return np.int64(st.SEEN_FULL)
    return np.int64(st.GO)


@kernel
def run(world):
    """Go on until octets are to be changed, there is no room for more, or nothing happens any more.

    Args:
        world: A `World`; changed in place.

    Returns:
        Why: `GO` at the end.
    """
    w = st.World(
        borrow(world.control), borrow(world.half), borrow(world.host), borrow(world.follows),
        borrow(world.work), borrow(world.sizes), borrow(world.message), borrow(world.nexts),
        borrow(world.event), borrow(world.flight), borrow(world.answer), borrow(world.rule),
        borrow(world.flow), borrow(world.of_sender), borrow(world.begins), borrow(world.seen_key),
        borrow(world.seen), borrow(world.timed), borrow(world.queued), borrow(world.row), borrow(world.log),
    )  # fmt: skip
    c = w.control[0]
    kind = np.int64(st.SERVE)
    of = c.line
    changed = c.slot != st.NOBODY
    while True:
        if not changed:
            why = full(w)
            if why != st.GO:
                return why
            if not c.events or w.event[0].time_ps > c.end_ps or c.sent >= c.most_sent:
                return np.int64(st.GO)
            c.now = w.event[0].time_ps
            c.event += 1
            kind, of = take_first(w)
            if kind == st.SERVE and serve(w, of, c.now):
                return np.int64(st.JUDGE)
        changed = False
        go_on(w, kind, of, c.now)


@kernel
def tell_again(keys, counts, new_keys, new_counts):
    """Put a table of packets into a larger one."""
    keys, counts, new_keys, new_counts = borrow(keys), borrow(counts), borrow(new_keys), borrow(new_counts)
    mask = new_keys.size - 1
    for n in range(keys.size):
        if keys[n]:
            place = (keys[n] * faults._MIX >> 20) & mask  # noqa: SLF001 - the same table
            while new_keys[place]:
                place = (place + 1) & mask
            new_keys[place] = keys[n]
            new_counts[place] = counts[n]
