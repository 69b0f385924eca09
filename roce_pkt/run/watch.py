"""Those who watch the machines: each is handed arrays of what happened, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.events import Event, FlowKey
from roce_pkt.flows.rows import Rows
from roce_pkt.flows.survey import Survey
from roce_pkt.run import judge
from roce_pkt.run.notify import Verdicts
from roce_pkt.run.pauses import PauseLog
from roce_pkt.run.reaction import Steps, told
from roce_pkt.units import PS_PER_NS

Ints = NDArray[np.int64]
OnEvent = Callable[[Event], None]


class Watcher:
    """Watches nothing; the others override what they care for. Times are the machines' picoseconds."""

    def rows(self, rows: Rows) -> None:
        """Frames of a batch, in time order."""

    def marked(self, time_ps: Ints, flow: Ints, frame: Ints) -> None:
        """Marked data passes the tap."""

    def verdicts(self, verdicts: Verdicts) -> None:
        """Receivers owed, sent or failed to send notifications."""

    def unmatched(self, time_ps: Ints, cnp: Ints, frame: Ints) -> None:
        """Notifications without a flow, by their number in `Survey.cnps`."""

    def steps(self, steps: Steps) -> None:
        """Senders took steps."""

    def pauses(self, log: PauseLog) -> None:
        """Links paused and went on."""

    def until(self, time_ps: int) -> None:
        """Nothing earlier than this will follow."""


ORDER = ("cp.mark", "cnp_unmatched", "np.missing", "np.cnp", "rp.cut", "rp.alpha", "rp.increase")
"""What comes first at one instant; other kinds before all of these."""


class EventLog(Watcher):
    """Turns what happens into events, in time order.

    Args:
        survey: For names.
        candidates: Flows each kind of notification could be for.
        on_event: Told of each event.
    """

    def __init__(self, survey: Survey, candidates: list[list[FlowKey]], on_event: OnEvent) -> None:
        self._survey, self._candidates, self._on_event = survey, candidates, on_event
        self._origin_ns = survey.first_ns or 0
        self._waiting: list[tuple[tuple[int, int, int, int], Event]] = []

    def _put(
        self, time_ps: int, kind: str, who: int, frame: int | None, flow: FlowKey | None, port: str | None,
        state: Mapping[str, object],
    ) -> None:  # fmt: skip
        rank = ORDER.index(kind) if kind in ORDER else -1
        event = Event(self._origin_ns + time_ps // PS_PER_NS, kind, flow, port, frame, state)
        self._waiting.append(((time_ps, rank, who, frame or 0), event))

    def marked(self, time_ps: Ints, flow: Ints, frame: Ints) -> None:
        """Marked data passes the tap."""
        name = self._survey.flows.name
        for at, number, shown in zip(time_ps.tolist(), flow.tolist(), frame.tolist(), strict=True):
            self._put(at, "cp.mark", number, shown, name(number), None, {})

    def verdicts(self, verdicts: Verdicts) -> None:
        """Receivers owed, sent or failed to send notifications."""
        for at, what, number, frame, span in zip(*(column.tolist() for column in verdicts), strict=True):
            flow, state = self._survey.flows.name(number), {}
            kind = "np.missing" if what == judge.MISSING else "np.cnp"
            if what == judge.EXPECTED:
                state = {"source": "expected"}
            elif what != judge.MISSING:
                state = {"source": "captured", "verdict": judge.VERDICTS[what], "after_ns": span / PS_PER_NS}
            self._put(at, kind, number, frame, flow, None, state)

    def unmatched(self, time_ps: Ints, cnp: Ints, frame: Ints) -> None:
        """Notifications without a flow."""
        for at, number, shown in zip(time_ps.tolist(), cnp.tolist(), frame.tolist(), strict=True):
            state = {"candidates": [flow._asdict() for flow in self._candidates[number]]}
            self._put(at, "cnp_unmatched", number, shown, self._survey.cnps.name(number), None, state)

    def steps(self, steps: Steps) -> None:
        """Senders took steps."""
        name = self._survey.flows.name
        for flow, at, kind, frame, state in told(steps):
            self._put(at, kind, flow, frame, name(flow), None, state)

    def pauses(self, log: PauseLog) -> None:
        """Links paused and went on."""
        for at, kind, line, frame, state in log.events():
            self._put(
                at, kind, line.number, frame, None, line.direction, {"priority": line.priority, **state}
            )

    def until(self, time_ps: int) -> None:
        """Tell what is older; a stable order, however the capture was cut into batches."""
        self._waiting.sort(key=_key)
        ready = 0
        while ready < len(self._waiting) and self._waiting[ready][0][0] < time_ps:
            self._on_event(self._waiting[ready][1])
            ready += 1
        del self._waiting[:ready]


def _key(item: tuple[Any, Event]) -> Any:
    return item[0]
