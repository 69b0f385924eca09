"""Finding the way again behind a damaged place: offsets at which a header could start."""

from __future__ import annotations

from collections.abc import Iterator

_SLICE = 1 << 20
_COMPILED_BYTES = 4 << 20
"""A longer stretch repays loading compiled code to search it."""
_MAX_OCTETS = 1 << 29
_MAX_CANDIDATES = 300_000
"""Chains tried behind one damaged place; a hostile file can make every octet look like a header."""


class Search:
    """The search behind one damaged place, window after window, with an end to it."""

    def __init__(self) -> None:
        self._octets = self._tried = 0

    @property
    def over(self) -> bool:
        """True when enough was searched."""
        return self._octets >= _MAX_OCTETS or self._tried >= _MAX_CANDIDATES

    @staticmethod
    def compiled(view: memoryview, start: int) -> bool:
        """True for stretches that compiled code searches; it also finds file headers in them."""
        return len(view) - start > _COMPILED_BYTES

    def records(
        self, view: memoryview, start: int, step: int, limit: int, *, big_endian: bool
    ) -> Iterator[int]:
        """Offsets at which a pcap record header could start.

        Args:
            view: Octets to search.
            start: First offset.
            step: Octets of a record header.
            limit: Largest length of a record.
            big_endian: Byte order of the capture.
        """
        if self.compiled(view, start):
            yield from self._compiled(view, start, (big_endian, step, limit))
        else:
            yield from self._words(view, start, 8, big_endian=big_endian, low=1, high=limit)

    def blocks(self, view: memoryview, start: int, *, big_endian: bool) -> Iterator[int]:
        """Offsets at which a pcapng block could start; see `records`."""
        from roce_pkt.capture.model import MAX_RECORD_BYTES

        if self.compiled(view, start):
            yield from self._compiled(view, start, (big_endian, 0, MAX_RECORD_BYTES))
        else:
            yield from self._words(view, start, 4, big_endian=big_endian, low=12, high=MAX_RECORD_BYTES)

    def _compiled(self, view: memoryview, start: int, shape: tuple[bool, int, int]) -> Iterator[int]:
        import numpy as np

        from roce_pkt.capture import kernel_search as kernels
        from roce_pkt.jit import memory

        big, step, limit = (np.uint64(value) for value in shape)
        octets = np.frombuffer(view, np.uint8)
        find = kernels.find_record if step else kernels.find_block
        at = start
        while not self.over:
            found = int(find(memory(octets), np.uint64(at), big, step, limit))
            self._octets += found - at + 1
            if found >= len(view):
                return
            self._tried += 1
            yield found
            at = found + 1

    def _words(
        self, view: memoryview, start: int, field: int, *, big_endian: bool, low: int, high: int
    ) -> Iterator[int]:
        """Offsets from `start` on where the 32-bit word `field` octets later lies in `low` .. `high`."""
        import numpy as np

        octets = np.frombuffer(view, np.uint8)
        order = (24, 16, 8, 0) if big_endian else (0, 8, 16, 24)
        last = len(octets) - field - 4
        for base in range(start, last + 1, _SLICE):
            count = min(_SLICE, last + 1 - base)
            self._octets += count
            word = np.zeros(count, np.uint32)
            for k, shift in enumerate(order):
                first = base + field + k
                word |= octets[first : first + count].astype(np.uint32) << np.uint32(shift)
            for offset in np.flatnonzero((word >= low) & (word <= high)).tolist():
                if self.over:
                    return
                self._tried += 1
                yield base + offset
