"""The watchdog's view of a captured pause: when a switch would have called it a storm, and when over.

As SONiC's watchdog for Mellanox switches decides (pfc_detect_mellanox.lua): at every poll, a class
that was paused for more than 99 % of the real interval while its counter of sent frames stood still
adds to a sum, anything else clears it, and a sum of 99 % of the detection time is a storm. A capture
shows no queue, so a backlog is taken for granted; a frame sent inside the pause counts as movement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SHARE = 0.99
MOST_POLLS = 1_000_000
"""Polls looked at; more than that of a capture is not worth a watchdog's while."""


class Storm(NamedTuple):
    """One storm: when the watchdog fired, and when it let go (None: not within the capture)."""

    at_ps: int
    over_ps: int | None


def paused_in(starts: Ints, stops: Ints, edges: Ints) -> Ints:
    """Time paused between each two neighbouring edges.

    Args:
        starts: Where pauses start, ascending.
        stops: Where they stop.
        edges: Ascending times.
    """
    lasted = np.concatenate(([0], np.cumsum(stops - starts)))
    at = np.searchsorted(starts, edges, "right")
    before = lasted[at]
    running = at > 0
    last = np.maximum(at - 1, 0)
    if len(starts):
        before = np.where(running, before - np.maximum(stops[last] - edges, 0), before)
    return np.diff(before)


def storms(starts: Ints, stops: Ints, frames: Ints, moved: Ints, end_ps: int, p: Any) -> list[Storm]:
    """What the watchdog would have said.

    Args:
        starts: Where pauses start, picoseconds from the first poll.
        stops: Where they stop.
        frames: When pause frames of the class arrived.
        moved: When frames of the class were sent inside a pause.
        end_ps: End of the capture.
        p: Twin of `checks.WATCHDOG`.
    """
    polls = min(end_ps // p.poll_ps, MOST_POLLS)
    if not len(starts) or polls < 1:
        return []
    edges = np.arange(polls + 1, dtype=np.int64) * p.poll_ps
    paused = paused_in(starts, stops, edges)
    quiet = np.histogram(moved, edges)[0] == 0
    stuck = (paused > SHARE * p.poll_ps) & quiet
    out: list[Storm] = []
    summed, free_ps = 0, 0
    for poll in np.flatnonzero(stuck).tolist():
        now = (poll + 1) * p.poll_ps
        if now <= free_ps:
            continue
        summed = summed + p.poll_ps if poll and stuck[poll - 1] else p.poll_ps
        if summed > SHARE * p.detection_ps:
            over = _over(frames, now, end_ps, p)
            out.append(Storm(now, over))
            summed, free_ps = 0, end_ps + 1 if over is None else over
    return out


def _over(frames: Ints, fired_ps: int, end_ps: int, p: Any) -> int | None:
    """When no pause frame had come for the restoration time, at a poll."""
    later = np.concatenate(([fired_ps], frames[frames > fired_ps], [end_ps]))
    gaps = np.flatnonzero(np.diff(later) >= p.restoration_ps)
    if not len(gaps):
        return None
    free = int(later[gaps[0]]) + p.restoration_ps
    return -(-free // p.poll_ps) * p.poll_ps
