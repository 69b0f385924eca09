"""Ties: two things nearer to each other than a capture's stamps can tell.

A sender's timers run from one notification, the next notification has a stamp of its own: when it
falls on a tick, the capture does not say which came first, and the rates after it may be those of
either order. So each such case is listed. Timers that run from the same notification are exact
among themselves and never tie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roce_pkt.cc.dcqcn import UNLIMITED
from roce_pkt.cc.dcqcn_parameters import POLLED
from roce_pkt.cc.law import NEVER_PS, law

WITH_ALPHA, WITH_POLL, WITH_INCREASE, WITH_OCTETS = 1, 2, 4, 8
"""What a notification, a cut or a byte step can tie with."""
WORDS = {
    WITH_ALPHA: "alpha's period",
    WITH_POLL: "the poll for a cut",
    WITH_INCREASE: "the increase timer",
    WITH_OCTETS: "a frame being sent",
}
MOST_TIES = 16
"""Ties kept of each sender; the rest is counted."""
TIE_TIME, TIE_FRAME, TIE_WITH = range(3)
TIE_COLUMNS = 3


class Tie(NamedTuple):
    """One tie.

    Args:
        time_ps: When.
        frame: The notification's frame, or None: a step that octets or a timer took.
        bits: What it ties with.
    """

    time_ps: int
    frame: int | None
    bits: int

    @property
    def words(self) -> list[str]:
        """What it ties with, for people."""
        return [word for bit, word in WORDS.items() if self.bits & bit]


@law
def near_tick(now: int, tick_of_grid_ps: int, period_ps: int, resolution_ps: int) -> bool:
    """Whether `now` cannot be told from some point of a grid."""
    after = (now - tick_of_grid_ps) % period_ps
    return after < resolution_ps or period_ps - after < resolution_ps


@law
def near_increase(s: Any, c: Any, now: int) -> bool:
    """Whether `now` cannot be told from the increase timer's step before or behind it."""
    pending = s.increase_due_ps != NEVER_PS and abs(s.increase_due_ps - now) < c.tick_ps
    return pending or now - c.timed_ps < c.tick_ps


@law
def ties_of_cnp(p: Any, s: Any, c: Any, now: int) -> int:
    """What a notification that is about to be delivered ties with."""
    if s.phase == UNLIMITED:
        return 0
    found = 0
    if near_tick(now, s.alpha_due_ps, p.alpha_period_ps, c.tick_ps):
        found |= WITH_ALPHA
    if p.cut_trigger == POLLED:
        if now > s.poll_start_ps - c.tick_ps and near_tick(now, s.poll_start_ps, p.cut_period_ps, c.tick_ps):
            found |= WITH_POLL
    elif near_increase(s, c, now):
        found |= WITH_INCREASE
    return found


@law
def ties_of_step(s: Any, c: Any, now: int) -> int:
    """What a step of the byte counter ties with."""
    return WITH_INCREASE if near_increase(s, c, now) else 0


@law
def ties_of_octets(p: Any, c: Any, sent_ps: Any, now: int) -> int:
    """Whether a frame is sent as the byte counter starts anew with a cut."""
    if not p.byte_counter:
        return 0
    row = int(np.searchsorted(sent_ps, now))
    behind = row < len(sent_ps) and sent_ps[row] - now < c.tick_ps
    before = row > 0 and now - sent_ps[row - 1] < c.tick_ps
    return WITH_OCTETS if behind or before else 0


@law
def book(c: Any, ties: Any, now: int, frame: int, found: int) -> None:
    """Write a tie down, if there is one."""
    if found == 0:
        return
    if c.tied < MOST_TIES:
        ties[c.tied, TIE_TIME] = now
        ties[c.tied, TIE_FRAME] = frame
        ties[c.tied, TIE_WITH] = found
    c.tied += 1


def listed(ties: Any, count: int) -> list[Tie]:
    """A sender's ties, the first `MOST_TIES` of them.

    Args:
        ties: Its rows.
        count: How many it met.
    """
    rows = np.asarray(ties)[: min(count, MOST_TIES)].tolist()
    return [Tie(time_ps, frame or None, bits) for time_ps, frame, bits in rows]
