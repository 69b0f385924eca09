"""Who is joined to whom: star, dumbbell, leaf-spine; and every shortest path.

Nodes are numbered hosts first, then switches; a node's ports in the order of its links.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from roce_pkt.scenario.schema import NONE, Fabric


@dataclass(frozen=True, slots=True)
class Port:
    """One end of a link.

    Args:
        node: The node it belongs to.
        number: Its number at that node.
        peer: Index of the port at the other end.
        rate_bps: Of the link.
        delay_ps: One way.
    """

    node: int
    number: int
    peer: int
    rate_bps: float
    delay_ps: int


@dataclass(slots=True)
class Topology:
    """Nodes and links.

    Args:
        hosts: Number of hosts (nodes 0 to hosts - 1).
        switches: Number of switches (the nodes after them).
        links: (node, node, rate_bps, delay_ps) of each link.
        ports: Both ends of every link, ordered by node then number.
    """

    hosts: int
    switches: int
    links: list[tuple[int, int, float, int]]
    ports: list[Port] = field(init=False)

    def __post_init__(self) -> None:
        ends: list[list[tuple[int, int]]] = [[] for _ in range(self.hosts + self.switches)]
        for index, (a, b, _, _) in enumerate(self.links):
            ends[a].append((index, 0))
            ends[b].append((index, 1))
        where: dict[tuple[int, int], int] = {}
        for node_ends in ends:
            for end in node_ends:
                where[end] = len(where)
        self.ports = [
            Port(node, number, where[link, 1 - side], self.links[link][2], self.links[link][3])
            for node, node_ends in enumerate(ends)
            for number, (link, side) in enumerate(node_ends)
        ]

    def node_name(self, node: int) -> str:
        """`host2` or `switch0`."""
        return f"host{node}" if node < self.hosts else f"switch{node - self.hosts}"

    def port_name(self, index: int) -> str:
        """`host2` (its only port) or `switch0:3`."""
        port = self.ports[index]
        name = self.node_name(port.node)
        return name if port.node < self.hosts else f"{name}:{port.number}"

    def next_ports(self) -> dict[tuple[int, int], list[int]]:
        """Ports on a shortest path: (switch node, destination host) -> port indices."""
        by_node: list[list[int]] = [[] for _ in range(self.hosts + self.switches)]
        for index, port in enumerate(self.ports):
            by_node[port.node].append(index)
        found: dict[tuple[int, int], list[int]] = {}
        for host in range(self.hosts):
            distance = self._distances(host, by_node)
            for node in range(self.hosts, self.hosts + self.switches):
                found[node, host] = [
                    index
                    for index in by_node[node]
                    if distance.get(self.ports[self.ports[index].peer].node, 1 << 30) == distance[node] - 1
                ]
        return found

    def path(self, src: int, dst: int) -> list[Port]:
        """The sending ends of the links of a shortest path between two hosts."""
        by_node: list[list[int]] = [[] for _ in range(self.hosts + self.switches)]
        for index, port in enumerate(self.ports):
            by_node[port.node].append(index)
        distance = self._distances(dst, by_node)
        node, ends = src, []
        while node != dst:
            ends.append(
                next(
                    self.ports[index]
                    for index in by_node[node]
                    if distance.get(self.ports[self.ports[index].peer].node, 1 << 30) < distance[node]
                )
            )
            node = self.ports[ends[-1].peer].node
        return ends

    def _distances(self, host: int, by_node: list[list[int]]) -> dict[int, int]:
        distance = {host: 0}
        waiting = deque([host])
        while waiting:
            node = waiting.popleft()
            for index in by_node[node]:
                other = self.ports[self.ports[index].peer].node
                # a host forwards nothing: only switches extend a path
                if other not in distance:
                    distance[other] = distance[node] + 1
                    if other >= self.hosts:
                        waiting.append(other)
        return distance


def build(fabric: Fabric) -> Topology:
    """The topology a scenario names."""
    trunk_rate = fabric.rate_bps if fabric.trunk_rate_bps == NONE else fabric.trunk_rate_bps
    trunk_delay = fabric.delay_ps if fabric.trunk_delay_ps == NONE else fabric.trunk_delay_ps
    match fabric.kind:
        case "star":
            homes, trunks, switches = [0] * fabric.hosts, [], 1
        case "dumbbell":
            left = fabric.left or fabric.hosts // 2
            homes, trunks, switches = [0] * left + [1] * (fabric.hosts - left), [(0, 1)], 2
        case _:
            each = fabric.hosts // fabric.leaves
            homes = [host // each for host in range(fabric.hosts)]
            trunks = [
                (leaf, fabric.leaves + s) for leaf in range(fabric.leaves) for s in range(fabric.spines)
            ]
            switches = fabric.leaves + fabric.spines
    first = fabric.hosts
    links = [(host, first + home, fabric.rate_bps, fabric.delay_ps) for host, home in enumerate(homes)]
    links += [(first + a, first + b, trunk_rate, trunk_delay) for a, b in trunks]
    return Topology(fabric.hosts, switches, links)
