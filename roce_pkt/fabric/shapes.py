"""Fabrics by name: which switch each host hangs on, and which switches are joined.

Switches are numbered from 0: in a leaf-spine leaves first; in a fat-tree edge switches, then
aggregation, then core, pod after pod.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from roce_pkt.errors import ScenarioError
from roce_pkt.scenario.schema import Fabric
from roce_pkt.units import parse_rate_bps, parse_time_ps

_END = re.compile(r"(host|switch)(\d{1,6})")


class Trunk(NamedTuple):
    """A link between two switches; None for the fabric's own trunk rate and delay."""

    a: int
    b: int
    rate_bps: float | None = None
    delay_ps: int | None = None


class Shape(NamedTuple):
    """A fabric without rates.

    Args:
        homes: Switch of each host.
        trunks: Links between switches.
        switches: Their number.
    """

    homes: list[int]
    trunks: list[Trunk]
    switches: int


def star(fabric: Fabric) -> Shape:
    """One switch."""
    return Shape([0] * fabric.hosts, [], 1)


def dumbbell(fabric: Fabric) -> Shape:
    """Two switches and one trunk."""
    left = fabric.left or fabric.hosts // 2
    return Shape([0] * left + [1] * (fabric.hosts - left), [Trunk(0, 1)], 2)


def leaf_spine(fabric: Fabric) -> Shape:
    """Every leaf joined to every spine."""
    each = fabric.hosts // fabric.leaves
    trunks = [Trunk(leaf, fabric.leaves + s) for leaf in range(fabric.leaves) for s in range(fabric.spines)]
    return Shape([host // each for host in range(fabric.hosts)], trunks, fabric.leaves + fabric.spines)


def ring(fabric: Fabric) -> Shape:
    """Switches in a circle, each joined to the next; hosts spread evenly."""
    each = fabric.hosts // fabric.ring
    trunks = [Trunk(s, (s + 1) % fabric.ring) for s in range(fabric.ring)]
    return Shape([host // each for host in range(fabric.hosts)], trunks, fabric.ring)


def fat_tree(fabric: Fabric) -> Shape:
    """K pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores; k/2 hosts on an edge switch."""
    half = fabric.k // 2
    edges = fabric.k * half
    trunks = []
    for pod in range(fabric.k):
        for a in range(half):
            aggregation = edges + pod * half + a
            trunks += [Trunk(pod * half + e, aggregation) for e in range(half)]
            trunks += [Trunk(aggregation, 2 * edges + a * half + c) for c in range(half)]
    return Shape([host // half for host in range(fabric.hosts)], trunks, 2 * edges + half * half)


def custom(fabric: Fabric) -> Shape:
    """Links as the scenario lists them.

    Raises:
        ScenarioError: A link that is none, or a host without exactly one.
    """
    homes: dict[int, int] = {}
    trunks: list[Trunk] = []
    for text in fabric.links:
        words = text.split()
        ends = [_END.fullmatch(word) for word in words[0].split("-")] if words else []
        if len(ends) != 2 or None in ends or len(words) > 3:
            raise ScenarioError(
                "fabric.links", f"{text!r} is no link; write 'host0-switch0' or 'switch0-switch1 400Gbps 2us'"
            )
        (a, m), (b, n) = sorted((e[1], int(e[2])) for e in ends if e is not None)
        rate, delay = _rate_and_delay(words[1:])
        if a == b == "switch":
            trunks.append(Trunk(m, n, rate, delay))
        elif a == b or words[1:]:
            what = "two hosts cannot be joined" if a == b else "a host's link has the fabric's rate and delay"
            raise ScenarioError("fabric.links", f"{text!r}: {what}")
        elif homes.setdefault(m, n) != n:
            raise ScenarioError("fabric.links", f"{text!r}: host{m} has a link already; a host has one")
    missing = [host for host in range(fabric.hosts) if host not in homes]
    if missing or len(homes) != fabric.hosts:
        what = (
            f"host{missing[0]} has no link" if missing else f"there are {fabric.hosts} hosts (fabric.hosts)"
        )
        raise ScenarioError("fabric.links", f"{what}; every host needs one, such as 'host0-switch0'")
    count = 1 + max([*homes.values(), *(t.a for t in trunks), *(t.b for t in trunks)])
    _joined(count, trunks)
    return Shape([homes[host] for host in range(fabric.hosts)], trunks, count)


def _rate_and_delay(words: list[str]) -> tuple[float | None, int | None]:
    rate: float | None = None
    delay: int | None = None
    for word in words:
        if word.endswith("s") and not word.endswith("bps"):
            delay = parse_time_ps(word, "fabric.links")
        else:
            rate = parse_rate_bps(word, "fabric.links")
    return rate, delay


def _joined(count: int, trunks: list[Trunk]) -> None:
    """Refuse a fabric in pieces."""
    reached, waiting = {0}, [0]
    while waiting:
        here = waiting.pop()
        for trunk in trunks:
            for a, b in ((trunk.a, trunk.b), (trunk.b, trunk.a)):
                if a == here and b not in reached:
                    reached.add(b)
                    waiting.append(b)
    if len(reached) < count:
        lost = min(set(range(count)) - reached)
        raise ScenarioError("fabric.links", f"switch{lost} cannot be reached from switch0")


SHAPES: dict[str, Callable[[Fabric], Shape]] = {
    "star": star,
    "dumbbell": dumbbell,
    "leaf-spine": leaf_spine,
    "fat-tree": fat_tree,
    "ring": ring,
    "custom": custom,
}
"""Builder of each kind."""
