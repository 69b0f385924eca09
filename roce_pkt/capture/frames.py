"""Frames as columns: numpy arrays under the names of the column table."""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import (
    BY_NAME,
    COLUMNS,
    KINDS,
    NAMES_OF,
    Column,
    header_bit,
    hint_text,
    presence_mask,
)
from roce_pkt.errors import nearest
from roce_pkt.units import format_bytes, format_time_ns
from roce_pkt.wire.header import Header

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Array = NDArray[Any]
Segment = tuple[int, memoryview]
"""Octets of a capture and the file offset of their first."""

_V4_MAPPED = 0xFFFF << 32
ADDRESSES = ("src", "dst", "outer_src", "outer_dst")
"""128-bit addresses; `NAME_hi` and `NAME_lo` hold them as numbers."""


def dtype_of(column: Column) -> np.dtype[Any]:
    """The numpy type of a column's elements."""
    return np.dtype(column.dtype)


def empty_columns(rows: int) -> dict[str, Array]:
    """All columns, zero."""
    return {c.name: np.zeros((rows, c.width) if c.width > 1 else rows, dtype_of(c)) for c in COLUMNS}


class Frames:
    """Frames of a capture, one numpy array for each column.

    `frames.psn` is the column `psn`; `frames[mask]`, `frames[10:20]` select rows, `frames[3]` is one
    row as a dict. `frames.src` and `frames.dst` are addresses as text. Fields of headers that a
    frame does not have are 0: ask `frames.has(header)` or the `kind` column first.

    Args:
        columns: Arrays of equal length by column name.
        segments: Octets that the `offset` column points into.
        kernel: How the columns were filled: `plain` or `compiled`.
    """

    def __init__(
        self, columns: Mapping[str, Array], segments: Sequence[Segment] = (), kernel: str = "plain"
    ) -> None:
        # a batch makes its arrays when they are asked for; a dict might change under us
        self._columns: Mapping[str, Array] = dict(columns) if isinstance(columns, dict) else columns
        self._segments = list(segments)
        self.kernel = kernel

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.column(name, error=AttributeError)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._columns, *ADDRESSES]

    def column(self, name: str, error: type[Exception] = KeyError) -> Array:
        """A column by name, addresses as text included.

        Raises:
            KeyError: No such column, with the nearest name.
        """
        found = self._columns.get(name)
        if found is not None:
            return found
        if name in ADDRESSES and f"{name}_hi" in self._columns:
            return self._address(name)
        raise error(f"no column {name!r}{nearest(name, [*self._columns, *ADDRESSES])}")

    def _address(self, name: str) -> Array:
        """Addresses as text, empty where there is none; made once for each pair of numbers."""
        pairs = np.empty(len(self), [("hi", "u8"), ("lo", "u8")])
        pairs["hi"], pairs["lo"] = self._columns[f"{name}_hi"], self._columns[f"{name}_lo"]
        distinct, where = np.unique(pairs, return_inverse=True)
        texts = np.array([address_text(int(hi), int(lo)) for hi, lo in distinct.tolist()], dtype=object)
        return texts[where] if len(texts) else np.empty(0, object)

    @property
    def columns(self) -> Mapping[str, Array]:
        """All columns by name."""
        return self._columns

    @property
    def segments(self) -> Sequence[Segment]:
        """The octets behind the columns, as (file offset, octets)."""
        return self._segments

    def __len__(self) -> int:
        return len(self._columns["number"])

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, (int, np.integer)):
            return self.row(int(which))
        picked = {name: array[which] for name, array in self._columns.items()}
        return Frames(picked, self._segments, self.kernel)

    def row(self, index: int) -> dict[str, Any]:
        """One frame as a dict, without the fields of headers it does not have."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)} frames")
        headers = int(self._columns["headers"][index])
        out: dict[str, Any] = {}
        for name, array in self._columns.items():
            mask = presence_mask(BY_NAME[name]) if name in BY_NAME else 0
            if not mask or headers & mask:
                out[name] = array[index].tolist()
        return out

    def has(self, header: Header) -> NDArray[np.bool_]:
        """True for frames that have `header`."""
        return self._any_of(header_bit(header))

    def present(self, column: str) -> NDArray[np.bool_]:
        """True for frames in which the column means something."""
        mask = presence_mask(BY_NAME[column])
        if not mask:
            return np.ones(len(self), bool)
        return self._any_of(mask)

    def _any_of(self, bits: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (self._columns["headers"] & np.uint32(bits)) != 0
        return found

    def names(self, column: str) -> Array:
        """A column of codes (`kind`, `hint`, `status`, `tunnel_kind`) as text."""
        if column == "hint":
            codes, values = self._columns["hint"].tolist(), self._columns["hint_value"].tolist()
            return np.array(
                [hint_text(code, value) for code, value in zip(codes, values, strict=True)], object
            )
        table = np.array(NAMES_OF[column], dtype=object)
        return table[self._columns[column]]

    def octets(self, index: int) -> memoryview:
        """The captured octets of one frame.

        Raises:
            LookupError: The octets were not kept.
        """
        start, size = int(self._columns["offset"][index]), int(self._columns["cap_len"][index])
        at = bisect_right(self._segments, start, key=lambda segment: segment[0]) - 1
        if at >= 0:
            first, held = self._segments[at]
            if start - first + size <= len(held):
                return held[start - first : start - first + size]
        raise LookupError("the octets of this frame were not kept; read the capture in batches")

    def __repr__(self) -> str:
        count = len(self)
        if not count:
            return "Frames(0 frames)"
        kinds = Counter(self._columns["kind"].tolist())
        parts = ", ".join(f"{n} {KINDS[code]}" for code, n in kinds.most_common())
        times = self._columns["time_ns"]
        span = format_time_ns(int(times.max()) - int(times.min()))
        size = format_bytes(int(self._columns["wire_len"].sum(dtype=np.int64)))
        first, last = int(self._columns["number"][0]), int(self._columns["number"][-1])
        return f"Frames({count} frames, {first}..{last}: {parts}; {span}, {size})"

    @classmethod
    def concat(cls, parts: Iterable[Frames]) -> Frames:
        """Frames of several batches as one."""
        batches = [part for part in parts if len(part)]
        if not batches:
            return cls(empty_columns(0))
        if len(batches) == 1:
            return batches[0]
        columns = {
            name: np.concatenate([batch._columns[name] for batch in batches])  # noqa: SLF001 - own class
            for name in batches[0].columns
        }
        segments: dict[int, memoryview] = {}
        for batch in batches:
            for start, held in batch.segments:
                if len(held) > len(segments.get(start, b"")):
                    segments[start] = held
        kernel = "plain" if all(batch.kernel == "plain" for batch in batches) else "compiled"
        return cls(columns, sorted(segments.items(), key=lambda item: item[0]), kernel)

    def to_arrow(self) -> pa.Table:
        """A pyarrow table under the same names; fields of absent headers are null, codes are text.

        Raises:
            InputError: pyarrow is not installed.
        """
        from roce_pkt.capture.export import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> pd.DataFrame:
        """A pandas frame; see `to_arrow`.

        Raises:
            InputError: pyarrow or pandas is not installed.
        """
        from roce_pkt.capture.export import to_pandas

        return to_pandas(self)


def address_text(hi: int, lo: int) -> str:
    """A 128-bit address as people read it: IPv4 when mapped, empty when zero."""
    if hi == 0 and lo == 0:
        return ""
    if hi == 0 and lo & ~0xFFFF_FFFF == _V4_MAPPED:
        return str(ipaddress.IPv4Address(lo & 0xFFFF_FFFF))
    return ipaddress.IPv6Address(hi << 64 | lo).compressed
