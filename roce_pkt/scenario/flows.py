"""From a traffic pattern to the queue pairs it uses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.schema import Scenario, Traffic

T = TypeVar("T")


class Listed(Sequence[T], Generic[T]):
    """Rows of an array as objects, each made when it is looked at: there may be a million.

    Args:
        rows: The array.
        make: Makes the object of a row.
    """

    __slots__ = ("_make", "_rows")

    def __init__(self, rows: NDArray[Any], make: Callable[[Any], T]) -> None:
        self._rows, self._make = rows, make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return Listed(self._rows[index], self._make)
        return self._make(self._rows[index].item())

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._rows.tolist())


FLOW = np.dtype([("src", "u4"), ("dst", "u4"), ("start_ps", "i8"), ("traffic", "u4")])
"""A queue pair's work as a row: `traffic` is the number of its table."""


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


def as_flows(scenario: Scenario, rows: NDArray[Any]) -> Sequence[Flow]:
    """Rows of `FLOW` as flows."""
    return Listed(rows, lambda row: Flow(row[0], row[1], row[2], scenario.traffic[row[3]]))


def flow_rows(scenario: Scenario) -> NDArray[Any]:
    """Every queue pair of a scenario, in the order of its traffic tables, as rows of `FLOW`."""
    dice = random.Random(scenario.seed)
    parts = [np.zeros(0, FLOW)]
    for number, traffic in enumerate(scenario.traffic):
        src, dst = _pairs(traffic, scenario.fabric.hosts, dice)
        part = np.zeros(len(src) * traffic.qps, FLOW)
        part["src"], part["dst"] = np.repeat(src, traffic.qps), np.repeat(dst, traffic.qps)
        part["start_ps"] = traffic.start_ps + np.arange(len(part), dtype=np.int64) * traffic.stagger_ps
        part["traffic"] = number
        parts.append(part)
    return np.concatenate(parts)


def _pairs(traffic: Traffic, hosts: int, dice: random.Random) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Who sends to whom."""
    senders = np.array(traffic.senders or range(hosts), np.int64)
    match traffic.pattern:
        case "incast":
            senders = senders[senders != traffic.receiver]
            return senders, np.full_like(senders, traffic.receiver)
        case "all-to-all":
            # Every sender starts with its right-hand neighbour, so that no receiver is everybody's first.
            steps = np.arange(1, len(senders))[:, None]
            receivers = senders[(np.arange(len(senders)) + steps) % len(senders)]
            return np.tile(senders, len(steps)), receivers.ravel()
        case "permutation":
            # A random cycle: everybody sends once and receives once, nobody to itself.
            order = senders.tolist()
            dice.shuffle(order)
            return np.array(order, np.int64), np.array(order[1:] + order[:1], np.int64)
        case _:
            pairs = np.array(traffic.pairs, np.int64).reshape(-1, 2)
            return pairs[:, 0], pairs[:, 1]
