"""The senders of a capture: notifications and octets in, rate changes out, all senders in one walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc import dcqcn
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.run import clockwork as cw
from roce_pkt.run.bucket import BUCKET, LIMITS, MOST_WRITTEN, SPAN_COLUMNS, Bucket, Limits
from roce_pkt.run.ties import MOST_TIES, TIE_COLUMNS, listed
from roce_pkt.run.twins import copy_of, more, record_of, twins_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KINDS = ((dcqcn.CUT, "rp.cut"), (dcqcn.ALPHA, "rp.alpha"), (dcqcn.INCREASE, "rp.increase"))
NO_SENDER = -1
RADIX_SENDERS = 1 << 15
"""Below this numbers sort by radix."""


class Steps(NamedTuple):
    """What senders did, sender after sender and each in time order.

    Args:
        flow: Whose step.
        whole: Rows of the clockwork's log, whole numbers.
        parts: Floats.
    """

    flow: Ints
    whole: Ints
    parts: Floats


def told(steps: Steps) -> Iterator[tuple[int, int, str, int | None, dict[str, object]]]:
    """Steps as events: flow, time, kind, frame behind it, the sender's state after it."""
    rows = zip(steps.flow.tolist(), steps.whole.tolist(), steps.parts.tolist(), strict=True)
    for flow, (time_ps, what, frame, stage, phase, _), (rate, target, alpha) in rows:
        state: dict[str, object] = {
            "rate_bps": rate,
            "target_bps": target,
            "alpha": alpha,
            "stage": stage,
            "phase": dcqcn.PHASES[phase],
        }
        for bit, kind in KINDS:
            if what & bit:
                yield flow, time_ps, kind, frame or None, state


class Sent(NamedTuple):
    """Frames of known senders, sender after sender and each in time order.

    Args:
        starts: Where each sender's frames begin, and where the last one's end.
        time_ps: When each left.
        summed: Octets from Ethernet header to ICRC that its sender sent with and before it, from the first
            here on.
        frame: Its number.
    """

    starts: Ints
    time_ps: Ints
    summed: Ints
    frame: Ints

    @classmethod
    def of(cls, sender: Ints, time_ps: Ints, octets: Ints, frame: Ints, senders: int) -> Sent:
        """From each frame's sender and octets, sender after sender."""
        starts = np.searchsorted(sender, np.arange(senders + 1))
        before = np.concatenate(([0], np.cumsum(octets)))
        return cls(starts, time_ps, before[1:] - np.repeat(before[starts[:-1]], np.diff(starts)), frame)


class Senders:
    """Reaction points of all flows that were told to slow down.

    Args:
        record: A record of `dcqcn.PARAMETERS`.
        span_ps: First and last time of the rates' histories.
        flows: How many flows there are.
        ticks_ps: For each flow the resolution of its notifications' times: nearer than that is a tie; 0
            or None: they are exact.
        wire: Twin of `checks.WIRE` to compare what is sent with the model, or None.
        telling: Hand out steps.
        compiled: Run compiled; else plain.
    """

    def __init__(
        self,
        record: Any,
        span_ps: tuple[int, int],
        flows: int,
        ticks_ps: Ints | None = None,
        wire: Any = None,
        *,
        telling: bool,
        compiled: bool,
    ) -> None:
        self.flows: list[int] = []
        self.number = np.full(flows, NO_SENDER, np.int64)
        """Which sender each flow is, or `NO_SENDER`."""
        self.plain_p = dcqcn.PARAMETERS.twin(record)
        self._p = record if compiled else self.plain_p
        self._compiled, self._telling, self._span_ps = compiled, telling, span_ps
        self._ticks_ps = np.zeros(flows, np.int64) if ticks_ps is None else ticks_ps
        self._states: Any = np.zeros(0, dcqcn.STATE) if compiled else []
        self._clocks: Any = np.zeros(0, cw.CLOCK) if compiled else []
        self._histories: Any = np.zeros((0, cw.BUCKETS)) if compiled else []
        self.buckets: Any = np.zeros(0, BUCKET) if compiled else []
        self._ties = np.zeros((0, MOST_TIES, TIE_COLUMNS), np.int64)
        texts: tuple[Callable[..., bool], Callable[..., None]] = (cw.advance_all, cw.finish_all)
        self._advance, self._finish = cw.compiled_advance() if compiled else texts
        limits = Limits()
        if wire is not None:
            limits.on, limits.tolerance, limits.burst_bits = 1, wire.tolerance, 8.0 * wire.burst_bytes
        self._limits: Any = record_of(limits, LIMITS) if compiled else limits
        self._spans = np.zeros((0, SPAN_COLUMNS), np.int64)
        rows = cw.LOG_ROWS if telling else 0
        self._log_i, self._log_f = np.zeros((rows, cw.LOG_WHOLE), np.int64), np.zeros((rows, 3))
        self._cnps = (_NOTHING, _NOTHING, _NOTHING)  # sender, time, frame

    def __len__(self) -> int:
        return len(self.flows)

    def _meet(self, flows: Ints) -> None:
        """Senders for flows that had none."""
        told = np.zeros(len(self.number), bool)
        told[flows] = True
        new = np.flatnonzero(told & (self.number == NO_SENDER))
        if not len(new):
            return
        self.number[new] = np.arange(len(self.flows), len(self.flows) + len(new))
        self.flows += new.tolist()
        first, last = self._span_ps
        state, clock = dcqcn.State(), cw.Clock()
        dcqcn.start(self.plain_p, state, first)
        clock.now_ps = clock.first_ps = first
        clock.span_ps = max(last - first, 1)
        clock.telling, clock.timed_ps = self._telling, -NEVER_PS
        clock.held_bps = clock.rate_min_bps = state.rate_bps
        self._ties = np.concatenate((self._ties, np.zeros((len(new), MOST_TIES, TIE_COLUMNS), np.int64)))
        if self._compiled:
            self._states = more(self._states, state, len(new))
            self._clocks = more(self._clocks, clock, len(new))
            self._clocks["tick_ps"][-len(new) :] = self._ticks_ps[new]
            histories = np.full((len(new), cw.BUCKETS), state.rate_bps)
            self._histories = np.concatenate((self._histories, histories))
            self.buckets = np.concatenate((self.buckets, np.zeros(len(new), BUCKET)))
            return
        for tick_ps in self._ticks_ps[new].tolist():
            clock.tick_ps = tick_ps
            self._states.append(copy_of(state))
            self._clocks.append(copy_of(clock))
            self._histories.append([state.rate_bps] * cw.BUCKETS)
            self.buckets.append(Bucket())

    def notify(self, flow: Ints, time_ps: Ints, frame: Ints) -> None:
        """Notifications will arrive; for each flow in time order, and not before any announced earlier."""
        self._meet(flow)
        both = zip(self._cnps, (self.number[flow], time_ps, frame), strict=True)
        whose, when, what = (np.concatenate(parts) for parts in both)
        # few senders' numbers sort by radix
        order = np.argsort(whose.astype(np.int16 if len(self) < RADIX_SENDERS else np.int64), kind="stable")
        self._cnps = whose[order], when[order], what[order]

    def advance(self, until_ps: int, sent: Sent | None = None) -> Steps:
        """Let all that is due up to `until_ps` happen.

        Args:
            until_ps: Picoseconds.
            sent: What senders sent since the last time, up to then.
        """
        whose, cnp_ps, cnp_frame = self._cnps
        sent = sent or Sent(np.zeros(len(self) + 1, np.int64), _NOTHING, _NOTHING, _NOTHING)
        cnp_at, sent_at = np.searchsorted(whose, np.arange(len(self) + 1)), sent.starts
        offsets = np.stack((cnp_at[:-1], cnp_at[1:], sent_at[:-1], sent_at[1:]), axis=1)
        self._reset(len(sent.frame))
        turn: Any = np.zeros(1, cw.ROUND).view(np.recarray)[0] if self._compiled else cw.Round()
        found: list[tuple[Ints, Floats]] = []
        while not self._advance(
            self._p, self._limits, turn, self._states, self._clocks, self.buckets, until_ps, offsets, cnp_ps,
            cnp_frame, sent.time_ps, sent.summed, sent.frame, self._histories, self._ties, self._spans,
            self._log_i, self._log_f,
        ):  # fmt: skip
            self._drain(turn, found)
        self._drain(turn, found)
        arrived = np.repeat(cnp_at[:-1] + self._column("cnp_at", np.int64), np.diff(cnp_at))
        waiting = np.arange(len(whose)) >= arrived
        self._cnps = whose[waiting], cnp_ps[waiting], cnp_frame[waiting]
        whole = np.concatenate([rows for rows, _ in found] or [self._log_i[:0]])
        parts = np.concatenate([rows for _, rows in found] or [self._log_f[:0]])
        flows = np.array(self.flows, np.int64)
        return Steps(flows[whole[:, cw.LOG_SENDER]] if len(whole) else _NOTHING, whole, parts)

    @property
    def spans(self) -> Ints:
        """Spans ahead of the model that ended in the last advance, rows of `bucket`'s columns."""
        return self._spans[: int(self._limits.written)]

    def _reset(self, frames: int) -> None:
        """Start at the first notification and frame announced; the count of idle steps starts over."""
        self._limits.written = 0
        if self._limits.on and len(self._spans) < min(frames, MOST_WRITTEN):
            self._spans = np.zeros((min(frames, MOST_WRITTEN), SPAN_COLUMNS), np.int64)
        if self._compiled:
            for name in ("cnp_at", "sent_at", "row", "steps"):
                self._clocks[name] = 0
        else:
            for clock in self._clocks:
                clock.cnp_at = clock.sent_at = clock.row = clock.steps = 0

    def _drain(self, turn: Any, found: list[tuple[Ints, Floats]]) -> None:
        logged = int(turn.logged)
        if logged:
            found.append((self._log_i[:logged].copy(), self._log_f[:logged].copy()))
            turn.logged = 0

    def finish(self, end_ps: int) -> Steps:
        """The capture ends: deliver what is still on its way, and complete the histories."""
        steps = self.advance(max(end_ps, int(self._cnps[1].max(initial=0))))
        self._finish(self._p, self._states, self._clocks, self._histories, self._span_ps[1])
        if self._compiled:
            self._states = twins_of(self._states, dcqcn.State)
            self._clocks = twins_of(self._clocks, cw.Clock)
            self.buckets = twins_of(self.buckets, Bucket)
            self._histories = self._histories.tolist()
            self._compiled, self._p = False, self.plain_p
            self._advance, self._finish = cw.advance_all, cw.finish_all
        return steps

    def _column(self, name: str, dtype: type) -> NDArray[Any]:
        if self._compiled:
            column: NDArray[Any] = self._clocks[name]
            return column
        return np.array([getattr(clock, name) for clock in self._clocks], dtype)

    def of(self, flow: int) -> ReactionPoint | None:
        """What became of a flow's sender, once all is finished; None: it was never told anything."""
        number = int(self.number[flow])
        if number == NO_SENDER:
            return None
        return ReactionPoint(
            self._states[number], self._clocks[number], self._histories[number], self._ties[number]
        )


_NOTHING = np.zeros(0, np.int64)


class ReactionPoint:
    """What became of one sender.

    Args:
        s: Its state, a twin of `dcqcn.STATE`.
        c: Its clock, a twin of `clockwork.CLOCK`.
        history: Lowest rate of each of `clockwork.BUCKETS` equal parts of the span.
        ties: Rows of its ties.

    Attributes:
        ties: What came nearer to each other than stamps tell: the first of `tied`.
    """

    def __init__(self, s: Any, c: Any, history: Any, ties: Any) -> None:
        self.s = s
        self.tied, self.ties = int(c.tied), listed(ties, int(c.tied))
        self.history: list[float] = list(history)
        self.rate_bps, self.alpha = float(s.rate_bps), float(s.alpha)
        self.rate_min_bps, self.cuts, self.skipped_ps = float(c.rate_min_bps), int(c.cuts), int(c.skipped_ps)
