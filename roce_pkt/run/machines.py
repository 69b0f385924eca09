"""All machines of a capture, joined: pauses, receivers, senders, and who watches them.

Times are picoseconds after the capture's first frame, and never run backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.frames import Frames
from roce_pkt.capture.model import Interface
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.events import FlowKey
from roce_pkt.flows.pairs import Owner
from roce_pkt.flows.rows import DATA, Rows
from roce_pkt.flows.survey import Flow, Survey
from roce_pkt.flows.table import Address, destination_of, source_of
from roce_pkt.run import judge
from roce_pkt.run.clock import clock_ps
from roce_pkt.run.notify import MANY_ROWS, NO_FLOW, NotificationPoint, Verdicts
from roce_pkt.run.obedience import Obedience
from roce_pkt.run.observation import Observation, ObservedFlow, Unmatched
from roce_pkt.run.pacing import Pacing
from roce_pkt.run.pauses import MANY_PAUSES, PauseLog, Pauses
from roce_pkt.run.reaction import NO_SENDER, RADIX_SENDERS, Senders, Sent, Steps
from roce_pkt.run.setup import Setup
from roce_pkt.run.signs import Pair, Probes, notifiers, probes, sign_of
from roce_pkt.run.sums import NotificationChecks, pause_sums
from roce_pkt.run.watch import Watcher
from roce_pkt.run.wire import Paces
from roce_pkt.units import PS_PER_NS

Ints = NDArray[np.int64]
MANY_STEPS = 150_000
"""Steps of reaction points for which loading compiled code pays."""
MANY_FRAMES = 50_000
"""Frames to hold against models for which it does."""


@dataclass(frozen=True)
class Owners:
    """Whom notifications and NAKs are for.

    Args:
        of_cnps: Data flow of each number in `Survey.cnps`, or `NO_FLOW`.
        of_naks: Data flow that an answer in each flow is about, or `NO_FLOW`.
        candidates: Flows that each kind of notification could be for.
    """

    of_cnps: Ints
    of_naks: Ints
    candidates: list[list[FlowKey]]

    @classmethod
    def of(cls, survey: Survey, cnps: list[Owner], naks: list[Owner]) -> Owners:
        """From what pairing found."""

        def numbers(owners: list[Owner]) -> Ints:
            return np.array([NO_FLOW if o.flow is None else o.flow for o in owners], np.int64)

        names = [[survey.flows.name(flow) for flow in owner.candidates] for owner in cnps]
        return cls(numbers(cnps), numbers(naks), names)


@dataclass(frozen=True)
class Plan:
    """What a run over a capture knows before it starts.

    Args:
        survey: The flows.
        setup: What the machines run with.
        paced: How receivers are taken to pace, and why.
        owners: Whom notifications are for.
        interfaces: The capture's interfaces.
        speeds_bps: Their speeds, where known.
        tick_ps: The capture's clock tick.
    """

    survey: Survey
    setup: Setup
    paced: Pacing
    owners: Owners
    interfaces: list[Interface]
    speeds_bps: list[float | None]
    tick_ps: int

    @property
    def origin_ns(self) -> int:
        """The machines' zero, in the capture's time."""
        return self.survey.first_ns or 0

    @property
    def cnps_seen(self) -> dict[int, int]:
        """Notifications in the capture that are for each flow."""
        seen: dict[int, int] = {}
        counts = zip(self.owners.of_cnps.tolist(), self.survey.cnp_counts.tolist(), strict=True)
        for flow, count in counts:
            if flow != NO_FLOW:
                seen[flow] = seen.get(flow, 0) + count
        return seen

    def steps(self) -> float:
        """About how many steps the reaction points will take."""
        survey = self.survey
        told = self.cnps_seen.keys() | {flow.number for flow in survey if flow.ce}
        marks = int(survey.cnp_counts.sum()) + int(survey.sums.column("ecn3").sum())
        periods = survey.duration_ns * PS_PER_NS / int(self.setup.rp["increase_period_ps"])
        return marks + len(told) * periods


class Machines:
    """All notification and reaction points of a capture.

    Args:
        plan: What is known before.
        watchers: Handed what happens.
    """

    def __init__(self, plan: Plan, watchers: Sequence[Watcher]) -> None:
        self.plan, self.survey, self.setup = plan, plan.survey, plan.setup
        self.watchers = list(watchers)
        self.now_ps = 0
        self.seen = plan.cnps_seen
        self.has_seen = np.zeros(len(self.survey.flows), bool)
        self.has_seen[list(self.seen)] = True
        survey = self.survey
        many = int(survey.sums.column("ecn3").sum()) + int(survey.cnp_counts.sum())
        self.notifier = NotificationPoint(
            survey, self.setup, plan.owners.of_cnps, plan.owners.of_naks, plan.origin_ns, plan.tick_ps,
            compiled=survey.repays(many, MANY_ROWS),
        )  # fmt: skip
        pauses = survey.contents["pfc"] + survey.contents["pause"]
        names = [interface.name for interface in plan.interfaces]
        self.pauses = Pauses(
            plan.speeds_bps, names, plan.origin_ns, compiled=survey.repays(pauses, MANY_PAUSES)
        )
        self.obedience = Obedience(survey, self.setup, self.pauses, plan.interfaces, plan.origin_ns)
        self.first_frames: dict[tuple[int, int], int] = {}
        self.checks = NotificationChecks(self.setup.cnp)
        self.moved: dict[int, list[Ints]] = {}
        first_ns, last_ns = survey.roce_span_ns
        span = (self.to_ps(first_ns), self.to_ps(last_ns))
        timed, frames = self.setup.line_rate_bps is not None, int(survey.sums.column("data_frames").sum())
        self._compiled = survey.repays(plan.steps(), MANY_STEPS) or (
            timed and survey.repays(frames, MANY_FRAMES)
        )
        self.senders = Senders(
            self.setup.rp, span, len(survey.flows),
            self.has_seen * np.int64(plan.tick_ps),  # those a model owes are no stamps
            wire=self.setup.wire if timed else None, telling=bool(self.watchers), compiled=self._compiled,
        )  # fmt: skip
        self.paces = Paces() if timed else None

    def to_ps(self, time_ns: int) -> int:
        """A frame's time on the machines' clock."""
        return clock_ps(time_ns, self.plan.origin_ns)

    def add(self, rows: Rows, pauses: Frames) -> None:
        """Run the machines over a batch."""
        rows = self._in_time(rows)
        if len(rows):
            self.now_ps = max(self.now_ps, self.to_ps(int(rows.time_ns[-1])))
        if len(pauses):
            self.now_ps = max(self.now_ps, self.to_ps(int(pauses.time_ns.max())))
        self.tell("rows", rows)
        self._pauses(rows, pauses)
        self._marks(rows)
        verdicts = self.notifier.add(rows, self.now_ps)
        self._expected(verdicts)
        self._captured(rows)
        self._senders(rows)
        self.tell("until", self.now_ps - self.setup.path_delay_ps)

    def _in_time(self, rows: Rows) -> Rows:
        """In time order, and not before what has been seen."""
        if not len(rows):
            return rows
        if (rows.time_ns[1:] < rows.time_ns[:-1]).any():
            rows = rows[np.argsort(rows.time_ns, kind="stable")]
        now_ns = self.plan.origin_ns + self.now_ps // PS_PER_NS
        if rows.time_ns[0] < now_ns:
            rows = rows[:]
            rows.time_ns = np.maximum(rows.time_ns, now_ns)
        return rows

    def tell(self, what: str, *facts: Any) -> None:
        """Hand facts to those who watch."""
        for watcher in self.watchers:
            getattr(watcher, what)(*facts)

    def _pauses(self, rows: Rows, frames: Frames) -> None:
        log = self.pauses.add(frames, self.now_ps)
        found = self.obedience.look(rows) if self.pauses.lines else []
        for line, violations in found:
            self.moved.setdefault(line.number, []).append(violations[:, 0])
        if log.parts or found:
            self.tell("pauses", PauseLog(log.parts + found))

    def _marks(self, rows: Rows) -> None:
        if self.watchers:
            marked = np.flatnonzero(rows.marked_data)
            times = clock_ps(rows.time_ns[marked], self.plan.origin_ns)
            self.tell("marked", times, rows.flow[marked], rows.number[marked])

    def _expected(self, verdicts: Verdicts) -> None:
        """Without a notification in the capture, a sender follows those that were owed."""
        self.tell("verdicts", verdicts)
        kinds = len(judge.VERDICTS)
        first = np.zeros(len(self.survey.flows) * kinds, np.int64)
        # written backwards, the first of each kind is what stays
        first[(verdicts.flow * kinds + verdicts.what)[::-1]] = verdicts.frame[::-1]
        for place in np.flatnonzero(first).tolist():
            self.first_frames.setdefault(divmod(place, kinds), int(first[place]))
        owed = (verdicts.what == judge.EXPECTED) & ~self.has_seen[verdicts.flow]
        if owed.any():
            arrive = verdicts.time_ps[owed] + self.setup.path_delay_ps
            self.senders.notify(verdicts.flow[owed], arrive, verdicts.frame[owed])

    def _captured(self, rows: Rows) -> None:
        """Notifications pass the tap."""
        rows = rows[np.flatnonzero(rows.cnp)]
        if not len(rows):
            return
        self.checks.add(rows)
        times = clock_ps(rows.time_ns, self.plan.origin_ns)
        owner = self.plan.owners.of_cnps[rows.flow]
        lost, found = owner == NO_FLOW, owner != NO_FLOW
        if lost.any():
            self.tell("unmatched", times[lost], rows.flow[lost], rows.number[lost])
        self.senders.notify(owner[found], times[found] + self.setup.to_sender_ps, rows.number[found])

    def _sent(self, rows: Rows) -> Sent:
        """Frames of the senders there are, by sender."""
        if self._compiled:
            return self._sent_compiled(rows)
        which = np.flatnonzero(rows.having(DATA))
        sender = self.senders.number[rows.flow[which]]
        which, sender = which[sender != NO_SENDER], sender[sender != NO_SENDER]
        narrow = np.int16 if len(self.senders) < RADIX_SENDERS else np.int64
        order = np.argsort(sender.astype(narrow), kind="stable")
        which = which[order]
        times = clock_ps(rows.time_ns[which], self.plan.origin_ns) - self.setup.to_sender_ps
        octets = rows.octets[which].astype(np.int64)
        return Sent.of(sender[order], times, octets, rows.number[which], len(self.senders))

    def _sent_compiled(self, rows: Rows) -> Sent:
        from roce_pkt.run.kernel_sent import count, place

        number, counts = self.senders.number, np.zeros(len(self.senders) + 1, np.int64)
        total = count(rows.flags, rows.flow, number, counts)
        starts = np.cumsum(counts)
        times, summed, frames = np.empty((3, total), np.int64)
        place(
            rows.flags, rows.flow, rows.time_ns, rows.octets, rows.number, number, starts.copy(),
            self.setup.to_sender_ps, self.plan.origin_ns, times, summed, frames,
        )  # fmt: skip
        return Sent(starts, times, summed, frames)

    def _senders(self, rows: Rows) -> None:
        """What senders sent, what became of their rates, and how both compare."""
        if not len(self.senders):
            return
        looked_at = self.paces is not None or bool(self.senders.plain_p.byte_counter)
        sent = self._sent(rows) if looked_at else None
        self._stepped(self.senders.advance(self.now_ps - self.setup.to_sender_ps, sent))
        if self.paces is not None:
            self.paces.add(self.senders)

    def _stepped(self, steps: Steps) -> None:
        if len(steps.flow):
            self.tell("steps", steps)

    # -- the end

    def _flow(
        self, sums: Flow, found: dict[Pair, Probes], notifying: set[Address], end_ps: int
    ) -> ObservedFlow:
        """Everything about one flow."""
        number, key = sums.number, self.survey.flows.keys[sums.number]
        seen, verdicts = self.seen.get(number, 0), self.notifier.counts[number]
        answered = bool(self.survey.sends_back(number))
        here, there = source_of(key), destination_of(key)
        return ObservedFlow(
            key=self.survey.flows.name(number),
            sums=sums,
            answered=answered,
            cnps_seen=seen,
            verdicts=verdicts,
            rp=self.senders.of(number),
            pace=None if self.paces is None else self.paces.of(self.senders, number, end_ps),
            sign=sign_of(
                expected=verdicts.expected, seen=seen, answered=answered, notifies=there in notifying
            ),
            probes=found.get((here, there)),
        )

    def result(self) -> Observation:
        """Let what is under way arrive, and sum up."""
        end_ps = clock_ps(self.survey.duration_ns, 0)
        self._expected(self.notifier.finish(self.now_ps))
        self._stepped(self.senders.finish(end_ps))
        self.tell("pauses", self.pauses.add(None, end_ps))
        self.tell("until", NEVER_PS)
        survey, owners = self.survey, self.plan.owners
        found, notifying = probes(survey), notifiers(survey)
        flows = [self._flow(sums, found, notifying, end_ps) for sums in survey]
        flows.sort(key=lambda flow: (-flow.sums.octets, flow.key))
        counts = survey.cnp_counts.tolist()
        unmatched = [
            Unmatched(survey.cnps.name(number), counts[number], owners.candidates[number])
            for number, flow in enumerate(owners.of_cnps.tolist())
            if flow == NO_FLOW
        ]
        first_ns, last_ns = survey.roce_span_ns
        return Observation(
            setup=self.setup,
            paced=self.plan.paced,
            frames=survey.frames,
            roce=survey.roce,
            duration_ns=survey.duration_ns,
            roce_ns=last_ns - first_ns,
            tick_ps=self.plan.tick_ps,
            flows=flows,
            pauses=pause_sums(self.pauses, self.obedience, self.moved, self.setup, end_ps),
            unmatched=unmatched,
            checks=self.checks,
            first_frames=self.first_frames,
        )
