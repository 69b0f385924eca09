"""Chosen columns as tab-separated text, made column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from roce_pkt.capture.columns import BY_NAME, NAMES_OF, Column
from roce_pkt.capture.frames import ADDRESSES, Frames
from roce_pkt.wire.header import mac_text


def known(name: str) -> bool:
    """True when `name` is a column or an address made from columns."""
    return name in BY_NAME or name in ADDRESSES


def lines(frames: Frames, names: Sequence[str]) -> Iterator[str]:
    """One line a frame; a field of a header that the frame does not have is empty.

    Args:
        frames: A batch of columns.
        names: Column names in order.
    """
    made = [_cells(frames, name) for name in names]
    yield from map("\t".join, zip(*made, strict=True))


def _cells(frames: Frames, name: str) -> list[str]:
    if name in ADDRESSES:
        return [str(text) for text in frames.column(name)]
    column = BY_NAME[name]
    cells = _texts(frames, column)
    present = frames.present(name)
    if not present.all():
        for row in np.flatnonzero(~present):
            cells[row] = ""
    return cells


def _texts(frames: Frames, column: Column) -> list[str]:
    values = frames.column(column.name)
    if column.name in NAMES_OF:
        return [str(text) for text in frames.names(column.name)]
    if column.width > 1:
        return [",".join(map(str, row)) for row in values.tolist()]
    if column.show == "mac":
        return [mac_text(value) for value in values.tolist()]
    if _key(column):
        digits = 2 * int(column.dtype[1])
        return [f"0x{value:0{digits}x}" for value in values.tolist()]
    return list(map(str, values.tolist()))


def _key(column: Column) -> bool:
    """Keys and 64-bit values are hexadecimal, as in JSON."""
    return any(header.field(name).show == "key" for header, name in column.sources)
