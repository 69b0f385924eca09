"""Frames of slowed senders, sender after sender: a counting sort, compiled; numpy does it for a few."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.flows.rows import DATA
from roce_pkt.jit import fast_kernel
from roce_pkt.run.clock import FAR_NS
from roce_pkt.units import PS_PER_NS

_DATA = DATA


@fast_kernel
def count(flags: Any, flow: Any, number: Any, counts: Any) -> int:
    """How many frames each sender sent, and how many all of them.

    Args:
        flags: Of each row.
        flow: Of each row.
        number: Sender of each flow, negative for none.
        counts: Filled: one more than there are senders, the first stays zero.
    """
    total = 0
    for row in range(len(flags)):
        if flags[row] & np.uint8(_DATA):
            sender = number[flow[row]]
            if sender >= 0:
                counts[sender + 1] += 1
                total += 1
    return total


@fast_kernel
def place(
    flags: Any, flow: Any, time_ns: Any, octets: Any, frame: Any, number: Any, at: Any, shift_ps: int,
    origin_ns: int, o_time: Any, o_summed: Any, o_frame: Any,
) -> None:  # fmt: skip
    """Put each sender's frames behind each other.

    Args:
        flags: Of each row.
        flow: Of each row.
        time_ns: Of each row.
        octets: Of each row.
        frame: Of each row.
        number: Sender of each flow, negative for none.
        at: Where each sender's next frame goes; moved on.
        shift_ps: Taken off every time.
        origin_ns: The machines' zero.
        o_time: When it left.
        o_summed: Octets its sender sent with and before it.
        o_frame: Its number.
    """
    sums = np.zeros(len(at), np.int64)
    for row in range(len(flags)):
        if flags[row] & np.uint8(_DATA):
            sender = number[flow[row]]
            if sender >= 0:
                to = at[sender]
                at[sender] = to + 1
                sums[sender] += octets[row]
                o_time[to] = min(time_ns[row] - origin_ns, FAR_NS) * PS_PER_NS - shift_ps
                o_summed[to] = sums[sender]
                o_frame[to] = frame[row]
