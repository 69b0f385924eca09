"""What senders really sent: the rate over a sliding window, and where it was ahead of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.run.reaction import Senders
from roce_pkt.units import PS_PER_S

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_SPANS = 100
"""Spans kept of each sender."""


class Span(NamedTuple):
    """Frames ahead of the model: from when to when, and the first of them."""

    from_ps: int
    to_ps: int
    frame: int


def sliding_rate_bps(time_ps: Ints, octets: Ints, window_ps: int) -> Floats:
    """Rate over the window that ends with each frame.

    Args:
        time_ps: When frames passed, ascending.
        octets: Octets each took on the wire.
        window_ps: Length of the window.
    """
    sent = np.concatenate(([0], np.cumsum(octets)))
    first = np.searchsorted(time_ps, time_ps - window_ps, "right")
    return (sent[1:] - sent[first]) * (8 * PS_PER_S / window_ps)


@dataclass(frozen=True, slots=True)
class Pace:
    """One sender against its model.

    Args:
        over_ps: Time spent ahead of it.
        count: Spans in which it was.
        spans: The first of them.
    """

    over_ps: int
    count: int
    spans: list[Span]


class Paces:
    """All senders against their models, as they were stepped."""

    def __init__(self) -> None:
        self._spans: dict[int, list[Span]] = {}

    def add(self, senders: Senders) -> None:
        """Keep what the last advance found."""
        for sender, start, stop, frame in senders.spans.tolist():
            spans = self._spans.setdefault(sender, [])
            if len(spans) < MOST_SPANS:
                spans.append(Span(start, stop, frame))

    def of(self, senders: Senders, flow: int, end_ps: int) -> Pace | None:
        """What became of a flow's sender, once all is finished; None: it was never told anything."""
        number = int(senders.number[flow])
        if number < 0:
            return None
        bucket, spans = senders.buckets[number], list(self._spans.get(number, []))
        over_ps, count = bucket.over_ps, bucket.count
        if bucket.over:
            over_ps, count = over_ps + end_ps - bucket.over_since_ps, count + 1
            spans.append(Span(bucket.over_since_ps, end_ps, bucket.over_frame))
        return Pace(over_ps, count, spans[:MOST_SPANS])
