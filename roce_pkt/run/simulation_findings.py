"""What a simulation's result gives somebody to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roce_pkt.engine import records
from roce_pkt.engine.overseer import Seen
from roce_pkt.engine.session import Session
from roce_pkt.errors import Severity
from roce_pkt.run.path_shares import PathShares
from roce_pkt.run.simulation_end import busy_ps
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS, PS_PER_S, format_time_ns

if TYPE_CHECKING:
    from roce_pkt.run.simulation_flows import Flows
    from roce_pkt.run.simulation_result import PortResult

MOST_FLOWS = 8
SEVERITIES = ("error", "warning", "note")
FULL_LINK, UNEVEN = 0.8, 1.5
"""A path collision: a link loaded so far that carries so many times an even share."""
MOST_COLLISIONS = 8
MOST_ON_THEIR_WAY = 64
"""Notifications that may be under way when a run ends."""
VICTIM_PAUSED_SHARE = 0.1
"""A flow is a victim when its sender was paused this share of the time and its own way out was free."""


@dataclass(frozen=True, slots=True)
class SimulationFinding:
    """Something somebody should look at."""

    rule: str
    severity: Severity
    time_ns: int
    text: str


def findings_of(
    session: Session, names: Names, paths: list[PathShares], flows: Flows, ports: list[PortResult]
) -> list[SimulationFinding]:
    """What somebody should look at, the gravest first.

    Args:
        session: The run, at its end.
        names: What its parts are called.
        paths: Its sets of equal paths.
        flows: Its flows.
        ports: Its ports.
    """
    now = session.now_ps // PS_PER_NS
    found = [
        SimulationFinding(
            "qp-failed", "error", now, f"{f.src} > {f.dst} QP 0x{f.dqpn:x} used up its retries and stopped"
        )
        for f in map(flows.__getitem__, np.flatnonzero(flows.columns["failed"]).tolist())
    ]
    found += [
        SimulationFinding(
            "drop", "warning", now, f"{p.name} dropped {p.drops} frames: {_why_dropped(session, p.name)}"
        )
        for p in ports
        if p.drops
    ]
    found += [_told(seen, names) for overseer in session.overseers for seen in overseer.seen]
    found += _collisions(session, paths, now)
    found += _notifications(session, names, now)
    if not any(f.rule == "deadlock" for f in found):  # everybody is a victim then
        found += _victims(session, flows, now)
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def _why_dropped(session: Session, name: str) -> str:
    """No buffer, unless the watchdog had taken the port's class out."""
    stormy = any(
        seen.rule == "pfc-storm" and seen.text.startswith(f"{name} ")
        for overseer in session.overseers
        for seen in overseer.seen
    )
    return "the watchdog's doing" if stormy and session.scenario.watchdog.action == "drop" else "no buffer"


def _collisions(session: Session, paths: list[PathShares], now: int) -> list[SimulationFinding]:
    """Sets of equal paths of which one is full while others have room."""
    rate_of = dict(zip(session.built.topology.names, session.built.topology.ports, strict=True))
    seconds = busy_ps(session) / PS_PER_S
    found = []
    for one in paths:
        busiest = one.sent_bytes.index(max(one.sent_bytes))
        load = (
            one.sent_bytes[busiest] * 8 / seconds / rate_of[one.ports[busiest]].rate_bps if seconds else 0.0
        )
        if load > FULL_LINK and one.busiest_share > UNEVEN:
            idle = sum(part * len(one.ports) < 0.5 * sum(one.sent_bytes) for part in one.sent_bytes)
            text = (
                f"{one.ports[busiest]} is full: {one.busiest_share:.1f} times an even share"
                f" of {len(one.ports)} equal paths, of which {idle} carry less than half of one"
                f" (entropy {one.entropy:.2f})"
            )
            found.append(SimulationFinding("path-collision", "warning", now, text))
    return found[:MOST_COLLISIONS]


def _notifications(session: Session, names: Names, now: int) -> list[SimulationFinding]:
    """Notifications that were dropped, or came later than the next one was due."""
    half = session.built.arrays.half
    sent, lost, taken = (int(half[name].sum()) for name in ("cnps", "cnps_lost", "cnps_taken"))
    class_ = int(session.built.w["cnp_class"])
    shared = np.any(half["class_"][half["sent"] > 0] == class_)
    advice = "; they share a class with data: give them one of their own (host.np.dscp)" if shared else ""
    found = []
    waiting = sent - lost - taken
    if waiting > max(MOST_ON_THEIR_WAY, sent // 5):
        queues = session.built.arrays.line["queued_bytes"][class_ :: records.CLASSES]
        text = (
            f"{waiting} of {sent} notifications never arrived: they wait in class {class_} of"
            f" {names.ports[int(queues.argmax())]} and others, which other classes never let through"
        )
        advice = advice or "; give them a class that goes first (host.np.dscp)"
        found.append(SimulationFinding("cnp-stuck", "warning", now, text + advice))
    if lost:
        text = f"{lost} of {sent} notifications were dropped on their way to senders, who never slowed down"
        found.append(SimulationFinding("cnp-lost", "warning", now, text + advice))
    interval_ps = int(session.built.law.np_parameters[0]["interval_ps"])
    mean_ps = int(half["cnp_delay_ps"].sum()) // max(taken, 1)
    if mean_ps > interval_ps > 0:
        mean, longest, interval = (
            format_time_ns(int(ps) // PS_PER_NS)
            for ps in (mean_ps, half["cnp_delay_max_ps"].max(), interval_ps)
        )
        text = (
            f"{taken} notifications took {mean} on average, {longest} at most, to reach senders, although one"
            f" may follow another after {interval}"
        )
        found.append(SimulationFinding("cnp-late", "warning", now, text + advice))
    return found


def _told(seen: Seen, names: Names) -> SimulationFinding:
    """What an overseer saw, with the flows it concerns."""
    flows = list(dict.fromkeys(names.flow(int(names.built.pairs.half["peer"][half])) for half in seen.halves))
    text = seen.text
    if flows:
        more = f" and {len(flows) - MOST_FLOWS} more" if len(flows) > MOST_FLOWS else ""
        text += f"; flows: {', '.join(map(str, flows[:MOST_FLOWS]))}{more}"
    return SimulationFinding(seen.rule, seen.severity, seen.time_ps // PS_PER_NS, text)


def _victims(session: Session, flows: Flows, now: int) -> list[SimulationFinding]:
    """Flows that were paused although the queue before their receiver was empty."""
    built = session.built
    span = busy_ps(session) // PS_PER_NS + 1
    mean = built.arrays.port["queue_byte_ps"] / (span * PS_PER_NS)
    found = []
    paused = flows.columns["paused_ns"] > VICTIM_PAUSED_SHARE * span
    for index in np.flatnonzero(paused).tolist():
        flow, result = built.pairs.flows[index], flows[index]
        taker = built.pairs.requester if flow.traffic.verb == "read" else built.pairs.responder
        last_hop = built.topology.ports[int(built.arrays.half["port"][taker[index]])].peer
        if mean[last_hop] < session.scenario.host.mtu_bytes:
            share = 100 * result.paused_ns / span
            text = (
                f"{result.src} > {result.dst} QP 0x{result.dqpn:x} was paused {share:.0f} % of the time"
                " although the queue to its receiver was empty"
            )
            found.append(SimulationFinding("victim-flow", "warning", now, text))
    return found
