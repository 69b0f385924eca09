"""Laws made from the tables: read a header field from octets, put it into its column.

Columns of a batch lie in one block of memory, `ROWS` rows each, so that every column's place is a
constant in the compiled code. Their starts are skewed against each other by a cache line: with all
starts a power of two apart, a hundred columns would fight for the same eight lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from roce_pkt import jit
from roce_pkt.capture.columns import COLUMNS, Column
from roce_pkt.kernel_cache import CHECKED
from roce_pkt.wire import net
from roce_pkt.wire.header import Header

ROWS = 1 << 14
"""Frames in a compiled batch."""
_LINE = 64
_SKEW_LINES = 5
Law = Callable[..., Any]
_LOW64 = (1 << 64) - 1
_V4_MAPPED = 0xFFFF << 32


def _places() -> tuple[dict[str, int], int]:
    """Start of each column in the block, and the block's size."""
    places, at = {}, 0
    for n, column in enumerate(COLUMNS):
        places[column.name] = at + (n * _SKEW_LINES % 61) * _LINE
        at += -(-column.row_bytes * ROWS // 4096) * 4096 + 4096
    return places, at


PLACES, BLOCK_BYTES = _places()


@dataclass(frozen=True, slots=True)
class _Load:
    """How to read a field: a load of `width` octets at `start`, then shift, mask, OR.

    The load is as wide as the field needs and never leaves the header.
    """

    start: int
    width: int
    shift: int
    mask: int
    bits: int = 0

    def emit(self, builder: Any, mem: Any, at: Any) -> Any:
        """LLVM code; the value is 64 bits wide."""
        word, int64 = ir.IntType(8 * self.width), ir.IntType(64)
        offset = builder.add(at, int64(self.start))
        value = jit.load_word(builder, jit.place_of(builder, mem, offset, word), swap=True)
        value = builder.zext(value, int64) if self.width < 8 else value
        if self.shift:
            value = builder.lshr(value, int64(self.shift))
        value = builder.and_(value, int64(self.mask))
        return builder.or_(value, int64(self.bits)) if self.bits else value


def _load(header: Header, field: str, part: str = "") -> _Load | None:
    """The load of a field; None for the upper half of an IPv4 address, which is zero."""
    place = header.places[field]
    first, size, mask = place.offset, place.size, place.mask
    if size == 16:
        first, size, mask = first + (8 if part == "lo" else 0), 8, _LOW64
    elif part == "hi":
        return None
    width = next(w for w in (1, 2, 4, 8) if w >= size)
    start = min(first, header.size_bytes - width)
    shift = place.shift + 8 * (start + width - first - size)
    return _Load(start, width, shift, mask, _V4_MAPPED if header is net.IPV4 and part == "lo" else 0)


def _emit_store(builder: Any, out: Any, row: Any, column: Column, element: int, value: Any) -> None:
    """LLVM code that stores 64 bits into a row of a column, cut to its width."""
    size, int64 = int(column.dtype[1]), ir.IntType(64)
    word = ir.IntType(8 * size)
    start = int64(PLACES[column.name] + element * size)
    offset = builder.add(start, builder.mul(row, int64(column.row_bytes)))
    value = builder.trunc(value, word) if size < 8 else value
    builder.store(value, jit.place_of(builder, out, offset, word)).align = 1


def setter(column: Column) -> Law:
    """A law (out, row, value) that stores into a column."""

    @jit.intrinsic
    def store(typingctx: Any, out: Any, row: Any, value: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            _emit_store(builder, args[0], args[1], column, 0, args[2])
            return context.get_dummy_value()

        return types.void(out, types.uint64, types.uint64), codegen

    def checked(out: Any, row: Any, value: Any) -> Any:
        _row_guard(row)
        store(out, row, value)

    return jit.fast_law(checked) if CHECKED else store


def getter(header: Header, field: str, part: str = "") -> Law:
    """A law (octets, place of the header) that reads a field as an unsigned number.

    Args:
        header: The header's table.
        field: The field's name.
        part: `hi` or `lo` half of an address; IPv4 in its mapped form.
    """
    load, size = _load(header, field, part), header.size_bytes
    if load is None:
        raise ValueError(f"{header.name} {field} has no upper half")

    @jit.intrinsic
    def read(typingctx: Any, mem: Any, at: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            return load.emit(builder, args[0], args[1])

        return types.uint64(mem, types.uint64), codegen

    def checked(mem: Any, at: Any) -> Any:
        jit.guard(mem, at, size)
        return read(mem, at)

    return jit.fast_law(checked) if CHECKED else read


def emit_move(builder: Any, header: Header, index: int, args: Any, *, clear: bool = False) -> None:
    """LLVM code that puts every field of a header into its column, or zeroes those columns.

    Args:
        builder: Where the code goes.
        header: The header's table.
        index: Which of several headers of the kind.
        args: (octets, place of the header, block, row) as LLVM values.
        clear: Zero instead.
    """
    octets, place, block, line = args
    stores = []
    # all loads first: a store might be to the same memory, for all the compiler knows
    for column in COLUMNS:
        for element, (source, field) in enumerate(column.sources):
            if source is header and column.index == index:
                load = None if clear else _load(header, field, column.part)
                value = load.emit(builder, octets, place) if load else ir.IntType(64)(0)
                stores.append((column, element if column.width > 1 else 0, value))
    for column, element, value in stores:
        _emit_store(builder, block, line, column, element, value)


def _mover(header: Header, index: int, *, clear: bool) -> Law:
    """A law (octets, place, out, row) over every column of a header."""
    size = 0 if clear else header.size_bytes

    @jit.intrinsic
    def move(typingctx: Any, mem: Any, at: Any, out: Any, row: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            emit_move(builder, header, index, args, clear=clear)
            return context.get_dummy_value()

        return types.void(mem, types.uint64, out, types.uint64), codegen

    def checked(mem: Any, at: Any, out: Any, row: Any) -> Any:
        jit.guard(mem, at, size)
        _row_guard(row)
        move(mem, at, out, row)

    return jit.fast_law(checked) if CHECKED else move


def copier(header: Header, index: int = 0) -> Law:
    """A law (octets, place, out, row) that puts every field of a header into its column."""
    return _mover(header, index, clear=False)


def clearer(header: Header, index: int = 0) -> Law:
    """A law (octets, place, out, row) that zeroes every column of a header; the place is not looked at."""
    return _mover(header, index, clear=True)


@jit.fast_law
def _row_guard(row: Any) -> Any:
    if row >= np.uint64(ROWS):
        raise IndexError("row outside its block")


SETTERS = {column.name: setter(column) for column in COLUMNS if column.width == 1}
