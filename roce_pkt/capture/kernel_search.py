"""Compiled search for the next place at which a record or a block could start."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture import pcap, pcapng
from roce_pkt.capture.model import MIN_LENGTH_LIMIT

_U = np.uint64
_NS = _U(1_000_000_000)
_OVERHEAD = _U(pcapng.BLOCK_OVERHEAD)
_SECTION = _U(pcapng.SECTION)
_CUSTOM, _CUSTOM_HERE = _U(pcapng.CUSTOM_COPY), _U(pcapng.CUSTOM_KEEP_HERE)
_MAGIC_SWAPPED = _U(int.from_bytes((pcap.MAGIC_US >> 16).to_bytes(2, "big"), "little"))
_VERSION, _VERSION_SWAPPED = _U(0x040002), _U(0x020004)
_LAST_KIND = _U(pcapng.SECRETS)


@jit.fast_law
def _word(mem: Any, at: Any, big: Any) -> Any:
    return _U(jit.be32(mem, at)) if big else _U(jit.le32(mem, at))


@jit.fast_law
def maybe_header(seconds: Any, fraction: Any) -> Any:
    """True for what could be the magic number and version of a file header, in any byte order."""
    if seconds >> _U(16) != _U(pcap.MAGIC_US >> 16) and seconds & _U(0xFFFF) != _MAGIC_SWAPPED:
        return False
    octets = fraction | fraction >> _U(8)
    return octets & _U(0xFF00FF) == _VERSION or octets & _U(0xFF00FF) == _VERSION_SWAPPED


@jit.fast_law
def _record_length(mem: Any, at: Any, big: Any, limit: Any) -> Any:
    """Octets captured of a record that could start here, or 0."""
    cap, wire = _word(mem, at + _U(8), big), _word(mem, at + _U(12), big)
    if cap == _U(0) or cap > limit or cap > wire or wire > _U(MIN_LENGTH_LIMIT):
        return _U(0)
    return cap if _word(mem, at + _U(4), big) < _NS else _U(0)


@jit.fast_kernel
def find_record(mem: Any, at: Any, big: Any, step: Any, limit: Any) -> Any:
    """First place from `at` on where a pcap record header and one behind it, or a file header, could be.

    Args:
        mem: Memory to search.
        at: Where to begin.
        big: 1 for a big-endian capture.
        step: Octets of a record header.
        limit: Largest length of a record.

    Returns:
        The place, or the size of the memory.
    """
    end = mem[1]
    while at + step <= end:
        if maybe_header(_word(mem, at, big), _word(mem, at + _U(4), big)):
            return at
        cap = _record_length(mem, at, big, limit)
        if cap > _U(0):
            following = at + step + cap
            if following + step > end or _record_length(mem, following, big, limit) > _U(0):
                return at
        at += _U(1)
    return end


@jit.fast_kernel
def find_block(mem: Any, at: Any, big: Any, step: Any, limit: Any) -> Any:  # noqa: ARG001
    """First place from `at` on where a pcapng block could be; as `find_record`."""
    end = mem[1]
    while at + _OVERHEAD <= end:
        kind = _word(mem, at, big)
        if kind == _SECTION:
            return at
        named = (kind - _U(1) < _LAST_KIND) or kind == _CUSTOM or kind == _CUSTOM_HERE  # noqa: PLR1714
        size = _word(mem, at + _U(4), big)
        if named and size >= _OVERHEAD and size <= limit and size & _U(3) == _U(0):
            past = at + size > end
            if past or _word(mem, at + size - _U(4), big) == size:
                return at
        at += _U(1)
    return end
