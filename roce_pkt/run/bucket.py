"""A sender against its model: a bucket that its frames fill and the model's rate drains."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.law import law, twin
from roce_pkt.flows.size import LINK_OVERHEAD_BYTES
from roce_pkt.units import PS_PER_S

BUCKET = np.dtype(
    [
        ("level_bits", "f8"),  # ahead of the model
        ("rate_bps", "f8"),  # the model's, 0 until its first step
        ("at_ps", "i8"),
        ("over", "i8"),  # a span is under way
        ("over_since_ps", "i8"),
        ("over_frame", "i8"),
        ("over_ps", "i8"),
        ("count", "i8"),
    ],
    align=True,
)
Bucket = twin(BUCKET)
LIMITS = np.dtype(
    [
        ("on", "i8"),  # compare at all
        ("tolerance", "f8"),  # how much faster than its model a sender may be
        ("burst_bits", "f8"),  # how far ahead it may be
        ("written", "i8"),  # spans
    ],
    align=True,
)
Limits = twin(LIMITS)
SPAN_SENDER, SPAN_FROM, SPAN_TO, SPAN_FRAME = range(4)
SPAN_COLUMNS = 4
MOST_WRITTEN = 100_000
"""Spans written in one batch; those beyond are only counted."""


@law
def drain(w: Any, b: Any, until_ps: int) -> None:
    """Let the model send."""
    if until_ps > b.at_ps:
        if b.level_bits > 0.0:
            gone = (until_ps - b.at_ps) * b.rate_bps * (1.0 + w.tolerance) / PS_PER_S
            b.level_bits = max(0.0, b.level_bits - gone)
        b.at_ps = until_ps


@law
def change(w: Any, b: Any, now: int, rate_bps: float) -> None:
    """The model's rate is another from now on."""
    drain(w, b, now)
    b.rate_bps = rate_bps


@law
def fill(w: Any, b: Any, sender: int, now: int, octets: int, frame: int, spans: Any) -> None:
    """A frame leaves; octets from its Ethernet header to its ICRC."""
    if b.rate_bps == 0.0:
        return
    drain(w, b, now)
    b.level_bits += (octets + LINK_OVERHEAD_BYTES) * 8.0
    ahead = b.level_bits > w.burst_bits
    if ahead and not b.over:
        b.over = 1
        b.over_since_ps = now
        b.over_frame = frame
    elif not ahead and b.over:
        b.over = 0
        b.over_ps += now - b.over_since_ps
        b.count += 1
        if w.written < len(spans):
            spans[w.written, SPAN_SENDER] = sender
            spans[w.written, SPAN_FROM] = b.over_since_ps
            spans[w.written, SPAN_TO] = now
            spans[w.written, SPAN_FRAME] = b.over_frame
            w.written += 1
