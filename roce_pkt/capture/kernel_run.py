"""Compiled writing of frames that lie anywhere in memory: record headers and octets side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture.kernel_put import copy_octets

_U = np.uint64
SLACK_BYTES = 8
"""Octets that may be written behind a frame: pads and a block's second length."""
ANYWHERE = (_U(0), _U((1 << 64) - 1))
"""A memory in which every address is an offset; who uses it has tested that the octets are there."""


@jit.fast_kernel
def put_run(
    out: Any, heads: Any, head_bytes: Any, addresses: Any, sizes: Any, row: Any, rows: Any, blocks: Any
) -> Any:
    """Write records until the rows or the room end.

    Args:
        out: Memory to write to.
        heads: Memory of what stands in front of each frame.
        head_bytes: Octets of one of them.
        addresses: Memory of the address of each frame's octets.
        sizes: Memory of how many they are, 64 bits each.
        row: First row.
        rows: Row to stop at.
        blocks: 1 to end each record as a pcapng block: pads, and its length (the head's second word) again.

    Returns:
        Octets written, next row.
    """
    at = _U(0)
    while row < rows:
        size = jit.le64(sizes, row << _U(3))
        if out[1] - at < head_bytes + size + _U(SLACK_BYTES):
            break
        head = row * head_bytes
        copy_octets(out, at, heads, head, head_bytes)
        at += head_bytes
        copy_octets(out, at, ANYWHERE, jit.le64(addresses, row << _U(3)), size)
        at += size
        if blocks != _U(0):
            jit.put32(out, at, np.uint32(0))
            at += (_U(0) - size) & _U(3)
            jit.put32(out, at, jit.le32(heads, head + _U(4)))
            at += _U(4)
        row += _U(1)
    return at, row
