"""Notifications judged: marks in, what a receiver owes out, and how what it sent compares. One text.

A receiver's own pacing is seen only through what it sends, some time after it decided to. So each
key of the scope runs the notification point twice: `eager`, whose interval began when a notification
was asked for, says from when on the next is allowed; `lax`, whose interval began when the
notification passed, says from when on one is owed. In between either is right.

Plain Python over lists of twins for a few frames, compiled over records for many (`compiled_judge`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from roce_pkt.cc.law import NEVER_PS, compile_laws, law, twin
from roce_pkt.endpoint.notification import next_timer_ps, on_marked, on_timer, start

MARK, NAK, SEEN = range(3)
"""What a row is: a marked data frame or a NAK at the receiver, a notification leaving it."""
ROW_TIME, ROW_KIND, ROW_FLOW, ROW_KEY, ROW_PAIR, ROW_FRAME = range(6)
ROW_COLUMNS = 6

EXPECTED, ON_TIME, LATE, EARLY, UNASKED, AFTER_NAK, WRONG_QP, MISSING = range(8)
VERDICTS = ("expected", "on-time", "late", "early", "unexpected", "after-nak", "wrong-qp", "missing")

KEY = np.dtype(
    [
        ("begun", "i8"),
        ("may_ps", "i8"),  # from when on one is allowed, or NEVER_PS
        ("owed", "i8"),  # notifications owed
        ("waiting_flow", "i8"),  # whose mark waits for the interval's end
        ("waiting_frame", "i8"),
        ("last_ps", "i8"),  # the last notification seen
    ],
    align=True,
)
MOST_OWED = 8
"""Notifications a key can owe at a time: more would be later than any response."""
OWED_COLUMNS = 3 * MOST_OWED
"""Of each: since when, whose mark asked, in which frame; the oldest first."""
FLOW = np.dtype(
    [
        ("asked", "i8"),  # marks since its last notification
        ("nak_ps", "i8"),  # its last NAK
        *((name, "i8") for name in (word.replace("-", "_") for word in VERDICTS)),
        ("delay_max_ps", "i8"),
        ("delay_sum_ps", "i8"),
    ],
    align=True,
)
Key, FlowCount = twin(KEY), twin(FLOW)

LOG_TIME, LOG_WHAT, LOG_FLOW, LOG_FRAME, LOG_SPAN = range(5)
LOG_COLUMNS = 5
MOST_OF_A_ROW = 2 * MOST_OWED + 6
"""Log rows that one row can cause."""


@law
def note(log: Any, c: Any, time_ps: int, what: int, flow: int, frame: int, span_ps: int) -> None:
    """Write a verdict down."""
    row = c.logged
    log[row, LOG_TIME] = time_ps
    log[row, LOG_WHAT] = what
    log[row, LOG_FLOW] = flow
    log[row, LOG_FRAME] = frame
    log[row, LOG_SPAN] = span_ps
    c.logged = row + 1


@law
def strike(key: Any, owed: Any, k: int, place: int) -> None:
    """One that was owed is owed no more."""
    for at in range(3 * place, 3 * key.owed - 3):
        owed[k, at] = owed[k, at + 3]
    key.owed -= 1


@law
def give_up(key: Any, owed: Any, k: int, flows: Any, c: Any, log: Any, now: int) -> None:
    """The oldest that was owed never came."""
    since, flow, frame = int(owed[k, 0]), int(owed[k, 1]), int(owed[k, 2])
    strike(key, owed, k, 0)
    flows[flow].missing += 1
    note(log, c, now, MISSING, flow, frame, now - since)


@law
def demand(
    key: Any, owed: Any, k: int, flows: Any, c: Any, log: Any, now: int, flow: int, frame: int
) -> None:
    """A notification is owed from now on."""
    while key.owed > 0 and (key.owed == MOST_OWED or now - int(owed[k, 0]) > c.response_ps):
        give_up(key, owed, k, flows, c, log, now)
    at = 3 * key.owed
    owed[k, at] = now
    owed[k, at + 1] = flow
    owed[k, at + 2] = frame
    key.owed += 1
    key.may_ps = min(key.may_ps, now)
    flows[flow].expected += 1
    note(log, c, now, EXPECTED, flow, frame, 0)


@law
def settle(
    p: Any, eager: Any, lax: Any, key: Any, owed: Any, k: int, flows: Any, c: Any, log: Any, now: int
) -> None:
    """Intervals of a key that have ended by now."""
    due = next_timer_ps(p, eager)
    if due <= now and due != NEVER_PS and on_timer(p, eager, due):
        key.may_ps = min(key.may_ps, due)
    due = next_timer_ps(p, lax)
    if due <= now and due != NEVER_PS and on_timer(p, lax, due):
        demand(key, owed, k, flows, c, log, due, key.waiting_flow, key.waiting_frame)


@law
def asked(
    p: Any, eager: Any, lax: Any, key: Any, owed: Any, k: int, flows: Any, c: Any, log: Any, now: int,
    flow: int, frame: int,
) -> None:  # fmt: skip
    """A mark (or what counts as one) arrives."""
    flows[flow].asked += 1
    if on_marked(p, eager, now):
        key.may_ps = min(key.may_ps, now)
    if on_marked(p, lax, now):
        demand(key, owed, k, flows, c, log, now, flow, frame)
    elif next_timer_ps(p, lax) != NEVER_PS:
        key.waiting_flow = flow
        key.waiting_frame = frame


@law
def place_of(key: Any, owed: Any, k: int, flow: int, own: bool) -> int:
    """Which of those owed a notification for `flow` is: one its own mark asked for, or the oldest; or -1."""
    for place in range(key.owed):
        if owed[k, 3 * place + 1] == flow:
            return place
    return 0 if own and key.owed > 0 else -1


@law
def seen(
    p: Any, lax: Any, key: Any, k: int, rival: Any, r: int, owed: Any, flows: Any, c: Any, log: Any, now: int,
    flow: int, frame: int,
) -> None:  # fmt: skip
    """A notification for `flow` leaves; `rival` is the key of its addresses that was asked last."""
    count = flows[flow]
    own = count.asked > 0
    count.asked = 0
    what = UNASKED
    span = 0
    place = place_of(key, owed, k, flow, own)
    if place >= 0 or (own and key.may_ps <= now):
        since = key.may_ps
        if place >= 0:
            since = int(owed[k, 3 * place])
            # paced together, whoever is told has been what the other's mark asked for
            flows[int(owed[k, 3 * place + 1])].expected -= 1
            count.expected += 1
            strike(key, owed, k, place)
        else:
            count.expected += 1
            note(log, c, now, EXPECTED, flow, frame, 0)
            lax.due_ps = NEVER_PS
        key.may_ps = NEVER_PS
        span = now - since
        count.delay_max_ps = max(count.delay_max_ps, span)
        count.delay_sum_ps += span
        what = LATE if span > c.response_ps else ON_TIME
    elif rival.owed > 0 and now - int(owed[r, 0]) <= c.response_ps:
        what = WRONG_QP
        span = now - int(owed[r, 0])
        give_up(rival, owed, r, flows, c, log, now)
    elif own:
        what = EARLY
        span = now - key.last_ps
    elif now - count.nak_ps <= c.response_ps:
        what = AFTER_NAK
        span = now - count.nak_ps
    if what == ON_TIME:
        count.on_time += 1
    elif what == LATE:
        count.late += 1
    elif what == EARLY:
        count.early += 1
    elif what == AFTER_NAK:
        count.after_nak += 1
    elif what == WRONG_QP:
        count.wrong_qp += 1
    else:
        count.unexpected += 1
    # it was decided on at some time up to now, so the next one is owed only an interval from now
    lax.quiet_until_ps = max(lax.quiet_until_ps, now + p.interval_ps + c.slack_ps)
    key.last_ps = now
    note(log, c, now, what, flow, frame, span)


CONTEXT = np.dtype(
    [("response_ps", "i8"), ("slack_ps", "i8"), ("on_nak", "i8"), ("logged", "i8"), ("row", "i8")], align=True
)
Context = twin(CONTEXT)


@law
def judge(
    p: Any, c: Any, eager: Any, lax: Any, keys: Any, owed: Any, flows: Any, rivals: Any, rows: Any,
    begins: Any, log: Any,
) -> bool:  # fmt: skip
    """Judge rows in the receivers' time order.

    Args:
        p: Record of `notification.PARAMETERS`.
        c: Record of `CONTEXT`.
        eager: Notification point of each key, records of `notification.STATE`.
        lax: The same, for the later bound.
        keys: Records of `KEY`.
        owed: What each key owes, `OWED_COLUMNS` each.
        flows: Records of `FLOW`.
        rivals: For each pair of addresses, the key that was asked last.
        rows: `ROW_COLUMNS` of each row.
        begins: When each key's first frame arrived.
        log: Verdicts, `LOG_COLUMNS` each.

    Returns:
        False when the log is full: read it, set `logged` to 0 and call again.
    """
    while c.row < len(rows):
        if c.logged + MOST_OF_A_ROW > len(log):
            return False
        at = c.row
        now, kind, flow = int(rows[at, ROW_TIME]), int(rows[at, ROW_KIND]), int(rows[at, ROW_FLOW])
        k, pair, frame = int(rows[at, ROW_KEY]), int(rows[at, ROW_PAIR]), int(rows[at, ROW_FRAME])
        key = keys[k]
        if not key.begun:
            key.begun = 1
            key.may_ps = NEVER_PS
            key.last_ps = -NEVER_PS
            start(p, eager[k], min(now, int(begins[k])))
            start(p, lax[k], min(now, int(begins[k])))
        settle(p, eager[k], lax[k], key, owed, k, flows, c, log, now)
        if kind == SEEN:
            r = int(rivals[pair])
            seen(p, lax[k], key, k, keys[r], r, owed, flows, c, log, now, flow, frame)
        elif kind == MARK or c.on_nak:
            asked(p, eager[k], lax[k], key, owed, k, flows, c, log, now, flow, frame)
            rivals[pair] = k
        if kind == NAK:
            flows[flow].nak_ps = now
        c.row = at + 1
    return True


@law
def advance(
    p: Any,
    c: Any,
    eager: Any,
    lax: Any,
    keys: Any,
    owed: Any,
    flows: Any,
    log: Any,
    until_ps: int,
    end_ps: int,
) -> bool:
    """Let intervals end that are over by `until_ps`; give up what has been owed for too long by `end_ps`.

    Returns:
        False when the log is full: read it, set `logged` to 0 and call again.
    """
    while c.row < len(keys):
        if c.logged + MOST_OF_A_ROW > len(log):
            return False
        k = c.row
        if keys[k].begun:
            settle(p, eager[k], lax[k], keys[k], owed, k, flows, c, log, until_ps)
            while end_ps != NEVER_PS and keys[k].owed > 0:
                give_up(keys[k], owed, k, flows, c, log, max(end_ps, int(owed[k, 0])))
        c.row = k + 1
    return True


@cache
def compiled_judge() -> tuple[Callable[..., bool], Callable[..., bool]]:
    """`judge` and `advance`, compiled for records; the same text, the same answers."""
    from roce_pkt.jit import kernel

    compile_laws()
    return kernel(judge), kernel(advance)
