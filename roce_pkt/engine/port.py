"""A port that sends: pause frames first, then the scheduler's class, then the wire."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,arg-type,assignment"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np
from numba import types

from roce_pkt.engine import faults, reaction, recorder, rows
from roce_pkt.engine.memory import (
    I64,
    PORT,
    U32,
    cold,
    far,
    group_at,
    half_at,
    law,
    line_at,
    node_at,
    packet_at,
    port_at,
    turns_at,
)
from roce_pkt.engine.pool import give, line_up, take
from roce_pkt.engine.prefetch import packet_ahead, receiver_ahead
from roce_pkt.engine.queue_pair import compose
from roce_pkt.engine.records import CNP, FAR_PS, PAUSE, PAUSE_8023, SHIFT
from roce_pkt.engine.tree import arm, armed_ps, lift
from roce_pkt.fabric.buffer import may_resume, release
from roce_pkt.fabric.link import CUT_THROUGH_BYTES, serialisation_ps
from roce_pkt.fabric.red import CE, ECT0, ECT1, marks
from roce_pkt.fabric.scheduler import highest, next_in_turn, pays, turn


@law
def cell_of(p, class_):
    """Place of a port's class in the tables of lines and groups."""
    return np.uint32((np.uint32(p) << np.uint32(3)) | np.uint32(class_))


@law
def enqueue(w, p, x):
    """Append a packet to its class at a port."""
    f = packet_at(w, x)
    d = port_at(w, p)
    k = line_at(w, cell_of(p, f.class_))
    f.next = np.uint32(0)
    if k.first == np.uint32(0):
        k.first = x
        d.backlog |= np.uint8(1 << f.class_)
    else:
        packet_at(w, k.last).next = x
    k.last = x
    k.queued_bytes += f.size


@far(U32, I64, I64, I64)
def tell(w, p, class_, quanta, t):
    """Send a pause frame for a class out of port p: XOFF, or XON when quanta is 0."""
    d = port_at(w, p)
    before = d.xoff
    bit = np.uint8(1 << class_)
    if quanta != 0:
        d.xoff |= bit
        group_at(w, cell_of(p, class_)).refresh_due_ps = t + d.refresh_ps
        if t + d.refresh_ps < d.pause_due_ps:
            d.pause_due_ps = t + d.refresh_ps
            arm(w, d.base, d.pause_leaf, d.pause_due_ps)
    else:
        d.xoff &= ~bit
    if w.pause_mode == PAUSE_8023 and quanta == 0 and d.xoff != 0:
        return  # another class still needs the whole port stopped
    if quanta != 0:
        d.xoffs += 1
    else:
        d.xons += 1
    if w.trace and (quanta == 0 or before & bit == 0):
        kind = rows.PFC_XOFF if quanta != 0 else rows.PFC_XON
        recorder.note(w, kind, np.uint32(rows.NO_HALF), p, np.int64(class_), t)
    x = take(w)
    f = packet_at(w, x)
    f.kind = PAUSE
    f.class_ = class_
    f.count = quanta
    f.size = w.pause_bytes
    f.payload = 0
    f.ecn = 0
    f.flags = 0
    line_up(w, d, x)
    if armed_ps(w, d.base, d.send_leaf) > max(d.free_ps, t):
        arm(w, d.base, d.send_leaf, max(d.free_ps, t))


@law
def leave_switch(w, p, d, k, f, t):
    """A packet leaves a switch's queue: account it, mark it, and let its sender go on."""
    size = np.int64(f.size)
    recorder.queue_changes(w, p, d, -size, t)
    if w.mark_at_dequeue and (f.ecn == ECT0 or f.ecn == ECT1) and w.ecn and marks(d, d, k.queued_bytes):
        mark(w, p, d, f, t)
    g = group_at(w, f.group)
    n = node_at(w, d.node)
    release(n, g, size)
    source = np.uint32(f.group >> np.uint32(3))
    class_ = np.uint32(f.group & np.uint32(7))
    if port_at(w, source).xoff >> class_ & 1 and may_resume(n, g, w.resume_bytes):
        tell(w, source, class_, 0, t)


@cold
def mark(w, p, d, f, t):
    """Congestion experienced."""
    f.ecn = CE
    d.marked += 1
    if w.trace:
        recorder.note(w, rows.CP_MARK, np.uint32(rows.NO_HALF), p, d.queued_bytes, t)


@far(U32, PORT, I64, I64, I64, returns=types.UniTuple(I64, 2))
def look_at_pairs(w, p, d, t, at, ready):
    """`look` for a host whose queue pairs send in several classes."""
    rest = np.int64(d.paced & ~d.paused)
    while rest != 0:
        class_ = highest(rest)
        rest &= ~(1 << class_)
        due = turns_at(w, np.uint32(line_at(w, cell_of(p, class_)).tree + np.uint32(1))) >> np.int64(SHIFT)
        at = min(at, max(due, d.free_ps))
        if due <= t:
            ready |= 1 << class_
    return at, ready


@law
def look(w, p, d, t):
    """What port p could send.

    Returns:
        When it could send next, and the mask of classes that could send at t.
    """
    paused = np.int64(d.paused)
    ready = np.int64(d.backlog) & ~paused
    at = np.int64(FAR_PS)
    if ready != 0 or d.control != np.uint32(0):
        at = d.free_ps
    if d.host:
        if d.several:
            return look_at_pairs(w, p, d, t, at, ready)
        mask = np.int64(d.paced) & ~paused
        if mask != 0:
            due = turns_at(w, d.turn_root) >> np.int64(SHIFT)
            at = min(at, max(due, d.free_ps))
            if due <= t:
                ready |= mask
    return at, ready


@law
def size_ahead(w, k):
    """Octets of the frame a class would send."""
    return np.int64(packet_at(w, k.first).size) if k.first != np.uint32(0) else np.int64(w.mtu_bytes)


@far(U32, PORT, I64, returns=I64)
def choose(w, p, d, ready):
    """The class that sends at a port with weights: the highest strict one, else the one whose turn it is."""
    strict = ready & ~np.int64(d.weighted)
    if strict != 0:
        return highest(strict)
    class_ = np.int64(d.turn)
    if ready >> class_ & 1 == 0:
        d.turn_open = 0
    while True:
        k = line_at(w, cell_of(p, class_))
        if d.turn_open and pays(k, size_ahead(w, k)):
            d.turn = class_
            return class_
        class_ = next_in_turn(ready, class_)
        turn(d, line_at(w, cell_of(p, class_)))


@law
def next_packet(w, p, d, ready, t):
    """What port p sends now; there is something."""
    x = d.control
    if x != np.uint32(0):
        d.control = packet_at(w, x).next
        return x
    class_ = choose(w, p, d, ready) if d.weighted else highest(ready)
    k = line_at(w, cell_of(p, class_))
    x = k.first
    if x == np.uint32(0):
        return compose(w, d, k, t)
    f = packet_at(w, x)
    k.first = f.next
    packet_ahead(w, f.next)
    if f.next == np.uint32(0):
        d.backlog &= ~np.uint8(1 << class_)
        k.deficit_bytes = 0
    k.queued_bytes -= f.size
    if not d.host:
        leave_switch(w, p, d, k, f, t)
        if w.telemetry_words:
            reaction.leave_switch(w, d, x, f, t)
    return x


@cold
def lose(w, p, d, x, f, t):
    """A switch drops a frame that would have left by port p."""
    d.drops += 1
    if f.kind == CNP:
        half_at(w, f.half).cnps_lost += 1
    if w.trace:
        recorder.note(w, rows.DROP, f.half, p, f.psn, t)
    give(w, x)


@cold
def discarded(w, p, d, x, f, t):
    """A frame is lost where it would have been sent: to a fault, or to the watchdog in a stormy class."""
    if d.host:
        return faults.strike(w, p, d, x, t)
    if f.kind == PAUSE or not d.discards >> f.class_ & 1:
        return False
    lose(w, p, d, x, f, t)
    return True


@law
def put_on_wire(w, p, d, x, t):
    """A frame starts at t; its peer sees it after serialisation and delay."""
    f = packet_at(w, x)
    size = np.int64(f.size) + w.gap_bytes
    takes = serialisation_ps(d, size, w.quantum_ps)
    d.free_ps = t + max(takes, size * d.limit_ps_per_byte)
    if d.discards and discarded(w, p, d, x, f, t):
        return
    if d.cut_through:
        takes = min(takes, (CUT_THROUGH_BYTES * d.ps_per_byte) >> 20)
    arrives_ps = t + takes + d.delay_ps
    f.next = np.uint32(0)
    other = port_at(w, d.peer)
    if other.arriving == np.uint32(0):
        other.arriving = x
        arm(w, other.base, other.arrival_leaf, arrives_ps)
        lift(w, other.node)
    else:
        before = packet_at(w, other.arriving_last)
        before.next = x
        before.time_ps = arrives_ps
    if other.host:
        receiver_ahead(w, f)
    other.arriving_last = x
    w.frames_sent += 1
    d.sent_bytes += f.size
    if d.tap:
        recorder.record(w, p, x, 1, t)


@law
def serve(w, p, t):
    """Something may have changed at port p: send if it is time, and arm for the next frame."""
    d = port_at(w, p)
    at, ready = look(w, p, d, t)
    if at <= t:
        x = next_packet(w, p, d, ready, t)
        put_on_wire(w, p, d, x, t)
        at, ready = look(w, p, d, t)
    if at != armed_ps(w, d.base, d.send_leaf):
        arm(w, d.base, d.send_leaf, at)
