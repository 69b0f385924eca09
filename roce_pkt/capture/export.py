"""Columns for other tools: Arrow tables, pandas frames, Parquet files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roce_pkt.capture.columns import COLUMNS, NAMES_OF, Column, presence_mask
from roce_pkt.capture.frames import ADDRESSES, Frames
from roce_pkt.errors import InputError
from roce_pkt.files import whole_file
from roce_pkt.wire.opcode import name_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_OPCODE_NAMES = [name_of(code) for code in range(256)]


def _pyarrow() -> Any:
    try:
        import pyarrow  # noqa: ICN001
    except ImportError:
        raise InputError("pyarrow is not installed; install roce-pkt[parquet]") from None
    return pyarrow


def to_arrow(frames: Frames) -> pa.Table:
    """Columns as a pyarrow table.

    Names are those of the columns, with `src`, `dst`, `outer_src`, `outer_dst` as text and
    `opcode_name`; codes (`kind`, `hint`, `status`, `tunnel_kind`) are text. A field of a header that
    a frame does not have is null.

    Raises:
        InputError: pyarrow is not installed.
    """
    arrow = _pyarrow()
    arrays: dict[str, Any] = {}
    for column in COLUMNS:
        arrays[column.name] = _arrow_column(arrow, frames, column)
        if column.name == "opcode":
            arrays["opcode_name"] = _coded(arrow, frames.opcode, _OPCODE_NAMES, _absent(frames, column))
    for name in ADDRESSES:
        texts = frames.column(name)
        arrays[name] = arrow.array(texts, arrow.string(), mask=texts == "").dictionary_encode()
    return arrow.table(arrays)


def _absent(frames: Frames, column: Column) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    if column.name.startswith(("tunnel_kind", "tunnel_id", "outer_")):
        absent: np.ndarray[Any, np.dtype[np.bool_]] = frames.tunnel_count == 0
        return absent
    return ~frames.present(column.name) if presence_mask(column) else None


def _coded(arrow: Any, codes: Any, names: list[str], absent: Any) -> Any:
    indices = arrow.array(codes.astype(np.int16), mask=absent)
    return arrow.DictionaryArray.from_arrays(indices, names)


def _arrow_column(arrow: Any, frames: Frames, column: Column) -> Any:
    array, absent = frames.column(column.name), _absent(frames, column)
    if column.name == "hint":
        texts = frames.names("hint")
        return arrow.array(texts, arrow.string(), mask=texts == "").dictionary_encode()
    if column.name in NAMES_OF:
        return _coded(arrow, array, list(NAMES_OF[column.name]), absent)
    if column.name == "icrc_ok":
        return arrow.array(array == 1, mask=array < 0)
    if column.width > 1:
        flat = arrow.array(np.ascontiguousarray(array).reshape(-1))
        mask = None if absent is None else arrow.array(absent)
        return arrow.FixedSizeListArray.from_arrays(flat, column.width, mask=mask)
    return arrow.array(np.ascontiguousarray(array), mask=absent)


def to_pandas(frames: Frames) -> pd.DataFrame:
    """Columns as a pandas frame; see `to_arrow`.

    Raises:
        InputError: pyarrow or pandas is not installed.
    """
    table = to_arrow(frames)
    try:
        import pandas  # noqa: F401, ICN001
    except ImportError:
        raise InputError("pandas is not installed; install it, or use to_arrow()") from None
    made: pd.DataFrame = table.to_pandas()
    return made


def write_parquet(path: str | Path, batches: Iterable[Frames], *, force: bool = False) -> int:
    """Write batches of columns to a Parquet file, zstd-compressed.

    Args:
        path: Where the file shall be.
        batches: The frames, batch after batch; none of them is kept.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: The file exists or cannot be written, or pyarrow is not installed.
    """
    _pyarrow()
    from pyarrow import parquet

    count, writer = 0, None
    with whole_file(path, force=force) as stream:
        try:
            for frames in batches:
                table = to_arrow(frames)
                if writer is None:
                    writer = parquet.ParquetWriter(stream, table.schema, compression="zstd")
                writer.write_table(table)
                count += len(frames)
            if writer is None:
                from roce_pkt.capture.frames import empty_columns

                table = to_arrow(Frames(empty_columns(0)))
                writer = parquet.ParquetWriter(stream, table.schema, compression="zstd")
        finally:
            if writer is not None:
                writer.close()
    return count
