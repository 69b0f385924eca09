"""Header fields of many frames rewritten in place, with checksums and ICRC repaired by CRC combination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roce_pkt.capture import kernel_rewrite as kernels
from roce_pkt.capture.columns import BY_NAME
from roce_pkt.capture.frames import Array, Frames, dtype_of
from roce_pkt.capture.kernel_crc import crc_way, slicing_table
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, PLACES, ROWS
from roce_pkt.errors import InputError, nearest
from roce_pkt.jit import memory

_U = np.uint64


@dataclass(slots=True)
class Rewritten:
    """What became of the ICRCs.

    Args:
        repaired: Were right, follow the change, are right.
        left_wrong: Were wrong and are as wrong as before.
        not_repaired: Frames with a BTH whose ICRC could not follow: cut, fragments, IP options,
            native InfiniBand, or octets that do not lie in the buffer.
    """

    repaired: int = 0
    left_wrong: int = 0
    not_repaired: int = 0


class Rewriter:
    """Writes new field values into frames in place; keep one for many batches.

    Payloads are neither read nor written. IPv4 and UDP checksums follow too; a UDP checksum of 0
    stays 0.
    """

    def __init__(self) -> None:
        self._block = np.zeros(BLOCK_BYTES, np.uint8)
        self._scratch = np.zeros(kernels.SCRATCH_BYTES, np.uint8)
        self._moves, self._table = kernels.moves(), slicing_table()

    def _put(self, name: str, values: Any, rows: int) -> None:
        column = BY_NAME[name]
        np.ndarray((rows,), dtype_of(column), self._block, PLACES[name])[:] = values

    def rewrite(self, octets: Array, base: int, frames: Frames, changes: Mapping[str, Any]) -> Rewritten:
        """Rewrite fields of `frames`, whose octets lie in `octets`.

        Args:
            octets: Writable octets; frame i starts at `frames.offset[i] - base`.
            base: File offset of the first octet.
            frames: As read from those octets, with ICRCs verified.
            changes: New values by column name (`src_lo`, `dqpn`, `psn`, `eth_dst`, ...): an array with a
                value for each frame, or one number. A field of a header that a frame does not have is
                not written.

        Returns:
            How many ICRCs followed.

        Raises:
            InputError: A column that cannot be rewritten, or values that do not fit.
        """
        if not octets.flags.writeable or octets.dtype != np.uint8:
            raise InputError("rewriting needs writable octets (uint8)")
        changed, values = 0, {}
        for name, new in changes.items():
            values[name] = self._fitting(name, new, len(frames))
            changed |= kernels.BIT_OF[name]
        total = Rewritten()
        for first in range(0, len(frames), ROWS):
            rows = min(ROWS, len(frames) - first)
            part = slice(first, first + rows)
            for name in kernels.META:
                self._put(name, frames.column(name)[part], rows)
            for name, array in values.items():
                self._put(name, array[part], rows)
            right, wrong, beyond = kernels.rewrite(
                memory(octets), _U(base), _U(self._block.ctypes.data), _U(rows), _U(changed),
                _U(self._scratch.ctypes.data), _U(self._moves.ctypes.data),
                (_U(crc_way()), _U(self._table.ctypes.data)),
            )  # fmt: skip
            total.repaired += right
            total.left_wrong += wrong
            total.not_repaired += beyond
        return total

    @staticmethod
    def _fitting(name: str, new: Any, count: int) -> Array:
        if name not in kernels.BIT_OF:
            known = [*kernels.BIT_OF]
            why = "lays the frame out and cannot be rewritten" if name in BY_NAME else "is no column"
            raise InputError(f"{name!r} {why}{'' if name in BY_NAME else nearest(name, known)}")
        column = BY_NAME[name]
        array = np.broadcast_to(np.asarray(new), count)
        widths = [header.field(field).bits for header, field in column.sources]
        bits = 64 if column.part else min(widths)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= 1 << bits):
            raise InputError(
                f"{name} holds {bits} bits; values {int(array.min())} to {int(array.max())} do not fit"
            )
        return array
