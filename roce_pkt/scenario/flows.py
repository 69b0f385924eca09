"""From a traffic pattern to the queue pairs it uses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from roce_pkt.scenario.schema import Scenario, Traffic


@dataclass(frozen=True, slots=True)
class Flow:
    """One queue pair's work: messages from a requester to a responder.

    Args:
        src: Host that posts the work requests.
        dst: Host that serves them.
        start_ps: When the first is posted.
        traffic: The table it comes from.
    """

    src: int
    dst: int
    start_ps: int
    traffic: Traffic


def flows_of(scenario: Scenario) -> list[Flow]:
    """Every queue pair of a scenario, in the order of its traffic tables."""
    dice = random.Random(scenario.seed)
    found = []
    for traffic in scenario.traffic:
        spread = 0
        for src, dst in _pairs(traffic, scenario.fabric.hosts, dice):
            for _ in range(traffic.qps):
                found.append(Flow(src, dst, traffic.start_ps + spread, traffic))
                spread += traffic.stagger_ps
    return found


def _pairs(traffic: Traffic, hosts: int, dice: random.Random) -> Iterator[tuple[int, int]]:
    senders = traffic.senders or tuple(range(hosts))
    match traffic.pattern:
        case "incast":
            yield from ((s, traffic.receiver) for s in senders if s != traffic.receiver)
        case "all-to-all":
            # Every sender starts with its right-hand neighbour, so that no receiver is everybody's first.
            for step in range(1, len(senders)):
                yield from ((s, senders[(i + step) % len(senders)]) for i, s in enumerate(senders))
        case "permutation":
            # A random cycle: everybody sends once and receives once, nobody to itself.
            order = list(senders)
            dice.shuffle(order)
            yield from zip(order, order[1:] + order[:1], strict=True)
        case _:
            yield from traffic.pairs
