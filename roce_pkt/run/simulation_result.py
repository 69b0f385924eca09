"""What a simulation found: flows, ports, a summary, findings; read from the engine's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import records
from roce_pkt.engine.session import Session
from roce_pkt.run.message_times import Messages
from roce_pkt.run.path_shares import PathShares, path_shares
from roce_pkt.run.simulation_end import done_ps, measured_ps
from roce_pkt.run.simulation_findings import SimulationFinding, findings_of
from roce_pkt.run.simulation_flows import Flows, flows_of, paused_by_cell
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS


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
    flows: Flows
    ports: list[PortResult]
    findings: list[SimulationFinding] = field(default_factory=list)
    paths: list[PathShares] = field(default_factory=list)
    messages: dict[str, Any] | None = None
    faults: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self, many: Callable[[Iterator[Any]], list[Any]] = list) -> dict[str, Any]:
        """The result as one JSON document.

        Args:
            many: Makes the list of flows, which may be a million.
        """
        return {
            "scenario": self.scenario,
            "summary": self.summary,
            "flows": many(flow.as_json() for flow in self.flows),
            "ports": [asdict(p) for p in self.ports],
            "findings": [asdict(f) for f in self.findings],
            "paths": [asdict(p) for p in self.paths],
            "messages": self.messages,
            "faults": self.faults,
        }


def jain(values: NDArray[np.float64]) -> float:
    """Jain's fairness index, 1 when all are equal."""
    squares = float(values @ values)
    return 1.0 if squares == 0 else float(values.sum()) ** 2 / (len(values) * squares)


def collect(session: Session, names: Names, wall_s: float, cpu_s: float, *, interrupted: bool) -> Simulation:
    """Read the result out of a session."""
    session.settle()
    messages = Messages(session)
    flows = flows_of(session, names, messages)
    goodput_bps = flows.columns["goodput_bps"]
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
        "jain": jain(goodput_bps),
        "goodput_bps": float(goodput_bps.sum()),
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


def _ports(session: Session, names: Names) -> list[PortResult]:
    built = session.built
    span = max(measured_ps(session), 1)
    longest = paused_by_cell(session).reshape(-1, records.CLASSES).max(axis=1)
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
