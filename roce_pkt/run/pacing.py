"""How a receiver paces its notifications, inferred from those it sent: what they are paced by, how far apart.

Two notifications of one key are never closer than the interval, and marks in between stay without an
answer. So for each scope the closest pair bounds the interval from above, and the oldest mark that
went unanswered bounds it from below; the scope under which the receiver owes least is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roce_pkt.endpoint import notification
from roce_pkt.flows.rows import Rows
from roce_pkt.flows.survey import Survey
from roce_pkt.run.clock import clock_ps
from roce_pkt.run.notify import MANY_ROWS, NO_FLOW, NotificationPoint, key_of
from roce_pkt.run.setup import Setup
from roce_pkt.units import PS_PER_NS, format_time_ns

Ints = NDArray[np.int64]
From = Literal["given", "profile", "capture"]
LEAST_PAIRS = 4
"""Pairs of notifications of one key that an inference needs."""
FEW_CLOSE = 2
"""Pairs of many that may be closer than the interval: their frames were delayed."""
MOST_ROWS = 50_000
"""Marks and notifications looked at."""
WORDS = {"qp": "queue pair", "ip_pair": "pair of addresses", "dst_ip": "sender address", "port": "port"}


@dataclass(frozen=True, slots=True)
class Pacing:
    """How receivers are taken to pace.

    Args:
        interval_from: Where the interval comes from.
        scope_from: Where the scope comes from.
        text: The reason, in one sentence.
    """

    interval_from: From
    scope_from: From
    text: str


@dataclass(frozen=True, slots=True)
class _Guess:
    scope: int
    pairs: int
    low_ps: int
    high_ps: int
    owes: int = 0


def infer(
    survey: Survey, setup: Setup, rows: Rows, owners: Ints, nak_owners: Ints, origin_ns: int, slack_ps: int
) -> tuple[Setup, Pacing]:
    """Choose interval and scope where they were not given.

    Args:
        survey: The flows.
        setup: As asked for.
        rows: Marks and notifications in time order.
        owners: Data flow of each kind of notification, or `NO_FLOW`.
        nak_owners: The same for NAKs.
        origin_ns: The machines' zero.
        slack_ps: The capture's clock tick.
    """
    asked: tuple[From, From] = (
        "given" if "np.interval" in setup.given else "profile",
        "given" if "np.scope" in setup.given else "profile",
    )
    as_is = Pacing(*asked, "")
    if asked == ("given", "given") or setup.np.mode != notification.GATE:
        return setup, as_is
    times = _Times(survey, setup, rows, owners, origin_ns)
    scopes = [setup.np.scope] if asked[1] == "given" else range(len(notification.SCOPES))
    guesses = [guess for scope in scopes if (guess := times.guess(scope, slack_ps)) is not None]
    if not guesses:
        return setup, as_is
    judged = []
    for guess in guesses:
        interval = setup.np.interval_ps
        if asked[0] != "given" and not guess.low_ps <= interval <= guess.high_ps + slack_ps:
            interval = max(guess.high_ps - slack_ps, 0)
        tried = setup.notifying(scope=guess.scope, interval_ps=interval)
        owes = _owes(survey, tried, rows, owners, nak_owners, origin_ns, slack_ps)
        judged.append((owes, guess.scope != setup.np.scope, guess.scope, guess))
    best = min(judged)[3]
    sure = len({owes for owes, *_ in judged}) > 1
    scope = best.scope if sure else setup.np.scope
    best = next((guess for guess in guesses if guess.scope == scope), best)
    interval, interval_from = setup.np.interval_ps, asked[0]
    if interval_from != "given" and not best.low_ps <= interval <= best.high_ps + slack_ps:
        interval, interval_from = _round(best.low_ps, best.high_ps), "capture"
    scope_from: From = asked[1] if asked[1] == "given" or not sure else "capture"
    text = _text(best, interval, (interval_from, scope_from), single=not sure)
    return setup.notifying(scope=scope, interval_ps=interval), Pacing(interval_from, scope_from, text)


def _text(best: _Guess, interval_ps: int, origins: tuple[From, From], *, single: bool) -> str:
    def time(ps: int) -> str:
        return format_time_ns(ps / PS_PER_NS)

    word = WORDS[notification.SCOPES[best.scope]]
    seen = f"of {best.pairs + 1} CNPs none came within {time(best.high_ps)} of another of its {word}"
    if best.low_ps > 0:
        seen += f", and marks up to {time(best.low_ps)} after one stayed unanswered"
    if origins[0] == "capture":
        claim = f"the receiver paces by {time(interval_ps)} for each {word}"
    else:
        claim = f"an interval of {time(interval_ps)} for each {word} fits"
    doubt = "; what is paced together cannot be told apart here" if single and origins[1] != "given" else ""
    return f"{claim}: {seen}{doubt}"


def _owes(
    survey: Survey, setup: Setup, rows: Rows, owners: Ints, nak_owners: Ints, origin_ns: int, slack_ps: int
) -> int:
    """Verdicts that speak against a way of pacing."""
    machine = NotificationPoint(
        survey, setup, owners, nak_owners, origin_ns, slack_ps, compiled=survey.repays(len(rows), MANY_ROWS)
    )
    end_ps = clock_ps(int(rows.time_ns[-1]), origin_ns)
    machine.add(rows, end_ps)
    machine.finish(end_ps)
    return machine.total("missing", "early", "late", "wrong_qp")


class _Times:
    """Marks and notifications of marked flows, by time at the receiver."""

    def __init__(self, survey: Survey, setup: Setup, rows: Rows, owners: Ints, origin_ns: int) -> None:
        self._survey = survey
        away = setup.to_receiver_ps
        time_ps = clock_ps(rows.time_ns, origin_ns)
        cnp, marked = rows.cnp, rows.marked_data
        flow = rows.flow.astype(np.int64)
        flow[cnp] = owners[flow[cnp]]
        flow[~(cnp | marked)] = NO_FLOW
        has_marks = np.zeros(len(survey.flows) + 1, bool)
        has_marks[flow[marked]] = True
        has_marks[NO_FLOW] = False
        self._cnp = np.flatnonzero(cnp & has_marks[flow])
        self._mark = np.flatnonzero(marked)
        self._flow = flow
        self._left_ps, self._came_ps = time_ps - away, time_ps + away

    def guess(self, scope: int, slack_ps: int) -> _Guess | None:
        """Bounds of the interval if this were the scope; None without enough notifications."""
        keys = self._keys(scope)
        order = np.lexsort((self._left_ps[self._cnp], keys[self._flow[self._cnp]]))
        sent = self._cnp[order]
        key, left = keys[self._flow[sent]], self._left_ps[sent]
        same = key[1:] == key[:-1]
        if same.sum() < LEAST_PAIRS:
            return None
        gaps = np.diff(left)[same]
        high = int(np.partition(gaps, FEW_CLOSE)[FEW_CLOSE] if len(gaps) > 100 * FEW_CLOSE else gaps.min())
        order = np.lexsort((self._came_ps[self._mark], keys[self._flow[self._mark]]))
        marks = self._mark[order]
        # one number for key and time, so that one search answers for all keys
        width = int(max(self._came_ps[marks].max(), left.max())) + 1
        coarse = width * (int(keys.max()) + 1) // (1 << 62) + 1  # keeps it within 64 bits
        width = width // coarse + 1
        place = keys[self._flow[marks]] * width + self._came_ps[marks] // coarse
        last = np.searchsorted(place, key * width + left // coarse, "right") - 1
        known = (last >= 0) & (keys[self._flow[marks[last]]] == key)
        delay = left - self._came_ps[marks[last]]
        usual = int(np.quantile(delay[known], 0.1)) if known.any() else 0
        # the mark before the one that was answered: old, and without an answer
        before = np.searchsorted(place, key * width + (left - usual - slack_ps - 1) // coarse, "right") - 1
        kept = before[1:][same]
        age = self._came_ps[marks[kept]] - (left[:-1][same] - usual)
        ages = age[(kept >= 0) & (keys[self._flow[marks[kept]]] == key[1:][same]) & (age > 0)]
        low = int(np.quantile(ages, 0.98, method="lower")) if len(ages) else 0
        return _Guess(scope, int(same.sum()), min(low, high), high)

    def _keys(self, scope: int) -> Ints:
        survey, known = self._survey, dict[tuple[int, ...], int]()
        ports = survey.ports.tolist()
        keys = [
            known.setdefault(key_of(scope, ports[number], flow, number), len(known))
            for number, flow in enumerate(survey.flows.keys)
        ]
        return np.array([*keys, -1], np.int64)


def _round(low_ps: int, high_ps: int) -> int:
    """A round number of no more than the upper bound, if one is above the lower: people set such."""
    for digits in (1, 2, 3):
        step = 10 ** max(len(str(high_ps)) - digits, 0)
        rounded = high_ps // step * step
        if rounded >= max(low_ps, 1):
            return rounded
    return high_ps
