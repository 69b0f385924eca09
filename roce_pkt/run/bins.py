"""Amounts over a time axis whose end is not known before: what a picture counts its curves in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roce_pkt.units import PS_PER_MS, PS_PER_S, PS_PER_US

PARTS = 200
"""Parts of a time axis that is used to its end; one that ends early has up to twice as many."""
HALVINGS = 14
"""How often a part of the whole span may be halved for a run that ends early."""


@dataclass(frozen=True)
class Axis:
    """A time axis and its parts.

    Args:
        span_ps: What it may hold.
        end_ps: Where it ends.
        least_ps: Its parts are no shorter, if they can be.
    """

    span_ps: int
    end_ps: int
    least_ps: int = 0

    @cached_property
    def width_ps(self) -> float:
        """Width of a part: one of `PARTS` of the whole span, or that halved some times."""
        width = self.span_ps / PARTS / (1 << HALVINGS)
        while self.end_ps >= 2 * PARTS * width or width < min(self.least_ps, self.span_ps / PARTS):
            width *= 2
        return width

    @cached_property
    def edges_ps(self) -> NDArray[np.float64]:
        """Where the parts begin."""
        parts = max(math.ceil(self.end_ps / self.width_ps - 1e-9), 1)
        return np.asarray(np.arange(parts) * self.width_ps, np.float64)

    @property
    def edges_s(self) -> NDArray[np.float64]:
        """Where the parts begin, in seconds."""
        return np.asarray(self.edges_ps / PS_PER_S, np.float64)

    @property
    def end_s(self) -> float:
        """Where it ends, in seconds."""
        return self.end_ps / PS_PER_S

    @property
    def per(self) -> tuple[str, float]:
        """A unit for counts, and what makes it of a count in one part."""
        name, unit_ps = ("1/ms", PS_PER_MS) if self.end_ps >= PS_PER_MS else ("1/us", PS_PER_US)
        return name, unit_ps / self.width_ps


class Bins:
    """Rows of amounts by part of the time axis; neighbours join when time runs over the last part.

    Args:
        rows: Curves.
        span_ps: What the axis may hold.
        join: What two parts are together: `np.add`, `np.maximum`.
    """

    def __init__(self, rows: int, span_ps: int, join: np.ufunc = np.add) -> None:
        self._join = join
        self._width = Axis(span_ps, 0).width_ps
        self._values: NDArray[np.float64] = np.zeros((rows, 2 * PARTS))

    def _reach(self, time_ps: float) -> None:
        """Join neighbours until there is a part for this time."""
        while time_ps >= 2 * PARTS * self._width:
            joined = self._join.reduce(self._values.reshape(len(self._values), PARTS, 2), axis=2)
            self._values = np.concatenate((joined, np.zeros_like(joined)), axis=1)
            self._width *= 2

    def add(self, row: NDArray[np.int64], time_ps: NDArray[np.int64], amount: NDArray[np.float64]) -> None:
        """Amounts at instants.

        Args:
            row: Curve of each.
            time_ps: When, at least 0.
            amount: How much.
        """
        if len(time_ps):
            self._reach(float(time_ps.max()))
            self._join.at(self._values, (row, (time_ps / self._width).astype(np.int64)), amount)

    def spread(
        self, before_ps: int, time_ps: NDArray[np.int64], grown: NDArray[np.float64], taken_ps: int = 0
    ) -> None:
        """Amounts that grew evenly between samples, so that no part has a sample more than another.

        Args:
            before_ps: Time of the sample before the first.
            time_ps: Times of samples, ascending, all as far apart.
            grown: By how much since the sample before, (samples, rows).
            taken_ps: How long what is counted at once took to come, such as a packet on its link.
        """
        some = np.flatnonzero(grown.any(axis=1))
        if not len(some):
            return
        # the axis need not reach to where nothing grows any more
        first, stop = some[0], some[-1] + 1
        times = np.concatenate(([time_ps[first - 1] if first else before_ps], time_ps[first:stop]))
        total = np.concatenate((np.zeros((1, grown.shape[1])), np.cumsum(grown[first:stop], axis=0)))
        self._reach(float(times[-1]))
        low = int(max(times[0] - taken_ps, 0) / self._width)
        high = min(int(times[-1] / self._width), 2 * PARTS - 1)
        edges = np.asarray(np.arange(low, high + 2) * self._width, np.float64)
        for row, amounts in enumerate(total.T):
            self._values[row, low : high + 1] += np.diff(_mean_ahead(edges, times, amounts, taken_ps))

    def until(self, axis: Axis) -> NDArray[np.float64]:
        """The amounts in each part of an axis, (rows, parts); what is behind it counts in its last."""
        self._reach(1.5 * PARTS * axis.width_ps)
        parts = len(axis.edges_ps)
        found = self._values[:, :parts].copy()
        found[:, -1] = self._join.reduce(self._values[:, parts - 1 :], axis=1)
        return found


def _mean_ahead(
    at: NDArray[np.float64], times: NDArray[np.int64], total: NDArray[np.float64], ahead_ps: int
) -> NDArray[np.float64]:
    """The mean of a total, straight between samples, from each instant on for some time."""
    if ahead_ps <= 0:
        return np.asarray(np.interp(at, times, total), np.float64)
    steps = np.diff(times)
    area = np.concatenate(([0.0], np.cumsum((total[1:] + total[:-1]) / 2 * steps)))

    def under(instant: NDArray[np.float64]) -> NDArray[np.float64]:
        place = np.clip(np.searchsorted(times, instant, "right") - 1, 0, max(len(steps) - 1, 0))
        inside = np.clip(instant, times[0], times[-1]) - times[place]
        slope = (total[place + 1] - total[place]) / steps[place]
        whole = area[place] + inside * (total[place] + slope * inside / 2)
        return np.asarray(whole + np.maximum(instant - times[-1], 0) * total[-1], np.float64)

    return (under(at + ahead_ps) - under(at)) / ahead_ps
