"""When the messages of a queue pair are posted, and how long each is: drawn before a run, from its seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.errors import ScenarioError
from roce_pkt.scenario.pace import BURST, CONSTANT, L1_BYTES, ON_OFF, POISSON, UNLIMITED, Pace
from roce_pkt.scenario.schema import ARRIVALS, ENDLESS, Traffic
from roce_pkt.scenario.sizes import QUANTILES
from roce_pkt.units import PS_PER_S

MOST_MESSAGES = 4_000_000
"""Messages of one run."""
WHEN_ROOM = -1
"""A message without a time: posted when its queue pair has room."""

Octets = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Packets and captured octets of messages of given lengths."""
Chance = Callable[[int, int], NDArray[np.float64]]
"""Some numbers from 0 (inclusive) to 1, of one of the queue pair's streams: (stream, how many)."""
MOST_DRAWN = 16
"""Times the room: draws at most, where silent times are many."""
_SIZE, _GAP, _ON, _OFF = range(4)
STREAMS = 4


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How one queue pair's messages arrive.

    Args:
        traffic: Its table.
        sizes: Quantile table of lengths.
        pace: Its rate; with none, and no bursts, messages follow each other as there is room.
        line_bps: What the sender's line carries.
        octets_of: What messages become on the wire.
        chance: Its own.
    """

    traffic: Traffic
    sizes: NDArray[np.int64]
    pace: Pace
    line_bps: float
    octets_of: Octets
    chance: Chance

    @property
    def _law(self) -> int:
        return ARRIVALS.index(self.traffic.arrival)

    def draw(self, start_ps: int, end_ps: int, room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lengths in octets, and times in picoseconds (or `WHEN_ROOM`), of messages before the end.

        Raises:
            ScenarioError: More messages than there is room for.
        """
        count = self.traffic.count
        if count == ENDLESS:
            mean = float(np.mean(self._costs(*self.octets_of(self.sizes))))
            count = int((end_ps - start_ps) / mean * 1.1) + 64
        inside: NDArray[np.bool_]
        while True:
            if count > MOST_DRAWN * room:
                raise _too_many()
            length = self.sizes[(self.chance(_SIZE, count) * QUANTILES).astype(np.int64)]
            due = start_ps + self._due(*self.octets_of(length))
            inside = due < end_ps
            if inside.sum() > room:
                raise _too_many()
            if self.traffic.count != ENDLESS or due[-1] >= end_ps:
                break
            count *= 2
        if self.pace.rate == UNLIMITED and self._law in (CONSTANT, POISSON):
            due = np.full(len(length), WHEN_ROOM, np.int64)
        return length[inside], due[inside]

    def _costs(self, packets: NDArray[np.int64], octets: NDArray[np.int64]) -> NDArray[Any]:
        """Time from each message to the next, at the pace or at line rate."""
        pace = self.pace
        if pace.rate == UNLIMITED or self._law == BURST:
            return (octets + packets * L1_BYTES) * (8.0 * PS_PER_S / self.line_bps)
        cost: NDArray[Any] = (octets + packets * pace.extra) * float(pace.octet_cost)
        cost += packets * float(pace.packet_cost)
        return cost / pace.rate

    def _due(self, packets: NDArray[np.int64], octets: NDArray[np.int64]) -> NDArray[np.int64]:
        """When each message is posted, from 0 on."""
        costs = self._costs(packets, octets)
        passed = np.concatenate(([0.0], np.cumsum(costs)[:-1]))
        match self._law:
            case law if law == POISSON and self.pace.rate != UNLIMITED:
                mean = float(np.mean(self._costs(*self.octets_of(self.sizes))))
                due = np.cumsum(self._waits(_GAP, len(packets), mean))
            case law if law == BURST:
                # whole messages: a burst ends with the message that brings it to `burst` packets
                behind = np.cumsum(packets)
                number = (behind - packets) // self.traffic.burst
                first = np.concatenate(([True], number[1:] != number[:-1]))
                place = np.cumsum(first) - 1
                due = (passed[first] + np.arange(int(first.sum())) * float(self.traffic.gap_ps))[place]
            case law if law == ON_OFF:
                # time on is what passes; in front of each message lie the times off that have gone by
                edges = int(passed[-1] / max(self.traffic.on_ps, 1) * 2) + 64
                on = np.cumsum(self._waits(_ON, edges, max(self.traffic.on_ps, 1)))
                off = np.cumsum(self._waits(_OFF, edges, self.traffic.off_ps))
                due = passed + np.concatenate(([0.0], off))[np.searchsorted(on, passed, "right")]
            case _:
                due = passed
        return np.rint(due).astype(np.int64)

    def _waits(self, stream: int, count: int, mean: float) -> NDArray[np.float64]:
        """Exponential times."""
        waits: NDArray[np.float64] = -np.log1p(-self.chance(stream, count)) * mean
        return waits


def _too_many() -> ScenarioError:
    return ScenarioError(
        "traffic",
        f"more than {MOST_MESSAGES} messages in one run; give fewer queue pairs, larger messages,"
        " a count, or a shorter duration",
    )
