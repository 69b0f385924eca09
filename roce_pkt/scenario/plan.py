"""From a scenario to connections, halves and messages, before anything has a time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.flows import flows_of
from roce_pkt.scenario.look import CHANCE
from roce_pkt.scenario.schema import SCRIPTED, VERB_NUMBER, Scenario, Traffic
from roce_pkt.scenario.script import Script, script_of

FIRST_QPN = 0x11
ENDLESS_COUNT = 1 << 60
_VA = 0x7F00_0000_0000
_VA_STEP = 1 << 32

MESSAGE = np.dtype(
    [
        ("half", "u4"),
        ("verb", "u1"),
        ("needs", "u4"),  # messages that must be done before it
        ("nexts", "u4"),  # messages that wait for it
        ("first_next", "i8"),
        ("length", "i8"),
        ("ready_ps", "i8"),
        ("delay_ps", "i8"),  # between the last message it waits for and its own posting
    ],
    align=True,
)
"""A scripted message."""


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
        messages: Scripted messages (records of `MESSAGE`).
        nexts: Who waits for them.
    """

    scenario: Scenario
    connections: list[Connection] = field(default_factory=list)
    halves: list[Half] = field(default_factory=list)
    messages: NDArray[Any] = field(default_factory=lambda: np.zeros(0, MESSAGE))
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
                verb = VERB_NUMBER[m.verb]
                ready, delay = traffic.start_ps + m.ready_ps, m.delay_ps
                self._rows.append(
                    (number, verb, len(m.after), len(after), len(self._nexts), m.length, ready, delay)
                )
                self._nexts += after

    def finish(self) -> None:
        """Hand the messages over."""
        self._made.messages = np.array(self._rows, MESSAGE)
        self._made.nexts = np.array(self._nexts, np.int64)
