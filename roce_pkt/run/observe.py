"""Observe: run a capture through notification and reaction points, and see who was slowed, and how.

Two passes, each in batches of bounded size. The first learns the flows and joins notifications to
them; the second runs the machines over marks, notifications and pauses in time order. Captures that
are small, or come from a pipe, are kept as a few numbers a frame instead of being read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from roce_pkt.capture.columns import KIND_PAUSE, KIND_PFC
from roce_pkt.capture.frames import Frames
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.cc.parameters import Setting
from roce_pkt.events import Event
from roce_pkt.flows import pairs
from roce_pkt.flows.connections import Connections
from roce_pkt.flows.rows import IS_DATA, Rows
from roce_pkt.flows.survey import Survey
from roce_pkt.run.findings import findings
from roce_pkt.run.notify import NotificationPoint
from roce_pkt.run.observation import Observation, ObservedFlow, Unmatched
from roce_pkt.run.pauses import PAUSE_COLUMNS, Pauses
from roce_pkt.run.reaction import ReactionPoint, Workshop
from roce_pkt.run.setup import Setup, set_up
from roce_pkt.units import PS_PER_NS

if TYPE_CHECKING:
    from roce_pkt.capture.reader import Capture

KEPT_FRAMES = 2_000_000
"""Captures up to this many frames are kept between the passes, at some 70 octets a frame."""

MANY_STEPS = 500_000
"""Steps of reaction points for which loading compiled code pays."""

OnEvent = Callable[[Event], None]
Batch = tuple[Rows, Frames]
"""RoCE frames reduced, and the pause frames."""


def observe(
    capture: Capture,
    profile: str = "paper",
    settings: Mapping[str, Setting] | None = None,
    *,
    line_rate_bps: float | None = None,
    tap: str = "middle",
    path_delay_ps: int = 0,
    on_event: OnEvent | None = None,
) -> Observation:
    """Run a capture through DCQCN's endpoint logic.

    Args:
        capture: The capture.
        profile: Name of a parameter profile.
        settings: Changes to it, by our names (`ai_rate`, `np.interval`) or foreign ones.
        line_rate_bps: Line rate of the senders' ports; by default the speed the capture states, and
            without one rates are fractions of line.
        tap: Where the capture was taken: `sender`, `receiver` or `middle`.
        path_delay_ps: One way from sender to receiver.
        on_event: Told of each event, in time order.

    Raises:
        ScenarioError: An unknown parameter or a value out of range.
        CaptureError: The capture cannot be read.
    """

    def with_rate(rate_bps: float | None) -> Setup:
        return set_up(profile, settings, line_rate_bps=rate_bps, tap=tap, path_delay_ps=path_delay_ps)

    with_rate(line_rate_bps)  # mistakes are told before a long capture is read
    batches = _Batches(capture)
    survey = batches.survey
    losses = list(capture.losses)
    rate_bps = line_rate_bps if line_rate_bps is not None else _stated_speed(capture)
    machines = _Machines(survey, with_rate(rate_bps), _owners(batches), on_event)
    if len(survey.cnps) or survey.has_marks or survey.has_pauses:
        for rows, pauses in batches.again():
            machines.add(rows, pauses)
    result = machines.result()
    result.findings = losses + findings(result, survey)
    return result


def _stated_speed(capture: Capture) -> float | None:
    """The capture's own interface speed, if it states one and only one."""
    speeds = {interface.speed_bps for interface in capture.interfaces}
    speed = speeds.pop() if len(speeds) == 1 else None
    return float(speed) if speed else None


class _Batches:
    """The capture's frames, reduced; read again only when they were too many to keep."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._kept: list[Batch] | None = []
        self.survey = Survey()
        self.connections = Connections()
        for frames in capture:
            rows = self.survey.add(frames)
            self.connections.add(frames)
            if self._kept is not None:
                self._kept.append((rows, _pause_frames(frames)))
                if self.survey.frames > KEPT_FRAMES and capture.path != "-":
                    self._kept = None

    def again(self) -> Iterator[Batch]:
        """Every batch once more, in the same order."""
        if self._kept is not None:
            yield from self._kept
        else:
            for frames in self._capture.batches(verify=self.survey.wrong_icrc > 0):
                yield self.survey.rows(frames), _pause_frames(frames)


def _pause_frames(frames: Frames) -> Frames:
    which = np.flatnonzero((frames.kind == KIND_PFC) | (frames.kind == KIND_PAUSE))
    return Frames({name: frames.column(name)[which] for name in PAUSE_COLUMNS})


def _owners(batches: _Batches) -> list[pairs.Owner]:
    """Whom each kind of notification is for."""
    wanted = pairs.ambiguous(batches.survey)
    evidence = pairs.Evidence(batches.survey, wanted)
    if wanted:
        for rows, _ in batches.again():
            evidence.add(rows)
    return pairs.owners(batches.survey, evidence.partners(), batches.connections.halves())


def _steps(survey: Survey, setup: Setup, owners: list[pairs.Owner]) -> float:
    """About how many steps the reaction points will take."""
    told = {owner.flow for owner in owners} | {flow.number for flow in survey if flow.ce}
    marks = int(survey.cnp_counts.sum()) + sum(flow.ce for flow in survey)
    return marks + len(told) * survey.duration_ns * PS_PER_NS / int(setup.rp["increase_period_ps"])


class _Machines:
    """All notification and reaction points of a capture.

    Times are picoseconds after the capture's first frame, and never run backwards.
    """

    def __init__(
        self, survey: Survey, setup: Setup, owners: list[pairs.Owner], on_event: OnEvent | None
    ) -> None:
        self.survey, self.setup, self.owners, self.on_event = survey, setup, owners, on_event
        self.origin_ns = survey.first_ns or 0
        self.end_ps = survey.duration_ns * PS_PER_NS
        self.now_ps = 0
        self.expected: dict[int, int] = {}
        self.senders: dict[int, ReactionPoint] = {}
        self.notifier = NotificationPoint(survey, setup.np, self.to_ps, self.expect)
        tell = self.paused if on_event else None
        self.pauses = Pauses(setup.line_rate_bps, self.to_ps, tell)
        first_ns, last_ns = survey.roce_span_ns
        self.shop = Workshop(
            setup.rp,
            (self.to_ps(first_ns), self.to_ps(last_ns)),
            self.event if on_event else None,
            compiled=_steps(survey, setup, owners) > MANY_STEPS,
        )
        self.waiting: list[tuple[int, Event]] = []
        self.seen: dict[int, int] = {}
        for number, owner in enumerate(owners):
            if owner.flow is not None:
                self.seen[owner.flow] = self.seen.get(owner.flow, 0) + int(survey.cnp_counts[number])

    def to_ps(self, time_ns: int) -> int:
        """A frame's time on the machines' clock."""
        return (time_ns - self.origin_ns) * PS_PER_NS

    def add(self, rows: Rows, pauses: Frames) -> None:
        """Run the machines over a batch."""
        self.pauses.add(pauses)
        marked = rows.marked_data
        which = np.flatnonzero(marked | rows.cnp)
        which = which[np.argsort(rows.time_ns[which], kind="stable")]
        columns = (rows.time_ns[which], rows.flow[which], rows.number[which], marked[which])
        for time_ns, flow, frame, mark in zip(*(column.tolist() for column in columns), strict=True):
            self.now_ps = max(self.now_ps, self.to_ps(time_ns))
            if mark:
                self.event(self.now_ps, "cp.mark", flow, frame)
                self.notifier.marked(flow, self.now_ps + self.setup.to_receiver_ps, frame)
            else:
                self.cnp(flow, frame)
        if len(rows):
            self.now_ps = max(self.now_ps, self.to_ps(int(rows.time_ns.max())))
        self.notifier.advance(self.now_ps + self.setup.to_receiver_ps)
        self.pauses.advance(self.now_ps)
        self._run_senders(rows)
        self._flush(self.now_ps - self.setup.path_delay_ps)

    def expect(self, time_ps: int, flow: int, frame: int) -> None:
        """A receiver should notify now."""
        self.expected[flow] = self.expected.get(flow, 0) + 1
        self.event(time_ps, "np.cnp", flow, frame, {"source": "expected"})
        if flow not in self.seen:
            self.sender(flow).notify(time_ps + self.setup.path_delay_ps, frame)

    def cnp(self, number: int, frame: int) -> None:
        """A notification passes the tap."""
        owner = self.owners[number]
        if owner.flow is not None:
            left_ps = self.now_ps - self.setup.to_receiver_ps
            self.event(left_ps, "np.cnp", owner.flow, frame, {"source": "captured"})
            self.sender(owner.flow).notify(self.now_ps + self.setup.to_sender_ps, frame)
        elif self.on_event is not None:
            candidates = [self.survey.flows.name(flow)._asdict() for flow in owner.candidates]
            key, state = self.survey.cnps.name(number), {"candidates": candidates}
            time_ns = self.origin_ns + self.now_ps // PS_PER_NS
            self.waiting.append((self.now_ps, Event(time_ns, "cnp_unmatched", key, None, frame, state)))

    def sender(self, flow: int) -> ReactionPoint:
        """The reaction point behind a flow, made at its first notification."""
        if flow not in self.senders:
            self.senders[flow] = ReactionPoint(flow, self.shop)
        return self.senders[flow]

    def _run_senders(self, rows: Rows) -> None:
        until_ps = self.now_ps - self.setup.to_sender_ps
        if self.shop.plain_p.byte_counter and self.senders:
            known = np.zeros(len(self.survey.flows), bool)
            known[list(self.senders)] = True
            data = np.flatnonzero(~rows.cnp & IS_DATA[rows.opcode])
            data = data[known[rows.flow[data]]]
            data = data[np.lexsort((rows.time_ns[data], rows.flow[data]))]
            flows, starts = np.unique(rows.flow[data], return_index=True)
            for flow, sent in zip(flows.tolist(), np.split(data, starts[1:]), strict=True):
                times_ps = (rows.time_ns[sent] - self.origin_ns) * PS_PER_NS - self.setup.to_sender_ps
                self.senders[flow].send(times_ps, rows.octets[sent])
        for sender in self.senders.values():
            sender.advance(until_ps)

    # -- events

    def event(
        self, time_ps: int, kind: str, flow: int, frame: int | None, state: Mapping[str, object] | None = None
    ) -> None:
        """Something happened to a flow."""
        if self.on_event is not None:
            time_ns = self.origin_ns + time_ps // PS_PER_NS
            event = Event(time_ns, kind, self.survey.flows.name(flow), None, frame, state or {})
            self.waiting.append((time_ps, event))

    def paused(self, time_ps: int, kind: str, port: str, priority: int | None, frame: int | None) -> None:
        """A class was paused or let go."""
        time_ns = self.origin_ns + time_ps // PS_PER_NS
        self.waiting.append((time_ps, Event(time_ns, kind, None, port, frame, {"priority": priority})))

    def _flush(self, until_ps: int) -> None:
        """Tell events up to a time; nothing earlier can follow."""
        if self.on_event is None:
            return
        self.waiting.sort(key=lambda item: item[0])
        ready = [event for time_ps, event in self.waiting if time_ps <= until_ps]
        del self.waiting[: len(ready)]
        for event in ready:
            self.on_event(event)

    # -- the end

    def result(self) -> Observation:
        """Let what is under way arrive, and sum up."""
        self.notifier.advance(NEVER_PS - 1)
        for sender in self.senders.values():
            sender.finish(self.end_ps)
        pauses = self.pauses.result(self.end_ps)
        self._flush(NEVER_PS)
        survey = self.survey
        flows = [
            ObservedFlow(
                key=survey.flows.name(sums.number),
                sums=sums,
                answered=bool(survey.sends_back(sums.number)),
                cnps_seen=self.seen.get(sums.number, 0),
                cnps_expected=self.expected.get(sums.number, 0),
                rp=self.senders.get(sums.number),
            )
            for sums in survey
        ]
        flows.sort(key=lambda flow: (-flow.sums.octets, flow.key))
        unmatched = [
            Unmatched(
                survey.cnps.name(number),
                int(survey.cnp_counts[number]),
                [survey.flows.name(flow) for flow in owner.candidates],
            )
            for number, owner in enumerate(self.owners)
            if owner.flow is None
        ]
        first_ns, last_ns = survey.roce_span_ns
        return Observation(
            setup=self.setup,
            frames=survey.frames,
            roce=survey.roce,
            duration_ns=survey.duration_ns,
            roce_ns=last_ns - first_ns,
            flows=flows,
            pauses=pauses,
            unmatched=unmatched,
        )
