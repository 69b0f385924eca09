"""Directed flows by number: (source, destination, destination queue pair) -> 0, 1, 2, ...

Keys are looked up a whole batch at a time; only keys never seen before cost Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.frames import Frames, address_text
from roce_pkt.events import FlowKey

KEY_COLUMNS = ("src_hi", "src_lo", "dst_hi", "dst_lo", "dqpn")
Ids = NDArray[np.int64]
Key = tuple[int, int, int, int, int]
Address = tuple[int, int]
Index = Callable[..., None]
EMPTY = -1
"""A free slot of the compiled walk's index."""
_LEAST_ROOM = 1024
"""Keys the compiled walk may find before it must ask for more room."""


class FlowTable:
    """The flows met so far.

    Attributes:
        keys: Key of each flow, in the order of `KEY_COLUMNS`.
    """

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self._ids: dict[Key, int] = {}
        self._pairs: dict[tuple[Address, Address], list[int]] = {}
        self._texts: dict[Address, str] = {}
        self._hashes = np.empty(0, np.uint64)
        self._hash_ids = np.empty(0, np.int64)
        self._known = [np.empty(0, np.uint64) for _ in KEY_COLUMNS]
        self._slots = np.empty(0, np.int32)
        self._room = np.empty((0, len(KEY_COLUMNS)), np.uint64)
        self._walked = 0

    def __len__(self) -> int:
        return len(self.keys)

    def number(self, frames: Frames) -> Ids:
        """The flow number of each frame, new flows included.

        Args:
            frames: Frames that all have a BTH.
        """
        if len(self._known[0]) < len(self.keys):
            self._index()
        columns = [frames.column(name).astype(np.uint64) for name in KEY_COLUMNS]
        hashes = _hash(columns)
        ids = np.full(len(hashes), -1, np.int64)
        if len(self._hashes):
            at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            found = self._hash_ids[at]
            same = self._hashes[at] == hashes
            for known, column in zip(self._known, columns, strict=True):
                same &= known[found] == column
            ids[same] = found[same]
        rest = np.flatnonzero(ids < 0)
        if len(rest):
            ids[rest] = self._meet([column[rest] for column in columns], hashes[rest])
        return ids

    def _meet(self, columns: list[NDArray[np.uint64]], hashes: NDArray[np.uint64]) -> Ids:
        """Numbers for rows the hash index did not answer: new keys, and keys that share a hash."""
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        same = np.ones(len(hashes), bool)
        for column in columns:
            same &= column[first][inverse] == column
        before = len(self.keys)
        distinct = [self._id(key) for key in _rows(columns, first)]
        ids = np.array(distinct, np.int64)[inverse]
        odd = np.flatnonzero(~same)
        ids[odd] = [self._id(key) for key in _rows(columns, odd)]
        if len(self.keys) > before:
            self._index()
        return ids

    def _id(self, key: Any) -> int:
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = len(self.keys)
            self.keys.append(key)
            self._pairs.setdefault(((key[0], key[1]), (key[2], key[3])), []).append(number)
        return number

    def _index(self) -> None:
        new = np.array(self.keys[len(self._known[0]) :], np.uint64).T
        self._known = [np.concatenate(pair) for pair in zip(self._known, new, strict=True)]
        hashes = _hash(self._known)
        self._hash_ids = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._hash_ids]

    def walked(self, index: Index) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
        """Slots and keys for the compiled walk, with room for keys it will meet.

        Args:
            index: Puts keys from one row to another into the slots.
        """
        count = len(self.keys)
        if len(self._room) < count + _LEAST_ROOM // 2:
            room = 1 << (2 * (count + _LEAST_ROOM) - 1).bit_length()
            self._room = np.zeros((room // 2, len(KEY_COLUMNS)), np.uint64)
            self._slots = np.full(room, EMPTY, np.int32)
            self._walked = 0
        if self._walked < count:
            self._room[self._walked : count] = np.array(self.keys[self._walked :], np.uint64)
            index(self._slots, self._room, self._walked, count)
            self._walked = count
        return self._slots, self._room

    def take(self, count: int) -> None:
        """The compiled walk has found keys up to `count`."""
        for row in self._room[len(self.keys) : count].tolist():
            self._id(tuple(row))
        self._walked = count

    def find(self, key: Key) -> int | None:
        """The number of a key, or None."""
        return self._ids.get(key)

    def between(self, source: Address, destination: Address) -> Sequence[int]:
        """Flows from one address to another."""
        return self._pairs.get((source, destination), ())

    def name(self, number: int) -> FlowKey:
        """A flow as events and reports name it."""
        src_hi, src_lo, dst_hi, dst_lo, dqpn = self.keys[number]
        return FlowKey(self._text((src_hi, src_lo)), self._text((dst_hi, dst_lo)), dqpn)

    def _text(self, address: Address) -> str:
        text = self._texts.get(address)
        if text is None:
            text = self._texts[address] = address_text(*address)
        return text


def source_of(key: Key) -> Address:
    """The source address of a key."""
    return key[0], key[1]


def destination_of(key: Key) -> Address:
    """The destination address of a key."""
    return key[2], key[3]


def _rows(columns: list[NDArray[np.uint64]], rows: NDArray[Any]) -> list[Key]:
    return list(zip(*(column[rows].tolist() for column in columns), strict=True))


def _hash(columns: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """One number for a key; keys that share it are told apart by their columns."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = (hashes ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes
