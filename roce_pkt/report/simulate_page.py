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
from roce_pkt.report import simulate_panels as panels
from roce_pkt.report.page import REST, Group, Page, Panel, Parameter
from roce_pkt.report.simulate_pauses import Pauses
from roce_pkt.report.simulate_tables import caption, facts, finding, flat, tables
from roce_pkt.run.bins import Axis, Bins
from roce_pkt.run.simulation_end import done_ps
from roce_pkt.run.track import TOP_FLOWS, Thinned
from roce_pkt.units import PS_PER_NS, PS_PER_S

if TYPE_CHECKING:
    from roce_pkt.run.simulation_names import Names
    from roce_pkt.run.simulation_result import Simulation

MOST_SHOWN = 8
MOST_RECEIVERS = 256
"""Receivers whose goodput is kept, where flows are many."""
MOST_EVEN = 4
"""Full packets that a part of the time axis has room for: fewer would make goodput look uneven."""
MARGIN, FULL = 1.02, 0.95
"""The time axis ends a little behind what happened last; it is whole where that is near its end."""
TIMERS = (rows.RP_CUT, rows.RP_INCREASE, rows.RP_ALPHA)
"""Events of reaction points, whose timers go on when there is nothing left to send."""


class SimulationPage:
    """Collects what a report of a simulation shows.

    Args:
        span_ps: Simulated time.
    """

    def __init__(self, span_ps: int) -> None:
        self.span_ps = max(span_ps, 1)
        self._names: Names | None = None
        self._rates: list[tuple[Thinned, Thinned]] = []
        self._rest = Thinned()
        self._queues: list[Thinned] = []
        self._delivered = Bins(1, self.span_ps)  # by flow; last: of all
        self._received = Bins(0, self.span_ps)  # by receiver, where flows are many
        self._receivers: list[int] = []  # their hosts
        self._receiver_of: NDArray[np.int64] = np.zeros(0, np.int64)  # by half, as `_halves` has them
        self._packet_ps = 0  # that a full packet takes on a host's link
        self._sampled_ps = self._busy_ps = 0
        self._taken: NDArray[np.int64] = np.zeros(1, np.int64)
        self._active: NDArray[np.int64] = np.zeros((2, 1), np.int64)  # first and last delivery of each flow
        self._marked = self._dropped = Bins(0, self.span_ps)  # by port
        self._cnps: list[NDArray[Any]] = []
        self._arrived = Bins(2, self.span_ps)  # notifications: number, sum of delays
        self._longest = Bins(1, self.span_ps, np.maximum)
        self._pauses = Pauses()

    def _begin(self, names: Names) -> None:
        if self._names is not None:
            return
        self._names = names
        senders = names.built.pairs.requester[:TOP_FLOWS]
        self._rates = [(Thinned(), Thinned()) for _ in senders]
        self._queues = [Thinned() for _ in names.ports]
        self._delivered = Bins(len(senders) + 1, self.span_ps)
        flows = len(names.built.pairs.requester)
        self._taken = np.zeros(2 * flows, np.int64)
        self._active = np.array([[NEVER_PS] * flows, [-1] * flows], np.int64)
        hosts, places = np.unique(names.built.pairs.host_of_half[_halves(names)], return_inverse=True)
        if flows > TOP_FLOWS and 1 < len(hosts) <= MOST_RECEIVERS:
            self._receivers, self._receiver_of = hosts.tolist(), places
            self._received = Bins(len(hosts), self.span_ps)
        scenario = names.scenario
        self._packet_ps = int(scenario.host.mtu_bytes * 8 / scenario.fabric.rate_bps * PS_PER_S)
        self._marked, self._dropped = (Bins(len(names.ports), self.span_ps) for _ in range(2))

    def samples(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """A block of samples: times in picoseconds, octets queued by port, records by half."""
        self._begin(names)
        at = times.astype(np.int64)
        # a READ's data comes to the requester, all other to the responder; one flow may do both
        received = rates["received_bytes"][:, _halves(names)]
        grown = np.diff(received, axis=0, prepend=self._taken[None, :])
        grown = np.where(grown < 0, received, grown)  # statistics were restarted in between
        busy = grown.any(axis=1) | queues.any(axis=1)
        done = done_ps(names.built)
        if done is not None:  # what timers do to rates when all is done is not part of the picture
            busy |= at <= done
            at = at[: int(np.flatnonzero(busy)[-1]) + 1 if busy.any() else 0]
        if not len(at):
            return
        if busy.any():
            self._busy_ps = int(times[np.flatnonzero(busy)[-1]])
        self._curves(at, queues[: len(at)], rates[: len(at)], names)
        self._deliveries(at, grown[: len(at)])
        self._taken, self._sampled_ps = received[len(at) - 1].copy(), int(at[-1])

    def _curves(self, at: NDArray[np.int64], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        senders = names.built.pairs.requester
        for (rate, alpha), sender in zip(self._rates, senders, strict=False):
            rate.add(at, rates[:, sender]["rate_bps"].astype(np.float64))
            alpha.add(at, rates[:, sender]["alpha"].astype(np.float64))
        if len(senders) > TOP_FLOWS:
            self._rest.add(at, rates[:, senders[TOP_FLOWS:]]["rate_bps"].mean(axis=1))
        for port, queue in enumerate(self._queues):
            queue.add(at, queues[:, port].astype(np.float64))

    def _deliveries(self, at: NDArray[np.int64], by_half: NDArray[np.int64]) -> None:
        grown = by_half.reshape(len(at), 2, -1).sum(axis=1)
        some = grown > 0
        first, last = at[some.argmax(axis=0)], at[len(at) - 1 - some[::-1].argmax(axis=0)]
        any_ = some.any(axis=0)
        self._active[0, any_] = np.minimum(self._active[0, any_], first[any_])
        self._active[1, any_] = last[any_]
        shown = grown[:, : len(self._rates)]
        together = np.concatenate((shown, grown.sum(axis=1, keepdims=True)), axis=1)
        self._delivered.spread(self._sampled_ps, at, together.astype(np.float64), self._packet_ps)
        if len(self._receivers):
            by_receiver = np.zeros((len(self._receivers), len(at)))
            np.add.at(by_receiver, self._receiver_of, by_half.T)
            self._received.spread(self._sampled_ps, at, by_receiver.T, self._packet_ps)

    def rows(self, found: NDArray[Any], names: Names) -> None:
        """A block of event rows."""
        self._begin(names)
        kind, times = found["kind"], found["time_ps"]
        happened = times[~np.isin(kind, TIMERS)]
        self._busy_ps = max(self._busy_ps, int(happened.max(initial=0)))
        for code, counts in ((rows.CP_MARK, self._marked), (rows.DROP, self._dropped)):
            chosen = kind == code
            ports = found["port"][chosen].astype(np.int64)
            counts.add(ports, times[chosen], np.ones(len(ports)))
        self._cnps.append(found[kind == rows.NP_CNP][["time_ps", "half"]].copy())
        arrived = found[kind == rows.CNP_ARRIVED]
        one, delay = np.zeros(len(arrived), np.int64), arrived["number"].astype(np.float64)
        self._arrived.add(one, arrived["time_ps"], np.ones(len(arrived)))
        self._arrived.add(one + 1, arrived["time_ps"], delay)
        self._longest.add(one, arrived["time_ps"], delay)
        self._pauses.rows(found, names)

    def _end_ps(self, result: Simulation) -> int:
        """Where the time axis ends: when everything is done, behind what happened last."""
        span = max(min(self.span_ps, result.summary["sim_time_ns"] * PS_PER_NS), 1)
        if result.summary["done_ns"] is None:
            return span
        end = int(MARGIN * max(self._busy_ps, result.summary["done_ns"] * PS_PER_NS, 1))
        return end if end < FULL * span else span

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
        axis = Axis(self.span_ps, self._end_ps(result), MOST_EVEN * self._packet_ps)
        since_ps = names.scenario.measure_from_ps if names is not None else 0
        return Page(
            title=title,
            facts=facts(result),
            span_s=axis.end_s,
            since_s=since_ps / PS_PER_S,
            groups=groups,
            panels=[] if names is None else self._panels(names, groups, axis, result),
            tables=tables(result, {group.key for group in groups}),
            findings=[finding(one) for one in result.findings],
            parameters=[Parameter(key, value) for key, value in flat(result.scenario)],
            caption=caption(result),
        )

    def _panels(self, names: Names, groups: list[Group], axis: Axis, result: Simulation) -> list[Panel]:
        scenario, ports = names.scenario, names.ports
        since_ps = scenario.measure_from_ps
        told = np.concatenate(self._cnps) if self._cnps else np.zeros(0, [("time_ps", "i8"), ("half", "u4")])
        ends = _halves(names).reshape(2, -1)
        cnps = [told["time_ps"][np.isin(told["half"], flow)] for flow in ends.T[:TOP_FLOWS]]
        rates = [(rate.points(), alpha.points()) for rate, alpha in self._rates]
        queues = [(queue.points(), name) for queue, name in zip(self._queues, ports, strict=True)]
        received = self._received.until(axis), [f"to {names.address(host)}" for host in self._receivers]
        arrived, summed = self._arrived.until(axis)
        return [
            *panels.goodput(
                axis,
                groups,
                ends.shape[1],
                self._delivered.until(axis),
                received,
                scenario.fabric.rate_bps,
            ),
            panels.under_way(axis, *self._active),
            *panels.rates(groups, rates, self._rest.points(), since_ps),
            panels.queues(axis, queues, scenario),
            panels.counts("Marked frames", axis, self._marked.until(axis), ports, since_ps),
            panels.counts("Dropped frames", axis, self._dropped.until(axis), ports, since_ps),
            panels.notifications(groups, cnps),
            panels.notifications_of_all(axis, told["time_ps"], arrived),
            panels.delays(axis, arrived, summed, self._longest.until(axis)[0]),
            *self._pauses.panels(axis),
            *panels.paths(result, axis.end_ps - since_ps),
        ]


def _halves(names: Names) -> NDArray[np.int64]:
    """Requesters of all flows, then their responders."""
    pairs = names.built.pairs
    return np.concatenate((pairs.requester, pairs.responder))
