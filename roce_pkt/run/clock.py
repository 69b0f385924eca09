"""The machines' clock: picoseconds from a capture's first frame on."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from roce_pkt.units import PS_PER_NS

FAR_PS = 1 << 61
"""It ends here, 26 days after its zero: what a damaged stamp calls later is then."""
FAR_NS = FAR_PS // PS_PER_NS


@overload
def clock_ps(time_ns: int, origin_ns: int) -> int: ...
@overload
def clock_ps(time_ns: NDArray[np.int64], origin_ns: int) -> NDArray[np.int64]: ...
def clock_ps(time_ns: Any, origin_ns: int) -> Any:
    """Times of a capture on the machines' clock.

    Args:
        time_ns: Nanoseconds since 1970, one or an array.
        origin_ns: The clock's zero.
    """
    if isinstance(time_ns, int):
        return min(time_ns - origin_ns, FAR_NS) * PS_PER_NS
    return np.minimum(time_ns - origin_ns, FAR_NS) * PS_PER_NS
