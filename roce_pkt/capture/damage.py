"""Finding the way again behind a damaged place: offsets at which a header could start."""

from __future__ import annotations

from collections.abc import Iterator

_SLICE = 1 << 20
_MAX_CANDIDATES = 20_000
"""Chains tried in one window; a hostile file can make every octet look like a header."""


def words_within(
    view: memoryview, start: int, field: int, *, big_endian: bool, low: int, high: int
) -> Iterator[int]:
    """Offsets from `start` on where the 32-bit word `field` octets later lies in `low` .. `high`.

    Args:
        view: Octets to search.
        start: First offset.
        field: Distance from the offset to the word.
        big_endian: Byte order of the word.
        low: Least value.
        high: Largest value.
    """
    import numpy as np

    octets = np.frombuffer(view, np.uint8)
    order = (24, 16, 8, 0) if big_endian else (0, 8, 16, 24)
    last, tried = len(octets) - field - 4, 0
    for base in range(start, last + 1, _SLICE):
        count = min(_SLICE, last + 1 - base)
        word = np.zeros(count, np.uint32)
        for k, shift in enumerate(order):
            first = base + field + k
            word |= octets[first : first + count].astype(np.uint32) << np.uint32(shift)
        for offset in np.flatnonzero((word >= low) & (word <= high)).tolist():
            tried += 1
            if tried > _MAX_CANDIDATES:
                return
            yield base + offset
