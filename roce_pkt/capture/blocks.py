"""Memory for compiled batches: blocks of columns that are used again when nobody looks at them any more."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterator, Mapping

import numpy as np

from roce_pkt.capture.columns import BY_NAME, COLUMNS
from roce_pkt.capture.frames import Array, Frames, Segment, dtype_of
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, PLACES, ROWS

_SPARE_BLOCKS = 8


class BlockPool:
    """Blocks of columns, with the headers whose columns an earlier batch left something in."""

    def __init__(self) -> None:
        self._spare: list[tuple[mmap.mmap, int]] = []

    def take(self) -> Block:
        """A block to fill."""
        try:
            store, dirty = self._spare.pop()
        except IndexError:
            store, dirty = mmap.mmap(-1, BLOCK_BYTES), 0
        return Block(self, store, dirty)

    def give_back(self, store: mmap.mmap, dirty: int) -> None:
        """Keep a block for another batch."""
        if len(self._spare) < _SPARE_BLOCKS:
            self._spare.append((store, dirty))


class _Columns(Mapping[str, Array]):
    """Columns of a block, made into arrays when they are asked for."""

    def __init__(self, octets: Array, rows: int) -> None:
        self._octets, self._rows = octets, rows
        self._made: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        found = self._made.get(name)
        if found is None:
            column = BY_NAME[name]
            shape = (self._rows, column.width) if column.width > 1 else (self._rows,)
            found = np.ndarray(shape, dtype_of(column), self._octets, PLACES[name])
            self._made[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(BY_NAME)

    def __len__(self) -> int:
        return len(COLUMNS)


class Block:
    """One batch of columns being filled.

    Args:
        pool: Where the memory goes afterwards.
        store: The memory.
        dirty: Headers whose columns are not zero.
    """

    def __init__(self, pool: BlockPool, store: mmap.mmap, dirty: int) -> None:
        self._pool, self._store, self._dirty = pool, store, dirty
        self._octets = np.frombuffer(store, np.uint8)
        address = self._octets.__array_interface__["data"][0]  # `ctypes` takes longer than a small batch
        self.memory = np.uint64(address), np.uint64(dirty)
        self.rows = 0
        self.written = 0
        self.segments: list[Segment] = []

    def column(self, name: str, rows: int) -> Array:
        """The first `rows` rows of a column, in place."""
        return np.ndarray((rows,), dtype_of(BY_NAME[name]), self._octets, PLACES[name])

    def frames(self) -> Frames:
        """What was filled; the block's memory is used again when these arrays are gone."""
        columns: Mapping[str, Array] = _Columns(self._octets, self.rows)
        if self.rows * 8 < ROWS:
            columns = {name: array.copy() for name, array in columns.items()}
            self.discard()
        else:
            # rows behind the last one are as dirty as before
            weakref.finalize(self._octets, self._pool.give_back, self._store, self._dirty | self.written)
        frames = Frames(columns, self.segments, "compiled")
        self._octets = np.empty(0, np.uint8)
        return frames

    def discard(self) -> None:
        """Give the memory back at once."""
        self._pool.give_back(self._store, self._dirty | self.written)
