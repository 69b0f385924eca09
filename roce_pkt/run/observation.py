"""What observing a capture results in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roce_pkt.errors import Finding
from roce_pkt.events import FlowKey
from roce_pkt.flows.connection import Connection
from roce_pkt.flows.survey import Flow
from roce_pkt.run.judge import VERDICTS
from roce_pkt.run.pacing import Pacing
from roce_pkt.run.reaction import ReactionPoint
from roce_pkt.run.setup import Setup
from roce_pkt.run.signs import SMALL_BYTES, Probes, Sign
from roce_pkt.run.sums import NotificationChecks, Pause
from roce_pkt.run.wire import Pace
from roce_pkt.units import PS_PER_NS


@dataclass(slots=True)
class ObservedFlow:
    """One directed flow and the congestion control behind it.

    Args:
        key: Addresses and queue pair.
        sums: What the capture holds of it.
        answered: Frames travel the other way between the same addresses.
        cnps_seen: Notifications in the capture that are for its sender.
        verdicts: A `judge.FLOW`: how those compare with what its receiver owed.
        rp: Its sender's reaction point at the end, or None: never notified.
        pace: What it sent against that model, or None.
        sign: What there is to see of congestion control.
        probes: What looks like timing probes between its addresses, or None.
    """

    key: FlowKey
    sums: Flow
    answered: bool
    cnps_seen: int
    verdicts: Any
    rp: ReactionPoint | None = None
    pace: Pace | None = None
    sign: Sign = Sign.UNMARKED
    probes: Probes | None = None

    @property
    def cnps_expected(self) -> int:
        """Notifications a DCQCN receiver would have sent."""
        return int(self.verdicts.expected)

    @property
    def cnps_missing(self) -> int:
        """Notifications owed and not seen."""
        return int(self.verdicts.missing)

    @property
    def mark_share(self) -> float:
        """Marked frames as a part of all that carry IP's ECN field."""
        return self.sums.ce / max(sum(self.sums.ecn), 1)

    @property
    def small(self) -> bool:
        """Nothing but frames as small as probes."""
        return self.sums.octets <= SMALL_BYTES * self.sums.frames

    @property
    def acks_only(self) -> bool:
        """Nothing but acknowledgements, and nothing of interest about them."""
        return not self.sums.data_frames and not self.sums.ce and self.rp is None


@dataclass(slots=True)
class Unmatched:
    """Notifications that no flow can be named for.

    Args:
        key: Their own addresses and queue pair: the data sender's.
        count: How many.
        candidates: Flows they could be for.
    """

    key: FlowKey
    count: int
    candidates: list[FlowKey]

    def as_json(self) -> dict[str, object]:
        """As a JSON object."""
        candidates = [flow._asdict() for flow in self.candidates]
        return self.key._asdict() | {"count": self.count, "candidates": candidates}


@dataclass(slots=True)
class Observation:
    """The result of observing a capture.

    Args:
        setup: What the machines ran with.
        paced: How receivers are taken to pace, and why.
        frames: Frames in the capture.
        roce: RoCE frames among them.
        duration_ns: From the earliest to the latest frame.
        roce_ns: From the earliest to the latest RoCE frame: what rate histories cover.
        tick_ps: The capture's clock tick.
        flows: Directed flows, the largest first.
        pauses: Pause frames by direction and class.
        unmatched: Notifications without a flow.
        checks: What notifications looked like.
        first_frames: First frame with each verdict on each flow, as (flow number, verdict).
        findings: What somebody should look at.
        connections: What communication management told of, in the order of its first messages.
        first_ns: Time of the first frame.
    """

    setup: Setup
    paced: Pacing
    frames: int
    roce: int
    duration_ns: int
    roce_ns: int
    tick_ps: int
    checks: NotificationChecks
    first_frames: dict[tuple[int, int], int]
    flows: list[ObservedFlow] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    unmatched: list[Unmatched] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    first_ns: int = 0

    @property
    def failed(self) -> bool:
        """True when something in the capture is wrong."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def line_rate(self) -> float:
        """The line rate in the unit of all rates: 1 where they are fractions of it."""
        return float(self.setup.rp["line_rate_bps"])

    def first_frame(self, flow: ObservedFlow, verdict: int) -> int | None:
        """The first frame of a flow with a verdict of `judge.VERDICTS`."""
        return self.first_frames.get((flow.sums.number, verdict))

    def rates(self, flow: ObservedFlow) -> tuple[float, float]:
        """Lowest and last rate of a flow's sender; the line rate without a notification."""
        if flow.rp is None:
            return self.line_rate, self.line_rate
        return flow.rp.rate_min_bps, flow.rp.rate_bps

    def as_json(self) -> dict[str, object]:
        """The whole result as one JSON object."""
        return {
            "capture": {"frames": self.frames, "roce": self.roce, "duration_ns": self.duration_ns},
            "profile": self.setup.profile,
            "line_rate_bps": self.setup.line_rate_bps,
            "rate_unit": self.setup.rate_unit,
            "tap": self.setup.tap,
            "path_delay_ns": self.setup.path_delay_ps / PS_PER_NS,
            "parameters": self.setup.as_json(),
            "pacing": {
                "interval_ns": self.setup.np.interval_ps / PS_PER_NS,
                "interval_from": self.paced.interval_from,
                "scope": self.setup.as_json()["np.scope"],
                "scope_from": self.paced.scope_from,
                "text": self.paced.text,
            },
            "flows": [self._flow_json(flow) for flow in self.flows],
            "pauses": [pause.as_json() for pause in self.pauses],
            "unmatched_cnps": [unmatched.as_json() for unmatched in self.unmatched],
            "connections": [connection.as_json() for connection in self.connections],
            "findings": [finding.as_json() for finding in self.findings],
        }

    def _flow_json(self, flow: ObservedFlow) -> dict[str, object]:
        lowest, last = self.rates(flow)
        return flow.key._asdict() | {
            "frames": flow.sums.frames,
            "bytes": flow.sums.octets,
            "ce": flow.sums.ce,
            "cnps_seen": flow.cnps_seen,
            "cnps_expected": flow.cnps_expected,
            "cnps_missing": flow.cnps_missing,
            "rate_min_bps": lowest,
            "rate_last_bps": last,
            "alpha_last": None if flow.rp is None else flow.rp.alpha,
            "wire_rate_mean_bps": flow.sums.wire_rate_bps,
            "ecn": dict(zip(("not_ect", "ect1", "ect0", "ce"), flow.sums.ecn, strict=True)),
            "mark_share": flow.mark_share,
            "cnp_verdicts": {word: int(getattr(flow.verdicts, word.replace("-", "_"))) for word in VERDICTS},
            "cnp_delay_max_ns": int(flow.verdicts.delay_max_ps) / PS_PER_NS,
            "sign": flow.sign.value,
            "probes": None
            if flow.probes is None
            else {"frames": list(flow.probes.frames), "every_ns": flow.probes.every_ns},
            "ties": None
            if flow.rp is None
            else {
                "count": flow.rp.tied,
                "first": [
                    {"after_ns": tie.time_ps / PS_PER_NS, "frame": tie.frame, "with": tie.words}
                    for tie in flow.rp.ties
                ],
            },
            "over_model": None
            if flow.pace is None
            else {
                "count": flow.pace.count,
                "ns": flow.pace.over_ps // PS_PER_NS,
                "spans": [
                    {"from_ns": s.from_ps // PS_PER_NS, "to_ns": s.to_ps // PS_PER_NS, "frame": s.frame}
                    for s in flow.pace.spans
                ],
            },
        }
