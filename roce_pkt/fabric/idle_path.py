"""How long a message takes through empty queues: what a measured completion time is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.fabric.link import CUT_THROUGH_BYTES
from roce_pkt.fabric.topology import Port

Times = NDArray[Any]


def frame_ps(links: Sequence[Port], size: int, *, cut_through: bool = False) -> float:
    """One frame over some links, from its first bit sent to its last bit received.

    Args:
        links: Sending ends of the path.
        size: Octets on the wire, preamble and gap included.
        cut_through: Switches forward at the header.
    """
    held = min(size, CUT_THROUGH_BYTES) if cut_through else size
    return sum(e.delay_ps + (held if e is not links[-1] else size) * 8e12 / e.rate_bps for e in links)


def message_ps(
    links: Sequence[Port],
    packets: NDArray[np.int64],
    full: int,
    last: NDArray[np.int64],
    *,
    sender_bps: float,
    cut_through: bool = False,
) -> Times:
    """Messages over some links, from the first bit sent to the last bit received, each by itself.

    Args:
        links: Sending ends of the path.
        packets: Packets of each message.
        full: Octets on the wire of all its packets but the last.
        last: Octets of its last packet.
        sender_bps: The most the sender sends at.
        cut_through: Switches forward at the header.
    """
    before = np.maximum(packets - 1, 0)
    begun: Times = np.zeros(len(packets))  # when the last packet may start on the link, as far as it is there
    slowest = lead = 0.0
    for place, end in enumerate(links):
        rate = min(end.rate_bps, sender_bps) if place == 0 else end.rate_bps
        takes = full * 8e12 / rate
        slowest = max(slowest, takes)
        others = np.where(before > 0, lead + takes + (before - 1) * slowest, 0.0)
        started = np.maximum(begun, others)
        forwarded = place + 1 < len(links) and cut_through
        own: Times = (np.minimum(last, CUT_THROUGH_BYTES) if forwarded else last) * 8e12 / end.rate_bps
        begun = started + own + end.delay_ps
        lead += (min(full, CUT_THROUGH_BYTES) * 8e12 / end.rate_bps if forwarded else takes) + end.delay_ps
    return begun
