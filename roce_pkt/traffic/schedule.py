"""When each packet of a workload leaves, and what it is: hosts with lines, queue pairs, answers.

Every host has one line out. Whoever has a packet for it (the requester of a queue pair, or the
responder that owes answers) waits in one queue, first come first served, a packet at a time. Nothing
is lost, so that requests arrive in order one delay after their last bit has left.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import math

import numpy as np

from roce_pkt.cc.law import NEVER_PS as FAR_PS
from roce_pkt.jit import borrow, kernel, law
from roce_pkt.scenario.pace import L1_BYTES
from roce_pkt.scenario.schema import ARRIVALS
from roce_pkt.scenario.sizes import QUANTILES
from roce_pkt.traffic import verbs
from roce_pkt.traffic.rows import REQUESTER, RESPONDER
from roce_pkt.traffic.state import World
from roce_pkt.traffic.waiting import first_leaf, look, poke_requester, set_leaf
from roce_pkt.units import PS_PER_S

MESSAGE, READ, ATOMIC, SINGLE = verbs.MESSAGE, verbs.READ, verbs.ATOMIC, verbs.SINGLE
FIRST, MIDDLE, LAST, ONLY = verbs.FIRST, verbs.MIDDLE, verbs.LAST, verbs.ONLY
RC, UC, UD, XRC = verbs.RC, verbs.UC, verbs.UD, verbs.XRC
REQUEST, READ_RESPONSE, SHAPE, CARRIES = verbs.REQUEST, verbs.READ_RESPONSE, verbs.SHAPE, verbs.CARRIES
ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, HEADER_BYTES = (
    verbs.ACKNOWLEDGE,
    verbs.ATOMIC_ACKNOWLEDGE,
    verbs.HEADER_BYTES,
)
CONSTANT, POISSON, ON_OFF, BURST = range(len(ARRIVALS))
BITS_PS = 8 * PS_PER_S
SENDS_SOLICITED = tuple(verb.wire == "SEND" or "IMM" in verb.suffix for verb in verbs.ORDER)
SOLICITS = np.array(SENDS_SOLICITED, np.uint8)
CATCH_UP = 16
"""Gaps that a queue pair held up may make good by packets in a row; more is lost."""


@law
def throw(q):
    """A number from 0 (inclusive) to 1, of the half's own stream (xorshift64*)."""
    x = q.dice
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    q.dice = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@law
def begin_message(w, q):
    """The next message becomes the current one."""
    q.message = q.next_message
    q.next_message += 1
    if q.scripted:
        m = w.message[q.first_message + q.message]
        q.verb = m.verb
        q.length = m.length
    else:
        q.verb = q.rule_verb
        row = w.sizes[q.sizes]
        q.length = row[0] if row[0] == row[-1] else row[np.int64(throw(q) * QUANTILES)]
    q.packet = 0
    q.packets = 1
    if SHAPE[q.verb] == MESSAGE:
        q.packets = max(np.int64(1), -(-q.length // w.control[0].mtu))
    q.outstanding += 1
    if SHAPE[q.verb] != MESSAGE:
        q.rd_outstanding += 1


@law
def place_of_packet(packet, packets):
    """First, middle, last or only."""
    if packets == 1:
        return ONLY
    if packet == 0:
        return FIRST
    return LAST if packet + 1 == packets else MIDDLE


@law
def occupy(w, n, octets, now):
    """The line is busy with a frame; when its last bit has left, exactly."""
    host = w.host[n]
    if now > host.free_ps:
        host.free_rest = 0
    cost = np.int64(octets + L1_BYTES) * BITS_PS + host.free_rest
    host.free_ps = now + cost // host.line_bps
    host.free_rest = cost % host.line_bps
    return host.free_ps


@law
def next_due(q, octets, now, end):
    """When the packet after this one is due."""
    if q.arrival == BURST:
        q.burst_left -= 1
        q.due_ps = now
        if q.burst_left <= 0:
            q.burst_left = q.burst
            q.due_ps = end + q.gap_ps
        return
    if q.rate == 0 and q.arrival != ON_OFF:
        q.due_ps = now
        return
    cost = q.octet_cost * (octets + q.extra) + q.packet_cost
    if q.rate == 0:
        q.due_ps = end
    elif q.arrival == POISSON:
        if now > q.due_ps + CATCH_UP * (cost // q.rate):
            q.due_ps = now
        q.due_ps += np.int64(-math.log(1.0 - throw(q)) * (cost / q.rate))
    else:
        if now > q.due_ps + CATCH_UP * (cost // q.rate):
            q.due_ps = now
            q.due_rest = 0
        cost += q.due_rest
        q.due_ps += cost // q.rate
        q.due_rest = cost % q.rate
    if q.arrival == ON_OFF and q.due_ps >= q.on_until_ps:
        q.due_ps = max(q.due_ps, q.on_until_ps) + np.int64(-math.log(1.0 - throw(q)) * q.off_ps)
        q.on_until_ps = q.due_ps + np.int64(-math.log(1.0 - throw(q)) * q.on_ps)


@law
def owe(w, h, q, shape, at, ends):
    """The responder owes an answer from `at` on; an acknowledgement may join the one before it."""
    mtu = w.control[0].mtu
    ring = w.control[0].ring
    if shape == MESSAGE and q.answer_head != q.answer_tail:
        e = w.answer[np.int64(h) * ring + (q.answer_tail - np.uint32(1)) % ring]
        if e.shape == MESSAGE and e.merged < q.coalesce and at <= e.ready_ps:
            e.position = q.position - 1
            e.msn = q.msn
            e.ends += ends
            e.merged += 1
            if e.merged == q.coalesce:
                e.ready_ps = at
            return
    if ends == 0 and q.answer_tail - q.answer_head > ring - q.depth - 2:
        return  # a later acknowledgement will cover it
    e = w.answer[np.int64(h) * ring + q.answer_tail % ring]
    e.ready_ps = at + q.hold_ps if shape == MESSAGE and q.coalesce > 1 else at
    e.message = q.message
    e.position = q.position - 1
    e.length = q.length if shape == READ else 0
    e.done = 0
    e.packets = max(np.int64(1), -(-e.length // mtu))
    if shape == READ:
        e.position = q.position - e.packets
    e.ends = ends
    e.merged = 1
    e.msn = q.msn
    e.shape = shape
    q.answer_tail += np.uint32(1)


@law
def release(w, number, at, now):
    """A scripted message is done at a time to come: those that wait for it may start then."""
    m = w.message[number]
    for k in range(m.first_next, m.first_next + m.nexts):
        n = w.message[w.nexts[k]]
        n.needs -= np.uint32(1)
        n.ready_ps = max(n.ready_ps, at + n.delay_ps)
        if n.needs == 0:
            poke_requester(w, np.int64(n.half), w.half[n.half], now)


@law
def settle(w, h, q, at, ends, reads):
    """Work requests are complete for the requester from `at` on."""
    f = w.free[np.int64(h) * w.control[0].ring + q.free_tail % w.control[0].ring]
    f.time_ps = at
    f.ends = ends
    f.reads = reads
    q.free_tail += np.uint32(1)


@law
def send_request(w, h, q, row, now):
    """The requester's next packet leaves; the scripted message that is done then (or -1), and when."""
    c = w.control[0]
    if q.packet >= q.packets:
        begin_message(w, q)
    shape = SHAPE[q.verb]
    place = place_of_packet(q.packet, q.packets)
    reliable = q.service in (RC, XRC)
    opcode = REQUEST[q.service, q.verb, place]
    payload = np.int64(0)
    offset = q.packet * c.mtu
    if shape == MESSAGE:
        payload = min(c.mtu, q.length - offset)
    elif CARRIES[opcode]:
        payload = q.length  # ATOMIC WRITE
    ends = place in (LAST, ONLY)
    q.since_ack += 1
    ask = reliable and (ends or q.since_ack >= q.ack_every)
    if ask:
        q.since_ack = 0
    row.time_ps = now
    row.message = q.message
    row.offset = offset
    row.va = q.va
    row.half = h
    row.psn = np.uint32((q.start_psn + q.position) & 0xFFFFFF)
    row.dmalen = np.uint32(q.length)
    row.msn = 0
    row.payload = payload
    row.opcode = opcode
    row.role = REQUESTER
    row.ackreq = ask
    row.solicited = c.solicited and ends and SOLICITS[q.verb]
    row.syndrome = 0
    row.ecn = 0
    octets = q.overhead + HEADER_BYTES[opcode] + ((payload + 3) & ~3)
    end = occupy(w, q.src, octets, now)
    q.packet += 1
    q.position += max(np.int64(1), -(-q.length // c.mtu)) if shape == READ else 1
    next_due(q, octets, now, end)
    arrived = end + w.host[q.src].delay_ps
    if ends:
        q.msn = np.uint32((q.msn + np.uint32(1)) & np.uint32(0xFFFFFF))
    if ask:
        owe(w, h, q, shape, arrived, np.int64(ends))
        if not q.answer_queued:
            set_leaf(w, 2 * h + RESPONDER, now)
    if ends and not reliable:
        settle(w, h, q, end, np.int64(1), np.int64(0))
    if ends and q.scripted and shape == MESSAGE:
        return q.first_message + q.message, arrived
    return np.int64(-1), arrived


@law
def send_answer(w, h, q, row, now):
    """The responder's next packet leaves; the scripted message that is done then (or -1), and when."""
    c = w.control[0]
    e = w.answer[np.int64(h) * w.control[0].ring + q.answer_head % w.control[0].ring]
    place = place_of_packet(e.done, e.packets)
    payload = np.int64(0)
    if e.shape == MESSAGE:
        opcode = ACKNOWLEDGE[q.service]
    elif e.shape == ATOMIC:
        opcode = ATOMIC_ACKNOWLEDGE[q.service]
    else:
        opcode = READ_RESPONSE[q.service, place]
        payload = min(c.mtu, e.length - e.done * c.mtu)
    row.time_ps = now
    row.message = e.message
    row.offset = e.done * c.mtu
    row.va = 0
    row.half = h
    row.psn = np.uint32((q.start_psn + e.position + e.done) & 0xFFFFFF)
    row.dmalen = 0
    row.msn = e.msn
    row.payload = payload
    row.opcode = opcode
    row.role = RESPONDER
    row.ackreq = 0
    row.solicited = 0
    row.syndrome = c.syndrome
    row.ecn = 0
    octets = q.overhead + HEADER_BYTES[opcode] + ((payload + 3) & ~3)
    arrived = occupy(w, q.dst, octets, now) + w.host[q.dst].delay_ps
    e.done += 1
    done = np.int64(-1)
    if e.done == e.packets:
        reads = np.int64(e.shape != MESSAGE)
        if e.ends:
            settle(w, h, q, arrived, e.ends, reads)
        if reads and q.scripted:
            done = q.first_message + e.message
        q.answer_head += np.uint32(1)
    return done, arrived


@law
def serve_line(w, n, row, now):
    """A host's line is free: the first that waits sends one packet and joins again if it has more."""
    host = w.host[n]
    sender = host.first
    host.first = w.follows[sender]
    h = sender // 2
    q = w.half[h]
    if sender % 2 == REQUESTER:
        done, at = send_request(w, h, q, row, now)
        q.queued = 0
    else:
        done, at = send_answer(w, h, q, row, now)
        q.answer_queued = 0
        poke_requester(w, h, q, now)
    if done >= 0:
        release(w, done, at, now)
    set_leaf(w, sender, now)
    set_leaf(w, 2 * w.control[0].halves + n, host.free_ps if host.first >= 0 else FAR_PS)


@kernel
def run(world, rows):
    """Go on until the rows are full or nothing is left to send.

    Args:
        world: A `World`; changed in place.
        rows: Filled from the first on, in time order.

    Returns:
        Rows filled.
    """
    w = World(
        borrow(world.control), borrow(world.half), borrow(world.host), borrow(world.message),
        borrow(world.nexts), borrow(world.sizes), borrow(world.answer), borrow(world.free),
        borrow(world.follows), borrow(world.tree),
    )  # fmt: skip
    out = borrow(rows)
    filled = 0
    senders = 2 * w.control[0].halves
    while filled < out.size and w.tree[1] < FAR_PS:
        now = w.tree[1]
        leaf = first_leaf(w)
        if leaf >= senders:
            serve_line(w, leaf - senders, out[filled], now)
            filled += 1
            continue
        look(w, leaf, now)
    return filled
