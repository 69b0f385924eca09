"""A reaction point's clockwork: timers, notifications and octets in time order, one text for two speeds.

Plain Python for a few thousand steps; compiled (`compiled_advance`) where a capture asks for
millions. What happened is written to a log of fixed size, so that neither form calls out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from roce_pkt.cc.dcqcn import (
    ALPHA,
    CUT,
    INCREASE,
    next_timer_ps,
    on_bytes,
    on_cnp,
    on_increase_timer,
    on_timer,
    paced,
    stage,
)
from roce_pkt.cc.dcqcn_parameters import RESTART
from roce_pkt.cc.law import NEVER_PS, compile_laws, law, twin
from roce_pkt.kernel_cache import announce_compile
from roce_pkt.run.bucket import change, fill
from roce_pkt.run.ties import book, ties_of_cnp, ties_of_octets, ties_of_step

MOST_STEPS = 1_000_000
"""Timer steps without a frame in between, after which the clock jumps: a day-long gap must not hang."""
BUCKETS = 60
"""Points of the rate's history."""

CLOCK = np.dtype(
    [
        ("now_ps", "i8"),
        ("first_ps", "i8"),  # the history's span
        ("span_ps", "i8"),
        ("cnp_at", "i8"),  # notifications delivered of those announced
        ("sent_at", "i8"),  # frames counted of those announced
        ("row", "i8"),  # frames that have left of those announced
        ("bucket", "i8"),
        ("bucket_end_ps", "i8"),  # until when this part of the span lasts
        ("steps", "i8"),  # of timers, without a notification in between
        ("skipped_ps", "i8"),
        ("cuts", "i8"),
        ("tick_ps", "i8"),  # resolution of the times that come in, 0 for exact ones
        ("tied", "i8"),  # ties met
        ("timed_ps", "i8"),  # the last increase by the timer
        ("telling", "i8"),  # write the log
        ("logged", "i8"),
        ("held_bps", "f8"),
        ("rate_min_bps", "f8"),
    ],
    align=True,
)
Clock = twin(CLOCK)

LOG_TIME, LOG_WHAT, LOG_FRAME, LOG_STAGE, LOG_PHASE, LOG_SENDER = range(6)
LOG_WHOLE = 6
LOG_RATE, LOG_TARGET, LOG_ALPHA = range(3)
LOG_ROWS = 65_536


@law
def remember(s: Any, c: Any, history: Any, time_ps: int) -> None:
    """Note the rate's lowest value in each part of the span."""
    if time_ps >= c.bucket_end_ps:
        after = max(0, time_ps - c.first_ps)
        bucket = min(BUCKETS - 1, after * BUCKETS // c.span_ps if after < c.span_ps else BUCKETS - 1)
        for held in range(c.bucket, bucket):
            history[held] = min(history[held], c.held_bps)
        c.bucket = bucket
        c.bucket_end_ps = NEVER_PS
        if bucket < BUCKETS - 1:
            c.bucket_end_ps = c.first_ps - (-(bucket + 1) * c.span_ps // BUCKETS)
    lowest = min(c.held_bps, s.rate_bps)
    history[c.bucket] = min(history[c.bucket], lowest)
    c.held_bps = s.rate_bps


@law
def happened(p: Any, s: Any, c: Any, what: int, frame: int, history: Any, log_i: Any, log_f: Any) -> None:
    """Book what a law answered."""
    if what & (CUT | INCREASE) != 0:
        remember(s, c, history, c.now_ps)
    if what & CUT != 0:
        c.cuts += 1
        c.rate_min_bps = min(c.rate_min_bps, s.rate_bps)
    if p.alpha_timer != RESTART or what & CUT != 0:
        what &= ~ALPHA  # told with the change of rate
    if c.telling and what != 0:
        row = c.logged
        log_i[row, LOG_TIME] = c.now_ps
        log_i[row, LOG_WHAT] = what
        log_i[row, LOG_FRAME] = frame
        log_i[row, LOG_STAGE] = stage(s)
        log_i[row, LOG_PHASE] = s.phase
        log_f[row, LOG_RATE] = s.rate_bps
        log_f[row, LOG_TARGET] = s.target_bps
        log_f[row, LOG_ALPHA] = s.alpha
        c.logged = row + 1


@law
def count(p: Any, s: Any, c: Any, row: int, sent: Any) -> int:
    """Octets of frames up to, not including, `row` have been sent."""
    if row <= c.sent_at:
        return 0
    before = int(sent[c.sent_at - 1]) if c.sent_at > 0 else 0
    c.sent_at = row
    return on_bytes(p, s, int(sent[row - 1]) - before, c.now_ps)


@law
def next_full(p: Any, s: Any, c: Any, sent: Any) -> int:
    """The frame with which the byte counter runs over, or one past the last."""
    if not p.byte_counter or s.increase_due_ps == NEVER_PS or c.sent_at >= len(sent):
        return len(sent)
    before = int(sent[c.sent_at - 1]) if c.sent_at > 0 else 0
    full = before + paced(p, s, p.byte_reset_bytes) - s.bytes
    if full > sent[len(sent) - 1]:
        return len(sent)
    return max(int(np.searchsorted(sent, full)), c.sent_at)


@law
def leave(w: Any, b: Any, c: Any, i: int, row: int, sent_ps: Any, sent: Any, frames: Any, spans: Any) -> None:
    """Frames up to, not including, `row` leave at the model's present rate."""
    if w.on:
        for at in range(c.row, row):
            octets = int(sent[at]) - (int(sent[at - 1]) if at > 0 else 0)
            fill(w, b, i, int(sent_ps[at]), octets, int(frames[at]), spans)
    c.row = row


@law
def row_before(c: Any, sent_ps: Any, time_ps: int) -> int:
    """One past the last frame that was sent before `time_ps`, of those that have not left."""
    row = c.row
    while row < len(sent_ps) and sent_ps[row] < time_ps:
        row += 1
    return row


@law
def jump(p: Any, s: Any, c: Any, time_ps: int) -> None:
    """Give up following the timers through a gap."""
    c.steps = 0
    c.skipped_ps += time_ps - c.now_ps
    c.now_ps = time_ps
    if s.increase_due_ps != NEVER_PS:
        s.increase_due_ps = time_ps + p.increase_period_ps
    on_timer(p, s, time_ps)


@law
def recover(p: Any, w: Any, s: Any, c: Any, b: Any, before_ps: int, history: Any) -> None:
    """Increases by the timer with nothing in between: most of what senders do, so in a loop of its own."""
    while s.increase_due_ps < before_ps and c.steps < MOST_STEPS:
        c.steps += 1
        c.now_ps = s.increase_due_ps
        c.timed_ps = c.now_ps
        on_increase_timer(p, s, c.now_ps)
        remember(s, c, history, c.now_ps)
        if w.on:
            change(w, b, c.now_ps, s.rate_bps)


@law
def advance(
    p: Any, w: Any, s: Any, c: Any, b: Any, i: int, until_ps: int, cnp_ps: Any, cnp_frame: Any, sent_ps: Any,
    sent: Any, frames: Any, history: Any, ties: Any, spans: Any, log_i: Any, log_f: Any,
) -> bool:  # fmt: skip
    """Let all that is due up to `until_ps` happen; at one instant timers, then CNPs, then octets.

    Args:
        p: Record of `dcqcn.PARAMETERS`.
        w: Record of `bucket.LIMITS`.
        s: Record of `dcqcn.STATE`.
        c: Record of `CLOCK`.
        b: Record of `bucket.BUCKET`.
        i: The sender's number.
        until_ps: Picoseconds.
        cnp_ps: When announced notifications arrive, in order.
        cnp_frame: The frames behind them.
        sent_ps: When frames are sent, in order.
        sent: Octets sent with and before each of them.
        frames: Their numbers.
        history: Lowest rate of each part of the span.
        ties: Room for `ties.MOST_TIES` ties.
        spans: Room for spans ahead of the model.
        log_i: Log, whole numbers.
        log_f: Log, floats.

    Returns:
        False when the log is full: read it, set `logged` to 0 and call again.
    """
    while True:
        if c.telling and c.logged + 1 >= len(log_i):
            return False
        timer = next_timer_ps(p, s)
        # alpha's own steps are told only while notifications restart its timer and the sender is limited
        if c.telling and timer != NEVER_PS and p.alpha_timer == RESTART:
            timer = min(timer, s.alpha_due_ps)
        cnp = int(cnp_ps[c.cnp_at]) if c.cnp_at < len(cnp_ps) else NEVER_PS
        full_row = next_full(p, s, c, sent)
        full = int(sent_ps[full_row]) if full_row < len(sent) else NEVER_PS
        due = min(timer, cnp, full)
        if due > until_ps or due == NEVER_PS:
            break
        if not c.telling and due < s.cut_due_ps and due < cnp and due < full:
            next_ps = int(sent_ps[c.row]) if c.row < len(sent_ps) else NEVER_PS
            recover(p, w, s, c, b, min(until_ps + 1, s.cut_due_ps, cnp, full, next_ps), history)
            if s.increase_due_ps != due:
                continue
        if due == timer:
            c.steps += 1
            if c.steps > MOST_STEPS:
                jump(p, s, c, min(until_ps, cnp, full))
                continue
        c.now_ps = due
        by_octets = due < timer and due < cnp
        row = full_row if by_octets else row_before(c, sent_ps, due)
        leave(w, b, c, i, row, sent_ps, sent, frames, spans)
        stepped = count(p, s, c, row + by_octets, sent)
        if c.tick_ps > 0 and stepped & INCREASE != 0:
            book(c, ties, due, 0, ties_of_step(s, c, due))
        happened(p, s, c, stepped, 0, history, log_i, log_f)
        what = 0
        frame = 0
        if due == timer:
            # alpha is settled when somebody looks at it
            looked_at = c.telling or s.cut_due_ps <= due
            what = on_timer(p, s, due) if looked_at else on_increase_timer(p, s, due)
            if what & INCREASE != 0:
                c.timed_ps = due
        elif due == cnp:
            c.steps = 0
            frame = int(cnp_frame[c.cnp_at])
            c.cnp_at += 1
            if c.tick_ps > 0:
                book(c, ties, due, frame, ties_of_cnp(p, s, c, due))
            what = on_cnp(p, s, due)
        if c.tick_ps > 0 and what & CUT != 0:
            book(c, ties, due, frame, ties_of_octets(p, c, sent_ps, due))
        happened(p, s, c, what, frame, history, log_i, log_f)
        if w.on and (stepped | what) & (CUT | INCREASE) != 0:
            change(w, b, due, s.rate_bps)
    c.now_ps = max(c.now_ps, until_ps)
    row = row_before(c, sent_ps, until_ps + 1)
    leave(w, b, c, i, row, sent_ps, sent, frames, spans)
    count(p, s, c, row, sent)
    return True


ROUND = np.dtype([("at", "i8"), ("logged", "i8")], align=True)
Round = twin(ROUND)


@law
def advance_all(
    p: Any, w: Any, r: Any, states: Any, clocks: Any, buckets: Any, until_ps: int, offsets: Any, cnp_ps: Any,
    cnp_frame: Any, sent_ps: Any, sent: Any, frames: Any, histories: Any, ties: Any, spans: Any, log_i: Any,
    log_f: Any,
) -> bool:  # fmt: skip
    """`advance` for every sender, one after the other.

    Args:
        p: Record of `dcqcn.PARAMETERS`.
        w: Record of `bucket.LIMITS`.
        r: Record of `ROUND`: the sender whose turn it is, log rows written.
        states: Records of `dcqcn.STATE`.
        clocks: Records of `CLOCK`.
        buckets: Records of `bucket.BUCKET`.
        until_ps: Picoseconds.
        offsets: For each sender, first and end of its notifications, first and end of its frames.
        cnp_ps: When notifications arrive, sender after sender.
        cnp_frame: The frames behind them.
        sent_ps: When frames are sent, sender after sender.
        sent: Octets each sender sent with and before each of its frames.
        frames: Their numbers.
        histories: Lowest rates of each sender.
        ties: Ties of each sender.
        spans: Room for spans ahead of the model.
        log_i: Log, whole numbers.
        log_f: Log, floats.

    Returns:
        False when the log is full: read it, set `logged` to 0 and call again.
    """
    while r.at < len(offsets):
        i = r.at
        c = clocks[i]
        c.logged = r.logged
        cnps = slice(offsets[i, 0], offsets[i, 1])
        own = slice(offsets[i, 2], offsets[i, 3])
        done = advance(
            p, w, states[i], c, buckets[i], i, until_ps, cnp_ps[cnps], cnp_frame[cnps], sent_ps[own],
            sent[own], frames[own], histories[i], ties[i], spans, log_i, log_f,
        )  # fmt: skip
        for row in range(r.logged, c.logged):
            log_i[row, LOG_SENDER] = i
        r.logged = c.logged
        if not done:
            return False
        r.at = i + 1
    return True


@law
def finish_all(p: Any, states: Any, clocks: Any, histories: Any, last_ps: int) -> None:
    """Bring every sender's alpha up to its clock, and complete its history."""
    for i in range(len(clocks)):
        on_timer(p, states[i], clocks[i].now_ps)
        remember(states[i], clocks[i], histories[i], last_ps)


@cache
def compiled_advance() -> tuple[Callable[..., bool], Callable[..., None]]:
    """`advance_all` and `finish_all`, compiled for records; the same text, the same bits."""
    from roce_pkt import jit

    compile_laws()
    compiled = jit.fast_kernel(advance_all)
    if not jit.is_compiled(compiled):
        announce_compile("the reaction point")
    return compiled, jit.fast_kernel(finish_all)
