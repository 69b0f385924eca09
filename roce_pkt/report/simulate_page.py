"""A simulation as a page: rates and alpha of senders, queues of ports, pauses, over one time axis.

A `SimulationPage` is handed to `simulate` as `on_samples` and `on_event`, and made a page of at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.errors import Finding
from roce_pkt.events import Event
from roce_pkt.report.page import REST, Bands, Curve, Group, Kind, Marks, Page, Panel, Parameter, Table
from roce_pkt.run.track import MARKS, TOP_FLOWS, Thinned
from roce_pkt.units import PS_PER_NS, PS_PER_S, format_rate, format_time_ns

if TYPE_CHECKING:
    from roce_pkt.run.simulation_names import Names
    from roce_pkt.run.simulation_result import Simulation

MOST_SHOWN = 4
TOP_PORTS = 6
MOST_SPANS = 20_000
"""Pauses kept of all lanes together."""


class SimulationPage:
    """Collects what a report of a simulation shows.

    Args:
        span_ps: Simulated time.
    """

    def __init__(self, span_ps: int) -> None:
        self.span_ps = max(span_ps, 1)
        self._names: Names | None = None
        self._rates: list[tuple[Thinned, Thinned]] = []
        self._rest = Thinned(0, self.span_ps)
        self._queues: list[Thinned] = []
        self._cnps: dict[Any, list[int]] = {}
        self._paused: dict[tuple[str, int], int] = {}
        self._spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._count = 0

    def samples(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """A block of samples: times in picoseconds, octets queued by port, records by half."""
        if self._names is None:
            self._names = names
            senders = names.built.pairs.requester[:TOP_FLOWS]
            self._rates = [(Thinned(0, self.span_ps), Thinned(0, self.span_ps)) for _ in senders]
            self._queues = [Thinned(0, self.span_ps) for _ in names.ports]
        at = times.astype(np.int64)
        senders = names.built.pairs.requester
        for (rate, alpha), sender in zip(self._rates, senders, strict=False):
            rate.add(at, rates[:, sender]["rate_bps"].astype(np.float64))
            alpha.add(at, rates[:, sender]["alpha"].astype(np.float64))
        if len(senders) > TOP_FLOWS:
            self._rest.add(at, rates[:, senders[TOP_FLOWS:]]["rate_bps"].mean(axis=1))
        for port, queue in enumerate(self._queues):
            queue.add(at, queues[:, port].astype(np.float64))

    def and_events(self, told: Callable[[Event], None] | None) -> Callable[[Event], None]:
        """What takes events for the page and for somebody else."""

        def both(event: Event) -> None:
            self.event(event)
            if told is not None:
                told(event)

        return both

    def event(self, event: Event) -> None:
        """Notifications and pauses."""
        if event.kind == "np.cnp" and event.flow is not None:
            self._cnps.setdefault(event.flow, []).append(event.time_ns * PS_PER_NS)
        elif event.kind in ("pfc.paused", "pfc.resumed") and event.port is not None:
            lane = event.port, int(str(event.state["priority"]))
            if event.kind == "pfc.paused":
                self._paused.setdefault(lane, event.time_ns * PS_PER_NS)
            elif lane in self._paused:
                self._close(lane, event.time_ns * PS_PER_NS)

    def _close(self, lane: tuple[str, int], stop_ps: int) -> None:
        start_ps = self._paused.pop(lane)
        self._count += 1
        if self._count <= MOST_SPANS:
            self._spans.setdefault(lane, []).append((start_ps, stop_ps))

    def page(self, title: str, result: Simulation) -> Page:
        """The page.

        Args:
            title: What was simulated.
            result: What came of it.
        """
        for lane in list(self._paused):
            self._close(lane, self.span_ps)
        names = self._names
        groups: list[Group] = []
        if names is not None:
            flows = [names.flow(half) for half in names.built.pairs.requester[:TOP_FLOWS]]
            groups = [Group(str(flow), str(flow), at < MOST_SHOWN) for at, flow in enumerate(flows)]
            more = len(names.built.pairs.requester) - len(flows)
            if more > 0:
                groups.append(Group(REST, f"the mean of {more:,} more"))
        return Page(
            title=title,
            facts=_facts(result),
            span_s=self.span_ps / PS_PER_S,
            groups=groups,
            panels=[
                *self._flow_panels(groups),
                self._queue_panel(),
                self._cnp_panel(groups),
                self._pause_panel(),
            ],
            tables=_tables(result, {group.key for group in groups}),
            findings=[_finding(finding) for finding in result.findings],
            parameters=[Parameter(key, value) for key, value in _flat(result.scenario)],
        )

    def _flow_panels(self, groups: list[Group]) -> list[Panel]:
        rate = Panel("Rate of senders", "Gb/s", "as congestion control has it")
        alpha = Panel("Alpha")
        for group, (rates, alphas) in zip(groups, self._rates, strict=False):
            times, values = rates.points()
            rate.curves.append(Curve("rate", group.key, times / PS_PER_S, values * 1e-9, "step"))
            times, values = alphas.points()
            if values.any():
                alpha.curves.append(Curve("alpha", group.key, times / PS_PER_S, values, "step"))
        times, values = self._rest.points()
        if len(times):
            rate.curves.append(Curve("rate", REST, times / PS_PER_S, values * 1e-9, "step"))
        return [rate, alpha]

    def _queue_panel(self) -> Panel:
        panel = Panel("Queues", "KB", "of the ports with the longest")
        points = [(queue.points(), name) for queue, name in zip(self._queues, self._ports(), strict=True)]
        points = [(curve, name) for curve, name in points if len(curve[1]) and curve[1].max() > 0]
        points.sort(key=lambda item: -float(item[0][1].max()))
        for (times, values), name in points[:TOP_PORTS]:
            panel.curves.append(Curve(name, None, times / PS_PER_S, values / 1e3, "step"))
        return panel

    def _ports(self) -> list[str]:
        return [] if self._names is None else self._names.ports

    def _cnp_panel(self, groups: list[Group]) -> Panel:
        panel = Panel("Notifications")
        names = self._names
        halves: Any = [] if names is None else names.built.pairs.requester[:TOP_FLOWS]
        for group, half in zip(groups, halves, strict=False):
            # a READ's data is what the other half sends
            sent = (names.flow(int(end)) for end in (half, names.built.pairs.half["peer"][half]))  # type: ignore[union-attr]
            times = np.array(sorted(at for flow in sent for at in self._cnps.get(flow, [])), np.int64)
            if len(times) > MARKS:
                times = times[np.linspace(0, len(times) - 1, MARKS).astype(np.int64)]
            if len(times):
                panel.marks.append(Marks("CNP", group.key, times / PS_PER_S, group.name, "dot"))
        return panel

    def _pause_panel(self) -> Panel:
        panel = Panel("Pauses", "", "ports that were told to stop")
        for (port, priority), spans in sorted(self._spans.items()):
            edges = np.array(spans, np.int64) / PS_PER_S
            panel.bands.append(
                Bands("paused", f"{port} class {priority}", edges[:, 0], edges[:, 1], shade=True)
            )
        return panel


def _facts(result: Simulation) -> list[tuple[str, str]]:
    facts = []
    for key, value in result.summary.items():
        if isinstance(value, bool):
            continue
        name, _, unit = key.rpartition("_")
        if unit == "ns":
            facts.append((name.replace("_", " "), format_time_ns(value)))
        elif unit == "bps":
            facts.append((name.replace("_", " "), format_rate(value)))
        else:
            facts.append((key.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.4g}"))
    return facts


def _finding(finding: Any) -> Finding:
    at = format_time_ns(finding.time_ns)
    return Finding(finding.rule, finding.severity, f"{finding.text} (at {at})")


FLOW_COLUMNS: list[tuple[str, Kind]] = [
    ("flow", "text"), ("verb", "text"), ("messages", "number"), ("goodput", "rate"), ("completion", "time"),
    ("CE", "number"), ("CNPs", "number"), ("sent again", "number"), ("paused", "time"),
]  # fmt: skip
PORT_COLUMNS: list[tuple[str, Kind]] = [
    ("port", "text"), ("queue mean", "bytes"), ("99 %", "bytes"), ("longest", "bytes"), ("marked", "number"),
    ("XOFF", "number"), ("XON", "number"), ("paused", "time"), ("drops", "number"),
]  # fmt: skip


def _tables(result: Simulation, known: set[str]) -> list[Table]:
    flows: list[list[Any]] = []
    groups: list[str | None] = []
    for f in result.flows:
        name = f"{f.src} > {f.dst} QP 0x{f.dqpn:x}"
        flows.append(
            [
                name,
                f.verb,
                f.messages,
                f.goodput_bps,
                f.completion_ns,
                f.ce,
                f.cnps,
                f.retransmissions,
                f.paused_ns,
            ]
        )
        groups.append(name if name in known else None)
    ports: list[list[Any]] = [
        [
            p.name,
            p.queue_mean_bytes,
            p.queue_p99_bytes,
            p.queue_max_bytes,
            p.marked,
            p.xoff,
            p.xon,
            p.paused_ns,
            p.drops,
        ]
        for p in result.ports
    ]
    return [Table("Flows", FLOW_COLUMNS, flows, groups), Table("Ports", PORT_COLUMNS, ports)]


def _flat(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """A nested scenario as dotted keys."""
    if isinstance(values, dict):
        return [
            pair
            for key, value in values.items()
            for pair in _flat(value, f"{prefix}.{key}" if prefix else key)
        ]
    if isinstance(values, list) and values and isinstance(values[0], dict):
        return [pair for at, value in enumerate(values) for pair in _flat(value, f"{prefix}[{at}]")]
    return [(prefix, str(values))]
