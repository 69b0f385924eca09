"""From a scenario to connections, halves and messages, before anything has a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.flows import Listed, flow_rows
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
CONNECTION = np.dtype(
    [
        ("a", "u4"),
        ("b", "u4"),
        ("qpn_a", "u4"),
        ("qpn_b", "u4"),
        ("psn_a", "u4"),
        ("psn_b", "u4"),
        ("traffic", "u4"),  # number of its table
    ]
)
HALF = np.dtype(
    [
        ("connection", "u4"),
        ("backwards", "u1"),
        ("start_ps", "i8"),
        ("first", "i8"),  # of its scripted messages
        ("count", "i8"),  # of them; RULED when a rule makes its messages
    ]
)
RULED = -1


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
        connection: Connections (records of `CONNECTION`), in order.
        half: Directions of requests (records of `HALF`), in order of their number in rows.
        messages: Scripted messages (records of `MESSAGE`).
        nexts: Who waits for them.
    """

    scenario: Scenario
    connection: NDArray[Any] = field(default_factory=lambda: np.zeros(0, CONNECTION))
    half: NDArray[Any] = field(default_factory=lambda: np.zeros(0, HALF))
    messages: NDArray[Any] = field(default_factory=lambda: np.zeros(0, MESSAGE))
    nexts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def connections(self) -> Sequence[Connection]:
        """Connections as objects, in order."""
        tables = self.scenario.traffic
        return Listed(self.connection, lambda c: Connection(c[0], c[1], c[2:4], c[4:6], tables[c[6]]))

    @property
    def halves(self) -> Sequence[Half]:
        """Halves as objects, in order of their number in rows."""
        return Listed(self.half, _half)

    @property
    def traffic_of_half(self) -> NDArray[np.int64]:
        """Number of each half's traffic table, (halves,)."""
        return self.connection["traffic"][self.half["connection"]].astype(np.int64)

    def all_ends(self) -> NDArray[np.int64]:
        """`ends` of every half, (5, halves)."""
        c, back = self.connection[self.half["connection"]], self.half["backwards"] != 0
        sides = (("a", "b"), ("b", "a"), ("qpn_a", "qpn_b"), ("qpn_b", "qpn_a"), ("psn_a", "psn_b"))
        return np.array([np.where(back, c[other], c[one]) for one, other in sides], np.int64)

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


def _half(row: tuple[int, int, int, int, int]) -> Half:
    connection, backwards, start_ps, first, count = row
    messages = None if count == RULED else range(first, first + count)
    return Half(connection, backwards != 0, start_ps, messages)


def plan(scenario: Scenario) -> Plan:
    """Make the connections and messages of a scenario."""
    flows = flow_rows(scenario)
    scripted = [n for n, traffic in enumerate(scenario.traffic) if traffic.pattern in SCRIPTED]
    flows = flows[~np.isin(flows["traffic"], scripted)]
    half = np.zeros(len(flows), HALF)
    half["connection"], half["start_ps"], half["count"] = np.arange(len(flows)), flows["start_ps"], RULED
    between = [np.array([flows[name] for name in ("src", "dst", "traffic")], np.int64).T]
    layout, count = _Layout(len(flows)), len(flows)
    for number in scripted:
        traffic = scenario.traffic[number]
        script = script_of(scenario, traffic, random.Random(f"{scenario.seed}/script/{number}"))
        layout.add(script, count, traffic)
        between.append(np.array([(a, b, number) for a, b in script.connections], np.int64).reshape(-1, 3))
        count += len(script.connections)
    half = np.concatenate((half, np.array(layout.halves, HALF)))
    connection = _connections(scenario, np.concatenate(between))
    return Plan(scenario, connection, half, np.array(layout.rows, MESSAGE), np.array(layout.nexts, np.int64))


def _connections(scenario: Scenario, between: NDArray[np.int64]) -> NDArray[Any]:
    """Number the queue pairs of connections given by their hosts and traffic table, and their first PSNs."""
    made = np.zeros(len(between), CONNECTION)
    made["a"], made["b"], made["traffic"] = between.T
    # a host numbers its queue pairs in the order in which they are made
    hosts = between[:, :2].ravel()
    order = np.argsort(hosts, kind="stable")
    begins = np.searchsorted(hosts[order], hosts[order])
    qpns = np.empty(len(hosts), np.int64)
    qpns[order] = FIRST_QPN + np.arange(len(hosts)) - begins
    made["qpn_a"], made["qpn_b"] = qpns.reshape(-1, 2).T
    given = scenario.frames.psn
    if given == CHANCE:
        dice = random.Random(f"{scenario.seed}/connections")
        psns = np.fromiter((dice.getrandbits(24) for _ in range(len(hosts))), np.int64, len(hosts))
        made["psn_a"], made["psn_b"] = psns.reshape(-1, 2).T
    else:
        made["psn_a"] = made["psn_b"] = given
    return made


class _Layout:
    """Puts scripted messages of one half side by side, and turns their order in the script into numbers.

    Args:
        halves: Halves there are before.
    """

    def __init__(self, halves: int) -> None:
        self._before = halves
        self.halves: list[tuple[int, int, int, int, int]] = []
        self.rows: list[tuple[int, ...]] = []
        self.nexts: list[int] = []

    def add(self, script: Script, first_connection: int, traffic: Traffic) -> None:
        """Lay out one script, whose connections are numbered from `first_connection` on."""
        by_half: dict[tuple[int, bool], list[int]] = {}
        waiting: dict[int, list[int]] = {}
        for n, m in enumerate(script.messages):
            by_half.setdefault((m.connection, m.backwards), []).append(n)
            for before in m.after:
                waiting.setdefault(before, []).append(n)
        order = [n for mine in by_half.values() for n in mine]
        first = len(self.rows)
        place = {n: first + k for k, n in enumerate(order)}
        at = first
        for (connection, backwards), mine in by_half.items():
            number = self._before + len(self.halves)
            self.halves.append((first_connection + connection, backwards, traffic.start_ps, at, len(mine)))
            at += len(mine)
            for n in mine:
                m, after = script.messages[n], [place[k] for k in waiting.get(n, ())]
                verb = VERB_NUMBER[m.verb]
                ready, delay = traffic.start_ps + m.ready_ps, m.delay_ps
                self.rows.append(
                    (number, verb, len(m.after), len(after), len(self.nexts), m.length, ready, delay)
                )
                self.nexts += after
