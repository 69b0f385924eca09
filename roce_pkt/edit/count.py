"""What choosers must remember of a large capture, a batch at a time: transmissions, and messages of flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt import psn as serial

Ints = NDArray[np.int64]
_NEAR = serial.HALF // 2


class Transmissions:
    """How often each packet was seen.

    Args:
        most: Packets remembered; then the quarter that was met first is forgotten.
    """

    def __init__(self, most: int) -> None:
        self._most, self._met = most, 0
        self._keys, self._counts, self._ages = np.zeros((3, 0), np.int64)

    def number(self, keys: Ints) -> Ints:
        """Count packets; how often each had been seen then, this time included."""
        distinct, first, where, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        at = np.searchsorted(self._keys, distinct)
        inside = np.minimum(at, max(0, len(self._keys) - 1))
        known = self._keys[inside] == distinct if len(self._keys) else np.zeros(len(distinct), bool)
        new = np.sort(first[~known])
        room = self._most - len(self._keys)
        if room <= len(new) and (room <= 0 or new[room - 1] + 1 < len(keys)):
            full = int(new[room - 1]) + 1 if room > 0 else 0
            before = self.number(keys[:full]) if full else np.zeros(0, np.int64)
            self._forget()
            return np.concatenate((before, self.number(keys[full:])))
        base = np.zeros(len(distinct), np.int64)
        base[known] = self._counts[at[known]]
        order = np.argsort(where, kind="stable")
        rank = np.empty(len(keys), np.int64)
        rank[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._counts[at[known]] += counts[known]
        ages = self._met + first[~known]
        self._met += len(keys)
        self._merge(distinct[~known], counts[~known], ages)
        return base[where] + rank + 1

    def _merge(self, *more: Ints) -> None:
        columns = [np.concatenate(c) for c in zip((self._keys, self._counts, self._ages), more, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        self._keys, self._counts, self._ages = (column[order] for column in columns)

    def _forget(self) -> None:
        age = np.partition(self._ages, self._most // 4)[self._most // 4]
        left = self._ages >= age
        self._keys, self._counts, self._ages = self._keys[left], self._counts[left], self._ages[left]


class Messages:
    """Which message of its flow each request belongs to.

    Args:
        most: Beginnings remembered of a flow, for packets that are sent again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._flows: dict[int, _Beginnings] = {}

    def number(self, flows: Ints, psns: Ints, starts: NDArray[np.bool_]) -> Ints:
        """The message, from 1, of requests in their order."""
        order = np.argsort(flows, kind="stable")
        out = np.zeros(len(flows), np.int64)
        numbers, begins = np.unique(flows[order], return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(order, begins[1:]), strict=True):
            if number not in self._flows:
                self._flows[number] = _Beginnings(int(psns[rows[0]]), self._most)
            out[rows] = self._flows[number].number(psns[rows], starts[rows])
        return out


class _Beginnings:
    """Where the messages of a flow begin, as positions that do not wrap."""

    def __init__(self, first_psn: int, most: int) -> None:
        self._at, self._psn, self._most = 0, first_psn, most
        self._starts = np.zeros(1, np.int64)
        self._forgotten = 0

    def number(self, psns: Ints, starts: NDArray[np.bool_]) -> Ints:
        distance: Any = serial.distance
        steps = distance(psns, self._psn)
        if len(psns) > 1 and int(np.abs(steps).max()) > _NEAR:
            # far jumps: what is near depends on the message begun last
            return np.concatenate([self.number(psns[n : n + 1], starts[n : n + 1]) for n in range(len(psns))])
        positions = self._at + steps
        begins = np.flatnonzero(starts)
        before = np.maximum.accumulate(np.concatenate((self._starts[-1:], positions[begins])))[:-1]
        begins = begins[positions[begins] > before]
        known = len(self._starts) + np.searchsorted(begins, np.arange(len(psns)), "right")
        self._starts = np.concatenate((self._starts, positions[begins]))
        found = self._forgotten + np.minimum(np.searchsorted(self._starts, positions, "right"), known)
        if len(begins):
            self._at, self._psn = int(positions[begins[-1]]), int(psns[begins[-1]])
        while len(self._starts) > self._most:
            self._forgotten += self._most // 4
            self._starts = self._starts[self._most // 4 :]
        return found
