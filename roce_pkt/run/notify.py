"""The receivers of a capture: marks in; the notifications they owe, and a verdict on each one seen, out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import notification
from roce_pkt.flows.rows import Rows
from roce_pkt.flows.survey import Survey
from roce_pkt.flows.table import Key
from roce_pkt.run import judge
from roce_pkt.run.clock import clock_ps
from roce_pkt.run.setup import Setup
from roce_pkt.run.twins import record_of, twins_of

Ints = NDArray[np.int64]
Step = Callable[..., bool]
LOG_ROWS = 8192
NO_FLOW = -1

MANY_ROWS = 50_000
"""Marks and notifications for which loading compiled code pays."""


class Verdicts(NamedTuple):
    """What was found of some rows: one array element a verdict, in time order.

    Args:
        time_ps: When, on the receivers' clock.
        what: Index into `judge.VERDICTS`.
        flow: The data flow.
        frame: The mark's frame, or the notification's.
        span_ps: How late, early or long missing.
    """

    time_ps: Ints
    what: Ints
    flow: Ints
    frame: Ints
    span_ps: Ints


def key_of(scope: int, port: int, flow: Key, number: int) -> tuple[int, ...]:
    """What a flow is paced together with.

    Args:
        scope: Code of `notification.SCOPES`.
        port: MAC address of the receiving port.
        flow: The flow's addresses.
        number: The flow's number.
    """
    src_hi, src_lo, dst_hi, dst_lo, _ = flow
    match scope:
        case notification.IP_PAIR:
            return src_hi, src_lo, dst_hi, dst_lo
        case notification.DST_IP:
            # the destination of the notification: the data's source; each receiving port paces for itself
            return port, src_hi, src_lo
        case notification.PORT:
            return (port,)
        case _:
            return (number,)


class NotificationPoint:
    """Every receiver in a capture.

    Args:
        survey: The flows.
        setup: Pacing, response and the tap.
        owners: Data flow of each kind of notification (`Survey.cnps`), or `NO_FLOW`.
        nak_owners: Data flow that a NAK seen in each flow is about, or `NO_FLOW`.
        origin_ns: The machines' zero.
        slack_ps: The capture's clock tick.
        compiled: Run compiled; else plain.

    Attributes:
        counts: What came of each flow's notifications once all is finished, twins of `judge.FLOW`.
    """

    def __init__(
        self, survey: Survey, setup: Setup, owners: Ints, nak_owners: Ints, origin_ns: int, slack_ps: int, *,
        compiled: bool,
    ) -> None:  # fmt: skip
        self._survey, self._setup, self._origin_ns = survey, setup, origin_ns
        self._owners, self._nak_owners, self._compiled = owners, nak_owners, compiled
        self._keys, self._pairs, begins = self._places()
        self._begins = begins
        count, pairs = len(begins), int(self._pairs.max(initial=0)) + 1
        steps: tuple[Step, Step] = judge.compiled_judge() if compiled else (judge.judge, judge.advance)
        self._judge, self._advance = steps
        self._p = record_of(setup.np, notification.PARAMETERS.dtype) if compiled else setup.np
        make = _records if compiled else _twins
        self._eager, self._lax = (make(notification.STATE, notification.State, count) for _ in range(2))
        self._states = make(judge.KEY, judge.Key, count)
        self._flows = make(judge.FLOW, judge.FlowCount, len(survey.flows))
        if compiled:
            self._flows["nak_ps"] = -NEVER_PS
        else:
            for flow in self._flows:
                flow.nak_ps = -NEVER_PS
        self.counts: list[Any] = []
        self._owed = np.zeros((count, judge.OWED_COLUMNS), np.int64)
        self._rivals = np.zeros(pairs, np.int64)
        context = judge.Context()
        context.response_ps, context.slack_ps = setup.cnp.response_ps, slack_ps
        context.on_nak = setup.cnp.on_nak
        self._c: Any = record_of(context, judge.CONTEXT) if compiled else context
        self._log = np.zeros((LOG_ROWS, judge.LOG_COLUMNS), np.int64)
        self._held = np.zeros((0, judge.ROW_COLUMNS), np.int64)

    def _places(self) -> tuple[Ints, Ints, Ints]:
        """Key and address pair of each flow; when each key's first frame arrived."""
        survey, scope = self._survey, self._setup.np.scope
        keys: dict[tuple[int, ...], int] = {}
        pairs: dict[tuple[int, ...], int] = {}
        places, pair_of = np.zeros((2, len(survey.flows)), np.int64)
        ports = survey.ports.tolist()
        for number, flow in enumerate(survey.flows.keys):
            key = key_of(scope, ports[number], flow, number)
            places[number] = keys.setdefault(key, len(keys))
            pair_of[number] = pairs.setdefault(flow[:4], len(pairs))
        begins = np.full(len(keys), np.iinfo(np.int64).max)
        first = survey.sums.column("first_ns")[: len(places)]
        np.minimum.at(begins, places, clock_ps(first, self._origin_ns) + self._setup.to_receiver_ps)
        return places, pair_of, begins

    def add(self, rows: Rows, until_ps: int) -> Verdicts:
        """Judge a batch.

        Args:
            rows: Frames, in time order.
            until_ps: Time at the tap up to which all frames are known.
        """
        self._take(rows)
        away = self._setup.to_receiver_ps
        # a notification that passes the tap now left the receiver earlier, a mark arrives there later
        ready = int(np.searchsorted(self._held[:, judge.ROW_TIME], until_ps - away, "right"))
        rows_now, self._held = self._held[:ready], self._held[ready:]
        found: list[Ints] = []
        while not self._run(self._judge, rows_now):
            self._drain(found)
        self._drain(found)
        self._c.row = 0
        self._settle(until_ps - away, NEVER_PS, found)
        return _verdicts(found)

    def finish(self, end_ps: int) -> Verdicts:
        """The capture ends: judge what is held, let all intervals end, give up what is owed."""
        empty = Rows.empty(0)
        first = self.add(empty, NEVER_PS - 1)
        found: list[Ints] = []
        self._settle(NEVER_PS - 1, end_ps, found)
        self.counts = twins_of(self._flows, judge.FlowCount) if self._compiled else self._flows
        return Verdicts(*(np.concatenate(both) for both in zip(first, _verdicts(found), strict=True)))

    def _take(self, rows: Rows) -> None:
        away = self._setup.to_receiver_ps
        parts = [self._held]
        for kind, chosen in (
            (judge.MARK, np.flatnonzero(rows.marked_data)),
            (judge.SEEN, np.flatnonzero(rows.cnp)),
            (judge.NAK, np.flatnonzero(rows.naks)),
        ):
            flow = rows.flow[chosen].astype(np.int64)
            if kind != judge.MARK:
                flow = (self._owners if kind == judge.SEEN else self._nak_owners)[flow]
            which, flow = chosen[flow != NO_FLOW], flow[flow != NO_FLOW]
            if len(which):
                time_ps = clock_ps(rows.time_ns[which], self._origin_ns)
                part = np.empty((len(which), judge.ROW_COLUMNS), np.int64)
                part[:, judge.ROW_TIME] = time_ps + (away if kind == judge.MARK else -away)
                part[:, judge.ROW_KIND], part[:, judge.ROW_FLOW] = kind, flow
                part[:, judge.ROW_KEY], part[:, judge.ROW_PAIR] = self._keys[flow], self._pairs[flow]
                part[:, judge.ROW_FRAME] = rows.number[which]
                parts.append(part)
        if len(parts) == 2 and not len(self._held):
            self._held = parts[1]  # one kind alone is in order as it came
        elif len(parts) > 1:
            held = np.concatenate(parts)
            # at one instant in file order
            order = np.lexsort((held[:, judge.ROW_FRAME], held[:, judge.ROW_TIME]))
            self._held = held.take(order, axis=0)

    def _run(self, step: Step, rows: Ints) -> bool:
        return step(
            self._p, self._c, self._eager, self._lax, self._states, self._owed, self._flows, self._rivals,
            rows, self._begins, self._log,
        )  # fmt: skip

    def _settle(self, until_ps: int, end_ps: int, found: list[Ints]) -> None:
        if self._p.mode == notification.GATE and end_ps == NEVER_PS:
            return  # nothing happens of itself
        self._c.row = 0
        while not self._advance(
            self._p, self._c, self._eager, self._lax, self._states, self._owed, self._flows, self._log,
            until_ps, end_ps,
        ):  # fmt: skip
            self._drain(found)
        self._drain(found)
        self._c.row = 0

    def _drain(self, found: list[Ints]) -> None:
        if self._c.logged:
            found.append(self._log[: int(self._c.logged)].copy())
            self._c.logged = 0

    def total(self, *names: str) -> int:
        """Sum of some counts over all flows."""
        if self._compiled:
            return int(sum(self._flows[name].sum() for name in names))
        return int(sum(getattr(flow, name) for flow in self._flows for name in names))


def _verdicts(found: list[Ints]) -> Verdicts:
    table = np.concatenate(found) if found else np.zeros((0, judge.LOG_COLUMNS), np.int64)
    times = table[:, judge.LOG_TIME]
    if (times[1:] < times[:-1]).any():
        table = table.take(np.argsort(times, kind="stable"), axis=0)
    return Verdicts(*(np.ascontiguousarray(column) for column in table.T))


def _records(layout: np.dtype[Any], _twin: type, count: int) -> Any:
    return np.zeros(count, layout)


def _twins(_layout: np.dtype[Any], twin: type, count: int) -> Any:
    return [twin() for _ in range(count)]
