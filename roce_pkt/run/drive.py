"""Drive: what a capture's hosts asked for, through another fabric.

Times in a capture are throttled already: a message that begins within a round trip of its
predecessor's end waited for it, and will again; any other gap is the application's own and stays.
Messages that follow each other so become one queue pair of the engine, each with its own length.
Datagrams wait for nothing: each is posted when it was captured, or as soon as it can after that.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roce_pkt.errors import Finding, ScenarioError
from roce_pkt.events import Event, FlowKey
from roce_pkt.flows import pairs
from roce_pkt.flows.connections import Connections
from roce_pkt.flows.messages import Message, Messages
from roce_pkt.flows.survey import Survey
from roce_pkt.run.simulate import Onlooker, load, simulate
from roce_pkt.scenario.reader import read_text
from roce_pkt.scenario.schema import Scenario, Traffic
from roce_pkt.units import PS_PER_NS

if TYPE_CHECKING:
    from roce_pkt.capture.reader import Capture
    from roce_pkt.run.simulation_flows import FlowResult
    from roce_pkt.run.simulation_result import Simulation

_PLAIN = '[{ pattern = "flows", pairs = [[0, 1]] }]'
"""A traffic table that is only a place to put the capture's messages."""
LEAST_TRIP_NS = 10_000
"""A gap below this is never an application's."""
GAPS = 4
"""A throttled sender takes some of its own packet gaps before it begins anew."""
MOST_LENGTHS = 100
"""Different lengths told of one queue pair."""
MOST_BYTES = 1 << 31
"""Octets of the longest message there is."""
STRETCH = 4
"""The driven run may last this much longer than the capture."""


@dataclass(slots=True)
class Train:
    """Messages of one queue pair that wait for each other.

    Args:
        flow: The flow of its requests.
        key: The flow's name.
        verb: `send`, `write`, `read`, `cmp_swp` or `fetch_add`.
        transport: `rc`, `uc` or `ud`.
        messages: The messages.
    """

    flow: int
    key: FlowKey
    verb: str
    transport: str
    messages: list[Message]

    @property
    def octets(self) -> int:
        """Mean length of a message."""
        return max(round(sum(m.octets for m in self.messages) / len(self.messages)), 1)

    @property
    def listed(self) -> bool:
        """Whether its messages differ, in length or in that each has a time."""
        return self.transport == "ud" or len({m.octets for m in self.messages}) > 1

    @property
    def completion_ns(self) -> int | None:
        """From its first packet to its last; None when the capture does not hold its end."""
        last = self.messages[-1].last_ns
        return None if last is None else last - self.messages[0].first_ns


@dataclass(slots=True)
class Driven:
    """A capture's demand in another fabric.

    Args:
        trains: What was asked for.
        result: What became of it.
        findings: What to know before comparing.
    """

    trains: list[Train]
    result: Simulation
    findings: list[Finding] = field(default_factory=list)

    def rows(self) -> list[tuple[Train, FlowResult]]:
        """Each part of the demand beside its result."""
        return list(zip(self.trains, self.result.flows, strict=True))

    def as_json(self) -> dict[str, Any]:
        """The result as one JSON document."""
        flows = [
            train.key._asdict()
            | {
                "verb": train.verb,
                "transport": train.transport,
                "messages": len(train.messages),
                "message_bytes": train.octets,
                "lengths": sorted({message.octets for message in train.messages})[:MOST_LENGTHS],
                "start_ns": train.messages[0].first_ns,
                "captured_completion_ns": train.completion_ns,
                "driven_completion_ns": flow.completion_ns,
                "ce": flow.ce,
                "cnps": flow.cnps,
                "retransmissions": flow.retransmissions,
                "paused_ns": flow.paused_ns,
            }
            for train, flow in self.rows()
        ]
        whole = self.result.as_json()
        findings = [finding.as_json() for finding in self.findings] + whole["findings"]
        return whole | {"flows": flows, "findings": findings}


def drive(
    capture: Capture,
    fabric: Scenario | str | Path,
    *,
    open_loop: bool = False,
    on_event: Callable[[Event], None] | None = None,
    watch: Callable[[Scenario], Onlooker] | None = None,
) -> Driven:
    """Run what a capture's hosts asked for through a scenario's fabric; its own traffic is left out.

    Args:
        capture: The capture, read twice.
        fabric: A scenario, a file, or the name of a preset.
        open_loop: Every message begins when it began in the capture.
        on_event: Told of the engine's events.
        watch: Given what is run, gives what takes its samples and its events as rows.

    Raises:
        ScenarioError: The scenario is wrong, or has too few hosts.
        CaptureError: The capture cannot be read.
    """
    scenario = load(fabric, {"traffic": _PLAIN})
    survey, messages, trip_ns = _demand(capture)
    trains = _trains(survey, messages, trip_ns, open_loop=open_loop)
    trains.sort(key=lambda train: train.listed)  # lists come last among an engine's queue pairs
    if not trains:
        raise ScenarioError("--fabric", f"{capture.path} holds no message of a queue pair to drive with")
    hosts = _hosts(trains)
    if len(hosts) > scenario.fabric.hosts:
        what = f"{scenario.fabric.hosts}, but the capture's messages are between {len(hosts)} hosts"
        raise ScenarioError(f"{scenario.name}: fabric.hosts", what)
    origin_ns = min(train.messages[0].first_ns for train in trains)
    traffic = tuple(_traffic(train, hosts, origin_ns, scenario.host.mtu_bytes) for train in trains)
    duration_ps = max(scenario.duration_ps, STRETCH * max(survey.duration_ns, 1) * PS_PER_NS)
    written = scenario.written | {"traffic": [_written(table) for table in traffic]}
    written |= {"duration": f"{duration_ps}ps", "measure_from": "0us"}
    driven = replace(scenario, traffic=traffic, duration_ps=duration_ps, measure_from_ps=0, written=written)
    seen = None if watch is None else watch(driven)
    result = simulate(
        driven,
        on_event=on_event,
        on_samples=None if seen is None else seen.samples,
        on_rows=None if seen is None else seen.rows,
    )
    return Driven(trains, result, _findings(trains, scenario))


def _demand(capture: Capture) -> tuple[Survey, list[Message], int]:
    """Flows, messages, and about how long a round trip takes."""
    survey, found, connections = Survey(), Messages(), Connections()
    for frames in capture:
        survey.add(frames)
        connections.add(frames)
        found.add(frames, survey)
    evidence = pairs.Evidence(survey, range(len(survey.flows)))
    answers: list[np.ndarray[Any, Any]] = []
    for frames in capture.batches(verify=False):
        rows = survey.rows(frames)
        evidence.add(rows)
        answers.append(_waits(rows))
    partners = evidence.partners()
    for number in range(len(survey.flows)):
        back = survey.sends_back(number)
        if number not in partners and len(back) == 1:
            partners[number] = back[0]
    waits = np.concatenate(answers) if answers else np.zeros(0)
    trip_ns = int(np.median(waits)) if len(waits) else LEAST_TRIP_NS
    return survey, found.found(partners), max(trip_ns, LEAST_TRIP_NS)


def _waits(rows: Any) -> np.ndarray[Any, Any]:
    """Times from a request to the answer with its PSN, of the requests of one batch."""
    from roce_pkt.flows.rows import ANSWERS, IS_REQUEST

    asked, answered = np.flatnonzero(IS_REQUEST[rows.opcode]), np.flatnonzero(rows.having(ANSWERS))
    last: dict[int, int] = dict(zip(rows.psn[asked].tolist(), rows.time_ns[asked].tolist(), strict=True))
    pairs_of = zip(rows.psn[answered].tolist(), rows.time_ns[answered].tolist(), strict=True)
    waits = [time - last[psn] for psn, time in pairs_of if psn in last and time > last[psn]]
    return np.array(waits[:10_000])


def _trains(survey: Survey, messages: list[Message], trip_ns: int, *, open_loop: bool) -> list[Train]:
    """Cut each queue pair's messages where something else than the one before held the next back."""
    out: list[Train] = []
    for message in messages:
        train = out[-1] if out else None
        alone = open_loop and message.transport != "ud"
        if train is None or train.flow != message.flow or alone or not _follows(train, message, trip_ns):
            name = survey.flows.name(message.flow)
            out.append(Train(message.flow, name, message.verb, message.transport, [message]))
        else:
            train.messages.append(message)
    return out


def _follows(train: Train, message: Message, trip_ns: int) -> bool:
    before = train.messages[-1]
    end_ns = before.last_ns
    if end_ns is None or (train.verb, train.transport) != (message.verb, message.transport):
        return False
    if message.transport == "ud":
        return True
    return message.first_ns <= end_ns + trip_ns + GAPS * before.gap_ns


def _hosts(trains: list[Train]) -> dict[str, int]:
    """A host for each address, in the order of their numbers."""
    names = {name for train in trains for name in (train.key.src, train.key.dst)}
    ordered = sorted(names, key=lambda name: (int(ipaddress.ip_address(name)), name))
    return {name: host for host, name in enumerate(ordered)}


def _traffic(train: Train, hosts: dict[str, int], origin_ns: int, mtu_bytes: int) -> Traffic:
    begun = train.messages[0].first_ns
    plain = replace(
        read_text(f"traffic = {_PLAIN}").traffic[0],
        pairs=((hosts[train.key.src], hosts[train.key.dst]),),
        verb=train.verb,
        transport=train.transport,
        message_bytes=train.octets,
        count=len(train.messages),
        start_ps=(begun - origin_ns) * PS_PER_NS,
    )
    if not train.listed:
        return plain
    datagrams = train.transport == "ud"
    most = mtu_bytes if datagrams else MOST_BYTES
    return replace(
        plain,
        pattern="messages",
        message_bytes=min(train.octets, most),
        lengths=tuple(min(max(message.octets, 1), most) for message in train.messages),
        times_ps=tuple((m.first_ns - begun) * PS_PER_NS for m in train.messages) if datagrams else (),
    )


def _written(traffic: Traffic) -> dict[str, Any]:
    """The table as a scenario file would state it."""
    table: dict[str, Any] = {
        "pattern": traffic.pattern,
        "pairs": [list(pair) for pair in traffic.pairs],
        "verb": traffic.verb,
        "transport": traffic.transport,
        "message": f"{traffic.message_bytes}B",
        "count": traffic.count,
        "start": f"{traffic.start_ps // PS_PER_NS}ns",
    }
    if traffic.lengths:
        table["lengths"] = list(traffic.lengths)
    if traffic.times_ps:
        table["times"] = [f"{time_ps // PS_PER_NS}ns" for time_ps in traffic.times_ps]
    return table


def _findings(trains: list[Train], scenario: Scenario) -> list[Finding]:
    out: list[Finding] = []
    mtu = scenario.host.mtu_bytes
    large = sum(m.octets > mtu for train in trains if train.transport == "ud" for m in train.messages)
    if large:
        text = f"{large} datagrams are longer than the fabric's MTU of {mtu} octets and are cut to it"
        out.append(Finding("drive.datagrams", "warning", text))
    cut = sum(train.completion_ns is None for train in trains)
    if cut:
        text = f"the capture ends before the last message of {cut} queue pairs does"
        out.append(Finding("drive.unfinished", "note", text))
    queue_pairs = len({train.flow for train in trains})
    if queue_pairs < len(trains):
        text = (
            f"{queue_pairs} queue pairs were idle between messages and are driven as {len(trains)}, each from"
            " its captured beginning on and at line rate"
        )
        out.append(Finding("drive.trains", "note", text))
    return out
