"""What senders really sent: the rate over a sliding window, and where it was ahead of the model.

A bucket that frames fill and the model's rate drains; plain Python for a few thousand frames,
compiled (`compiled_fill`) for millions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import compile_laws, law, twin
from roce_pkt.flows.size import LINK_OVERHEAD_BYTES
from roce_pkt.run import clockwork as cw
from roce_pkt.run.reaction import Senders, Sent, Steps
from roce_pkt.units import PS_PER_S

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_SPANS = 100
"""Spans kept of each sender."""
MANY_FRAMES = 50_000
"""Frames of slowed senders for which loading compiled code pays."""
_LOG_ROWS = 100_000

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


@law
def drain(b: Any, until_ps: int, tolerance: float) -> None:
    """Let the model send."""
    if until_ps > b.at_ps:
        b.level_bits = max(
            0.0, b.level_bits - (until_ps - b.at_ps) * b.rate_bps * (1.0 + tolerance) / PS_PER_S
        )
        b.at_ps = until_ps


@law
def fill(
    buckets: Any, offsets: Any, step_ps: Any, step_bps: Any, sent_ps: Any, octets: Any, frames: Any,
    tolerance: float, burst_bytes: int, log: Any,
) -> int:  # fmt: skip
    """Run every sender's frames against its model.

    Args:
        buckets: Records of `BUCKET`.
        offsets: For each sender, first and end of its steps, first and end of its frames.
        step_ps: When models changed their rates, sender after sender.
        step_bps: To what.
        sent_ps: When frames were sent, sender after sender.
        octets: What each took on the wire.
        frames: Its number.
        tolerance: How much faster than its model a sender may be.
        burst_bytes: How far ahead it may be.
        log: Room for spans: sender, from, to, frame.

    Returns:
        Spans written; those beyond the room are only counted.
    """
    written = 0
    for i in range(len(offsets)):
        b = buckets[i]
        step, last = int(offsets[i, 0]), int(offsets[i, 1])
        for row in range(int(offsets[i, 2]), int(offsets[i, 3])):
            now = int(sent_ps[row])
            while step < last and step_ps[step] <= now:
                drain(b, int(step_ps[step]), tolerance)
                b.rate_bps = step_bps[step]
                step += 1
            if b.rate_bps == 0.0:
                continue
            drain(b, now, tolerance)
            b.level_bits += octets[row] * 8.0
            ahead = b.level_bits > burst_bytes * 8
            if ahead and not b.over:
                b.over = 1
                b.over_since_ps = now
                b.over_frame = frames[row]
            elif not ahead and b.over:
                b.over = 0
                b.over_ps += now - b.over_since_ps
                b.count += 1
                if written < len(log):
                    log[written, 0] = i
                    log[written, 1] = b.over_since_ps
                    log[written, 2] = now
                    log[written, 3] = b.over_frame
                    written += 1
        while step < last:
            drain(b, int(step_ps[step]), tolerance)
            b.rate_bps = step_bps[step]
            step += 1
    return written


@cache
def compiled_fill() -> Callable[..., int]:
    """`fill`, compiled for records; the same text."""
    from roce_pkt.jit import kernel

    compile_laws()
    return kernel(fill)


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
    """All senders against their models.

    Args:
        p: Twin of `checks.WIRE`.
        compiled: Run compiled; else plain.
    """

    def __init__(self, p: Any, *, compiled: bool) -> None:
        self._p, self._compiled = p, compiled
        self._fill = compiled_fill() if compiled else fill
        self._buckets: Any = np.zeros(0, BUCKET) if compiled else []
        self._spans: dict[int, list[Span]] = {}

    def add(self, senders: int, steps: Steps, sent: Sent) -> None:
        """Frames, and the models' steps up to them.

        Args:
            senders: How many senders there are by now.
            steps: What the models did.
            sent: What was sent.
        """
        missing = senders - len(self._buckets)
        if self._compiled:
            self._buckets = np.concatenate((self._buckets, np.zeros(missing, BUCKET)))
        else:
            self._buckets += [Bucket() for _ in range(missing)]
        places = np.arange(senders + 1)
        whose = steps.whole[:, cw.LOG_SENDER]
        step_at, sent_at = np.searchsorted(whose, places), np.searchsorted(sent.sender, places)
        offsets = np.stack((step_at[:-1], step_at[1:], sent_at[:-1], sent_at[1:]), axis=1)
        log = np.zeros((min(_LOG_ROWS, len(sent.frame)), 4), np.int64)
        written = self._fill(
            self._buckets, offsets, steps.whole[:, cw.LOG_TIME].copy(), steps.parts[:, cw.LOG_RATE].copy(),
            sent.time_ps, sent.octets + LINK_OVERHEAD_BYTES, sent.frame, float(self._p.tolerance),
            int(self._p.burst_bytes), log,
        )  # fmt: skip
        for sender, start, stop, frame in log[:written].tolist():
            spans = self._spans.setdefault(sender, [])
            if len(spans) < MOST_SPANS:
                spans.append(Span(start, stop, frame))

    def of(self, senders: Senders, flow: int, end_ps: int) -> Pace | None:
        """What became of a flow's sender; None: it was never told anything."""
        number = int(senders.number[flow])
        if not 0 <= number < len(self._buckets):
            return None
        bucket = Bucket(self._buckets[number]) if self._compiled else self._buckets[number]
        spans = list(self._spans.get(number, []))
        over_ps, count = int(bucket.over_ps), int(bucket.count)
        if bucket.over:
            over_ps, count = over_ps + end_ps - int(bucket.over_since_ps), count + 1
            spans.append(Span(int(bucket.over_since_ps), end_ps, int(bucket.over_frame)))
        return Pace(over_ps, count, spans[:MOST_SPANS])
