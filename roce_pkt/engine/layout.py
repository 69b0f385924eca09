"""Records in whole cache lines: what a packet touches should cost one miss, not two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE_BYTES = 64
"""A cache line: records that packets touch fill whole ones, and their arrays begin with one."""


def in_lines(layout: list[tuple[str, str]]) -> np.dtype[Any]:
    """A record that fills whole cache lines."""
    packed = np.dtype(layout, align=True)
    places: dict[str, Any] = dict(packed.fields or {})
    return np.dtype(
        {
            "names": list(packed.names or ()),
            "formats": [places[name][0] for name in packed.names or ()],
            "offsets": [places[name][1] for name in packed.names or ()],
            "itemsize": -(-packed.itemsize // LINE_BYTES) * LINE_BYTES,
        },
        align=True,
    )


def in_line(count: int, layout: Any) -> NDArray[Any]:
    """Zeroed records that each begin a cache line, (count,)."""
    stride = -(-np.dtype(layout).itemsize // LINE_BYTES) * LINE_BYTES
    octets = np.zeros(count * stride + LINE_BYTES, np.uint8)
    first = -octets.ctypes.data % LINE_BYTES
    return np.ndarray((count,), layout, octets, first, (stride,))
