"""What a report shows of an observed capture: curves of the flows that matter, the rest summed, all thinned.

A screen has some thousand columns. Of a curve each column keeps its first, lowest, highest and last
point, so that nothing that sticks out is lost; memory does not grow with the capture.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roce_pkt.flows.rows import CE, DATA, Rows
from roce_pkt.flows.size import LINK_OVERHEAD_BYTES
from roce_pkt.run import clockwork as cw
from roce_pkt.run import judge
from roce_pkt.run.clock import clock_ps
from roce_pkt.run.machines import Plan
from roce_pkt.run.notify import Verdicts
from roce_pkt.run.reaction import Steps
from roce_pkt.run.watch import Watcher
from roce_pkt.run.wire import sliding_rate_bps
from roce_pkt.units import PS_PER_S

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
TOP_FLOWS = 10
COLUMNS = 800
"""Parts of the time axis that keep their own extremes."""
SHARE_COLUMNS = 100
"""Parts that mark shares are taken over: a share needs some frames."""
MARKS = 1000
"""Instants of one kind and flow that are kept, spread over the time axis."""


def thin(
    time_ps: Ints, value: Floats, first_ps: int, span_ps: int, columns: int = COLUMNS
) -> NDArray[np.bool_]:
    """Which points to keep: in each part of the span the first, the lowest, the highest and the last.

    Args:
        time_ps: When, ascending.
        value: What.
        first_ps: Start of the span.
        span_ps: Its length.
        columns: Parts.
    """
    kept = np.zeros(len(time_ps), bool)
    if not len(time_ps):
        return kept
    column = (time_ps - first_ps) // max(span_ps // columns, 1)
    starts = np.flatnonzero(np.concatenate(([True], column[1:] != column[:-1])))
    kept[starts] = True
    kept[np.concatenate((starts[1:], [len(time_ps)])) - 1] = True
    order = np.lexsort((value, column))
    ends = np.searchsorted(column[order], column[starts])
    kept[order[ends]] = True
    kept[order[np.concatenate((ends[1:], [len(time_ps)])) - 1]] = True
    return kept


@dataclass(slots=True)
class Thinned:
    """A curve of any length in bounded memory.

    Args:
        columns: Parts of the time it covers so far that keep their extremes.
    """

    columns: int = COLUMNS
    _times: list[Ints] = field(default_factory=list)
    _values: list[Floats] = field(default_factory=list)
    _held: int = 0

    def add(self, time_ps: Ints, value: Floats) -> None:
        """Points, not before any added earlier."""
        self._times.append(time_ps)
        self._values.append(value)
        self._held += len(time_ps)
        if self._held > 16 * self.columns:
            self.points()

    def points(self) -> tuple[Ints, Floats]:
        """What is kept."""
        times = np.concatenate(self._times or [np.zeros(0, np.int64)])
        values = np.concatenate(self._values or [np.zeros(0)])
        if len(times) > 4 * self.columns:
            first = int(times[0])
            kept = thin(times, values, first, int(times[-1]) - first, self.columns)
            times, values = times[kept], values[kept]
        self._times, self._values, self._held = [times], [values], len(times)
        return times, values


@dataclass(slots=True)
class FlowTrack:
    """The curves of one flow.

    Args:
        flow: Its number, or -1 for the rest.
        rate: Model's rate.
        target: Model's target rate.
        alpha: Model's alpha.
        wire: Rate on the wire over a sliding window.
        marks: Marked data frames of each column.
        data: Data frames of each column.
        verdicts: Time, frame and span of notifications by verdict.
    """

    flow: int
    rate: Thinned
    target: Thinned
    alpha: Thinned
    wire: Thinned
    marks: Ints
    data: Ints
    verdicts: dict[int, list[Ints]] = field(default_factory=dict)

    def verdict(self, what: int) -> Ints:
        """Times, frames and spans of one verdict, as columns; spread out where there are many."""
        found = np.concatenate(self.verdicts.get(what, [np.zeros((0, 3), np.int64)]))
        return (
            found[np.unique(np.linspace(0, len(found) - 1, MARKS).astype(np.int64))]
            if len(found) > MARKS
            else found
        )


def _with_silence(time_ps: Ints, rate: Floats, window_ps: int) -> tuple[Ints, Floats]:
    """A rate that falls to zero a window after a frame that none followed."""
    gaps = np.flatnonzero(np.diff(time_ps) > 2 * window_ps)
    times = np.concatenate((time_ps, time_ps[gaps] + window_ps, time_ps[gaps + 1] - window_ps // 2))
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate((rate, np.zeros(2 * len(gaps))))[order]


class Track(Watcher):
    """Collects what a report shows.

    Args:
        plan: What is known before the run.
        top: Flows that get curves of their own.
    """

    def __init__(self, plan: Plan, top: int = TOP_FLOWS) -> None:
        self.plan = plan
        self.span_ps = max(clock_ps(plan.survey.duration_ns, 0), 1)
        self.top = self._choose(top)
        self._window_ps = int(plan.setup.wire.window_ps)
        self.flows = {flow: self._new(flow) for flow in self.top}
        self.rest = self._new(-1)
        self.rest_octets = np.zeros(COLUMNS, np.int64)
        self._place = np.full(len(plan.survey.flows), -1, np.int64)
        self._place[self.top] = np.arange(len(self.top))

    def _choose(self, most: int) -> list[int]:
        """Flows that were told to slow down or marked, then the largest; never only acknowledgements."""
        survey, seen = self.plan.survey, self.plan.cnps_seen
        flows = [flow for flow in survey if flow.data_frames or flow.ce]
        flows.sort(key=lambda flow: (-(seen.get(flow.number, 0) + flow.ce > 0), -flow.octets, flow.number))
        return [flow.number for flow in flows[:most]]

    def _new(self, flow: int) -> FlowTrack:
        rate, target, alpha, wire = (Thinned() for _ in range(4))
        data, marks = np.zeros((2, SHARE_COLUMNS), np.int64)
        return FlowTrack(flow, rate, target, alpha, wire, marks, data)

    def column_of(self, time_ps: Ints) -> Ints:
        """Which part of the time axis."""
        return np.clip(time_ps * COLUMNS // self.span_ps if self.span_ps < 1 << 52 else time_ps // (
            self.span_ps // COLUMNS), 0, COLUMNS - 1)  # fmt: skip

    def rows(self, rows: Rows) -> None:
        """Frames of a batch."""
        data = np.flatnonzero(rows.having(DATA))
        times = clock_ps(rows.time_ns[data], self.plan.origin_ns)
        octets = rows.octets[data].astype(np.int64) + LINK_OVERHEAD_BYTES
        place, column = self._place[rows.flow[data]], self.column_of(times)
        marked = (rows.flags[data] & CE) != 0
        for number, flow in enumerate([*self.top, -1]):
            own = np.flatnonzero(place == (number if flow >= 0 else -1))
            track = self.flows[flow] if flow >= 0 else self.rest
            share = column[own] * SHARE_COLUMNS // COLUMNS
            track.data += np.bincount(share, minlength=SHARE_COLUMNS)
            track.marks += np.bincount(share[marked[own]], minlength=SHARE_COLUMNS)
            if flow >= 0:
                rate = sliding_rate_bps(times[own], octets[own], self._window_ps)
                # a window that reaches back before the first frame is not full
                full = times[own] >= self._full_from_ps(flow)
                track.wire.add(*_with_silence(times[own][full], rate[full], self._window_ps))
            else:
                summed = np.bincount(column[own], octets[own], COLUMNS)
                self.rest_octets += summed.astype(np.int64)

    def _full_from_ps(self, flow: int) -> int:
        """From when on windows are full; for a flow shorter than one, from its first frame on."""
        sums, origin = self.plan.survey.sums, self.plan.origin_ns
        first = clock_ps(int(sums.column("first_ns")[flow]), origin)
        last = clock_ps(int(sums.column("last_ns")[flow]), origin)
        return first + self._window_ps if last - first > 2 * self._window_ps else first

    def verdicts(self, verdicts: Verdicts) -> None:
        """Notifications owed, sent or missing."""
        place = self._place[verdicts.flow]
        for number, flow in enumerate([*self.top, -1]):
            track = self.flows[flow] if flow >= 0 else self.rest
            own = place == (number if flow >= 0 else -1)
            for what in np.unique(verdicts.what[own]).tolist():
                which = own & (verdicts.what == what)
                columns = (verdicts.time_ps[which], verdicts.frame[which], verdicts.span_ps[which])
                held = [*track.verdicts.get(what, []), np.stack(columns, axis=1)]
                if sum(map(len, held)) > 4 * MARKS:
                    every = np.concatenate(held)
                    held = [every[np.linspace(0, len(every) - 1, 2 * MARKS).astype(np.int64)]]
                track.verdicts[what] = held

    def steps(self, steps: Steps) -> None:
        """Senders took steps."""
        place = self._place[steps.flow]
        for number, flow in enumerate(self.top):
            own = place == number
            times = steps.whole[own, cw.LOG_TIME]
            track = self.flows[flow]
            track.rate.add(times, steps.parts[own, cw.LOG_RATE])
            track.target.add(times, steps.parts[own, cw.LOG_TARGET])
            track.alpha.add(times, steps.parts[own, cw.LOG_ALPHA])

    @property
    def rest_bps(self) -> Floats:
        """Rate on the wire of all other flows together, by column."""
        return np.asarray(self.rest_octets * (8 * PS_PER_S * COLUMNS / self.span_ps), np.float64)


SHOWN_VERDICTS = (
    judge.ON_TIME, judge.LATE, judge.EARLY, judge.UNASKED, judge.AFTER_NAK, judge.WRONG_QP, judge.MISSING,
)  # fmt: skip
