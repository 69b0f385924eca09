"""The rows ahead of a compiled walk: cleared where an earlier batch wrote, and called into the cache.

A walk writes a hundred columns side by side, each into a memory line of its own. Every 64 rows, when all
of them come to new lines, the lines of those rows are cleared, and those of the next rows asked for, so
that no store waits for memory and no batch has to be cleared as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from roce_pkt import jit
from roce_pkt.capture.columns import COLUMNS, presence_mask
from roce_pkt.capture.kernel_fields import PLACES

_U = np.uint64
TILE = _U(64)
"""Rows in which every column fills whole lines."""
_LINE = _U(64)
TUNNEL_BIT = _U(1 << 31)
"""Bit of a set of headers that says that tunnel columns were written."""
_ALWAYS = _U(1 << 63)
_TUNNEL = tuple(c.name for c in COLUMNS if c.name.startswith(("tunnel_kind", "tunnel_id", "outer_")))
_WRITTEN_BY = {
    c.name: int(TUNNEL_BIT) if c.name in _TUNNEL else presence_mask(c) or int(_ALWAYS) for c in COLUMNS
}
"""Headers of which one makes a kernel write the column; the others start as zero."""
_STARTS = np.array([PLACES[c.name] for c in COLUMNS], np.uint64)
_WIDTHS = np.array([c.row_bytes for c in COLUMNS], np.uint64)
_MASKS = np.array([_WRITTEN_BY[c.name] for c in COLUMNS], np.uint64)
_COUNT = len(COLUMNS)


@jit.intrinsic
def _clear_line(typingctx: Any, out: Any, at: Any) -> Any:  # noqa: ARG001
    """Zero 64 octets at an aligned place."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        wide = ir.VectorType(ir.IntType(64), 4)
        for half in (0, 32):
            place = builder.add(args[1], ir.IntType(64)(half))
            builder.store(ir.Constant(wide, [0] * 4), jit.place_of(builder, args[0], place, wide)).align = 32
        return context.get_dummy_value()

    return types.void(out, types.uint64), codegen


@jit.fast_law
def begin_tile(out: Any, row: Any, dirty: Any, used: Any) -> Any:
    """Prepare the 64 rows from `row` on.

    Args:
        out: Memory of the block of columns.
        row: First row, a multiple of 64.
        dirty: Headers whose columns hold what an earlier batch left there.
        used: Headers whose columns will probably be written.
    """
    used |= _ALWAYS
    for k in range(_COUNT):
        mask, width = _MASKS[k], _WIDTHS[k]
        if mask & (dirty | used):
            at = _STARTS[k] + row * width
            if mask & dirty:
                for _ in range(width):
                    _clear_line(out, at)
                    jit.prefetch_to_write(out, at + width * _LINE)
                    at += _LINE
            else:
                for _ in range(width):
                    jit.prefetch_to_write(out, at + width * _LINE)
                    at += _LINE
