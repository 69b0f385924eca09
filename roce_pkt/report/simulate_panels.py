"""The panels of a simulation's page, each from what was collected for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roce_pkt.report.page import REST, Bar, Curve, Group, Marks, Panel
from roce_pkt.run.bins import Axis
from roce_pkt.run.track import MARKS
from roce_pkt.units import PS_PER_S, PS_PER_US, format_bytes

if TYPE_CHECKING:
    from roce_pkt.run.path_shares import PathShares
    from roce_pkt.run.simulation_result import Simulation
    from roce_pkt.scenario.schema import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Points = tuple[Ints, Floats]
"""Times in picoseconds, and values."""
TOP_PORTS = 6
MOST_SETS = 2
MOST_RECEIVERS, FEW_FLOWS = 8, 20
LEAST = 0.02
"""A port whose queue is always shorter, compared to the longest, is not drawn: it would lie on the axis."""
MANY_FLOWS = 100
"""So many flows at once, and the last few of them could not be seen on an even scale."""
DEEP = 50
"""How many times the highest rate is the lowest, for a scale that shows both."""
PEAK = 3
"""How many times a peak at the start is higher than what comes later, to be cut off."""


def _level(name: str, axis: Axis, value: float) -> Curve:
    """A dotted line at a value that others are compared with."""
    return Curve(name, None, np.array([0.0, axis.end_s]), np.array([value, value]), "line", "dotted")


def _measured(panel: Panel, since_ps: int) -> Panel:
    """The panel, without room for a peak before statistics count that would hide what comes then."""
    main = [curve for curve in panel.curves if curve.weight == "main" and len(curve.value)]
    if since_ps and main:
        whole = max(float(curve.value.max()) for curve in main)
        later = [curve.value[curve.time_s * PS_PER_S >= since_ps] for curve in main]
        top = max((float(value.max()) for value in later if len(value)), default=0.0)
        if 0 < top < whole / PEAK:
            panel.top = 1.4 * top
            shown = [curve for curve in panel.curves if curve.weight == "main" or curve.value[0] < panel.top]
            panel.curves = shown
    return panel


def goodput(
    axis: Axis,
    groups: list[Group],
    count: int,
    delivered: Floats,
    received: tuple[Floats, list[str]],
    line_bps: float,
) -> list[Panel]:
    """Payload delivered: of all together, by receiver where flows are many, and by flow where they are few.

    Args:
        axis: Time.
        groups: Flows that are shown.
        count: How many there are.
        delivered: Octets by flow and part of the axis; the last row is of all.
        received: Octets by receiver and part of the axis, and their names; none where not asked for.
        line_bps: Rate of a host's link.
    """
    scale, line = 8 / (axis.width_ps / PS_PER_S) / 1e9, line_bps / 1e9
    # the last part may be cut by the end of the axis
    cut = axis.width_ps / (axis.end_ps - axis.edges_ps[-1])
    by_part = np.append(np.full(delivered.shape[1] - 1, scale), scale * cut)
    values = delivered * by_part
    flows, whole = Panel("Goodput of flows", "Gb/s"), Panel("Goodput of all flows", "Gb/s")
    for group, row in zip(groups, values[:-1], strict=False):
        flows.curves.append(Curve("goodput", group.key, axis.edges_s, row, "step"))
    whole.curves.append(Curve("goodput", None, axis.edges_s, values[-1], "step"))
    shown = [flows] if len(values) == 2 else [whole, flows]
    hosts = [(name, octets) for octets, name in zip(*received, strict=True) if octets.any()]
    if len(hosts) > 1:
        receivers = Panel("Goodput of receivers", "Gb/s")
        last = [int(np.flatnonzero(octets)[-1]) for _, octets in hosts]
        latest = sorted(range(len(hosts)), key=lambda at: -last[at])[:MOST_RECEIVERS]
        for name, octets in (hosts[at] for at in sorted(latest)):
            receivers.curves.append(Curve(name, None, axis.edges_s, octets * by_part, "step"))
        if len(hosts) > len(latest):
            receivers.note = f", to the {len(latest)} of {len(hosts)} hosts that got something last"
        # a few of very many flows say little
        shown = [whole, receivers, flows] if count <= FEW_FLOWS else [whole, receivers]
    for panel in shown:
        panel.note = "payload delivered" + panel.note
        top = max((curve.value.max() for curve in panel.curves), default=0.0)
        if 0.2 * line < top < 1.1 * line:
            panel.note += "; dotted: the link of a host"
            panel.curves.append(_level("link of a host", axis, line))
    return shown


def under_way(axis: Axis, first: Ints, last: Ints) -> Panel:
    """How many flows were between their first and their last delivery, where that changes.

    Args:
        axis: Time.
        first: First delivery of each flow, in ps.
        last: Last delivery of each, -1 for none.
    """
    panel = Panel("Flows under way", "", "between their first and their last octet delivered")
    if (last < axis.end_ps * 0.95).any():
        some = last >= 0
        begun = np.searchsorted(np.sort(first[some]), axis.edges_ps + axis.width_ps)
        ended = np.searchsorted(np.sort(last[some]), axis.edges_ps)
        count = (begun - ended).astype(np.float64)
        panel.log = bool(count.max(initial=0) >= MANY_FLOWS)
        panel.curves.append(Curve("flows", None, axis.edges_s, count, "step"))
    return panel


def rates(
    groups: list[Group], points: list[tuple[Points, Points]], rest: Points, since_ps: int
) -> list[Panel]:
    """Rates and alpha as congestion control has them, where they move.

    Args:
        groups: Flows.
        points: Of each flow its rate in b/s, and alpha.
        rest: Mean rate of the flows that have no group.
        since_ps: From when on statistics count.
    """
    rate = Panel("Rate of senders", "Gb/s", "as congestion control has it")
    alpha = Panel("Alpha", "", "how congested senders take their way to be")
    for group, (rate_points, alpha_points) in zip(groups, points, strict=False):
        times, values = rate_points
        rate.curves.append(Curve("rate", group.key, times / PS_PER_S, values * 1e-9, "step"))
        times, values = alpha_points
        if values.any():
            alpha.curves.append(Curve("alpha", group.key, times / PS_PER_S, values, "step"))
    times, values = rest
    if len(times):
        rate.curves.append(Curve("rate", REST, times / PS_PER_S, values * 1e-9, "step"))
    _measured(rate, since_ps)
    lowest, top = _extremes(rate)
    rate.log = not rate.top and lowest < top / DEEP
    # what hardly moves has nothing to show
    return [panel for panel in (rate, alpha) if any(_moves(curve) for curve in panel.curves)]


def _extremes(panel: Panel) -> tuple[float, float]:
    values = [curve.value for curve in panel.curves if len(curve.value)]
    return min((float(v.min()) for v in values), default=0.0), max(
        (float(v.max()) for v in values), default=0.0
    )


def _moves(curve: Curve) -> bool:
    return len(curve.value) > 0 and float(np.ptp(curve.value)) > 0.01 * float(curve.value.max())


def queues(axis: Axis, points: list[tuple[Points, str]], scenario: Scenario) -> Panel:
    """Queues of the ports with the longest, and where marking starts and is sure.

    Args:
        axis: Time.
        points: Octets of each port, and its name.
        scenario: Says rates and thresholds.
    """
    line, ecn = scenario.fabric.rate_bps, scenario.switch.ecn
    panel = Panel("Queues", "KB", f"of the ports with the longest; 100 KB wait {8e5 / line * 1e6:.3g} us")
    panel.note += " at a host's rate"
    used = sorted(((float(curve[1].max(initial=0)), curve, name) for curve, name in points), reverse=True,
                  key=lambda one: one[0])  # fmt: skip
    top = used[0][0] if used else 0.0
    for longest, (times, values), name in used[:TOP_PORTS]:
        if longest > LEAST * top:
            panel.curves.append(Curve(name, None, times / PS_PER_S, values / 1e3, "step"))
    top = (_measured(panel, scenario.measure_from_ps).top or top / 1e3) * 1e3
    if top and ecn.enabled:
        panel.note += f"; marking from Kmin {format_bytes(ecn.kmin_bytes)} to"
        panel.note += f" Kmax {format_bytes(ecn.kmax_bytes)}" + (", scaled by load" if ecn.adaptive else "")
        for name, limit in (("Kmin", ecn.kmin_bytes), ("Kmax", ecn.kmax_bytes)):
            if not ecn.adaptive and 0.02 * top < limit < 1.5 * top:
                panel.curves.append(_level(name, axis, limit / 1e3))
    return panel


def counts(title: str, axis: Axis, counted: Floats, ports: list[str], since_ps: int) -> Panel:
    """Frames by port over time, of the ports with most.

    Args:
        title: What happened to them.
        axis: Time.
        counted: Frames by port and part of the axis.
        ports: Their names.
        since_ps: From when on statistics count.
    """
    unit, per = axis.per
    panel = Panel(title, unit, "by port")
    totals = counted.sum(axis=1)
    for port in np.argsort(-totals, kind="stable")[:TOP_PORTS]:
        if totals[port]:
            panel.curves.append(Curve(ports[port], None, axis.edges_s, counted[port] * per, "step"))
    return _measured(panel, since_ps)


def notifications(groups: list[Group], sent_ps: list[Ints]) -> Panel:
    """When receivers told each flow's sender to slow down.

    Args:
        groups: Flows.
        sent_ps: Times of each.
    """
    panel = Panel("Notifications", "", "when receivers sent them")
    for group, sent in zip(groups, sent_ps, strict=False):
        times = sent[np.unique(np.linspace(0, len(sent) - 1, MARKS).astype(np.int64))] if len(sent) else sent
        if len(times):
            panel.marks.append(Marks("CNP", group.key, times / PS_PER_S, group.name, "dot"))
    return panel


def notifications_of_all(axis: Axis, sent_ps: Ints, arrived: Floats) -> Panel:
    """Notifications sent beside those that arrived, where the two differ.

    Args:
        axis: Time.
        sent_ps: When each was sent.
        arrived: How many arrived, by part of the axis.
    """
    unit, per = axis.per
    panel = Panel("Notifications of all flows", unit)
    parts = len(axis.edges_ps)
    sent = np.bincount(np.minimum((sent_ps / axis.width_ps).astype(np.int64), parts - 1), minlength=parts)
    if abs(sent.sum() - arrived.sum()) > 0.02 * sent.sum():
        for name, numbers in (("sent", sent), ("arrived", arrived)):
            values = np.asarray(numbers * per, np.float64)
            panel.curves.append(Curve(name, None, axis.edges_s, values, "step"))
    return panel


def delays(axis: Axis, arrived: Floats, summed_ps: Floats, longest_ps: Floats) -> Panel:
    """How long notifications took, unless nothing stands in their way.

    Args:
        axis: Time.
        arrived: How many arrived, by part of the axis.
        summed_ps: The sum of their delays.
        longest_ps: The longest of them.
    """
    panel = Panel("Delay of notifications", "us", "from their sending to the sender they are for")
    some = arrived > 0
    longest = np.asarray(longest_ps[some] / PS_PER_US, np.float64)
    mean = np.asarray(summed_ps[some] / PS_PER_US / arrived[some], np.float64)
    if some.any() and longest.max() > 2 * mean.min():
        for name, values in (("mean", mean), ("longest", longest)):
            panel.curves.append(Curve(name, None, axis.edges_s[some], values, "step"))
    return panel


def paths(result: Simulation, busy_ps: int) -> list[Panel]:
    """What each link of the busiest sets of equal paths carried.

    Args:
        result: Of the run.
        busy_ps: How long they had something to carry, of the time that statistics count.
    """
    duration_s = max(min(result.summary["measured_ns"] / 1e9, busy_ps / PS_PER_S), 1e-12)
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
