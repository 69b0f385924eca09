"""A simulation as a page: what it delivered, rates, queues, marks, notifications, pauses, equal paths.

A `SimulationPage` is handed to `simulate` as `on_samples` and `on_rows`, and made a page of at the end.
Panels are those that the run has something to show for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.engine import rows
from roce_pkt.engine.records import ATOMIC, READ
from roce_pkt.report.page import REST, Bar, Curve, Group, Marks, Page, Panel, Parameter
from roce_pkt.report.simulate_pauses import Pauses
from roce_pkt.report.simulate_tables import caption, facts, finding, flat, tables
from roce_pkt.run.track import MARKS, TOP_FLOWS, Thinned
from roce_pkt.units import PS_PER_S, PS_PER_US

if TYPE_CHECKING:
    from roce_pkt.run.path_shares import PathShares
    from roce_pkt.run.simulation_names import Names
    from roce_pkt.run.simulation_result import Simulation

MOST_SHOWN = 8
TOP_PORTS = 6
MOST_SETS = 2
PARTS = 200
"""Parts of the time axis that deliveries, marks and drops are counted in."""


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
        self._delivered: NDArray[np.float64] = np.zeros((1, PARTS))  # by flow; last: of all
        self._taken: NDArray[np.int64] = np.zeros(1, np.int64)
        self._active: NDArray[np.int64] = np.zeros((2, 1), np.int64)  # first and last delivery of each flow
        self._marked: NDArray[np.int64] = np.zeros((0, PARTS), np.int64)  # by port
        self._dropped: NDArray[np.int64] = np.zeros((0, PARTS), np.int64)
        self._cnps: list[NDArray[Any]] = []
        self._delays: NDArray[np.float64] = np.zeros((2, PARTS))  # sum and longest
        self._arrived: NDArray[np.int64] = np.zeros(PARTS, np.int64)
        self._pauses = Pauses(self.span_ps)

    def _begin(self, names: Names) -> None:
        if self._names is not None:
            return
        self._names = names
        senders = names.built.pairs.requester[:TOP_FLOWS]
        self._rates = [(Thinned(0, self.span_ps), Thinned(0, self.span_ps)) for _ in senders]
        self._queues = [Thinned(0, self.span_ps) for _ in names.ports]
        self._delivered = np.zeros((len(senders) + 1, PARTS))
        flows = len(names.built.pairs.requester)
        self._taken = np.zeros(flows, np.int64)
        self._active = np.array([[NEVER_PS] * flows, [-1] * flows], np.int64)
        self._marked, self._dropped = np.zeros((2, len(names.ports), PARTS), np.int64)

    def _part(self, time_ps: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(time_ps // max(self.span_ps // PARTS, 1), PARTS - 1)

    def samples(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """A block of samples: times in picoseconds, octets queued by port, records by half."""
        self._begin(names)
        at = times.astype(np.int64)
        senders = names.built.pairs.requester
        for (rate, alpha), sender in zip(self._rates, senders, strict=False):
            rate.add(at, rates[:, sender]["rate_bps"].astype(np.float64))
            alpha.add(at, rates[:, sender]["alpha"].astype(np.float64))
        if len(senders) > TOP_FLOWS:
            self._rest.add(at, rates[:, senders[TOP_FLOWS:]]["rate_bps"].mean(axis=1))
        for port, queue in enumerate(self._queues):
            queue.add(at, queues[:, port].astype(np.float64))
        self._deliveries(at, rates["received_bytes"][:, _takers(names)])

    def _deliveries(self, at: NDArray[np.int64], received: NDArray[np.int64]) -> None:
        grown = np.diff(received, axis=0, prepend=self._taken[None, :])
        self._taken = received[-1].copy()
        grown = np.where(grown < 0, received, grown)  # statistics were restarted in between
        part = self._part(at)
        some = grown > 0
        first, last = at[some.argmax(axis=0)], at[len(at) - 1 - some[::-1].argmax(axis=0)]
        any_ = some.any(axis=0)
        self._active[0, any_] = np.minimum(self._active[0, any_], first[any_])
        self._active[1, any_] = last[any_]
        for row in range(len(self._delivered) - 1):
            self._delivered[row] += np.bincount(part, grown[:, row], PARTS)
        self._delivered[-1] += np.bincount(part, grown.sum(axis=1), PARTS)

    def rows(self, found: NDArray[Any], names: Names) -> None:
        """A block of event rows."""
        self._begin(names)
        kind, part = found["kind"], self._part(found["time_ps"])
        for code, counts in ((rows.CP_MARK, self._marked), (rows.DROP, self._dropped)):
            chosen = kind == code
            np.add.at(counts, (found["port"][chosen], part[chosen]), 1)
        self._cnps.append(found[kind == rows.NP_CNP][["time_ps", "half"]].copy())
        arrived = kind == rows.CNP_ARRIVED
        self._arrived += np.bincount(part[arrived], minlength=PARTS)
        self._delays[0] += np.bincount(part[arrived], found["number"][arrived], PARTS)
        np.maximum.at(self._delays[1], part[arrived], found["number"][arrived])
        self._pauses.rows(found, names)

    def page(self, title: str, result: Simulation) -> Page:
        """The page.

        Args:
            title: What was simulated.
            result: What came of it.
        """
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
            facts=facts(result),
            span_s=self.span_ps / PS_PER_S,
            groups=groups,
            panels=[
                *self._goodput_panels(groups, result),
                self._active_panel(),
                *self._flow_panels(groups),
                self._queue_panel(),
                self._count_panel("Marked frames", self._marked),
                self._count_panel("Dropped frames", self._dropped),
                *self._cnp_panels(groups),
                *self._pauses.panels(),
                *_path_panels(result),
            ],
            tables=tables(result, {group.key for group in groups}),
            findings=[finding(one) for one in result.findings],
            parameters=[Parameter(key, value) for key, value in flat(result.scenario)],
            caption=caption(result),
        )

    @property
    def _edges_s(self) -> NDArray[np.float64]:
        """Where the parts of the time axis begin."""
        return np.asarray(np.arange(PARTS) * (max(self.span_ps // PARTS, 1) / PS_PER_S), np.float64)

    def _goodput_panels(self, groups: list[Group], result: Simulation) -> list[Panel]:
        """Payload delivered, by flow and of all together."""
        if self._names is None:
            return []
        scale = 8 / (max(self.span_ps // PARTS, 1) / PS_PER_S) / 1e9
        line = self._names.scenario.fabric.rate_bps / 1e9
        flows = Panel("Goodput of flows", "Gb/s", "payload delivered; dotted: the link of a host")
        for group, delivered in zip(groups, self._delivered[:-1], strict=False):
            flows.curves.append(Curve("goodput", group.key, self._edges_s, delivered * scale, "step"))
        together = self._delivered[-1] * scale
        whole = Panel("Goodput of all flows", "Gb/s", "payload delivered; dotted: the link of a host")
        whole.curves.append(Curve("goodput", None, self._edges_s, together, "step"))
        for panel in (flows, whole):
            top = max((curve.value.max() for curve in panel.curves), default=0.0)
            if 0.2 * line < top < 1.1 * line:
                ends = np.array([0.0, self.span_ps / PS_PER_S])
                limit = Curve("link of a host", None, ends, np.array([line, line]), "line", "dotted")
                panel.curves.append(limit)
            else:
                panel.note = "payload delivered"
        return [flows] if len(result.flows) == 1 else [whole, flows]

    def _active_panel(self) -> Panel:
        """How many flows were between their first and their last delivery, where that changes."""
        panel = Panel("Flows under way", "", "between their first and their last octet delivered")
        first, last = self._active
        edges = np.arange(PARTS) * max(self.span_ps // PARTS, 1)
        if (last < self.span_ps * 0.95).any():
            count = (first[None, :] <= edges[:, None]) & (last[None, :] >= edges[:, None])
            panel.curves.append(Curve("flows", None, self._edges_s, count.sum(axis=1).astype(float), "step"))
        return panel

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
        # a rate that never moves has nothing to show
        return [panel for panel in (rate, alpha) if any(np.ptp(curve.value) > 0 for curve in panel.curves)]

    def _queue_panel(self) -> Panel:
        panel = Panel("Queues", "KB", "of the ports with the longest")
        points = [(queue.points(), name) for queue, name in zip(self._queues, self._ports(), strict=True)]
        points = [(curve, name) for curve, name in points if len(curve[1]) and curve[1].max() > 0]
        points.sort(key=lambda item: -float(item[0][1].max()))
        for (times, values), name in points[:TOP_PORTS]:
            panel.curves.append(Curve(name, None, times / PS_PER_S, values / 1e3, "step"))
        if points and self._names is not None:
            line = self._names.scenario.fabric.rate_bps
            panel.note += f"; 100 KB wait {8e5 / line * 1e6:.3g} us at a host's rate"
        return panel

    def _count_panel(self, title: str, counts: NDArray[np.int64]) -> Panel:
        """Frames by port over time, of the ports with most."""
        panel = Panel(title, "1/ms", "by port")
        per_ms = PS_PER_S / 1e3 / max(self.span_ps // PARTS, 1)
        totals = counts.sum(axis=1)
        for port in np.argsort(-totals, kind="stable")[:TOP_PORTS]:
            if totals[port]:
                name = self._ports()[port]
                panel.curves.append(Curve(name, None, self._edges_s, counts[port] * per_ms, "step"))
        return panel

    def _ports(self) -> list[str]:
        return [] if self._names is None else self._names.ports

    def _cnp_panels(self, groups: list[Group]) -> list[Panel]:
        panel = Panel("Notifications", "", "when receivers sent them")
        delays = Panel("Delay of notifications", "us", "from their sending to the sender they are for")
        if self._names is None:
            return []
        told = np.concatenate(self._cnps) if self._cnps else np.zeros(0, [("time_ps", "i8"), ("half", "u4")])
        pairs = self._names.built.pairs
        for group, index in zip(groups, range(min(TOP_FLOWS, len(pairs.requester))), strict=False):
            times = told["time_ps"][told["half"] == _takers(self._names)[index]]
            if len(times) > MARKS:
                times = times[np.linspace(0, len(times) - 1, MARKS).astype(np.int64)]
            if len(times):
                panel.marks.append(Marks("CNP", group.key, times / PS_PER_S, group.name, "dot"))
        some = self._arrived > 0
        longest = np.asarray(self._delays[1, some] / PS_PER_US, np.float64)
        mean: NDArray[np.float64] = (self._delays[0, some] / PS_PER_US) / self._arrived[some]
        if some.any() and longest.max() > 2 * mean.min():  # else nothing stands in their way
            for name, values in (("mean", mean), ("longest", longest)):
                delays.curves.append(Curve(name, None, self._edges_s[some], values, "step"))
        return [panel, self._count_of_cnps(told["time_ps"]), delays]

    def _count_of_cnps(self, sent_ps: NDArray[np.int64]) -> Panel:
        """Notifications sent beside those that arrived, where the two differ."""
        panel = Panel("Notifications of all flows", "1/ms")
        sent = np.bincount(self._part(sent_ps), minlength=PARTS)
        if abs(int(sent.sum()) - int(self._arrived.sum())) > 0.02 * sent.sum():
            per_ms = PS_PER_S / 1e3 / max(self.span_ps // PARTS, 1)
            for name, counts in (("sent", sent), ("arrived", self._arrived)):
                panel.curves.append(
                    Curve(name, None, self._edges_s, np.asarray(counts * per_ms, np.float64), "step")
                )
        return panel


def _takers(names: Names) -> NDArray[np.int64]:
    """The half of each flow that takes its data: the requester of a READ or ATOMIC, else the responder."""
    pairs = names.built.pairs
    backwards = np.isin(pairs.half["verb"][pairs.requester], (READ, ATOMIC))
    return np.where(backwards, pairs.requester, pairs.responder)


def _path_panels(result: Simulation) -> list[Panel]:
    """What each link of the busiest sets of equal paths carried."""
    duration_s = result.summary["measured_ns"] / 1e9
    used = [one for one in result.paths if sum(one.sent_bytes)]
    most = max((sum(one.sent_bytes) for one in used), default=0)
    worth: list[PathShares] = [one for one in used if sum(one.sent_bytes) > 0.1 * most]
    found = []
    for one in worth[:MOST_SETS]:
        loads = [sent * 8 / duration_s / 1e9 for sent in one.sent_bytes]
        even = sum(loads) / len(loads)
        note = f"entropy {one.entropy:.2f}; dotted: an even share"
        bars = [Bar(name, load) for name, load in zip(one.ports, loads, strict=True)]
        found.append(Panel(f"Equal paths of {one.switch}", "Gb/s", note, bars=bars, level=even))
    return found
