"""Captures to columns, batch after batch: plain for little, compiled for much.

The first frames of a large capture and all of a small one are read plainly, so that nobody waits
for compiled kernels to load to see ten frames; the rest goes through the kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from roce_pkt.capture import plain
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.model import MOST_RECORDS, Record

if TYPE_CHECKING:
    from roce_pkt.capture.reader import Capture, Walk

PLAIN_BYTES = 1 << 20
"""Less than this is read plainly unless the kernels are at hand already."""
PLAIN_FRAMES = 512
"""Frames read plainly at the start of a large capture."""
_KERNELS = "roce_pkt.capture.kernel_walk"


def batches(capture: Capture, *, verify: bool = True) -> Iterator[Frames]:
    """Columns of a capture in batches.

    Args:
        capture: The capture; its losses and interfaces grow while reading.
        verify: Compute every ICRC.
    """
    walk = capture.walk()
    while not walk.over:
        much = len(walk.view()) > PLAIN_BYTES
        if _KERNELS in sys.modules or (much and walk.count):
            from roce_pkt.capture.compiled import compiled_batches

            yield from compiled_batches(walk, capture.udp_port, verify=verify)
            return
        frames = plain_batch(walk, capture.udp_port, PLAIN_FRAMES if much else MOST_RECORDS, verify=verify)
        if len(frames):
            yield frames


def plain_batch(walk: Walk, udp_port: int, most: int = MOST_RECORDS, *, verify: bool = True) -> Frames:
    """The next window of a walk, read plainly.

    Args:
        walk: Where reading stands; moves on.
        udp_port: UDP destination port that carries RoCEv2.
        most: Frames to read.
        verify: Tell which ICRCs are right.
    """
    view, at = walk.view(), walk.at
    out: list[Record] = []
    stop = walk.format.records(view, at, walk.count, out, most)
    frames = plain.fill(out, udp_port, [walk.source.segment(at, view)])
    if not verify:
        frames.icrc_ok[:] = -1
    walk.advance(view, stop, len(out))
    return frames
