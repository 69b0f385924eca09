"""Observe: run a capture through notification and reaction points, and see who was slowed, and how.

Two passes, each in batches of bounded size. The first learns the flows and joins notifications to
them; the second runs the machines over marks, notifications and pauses in time order. Captures that
are small, or come from a pipe, are kept as a few numbers a frame instead of being read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roce_pkt.capture.columns import KIND_PAUSE, KIND_PFC
from roce_pkt.capture.frames import Frames
from roce_pkt.cc.parameters import Setting
from roce_pkt.flows import pairs
from roce_pkt.flows.connections import Connections
from roce_pkt.flows.rows import Rows
from roce_pkt.flows.survey import Survey
from roce_pkt.run import pacing, speed
from roce_pkt.run.findings import findings
from roce_pkt.run.machines import Machines, Owners, Plan
from roce_pkt.run.observation import Observation
from roce_pkt.run.pauses import PAUSE_COLUMNS
from roce_pkt.run.setup import Setup, set_up
from roce_pkt.run.watch import EventLog, OnEvent, Watcher

if TYPE_CHECKING:
    from roce_pkt.capture.reader import Capture

KEPT_FRAMES = 2_000_000
"""Captures up to this many frames are kept between the passes, at some 60 octets a frame."""
ROUND_FRAMES = 1_000_000
"""Frames that the machines are handed at a time."""

Batch = tuple[Rows, Frames]
"""RoCE frames reduced, and the pause frames."""
MakeWatcher = Callable[[Plan], Watcher]
"""Makes a watcher once the flows are known."""


def observe(
    capture: Capture,
    profile: str = "paper",
    settings: Mapping[str, Setting] | None = None,
    *,
    line_rate_bps: float | None = None,
    tap: str = "middle",
    path_delay_ps: int = 0,
    on_event: OnEvent | None = None,
    watchers: Sequence[MakeWatcher] = (),
) -> Observation:
    """Run a capture through DCQCN's endpoint logic and its pauses.

    Args:
        capture: The capture.
        profile: Name of a parameter profile.
        settings: Changes to it, by our names (`ai_rate`, `np.interval`, `pfc.response`) or foreign ones.
        line_rate_bps: Line rate of the senders' ports; by default the speed the capture states, and
            without one rates are fractions of line.
        tap: Where the capture was taken: `sender`, `receiver` or `middle`.
        path_delay_ps: One way from sender to receiver.
        on_event: Told of each event, in time order.
        watchers: Made once the flows are known; handed what happens.

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
    rate_bps = line_rate_bps if line_rate_bps is not None else _one_speed(capture)
    setup = with_rate(rate_bps)
    owners = _owners(batches)
    setup, paced = pacing.infer(
        survey, setup, batches.evidence.rows(), owners.of_cnps, owners.of_naks, survey.first_ns or 0,
        _tick_ps(capture),
    )  # fmt: skip
    plan = Plan(survey, setup, paced, owners, capture.interfaces, batches.speeds(rate_bps), _tick_ps(capture))
    made = [make(plan) for make in watchers]
    if on_event is not None:
        made.append(EventLog(survey, owners.candidates, on_event))
    machines = Machines(plan, made)
    if len(survey.cnps) or survey.has_marks or survey.has_pauses or setup.cnp.on_nak or made:
        for rows, pauses in batches.rounds():
            machines.add(rows, pauses)
    result = machines.result()
    result.findings = losses + findings(result, survey)
    result.connections, result.first_ns = batches.connections.found, survey.first_ns or 0
    return result


def _one_speed(capture: Capture) -> float | None:
    """The capture's own interface speed, if it states one and only one."""
    speeds = set(speed.stated(capture.interfaces))
    return speeds.pop() if len(speeds) == 1 else None


def _tick_ps(capture: Capture) -> int:
    """The coarsest clock tick of the capture."""
    ticks = [interface.resolution for interface in capture.interfaces]
    return max((10**12 // tick.base**tick.exponent for tick in ticks), default=0)


@dataclass(slots=True)
class _Evidence:
    """Marks and notifications kept for inferring how a receiver paces."""

    parts: list[Rows]
    count: int = 0

    def add(self, rows: Rows) -> None:
        if self.count < pacing.MOST_ROWS:
            which = np.flatnonzero(rows.cnp | rows.marked_data)
            self.parts.append(rows[which])
            self.count += len(which)

    def rows(self) -> Rows:
        rows = Rows.concat(self.parts or [Rows.empty(0)])
        return rows[np.argsort(rows.time_ns, kind="stable")]


class _Batches:
    """The capture's frames, reduced; read again only when they were too many to keep."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._kept: list[Batch] | None = []
        self.survey = Survey()
        self.connections = Connections()
        self.evidence = _Evidence([])
        self._first: list[Rows] = []
        for frames in capture:
            rows = self.survey.add(frames)
            self.connections.add(frames)
            self.evidence.add(rows)
            if sum(map(len, self._first)) < ROUND_FRAMES // 4:
                self._first.append(rows)
            if self._kept is not None:
                self._kept.append((rows, _pause_frames(frames)))
                if self.survey.frames > KEPT_FRAMES and capture.path != "-":
                    self._kept = None

    def speeds(self, line_rate_bps: float | None) -> list[float | None]:
        """Each interface's speed; inferred from its bursts only where pauses ask for it."""
        interfaces = self._capture.interfaces
        found = speed.stated(interfaces)
        if line_rate_bps is not None:
            return [known or line_rate_bps for known in found]
        if self.survey.has_pauses and None in found:
            rows = Rows.concat(self._first)
            rows = rows[np.argsort(rows.time_ns, kind="stable")]
            found = [known or speed.shown(rows, number) for number, known in enumerate(found)]
        return found

    def again(self) -> Iterator[Batch]:
        """Every batch once more, in the same order."""
        if self._kept is not None:
            yield from self._kept
        else:
            for frames in self._capture.batches(verify=self.survey.wrong_icrc > 0):
                yield self.survey.rows(frames), _pause_frames(frames)

    def rounds(self) -> Iterator[Batch]:
        """The same in larger parts."""
        held: list[Batch] = []
        for batch in self.again():
            held.append(batch)
            if sum(len(rows) for rows, _ in held) >= ROUND_FRAMES:
                yield _joined(held)
                held = []
        if held:
            yield _joined(held)


def _joined(batches: Sequence[Batch]) -> Batch:
    return Rows.concat([rows for rows, _ in batches]), Frames(
        {name: np.concatenate([pauses.column(name) for _, pauses in batches]) for name in PAUSE_COLUMNS}
    )


def _pause_frames(frames: Frames) -> Frames:
    which = np.flatnonzero((frames.kind == KIND_PFC) | (frames.kind == KIND_PAUSE))
    return Frames({name: frames.column(name)[which] for name in PAUSE_COLUMNS})


def _owners(batches: _Batches) -> Owners:
    """Whom each kind of notification, and each NAK, is for."""
    survey = batches.survey
    wanted = pairs.ambiguous(survey)
    evidence = pairs.Evidence(survey, wanted)
    if wanted:
        for rows, _ in batches.again():
            evidence.add(rows)
    partners, halves = evidence.partners(), batches.connections.halves()
    back = [pairs.Owner(None)] * len(survey.flows)
    if survey.has_naks:
        back = pairs.owners_of(survey, partners, survey.flows.keys, halves)
    return Owners.of(survey, pairs.owners(survey, partners, halves), back)
