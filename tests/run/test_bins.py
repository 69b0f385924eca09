"""Counting over a time axis of unknown end: nothing is lost, and a full axis has its usual parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.run.bins import PARTS, Axis, Bins

SPAN = 10**10


@given(st.integers(1, SPAN))
def test_an_axis_has_enough_parts_and_not_too_many(end):
    axis = Axis(SPAN, end)
    parts = len(axis.edges_ps)
    assert parts <= 2 * PARTS
    assert parts >= PARTS or axis.width_ps < 10_000  # a part of an end that near is never halved further
    assert axis.edges_ps[-1] < end <= axis.edges_ps[-1] + axis.width_ps * (1 + 1e-9)


def test_a_full_axis_has_its_parts():
    axis = Axis(SPAN, SPAN)
    assert (len(axis.edges_ps), axis.width_ps) == (PARTS, SPAN / PARTS)


@given(st.integers(1, 10**6), st.integers(1, 10**8))
def test_parts_are_no_shorter_than_asked(end, least):
    axis = Axis(SPAN, end, least)
    assert axis.width_ps >= min(least, SPAN / PARTS)
    assert len(axis.edges_ps) == pytest.approx(end / axis.width_ps, abs=1)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, SPAN), st.integers(1, 9)), min_size=1))
def test_amounts_are_where_they_happened_however_far_the_axis_grows(amounts):
    bins = Bins(3, SPAN)
    for row, time, amount in amounts:
        bins.add(np.array([row]), np.array([time]), np.array([float(amount)]))
    axis = Axis(SPAN, max(time for _, time, _ in amounts) or 1)
    found, wanted = bins.until(axis), np.zeros((3, len(axis.edges_ps)))
    for row, time, amount in amounts:
        wanted[row, min(int(time / axis.width_ps), wanted.shape[1] - 1)] += amount
    assert found == pytest.approx(wanted)


def test_the_longest_of_two_parts_is_the_longest():
    bins = Bins(1, SPAN, np.maximum)
    times = np.array([0, 1000, SPAN - 1])
    bins.add(np.zeros(3, np.int64), times, np.array([3.0, 5.0, 4.0]))
    found = bins.until(Axis(SPAN, SPAN))
    assert (found[0, 0], found[0, -1], found.max()) == (5.0, 4.0, 5.0)


@pytest.mark.parametrize("taken", [0, 250_000, 3_700_000])
@pytest.mark.parametrize("block", [7, 100, 5000])
def test_steady_growth_is_steady_in_every_part(taken, block):
    # parts of 1.5625 us and samples of 1 us: some parts hold two samples, some one
    bins, every, count = Bins(1, SPAN), 1_000_000, 400
    times = np.arange(1, count + 1, dtype=np.int64) * every
    before = 0
    for first in range(0, count, block):
        part = times[first : first + block]
        bins.spread(before, part, np.full((len(part), 1), 1000.0), taken)
        before = int(part[-1])
    axis = Axis(SPAN, count * every)
    [found] = bins.until(axis)
    inner = found[(axis.edges_ps > 4_000_000) & (axis.edges_ps < (count - 6) * every)]
    assert inner == pytest.approx(axis.width_ps / every * 1000)
    if not taken:
        assert found.sum() == pytest.approx(1000 * count)


def test_what_came_over_a_link_came_for_as_long_as_it_took():
    bins = Bins(1, SPAN)
    bins.spread(0, np.array([10**9, 10**9 + 10**6]), np.array([[0.0], [1000.0]]), 4 * 10**8)
    axis = Axis(SPAN, 2 * 10**9)
    [found] = bins.until(axis)
    assert found.sum() == pytest.approx(1000)
    some = axis.edges_ps[found > 1e-6]
    assert some[0] == pytest.approx(6 * 10**8, abs=2 * axis.width_ps)
    assert some[-1] == pytest.approx(10**9, abs=2 * axis.width_ps)
