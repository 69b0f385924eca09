"""What a simulation found: flows, ports, a summary, findings; read from the engine's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import records
from roce_pkt.engine.overseer import Seen
from roce_pkt.engine.session import Session
from roce_pkt.errors import Severity
from roce_pkt.fabric.pause import paused_total_ps
from roce_pkt.run.message_times import Messages, MessageTimes
from roce_pkt.run.path_shares import PathShares, path_shares
from roce_pkt.run.simulation_end import done_ps
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS, PS_PER_S, format_time_ns

MOST_FLOWS = 8
SEVERITIES = ("error", "warning", "note")
FULL_LINK, UNEVEN = 0.8, 1.5
"""A path collision: a link loaded so far that carries so many times an even share."""
MOST_COLLISIONS = 8
TOLD = (
    "verb", "service", "ended_ps", "received_bytes", "messages", "msn", "ce", "cnps", "cnps_lost",
    "cnps_taken", "cnp_delay_ps", "cnp_delay_max_ps", "again", "naks", "timeouts", "cell", "failed",
    "damaged",
)  # fmt: skip
"""What a result tells of a half."""
AT_ONCE = 4096
MOST_ON_THEIR_WAY = 64
"""Notifications that may be under way when a run ends."""
VICTIM_PAUSED_SHARE = 0.1
"""A flow is a victim when its sender was paused this share of the time and its own way out was free."""


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One queue pair.

    Args:
        src: Address that posts the work.
        dst: Address that serves it.
        dqpn: Queue pair at `dst`.
        verb: Operation.
        goodput_bps: Payload delivered in order, over the time the flow was active and measured.
        completion_ns: From its start to the end of its last message, None while it runs.
        messages: Messages completed.
        ce: Marked data frames that arrived.
        cnps: Notifications sent for it.
        cnps_lost: Those that a switch dropped.
        cnp_delay_mean_ns: From their sending to the sender they are for; 0 when none arrived.
        cnp_delay_max_ns: The longest of those.
        retransmissions: Packets sent again.
        naks: Refusals its requester got.
        damaged: Frames of it, both ways, that arrived with a wrong ICRC and were dropped.
        timeouts: Retry timers that ran out.
        paused_ns: Time its sender was paused.
        failed: True when its retries were used up.
        times: Completion times of its messages, where they are told apart.
        faults: Each fault done, in order, with the frames of the output that show it.
    """

    src: str
    dst: str
    dqpn: int
    verb: str
    goodput_bps: float
    completion_ns: int | None
    messages: int
    ce: int
    cnps: int
    cnps_lost: int
    cnp_delay_mean_ns: int
    cnp_delay_max_ns: int
    retransmissions: int
    naks: int
    damaged: int
    timeouts: int
    paused_ns: int
    failed: bool
    times: MessageTimes | None = None


FLOW_NAMES = tuple(one.name for one in fields(FlowResult))


@dataclass(frozen=True, slots=True)
class PortResult:
    """One port of a switch, or a host's port that was paused."""

    name: str
    queue_mean_bytes: float
    queue_p99_bytes: int
    queue_max_bytes: int
    marked: int
    xoff: int
    xon: int
    paused_ns: int
    drops: int


@dataclass(frozen=True, slots=True)
class SimulationFinding:
    """Something somebody should look at."""

    rule: str
    severity: Severity
    time_ns: int
    text: str


@dataclass(slots=True)
class Simulation:
    """A finished, or interrupted, run.

    Args:
        scenario: As a file would state it, every default written out, computed values included.
        summary: Totals and speed.
        flows: In the scenario's order.
        ports: Ports of switches, then host ports that were paused.
        findings: By severity.
        paths: Sets of equal paths, the least evenly used first.
        messages: Completion times of messages, of all and by length, where they are told apart.
        faults: Each fault done, in order, with the frames of the output that show it.
    """

    scenario: dict[str, Any]
    summary: dict[str, Any]
    flows: list[FlowResult]
    ports: list[PortResult]
    findings: list[SimulationFinding] = field(default_factory=list)
    paths: list[PathShares] = field(default_factory=list)
    messages: dict[str, Any] | None = None
    faults: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The result as one JSON document."""
        return {
            "scenario": self.scenario,
            "summary": self.summary,
            "flows": [_plain(f) for f in self.flows],
            "ports": [asdict(p) for p in self.ports],
            "findings": [asdict(f) for f in self.findings],
            "paths": [asdict(p) for p in self.paths],
            "messages": self.messages,
            "faults": self.faults,
        }


def _plain(flow: FlowResult) -> dict[str, Any]:
    """A flow as JSON's types; `asdict` copies every number, which takes a minute for a million flows."""
    values = {name: getattr(flow, name) for name in FLOW_NAMES}
    deep = {n: asdict(v) for n, v in values.items() if is_dataclass(v) and not isinstance(v, type)}
    return values | deep


def measured_ps(session: Session) -> int:
    """How long statistics have been counting: from the scenario's `measure_from`, once that is past."""
    warm = session.scenario.measure_from_ps
    return session.now_ps - warm if session.now_ps >= warm else session.now_ps


def jain(values: list[float]) -> float:
    """Jain's fairness index, 1 when all are equal."""
    squares = sum(v * v for v in values)
    return 1.0 if squares == 0 else sum(values) ** 2 / (len(values) * squares)


def collect(session: Session, names: Names, wall_s: float, cpu_s: float, *, interrupted: bool) -> Simulation:
    """Read the result out of a session."""
    session.settle()
    messages = Messages(session)
    flows = _flows(session, names, messages)
    ports = _ports(session, names)
    paths = path_shares(session, names)
    w = session.built.w
    data, done = int(w["data_sent"]), done_ps(session.built)
    summary = {
        "data_packets": data,
        "frames": int(w["frames_sent"]),
        "events": int(w["events"]),
        "sim_time_ns": session.now_ps // PS_PER_NS,
        "done_ns": None if done is None else done // PS_PER_NS,
        "measured_ns": measured_ps(session) // PS_PER_NS,
        "wall_s": round(wall_s, 6),
        "cpu_s": round(cpu_s, 6),
        "packets_per_cpu_s": round(data / cpu_s) if cpu_s else 0,
        "jain": jain([f.goodput_bps for f in flows]),
        "goodput_bps": sum(f.goodput_bps for f in flows),
        "interrupted": interrupted,
    }
    written = _written(session)
    findings = _findings(session, names, paths, flows, ports)
    return Simulation(written, summary, flows, ports, findings, paths, messages.as_json())


def _written(session: Session) -> dict[str, Any]:
    """The scenario with what was computed put in the place of `auto`."""
    import copy

    written = copy.deepcopy(session.scenario.written)
    for key, value in session.built.resolved.items():
        *tables, last = key.split(".")
        place = written
        for table in tables:
            place = place.setdefault(table, {})
        place[last] = value
    return written


def _flows(session: Session, names: Names, messages: Messages) -> list[FlowResult]:
    built = session.built
    half = built.arrays.half
    now = session.now_ps
    paused = _paused_by_cell(session)
    found = []
    ends = zip(_rows(half, built.pairs.requester), _rows(half, built.pairs.responder), strict=True)
    for index, (flow, (q, r)) in enumerate(zip(built.pairs.flows, ends, strict=True)):
        backwards = int(q["verb"]) in (records.READ, records.ATOMIC)
        data = r if backwards else q
        ended = int(q["ended_ps"])
        begun = max(flow.start_ps, now - measured_ps(session))
        span = (ended if ended >= 0 else now) - begun
        key = names.flow(int(built.pairs.requester[index]))
        taken = int(q["received_bytes"]) + int(r["received_bytes"])
        found.append(
            FlowResult(
                src=key.src,
                dst=key.dst,
                dqpn=key.dqpn,
                verb=names.verbs(index),
                goodput_bps=taken * 8 * PS_PER_S / span if span > 0 else 0.0,
                completion_ns=(ended - flow.start_ps) // PS_PER_NS if ended >= 0 else None,
                messages=int(q["messages"] if q["service"] == records.RC else r["msn"]),
                ce=int(q["ce"]) + int(r["ce"]),
                cnps=int(q["cnps"]) + int(r["cnps"]),
                cnps_lost=int(data["cnps_lost"]),
                cnp_delay_mean_ns=int(data["cnp_delay_ps"]) // max(int(data["cnps_taken"]), 1) // PS_PER_NS,
                cnp_delay_max_ns=int(data["cnp_delay_max_ps"]) // PS_PER_NS,
                retransmissions=int(q["again"]) + int(r["again"]),
                naks=int(q["naks"]),
                damaged=int(q["damaged"]) + int(r["damaged"]),
                timeouts=int(q["timeouts"]),
                paused_ns=int(paused[data["cell"]]) // PS_PER_NS,
                failed=bool(q["failed"]),
                times=messages.of_flow(index),
            )
        )
    return found


def _rows(half: NDArray[Any], chosen: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Halves as plain values, some thousand at a time: a large fabric has millions."""
    for first in range(0, len(chosen), AT_ONCE):
        part = half[list(TOLD)][chosen[first : first + AT_ONCE]]
        for row in part.tolist():
            yield dict(zip(TOLD, row, strict=True))


def _paused_by_cell(session: Session) -> np.ndarray[Any, np.dtype[np.int64]]:
    arrays = session.built.arrays
    bits = (arrays.port["paused"][:, None] >> np.arange(records.CLASSES)) & 1
    return np.array(
        [
            paused_total_ps(bool(on), line, session.now_ps)
            for on, line in zip(bits.ravel().tolist(), arrays.line, strict=True)
        ],
        np.int64,
    )


def _ports(session: Session, names: Names) -> list[PortResult]:
    built = session.built
    span = max(measured_ps(session), 1)
    longest = _paused_by_cell(session).reshape(-1, records.CLASSES).max(axis=1)
    found = []
    for index, p in enumerate(built.arrays.port):
        if p["host"] and not longest[index]:
            continue
        found.append(
            PortResult(
                name=names.ports[index],
                queue_mean_bytes=float(p["queue_byte_ps"]) / span,
                queue_p99_bytes=session.quantile_bytes(index, 0.99),
                queue_max_bytes=int(p["queue_max_bytes"]),
                marked=int(p["marked"]),
                xoff=int(p["xoffs"]),
                xon=int(p["xons"]),
                paused_ns=int(longest[index]) // PS_PER_NS,
                drops=int(p["drops"]),
            )
        )
    return sorted(found, key=lambda port: port.name.startswith("host"))


def _findings(
    session: Session, names: Names, paths: list[PathShares], flows: list[FlowResult], ports: list[PortResult]
) -> list[SimulationFinding]:
    now = session.now_ps // PS_PER_NS
    found = [
        SimulationFinding(
            "qp-failed", "error", now, f"{f.src} > {f.dst} QP 0x{f.dqpn:x} used up its retries and stopped"
        )
        for f in flows
        if f.failed
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
    seconds = measured_ps(session) / PS_PER_S
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


def _victims(session: Session, flows: list[FlowResult], now: int) -> list[SimulationFinding]:
    """Flows that were paused although the queue before their receiver was empty."""
    built = session.built
    span = measured_ps(session) // PS_PER_NS + 1
    mean = built.arrays.port["queue_byte_ps"] / (span * PS_PER_NS)
    found = []
    for index, (flow, result) in enumerate(zip(built.pairs.flows, flows, strict=True)):
        if result.paused_ns <= VICTIM_PAUSED_SHARE * span:
            continue
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
