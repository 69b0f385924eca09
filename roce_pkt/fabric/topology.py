"""Who is joined to whom, and every shortest path.

Nodes are numbered hosts first, then switches; a node's ports in the order of its links.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from roce_pkt.fabric.shapes import SHAPES
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
    _near: list[list[int]] = field(init=False, default_factory=list)  # ports of each node, once asked for
    _far: dict[int, dict[int, int]] = field(init=False, default_factory=dict)  # hops to hosts asked for

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

    @property
    def names(self) -> list[str]:
        """Every port's name, in order."""
        return [self.port_name(index) for index in range(len(self.ports))]

    def next_ports(self) -> dict[tuple[int, int], list[int]]:
        """Ports on a shortest path: (switch node, destination host) -> port indices.

        Hosts of one switch share the lists of all other switches.
        """
        by_node = self._ports_by_node()
        guests: dict[int, list[int]] = {}
        for port in self.ports:
            if port.node < self.hosts:
                guests.setdefault(self.ports[port.peer].node, []).append(port.node)
        found: dict[tuple[int, int], list[int]] = {}
        for home, hosts in guests.items():
            distance = self._distances(hosts[0], by_node)
            for node in range(self.hosts, self.hosts + self.switches):
                if node == home:
                    continue
                nearer = [
                    index
                    for index in by_node[node]
                    if distance.get(self.ports[self.ports[index].peer].node, 1 << 30) == distance[node] - 1
                ]
                for host in hosts:
                    found[node, host] = nearer
        for index, port in enumerate(self.ports):
            host = self.ports[port.peer].node
            if host < self.hosts:
                found[port.node, host] = [index]
        return found

    def _ports_by_node(self) -> list[list[int]]:
        by_node: list[list[int]] = [[] for _ in range(self.hosts + self.switches)]
        for index, port in enumerate(self.ports):
            by_node[port.node].append(index)
        return by_node

    def path(self, src: int, dst: int) -> list[Port]:
        """The sending ends of the links of a shortest path between two hosts."""
        if dst not in self._far:
            self._near = self._near or self._ports_by_node()
            self._far[dst] = self._distances(dst, self._near)
        by_node, distance = self._near, self._far[dst]
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
    shape = SHAPES[fabric.kind](fabric)
    first = fabric.hosts
    links = [(host, first + home, fabric.rate_bps, fabric.delay_ps) for host, home in enumerate(shape.homes)]
    links += [
        (first + a, first + b, rate or trunk_rate, trunk_delay if delay is None else delay)
        for a, b, rate, delay in shape.trunks
    ]
    return Topology(fabric.hosts, shape.switches, links)
