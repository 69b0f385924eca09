"""How evenly equal paths are used: octets of each link of a set, and the entropy of their shares."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roce_pkt.engine.session import Session
from roce_pkt.run.simulation_names import Names


@dataclass(frozen=True, slots=True)
class PathShares:
    """One set of equal paths of a switch.

    Args:
        switch: Its name.
        ports: Names of the ports of the set.
        sent_bytes: Octets sent by each.
        entropy: Of their shares, over that of an even split: 1 is even, 0 is all on one link.
        busiest_share: Share of the busiest port, in times of an even split.
    """

    switch: str
    ports: list[str]
    sent_bytes: list[int]
    entropy: float
    busiest_share: float


def entropy(parts: list[int]) -> float:
    """Entropy of shares over that of an even split; 1 for nothing at all."""
    total = sum(parts)
    if total == 0 or len(parts) < 2:
        return 1.0
    return -sum(n / total * math.log(n / total) for n in parts if n) / math.log(len(parts))


def path_shares(session: Session, names: Names) -> list[PathShares]:
    """Every set of equal paths, the least even first."""
    arrays, net = session.built.arrays, session.built.topology
    sets: dict[tuple[int, ...], None] = {}
    for first, count in set(zip(arrays.route["first"].tolist(), arrays.route["count"].tolist(), strict=True)):
        if count > 1:
            sets[tuple(arrays.path[first : first + count].tolist())] = None
    sent = session.sent_bytes()
    found = []
    for ports in sets:
        parts = [int(sent[port]) for port in ports]
        busiest = max(parts) * len(parts) / sum(parts) if sum(parts) else 1.0
        switch = net.node_name(net.ports[ports[0]].node)
        found.append(PathShares(switch, [names.ports[p] for p in ports], parts, entropy(parts), busiest))
    return sorted(found, key=lambda one: (one.entropy, one.switch))
