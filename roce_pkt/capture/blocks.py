"""Memory for compiled batches: blocks of columns that are used again when nobody looks at them any more."""

from __future__ import annotations

import mmap
import weakref

import numpy as np

from roce_pkt.capture.columns import BY_NAME, COLUMNS, presence_mask
from roce_pkt.capture.frames import Array, Frames, Segment, dtype_of
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, PLACES, ROWS
from roce_pkt.capture.kernel_frame import TUNNEL_BIT

_SPARE_BLOCKS = 8
_TUNNEL = tuple(c.name for c in COLUMNS if c.name.startswith(("tunnel_kind", "tunnel_id", "outer_")))
_WRITTEN_BY = {c.name: presence_mask(c) for c in COLUMNS if presence_mask(c)} | dict.fromkeys(
    _TUNNEL, int(TUNNEL_BIT)
)
"""Columns that a kernel writes only for frames with one of these headers; they must start as zero."""
_TO_CLEAR = [(PLACES[c.name], c.row_bytes, _WRITTEN_BY[c.name]) for c in COLUMNS if c.name in _WRITTEN_BY]
_VIEWS = [(c.name, c.width, dtype_of(c), PLACES[c.name]) for c in COLUMNS]


class BlockPool:
    """Blocks of columns, zero where a kernel relies on it."""

    def __init__(self) -> None:
        self._spare: list[mmap.mmap] = []

    def take(self) -> Block:
        """A block to fill."""
        return Block(self, self._spare.pop() if self._spare else mmap.mmap(-1, BLOCK_BYTES))

    def give_back(self, store: mmap.mmap) -> None:
        """Keep a block for the next batch; it is clean."""
        if len(self._spare) < _SPARE_BLOCKS:
            self._spare.append(store)


class Block:
    """One batch of columns being filled.

    Args:
        pool: Where the memory goes afterwards.
        store: The memory.
    """

    def __init__(self, pool: BlockPool, store: mmap.mmap) -> None:
        self._pool, self._store = pool, store
        self._octets = np.frombuffer(store, np.uint8)
        self.address = np.uint64(self._octets.ctypes.data)
        self.rows = 0
        self.written = 0
        self.segments: list[Segment] = []

    def column(self, name: str, rows: int) -> Array:
        """The first `rows` rows of a column, in place."""
        return np.ndarray((rows,), dtype_of(BY_NAME[name]), self._octets, PLACES[name])

    def frames(self) -> Frames:
        """What was filled; the block's memory is used again when these arrays are gone."""
        rows, octets = self.rows, self._octets
        columns: dict[str, Array] = {
            name: np.ndarray((rows, width) if width > 1 else (rows,), dtype, octets, place)
            for name, width, dtype, place in _VIEWS
        }
        del octets
        if self.rows * 8 < ROWS:
            columns = {name: array.copy() for name, array in columns.items()}
            self.discard()
        else:
            weakref.finalize(self._octets, _recycle, self._pool, self._store, self.rows, self.written)
        frames = Frames(columns, self.segments, "compiled")
        self._octets = np.empty(0, np.uint8)
        return frames

    def discard(self) -> None:
        """Give the memory back at once."""
        _recycle(self._pool, self._store, self.rows, self.written)


def _recycle(pool: BlockPool, store: mmap.mmap, rows: int, written: int) -> None:
    """Zero the columns that need it, as far as they were written."""
    octets = np.frombuffer(store, np.uint8)
    for start, row_bytes, headers in _TO_CLEAR:
        if written & headers:
            octets[start : start + rows * row_bytes] = 0
    pool.give_back(store)
