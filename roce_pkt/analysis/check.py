"""Check a capture: every rule over every batch, with bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from roce_pkt.analysis import management
from roce_pkt.analysis.order import OrderRules
from roce_pkt.analysis.rules import RULES, roce
from roce_pkt.capture.columns import KIND_OTHER, KINDS
from roce_pkt.capture.frames import Frames
from roce_pkt.errors import Finding, Severity

MAX_PER_RULE = 1000
"""Findings kept of one rule; all are counted."""


@dataclass(slots=True)
class Verdict:
    """What a check found.

    Args:
        findings: In frame order; at most `MAX_PER_RULE` of one rule.
        counts: How often each rule was broken.
        severities: Severity of each rule that was broken.
        kinds: Frames by kind, or by hint for those that are not RoCE.
        icrc: Frames whose ICRC is `right`, `wrong` or `unchecked`.
    """

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    severities: dict[str, Severity] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    icrc: Counter[str] = field(default_factory=Counter)

    @property
    def frames(self) -> int:
        """Frames in all."""
        return sum(self.kinds.values())

    @property
    def failed(self) -> bool:
        """True when a finding is an error."""
        return "error" in self.severities.values()

    def add(self, findings: Iterable[Finding]) -> None:
        """Count findings, and keep as many as are worth reading."""
        for finding in findings:
            self.counts[finding.rule] += 1
            self.severities[finding.rule] = finding.severity
            if self.counts[finding.rule] <= MAX_PER_RULE:
                self.findings.append(finding)


def check(batches: Iterable[Frames]) -> Verdict:
    """Judge every frame of a capture.

    Args:
        batches: Column batches, e.g. a `Capture`; their octets must still be held.
    """
    verdict = Verdict()
    order = OrderRules()
    for frames in batches:
        _count(verdict, frames)
        found = [*_by_rule(verdict, frames), *order.judge(frames), *management.judge(frames)]
        verdict.add(sorted(found, key=lambda one: one.frame or 0))
    return verdict


def _count(verdict: Verdict, frames: Frames) -> None:
    other = frames.kind == KIND_OTHER
    verdict.kinds.update(KINDS[k] for k in frames.kind[~other].tolist())
    verdict.kinds.update(hint or "unread" for hint in frames[other].names("hint").tolist())
    answers = frames.icrc_ok[roce(frames)]
    for name, code in (("right", 1), ("wrong", 0), ("unchecked", -1)):
        verdict.icrc[name] += int(np.count_nonzero(answers == code))


def _by_rule(verdict: Verdict, frames: Frames) -> Iterator[Finding]:
    for rule in RULES:
        rows = np.flatnonzero(rule.broken(frames))
        keep = max(0, MAX_PER_RULE - verdict.counts[rule.name])
        for row in rows[:keep]:
            yield Finding(rule.name, rule.severity, rule.say(frames, int(row)), int(frames.number[row]))
        if len(rows) > keep:
            verdict.counts[rule.name] += len(rows) - keep
            verdict.severities[rule.name] = rule.severity
