"""What a simulation found: flows, ports, a summary, findings; read from the engine's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import records
from roce_pkt.engine.session import Session
from roce_pkt.fabric.pause import paused_total_ps
from roce_pkt.run.message_times import Messages, MessageTimes
from roce_pkt.run.path_shares import PathShares, path_shares
from roce_pkt.run.simulation_end import done_ps, measured_ps
from roce_pkt.run.simulation_findings import SimulationFinding, findings_of
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS, PS_PER_S

TOLD = (
    "verb", "service", "ended_ps", "received_bytes", "messages", "msn", "ce", "cnps", "cnps_lost",
    "cnps_taken", "cnp_delay_ps", "cnp_delay_max_ps", "again", "naks", "timeouts", "cell", "failed",
    "damaged",
)  # fmt: skip
"""What a result tells of a half."""
AT_ONCE = 4096


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
    findings = findings_of(session, names, paths, flows, ports)
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
