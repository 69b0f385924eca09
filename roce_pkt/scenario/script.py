"""Patterns whose messages wait for each other: collectives, pipelines, storage.

A message waits until all that it names have arrived where their data goes (the requester for READ
and ATOMIC, the responder otherwise), then `think` longer; in a simulation, until its own host knows:
when it has received them, or when its own requests are complete. Messages of one direction of a connection
also leave in the order in which they are posted here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from roce_pkt.scenario.schema import ENDLESS, Scenario, Traffic
from roce_pkt.scenario.sizes import QUANTILES, quantiles

MOST_MESSAGES = 4_000_000


@dataclass(frozen=True, slots=True)
class Message:
    """One work request.

    Args:
        connection: Which connection of the script.
        backwards: Posted by the connection's second host.
        verb: As scenarios write it.
        length: Octets.
        after: Messages it waits for, by their number in the script.
        delay_ps: Time from the last of them to its posting.
        ready_ps: Time from the traffic's start before which it is not posted.
    """

    connection: int
    backwards: bool
    verb: str
    length: int
    after: tuple[int, ...]
    delay_ps: int
    ready_ps: int = 0


@dataclass(slots=True)
class Script:
    """Connections by their two hosts, and messages over them.

    Args:
        think_ps: Delay of every message that waits for another.
    """

    think_ps: int
    connections: list[tuple[int, int]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def connect(self, a: int, b: int, count: int) -> list[int]:
        """Open `count` connections between two hosts."""
        first = len(self.connections)
        self.connections += [(a, b)] * count
        return list(range(first, first + count))

    def post(
        self, connection: int, verb: str, length: int, after: Sequence[int] = (), *, backwards: bool = False
    ) -> int:
        """Add a message; its number."""
        delay = self.think_ps if after else 0
        self.messages.append(Message(connection, backwards, verb, max(length, 1), tuple(after), delay))
        return len(self.messages) - 1

    def spread(self, connections: list[int], verb: str, length: int, after: Sequence[int]) -> list[int]:
        """One transfer over several connections, in equal parts."""
        part = -(-length // len(connections))
        return [self.post(connection, verb, part, after) for connection in connections]


def script_of(scenario: Scenario, traffic: Traffic, dice: random.Random) -> Script:
    """The script of a traffic table.

    Args:
        scenario: Says how many hosts there are.
        traffic: Its pattern is a key of `PATTERNS`.
        dice: For sizes and choices.
    """
    hosts = list(traffic.senders or range(scenario.fabric.hosts))
    script = Script(traffic.think_ps)
    PATTERNS[traffic.pattern](script, hosts, traffic, dice)
    return script


def _rounds(traffic: Traffic, usual: int) -> int:
    return usual if traffic.count == ENDLESS else traffic.count


def _ring_allreduce(script: Script, hosts: list[int], traffic: Traffic, dice: random.Random) -> None:
    """Reduce-scatter then all-gather: n - 1 steps each, a chunk to the right-hand neighbour in every step."""
    del dice
    n = len(hosts)
    chunk = -(-traffic.message_bytes // n)
    links = [script.connect(hosts[r], hosts[(r + 1) % n], traffic.qps) for r in range(n)]
    arrived: list[list[int]] = [[] for _ in range(n)]
    for _ in range(_rounds(traffic, 1) * 2 * (n - 1)):
        sent = [script.spread(links[r], traffic.verb, chunk, arrived[r]) for r in range(n)]
        arrived = [sent[(r - 1) % n] for r in range(n)]


def _tree_allreduce(script: Script, hosts: list[int], traffic: Traffic, dice: random.Random) -> None:
    """Up a binary tree when both children have arrived, and down again."""
    del dice
    n = len(hosts)
    up = {r: script.connect(hosts[r], hosts[(r - 1) // 2], traffic.qps) for r in range(1, n)}
    down = {r: script.connect(hosts[(r - 1) // 2], hosts[r], traffic.qps) for r in range(1, n)}
    for _ in range(_rounds(traffic, 1)):
        got: dict[int, list[int]] = {r: [] for r in range(n)}
        for r in range(n - 1, 0, -1):
            got[(r - 1) // 2] += script.spread(up[r], traffic.verb, traffic.message_bytes, got[r])
        have = {0: got[0]}
        for r in range(1, n):
            have[r] = script.spread(down[r], traffic.verb, traffic.message_bytes, have[(r - 1) // 2])


def _pipeline(script: Script, hosts: list[int], traffic: Traffic, dice: random.Random) -> None:
    """Micro-batches through stages: activations forwards, then gradients backwards."""
    del dice
    n = len(hosts)
    on = [script.connect(hosts[s], hosts[s + 1], traffic.qps) for s in range(n - 1)]
    back = [script.connect(hosts[s + 1], hosts[s], traffic.qps) for s in range(n - 1)]
    for _ in range(_rounds(traffic, 8)):
        arrived: list[int] = []
        for links in (*on, *reversed(back)):
            arrived = script.spread(links, traffic.verb, traffic.message_bytes, arrived)


def _moe_alltoall(script: Script, hosts: list[int], traffic: Traffic, dice: random.Random) -> None:
    """Tokens to the hosts of their experts, unevenly, and the results back when a host has all of its own."""
    n = len(hosts)
    links = {
        (a, b): script.connect(hosts[a], hosts[b], traffic.qps) for a in range(n) for b in range(n) if a != b
    }
    ready: list[list[int]] = [[] for _ in range(n)]
    for _ in range(_rounds(traffic, 1)):
        shares = [[dice.expovariate(1.0) for _ in range(n)] for _ in range(n)]
        size = {(a, b): max(1, int(traffic.message_bytes * shares[a][b] / sum(shares[a]))) for a, b in links}
        for there in (True, False):
            arrived: list[list[int]] = [[] for _ in range(n)]
            for step in range(1, n):
                for a in range(n):
                    b = (a + step) % n
                    length = size[(a, b) if there else (b, a)]
                    arrived[b] += script.spread(links[a, b], traffic.verb, length, ready[a])
            ready = arrived


COMMAND_BYTES, RESPONSE_BYTES = 64, 16
"""NVMe-oF capsules without data: a submission and a completion queue entry."""
READ_SHARE = 0.7
MOST_OUTSTANDING = 32


def _storage_mix(script: Script, hosts: list[int], traffic: Traffic, dice: random.Random) -> None:
    """NVMe over RDMA: a command, then data by the target's WRITE or READ, then a response."""
    sizes = quantiles(traffic, 1 << 31)
    depth = min(traffic.depth, MOST_OUTSTANDING)
    for host in hosts:
        if host == traffic.receiver:
            continue
        for link in script.connect(host, traffic.receiver, traffic.qps):
            done: list[int] = []
            for n in range(_rounds(traffic, 64)):
                before = done[n - depth : n - depth + 1] if n >= depth else []
                command = script.post(link, "send", COMMAND_BYTES, before)
                verb = "write" if dice.random() < READ_SHARE else "read"
                size = int(sizes[dice.randrange(QUANTILES)])
                data = script.post(link, verb, size, [command], backwards=True)
                done.append(script.post(link, "send", RESPONSE_BYTES, [data], backwards=True))


def _messages(script: Script, hosts: list[int], traffic: Traffic, dice: random.Random) -> None:
    """A list of messages over each queue pair, none waiting for more than its time and its turn."""
    del hosts, dice
    lengths = traffic.lengths or (traffic.message_bytes,) * _rounds(traffic, 1)
    times = traffic.times_ps or (0,) * len(lengths)
    for a, b in traffic.pairs:
        for link in script.connect(a, b, traffic.qps):
            for length, ready_ps in zip(lengths, times, strict=True):
                script.messages.append(Message(link, False, traffic.verb, length, (), 0, ready_ps))


PATTERNS: dict[str, Callable[[Script, list[int], Traffic, random.Random], None]] = {
    "ring-allreduce": _ring_allreduce,
    "tree-allreduce": _tree_allreduce,
    "pipeline": _pipeline,
    "moe-alltoall": _moe_alltoall,
    "storage-mix": _storage_mix,
    "messages": _messages,
}
"""Scripted patterns by name."""
