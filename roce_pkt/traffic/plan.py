"""From a scenario to connections, halves and messages, before anything has a time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.flows import flows_of
from roce_pkt.scenario.look import CHANCE
from roce_pkt.scenario.schema import ARRIVALS, ENDLESS, SCRIPTED, Scenario, Traffic
from roce_pkt.traffic import state, verbs
from roce_pkt.traffic.pace import pace_of
from roce_pkt.traffic.script import Script, script_of
from roce_pkt.traffic.sizes import QUANTILES, quantiles
from roce_pkt.wire import ib, net

FIRST_QPN = 0x11
ENDLESS_COUNT = 1 << 60
_VA = 0x7F00_0000_0000
_VA_STEP = 1 << 32


@dataclass(frozen=True, slots=True)
class Connection:
    """A queue pair and its peer.

    Args:
        a: Host of the first.
        b: Host of the second.
        qpns: Their numbers.
        psns: First PSN that each sends requests with.
        traffic: The table it comes from.
    """

    a: int
    b: int
    qpns: tuple[int, int]
    psns: tuple[int, int]
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class Half:
    """One direction of requests on a connection.

    Args:
        connection: Its number.
        backwards: False when `a` requests from `b`.
        start_ps: When its first message may be posted.
        messages: Scripted messages by their number, or None when a rule makes them.
    """

    connection: int
    backwards: bool
    start_ps: int
    messages: range | None = None


@dataclass(slots=True)
class Plan:
    """What a scenario's traffic is made of.

    Args:
        scenario: Where it comes from.
        connections: In order.
        halves: In order of their number in rows.
        messages: Scripted messages (`state.MESSAGE`).
        nexts: Who waits for them.
    """

    scenario: Scenario
    connections: list[Connection] = field(default_factory=list)
    halves: list[Half] = field(default_factory=list)
    messages: NDArray[Any] = field(default_factory=lambda: np.zeros(0, state.MESSAGE))
    nexts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def ends(self, half: Half) -> tuple[int, int, int, int, int]:
        """Requesting host, responding host, their queue pairs, and the first PSN of the requests."""
        c = self.connections[half.connection]
        if half.backwards:
            return c.b, c.a, c.qpns[1], c.qpns[0], c.psns[1]
        return c.a, c.b, c.qpns[0], c.qpns[1], c.psns[0]

    @staticmethod
    def va(half: int) -> int:
        """Where a half's requests write to or read from."""
        return _VA + half * _VA_STEP

    def world(self) -> state.World:
        """The schedule before its first packet."""
        scenario = self.scenario
        half = np.zeros(len(self.halves), state.HALF)
        tables: dict[int, int] = {}
        laws: list[NDArray[np.int64]] = []
        for n, one in enumerate(self.halves):
            traffic = self.connections[one.connection].traffic
            if id(traffic) not in tables:
                tables[id(traffic)] = len(laws)
                most = scenario.host.mtu_bytes if traffic.transport == "ud" else 1 << 31
                laws.append(quantiles(traffic, most))
            half[n] = self._record(n, one, traffic, tables[id(traffic)], half[n].copy())
        host = np.zeros(scenario.fabric.hosts, state.HOST)
        host["line_bps"], host["delay_ps"] = int(scenario.fabric.rate_bps), scenario.fabric.delay_ps
        look = scenario.frames
        control = {
            "mtu": scenario.host.mtu_bytes,
            "end_ps": scenario.duration_ps,
            "solicited": look.solicited,
            "syndrome": look.credits,
        }
        sizes = np.array(laws, np.int64) if laws else np.zeros((1, QUANTILES), np.int64)
        return state.world(control, half, host, self.messages.copy(), self.nexts, sizes)

    def _record(self, number: int, one: Half, traffic: Traffic, law: int, record: Any) -> Any:
        src, dst, _, _, psn = self.ends(one)
        scenario = self.scenario
        pace = pace_of(traffic, int(scenario.fabric.rate_bps), "traffic.load")
        dice = random.Random(f"{scenario.seed}/half/{number}")
        count = ENDLESS_COUNT if traffic.count == ENDLESS else traffic.count
        values = {
            "src": src, "dst": dst, "service": verbs.SERVICES.index(traffic.transport),
            "scripted": one.messages is not None, "rule_verb": verbs.NUMBER[traffic.verb],
            "arrival": ARRIVALS.index(traffic.arrival), "start_psn": psn, "start_ps": one.start_ps,
            "first_message": one.messages.start if one.messages else 0,
            "count": count if one.messages is None else len(one.messages),
            "sizes": law, "depth": traffic.depth, "rd_atomic": scenario.host.transport.max_rd_atomic,
            "ack_every": scenario.host.ack.every, "coalesce": scenario.host.ack.coalesce,
            "hold_ps": scenario.host.ack.hold_ps, "rate": pace.rate, "octet_cost": pace.octet_cost,
            "packet_cost": pace.packet_cost, "extra": pace.extra, "burst": traffic.burst,
            "burst_left": traffic.burst, "gap_ps": traffic.gap_ps, "on_ps": traffic.on_ps,
            "off_ps": traffic.off_ps, "on_until_ps": one.start_ps + traffic.on_ps,
            "overhead": overhead_bytes(scenario), "va": self.va(number),
            "dice": dice.getrandbits(64) | 1,
        }  # fmt: skip
        for name, value in values.items():
            record[name] = value
        return record


def overhead_bytes(scenario: Scenario) -> int:
    """Captured octets of a frame besides extended headers, payload and pads."""
    link = net.ETH.size_bytes + (net.VLAN.size_bytes if scenario.host.vlan else 0)
    if scenario.frames.version == "v1":
        network = ib.GRH.size_bytes
    else:
        ip = net.IPV4 if scenario.host.ip == "ipv4" else net.IPV6
        network = ip.size_bytes + net.UDP.size_bytes
    return link + network + ib.BTH.size_bytes + ib.ICRC_BYTES


def plan(scenario: Scenario) -> Plan:
    """Make the connections and messages of a scenario."""
    made = Plan(scenario)
    dice = random.Random(f"{scenario.seed}/connections")
    qpns = [FIRST_QPN] * scenario.fabric.hosts

    def connect(a: int, b: int, traffic: Traffic) -> int:
        numbers = qpns[a], qpns[b]
        qpns[a] += 1
        qpns[b] += 1
        given = scenario.frames.psn
        one, two = (dice.getrandbits(24) if given == CHANCE else given for _ in range(2))
        made.connections.append(Connection(a, b, numbers, (one, two), traffic))
        return len(made.connections) - 1

    for flow in flows_of(scenario):
        if flow.traffic.pattern not in SCRIPTED:
            made.halves.append(Half(connect(flow.src, flow.dst, flow.traffic), False, flow.start_ps))
    layout = _Layout(made)
    for number, traffic in enumerate(scenario.traffic):
        if traffic.pattern in SCRIPTED:
            script = script_of(scenario, traffic, random.Random(f"{scenario.seed}/script/{number}"))
            layout.add(script, [connect(a, b, traffic) for a, b in script.connections], traffic)
    layout.finish()
    return made


class _Layout:
    """Puts scripted messages of one half side by side, and turns their order in the script into numbers."""

    def __init__(self, made: Plan) -> None:
        self._made = made
        self._rows: list[tuple[int, ...]] = []
        self._nexts: list[int] = []

    def add(self, script: Script, connections: list[int], traffic: Traffic) -> None:
        """Lay out one script."""
        by_half: dict[tuple[int, bool], list[int]] = {}
        waiting: dict[int, list[int]] = {}
        for n, m in enumerate(script.messages):
            by_half.setdefault((m.connection, m.backwards), []).append(n)
            for before in m.after:
                waiting.setdefault(before, []).append(n)
        order = [n for mine in by_half.values() for n in mine]
        first = len(self._rows)
        place = {n: first + k for k, n in enumerate(order)}
        at = first
        for (connection, backwards), mine in by_half.items():
            number = len(self._made.halves)
            messages = range(at, at + len(mine))
            self._made.halves.append(Half(connections[connection], backwards, traffic.start_ps, messages))
            at += len(mine)
            for n in mine:
                m, after = script.messages[n], [place[k] for k in waiting.get(n, ())]
                verb = verbs.NUMBER[m.verb]
                ready, delay = traffic.start_ps, m.delay_ps
                self._rows.append(
                    (number, verb, len(m.after), len(after), len(self._nexts), m.length, ready, delay)
                )
                self._nexts += after

    def finish(self) -> None:
        """Hand the messages over."""
        self._made.messages = np.array(self._rows, state.MESSAGE)
        self._made.nexts = np.array(self._nexts, np.int64)
