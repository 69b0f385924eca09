"""When CE marks are answered: the exact counts of every mode, and what holds for any marks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.cc.law import NEVER_PS, compile_laws
from roce_pkt.endpoint import notification as np_law

US = 1_000_000


def drive(p, s, marks_ps, sent):
    """Run marks in time order, then what is still owed; the times of notifications go to `sent`."""
    count = 0
    np_law.start(p, s, marks_ps[0])
    for now in marks_ps:
        due = np_law.next_timer_ps(p, s)
        if due <= now and np_law.on_timer(p, s, due):
            sent[count] = due
            count += 1
        if np_law.on_marked(p, s, now):
            sent[count] = now
            count += 1
    due = np_law.next_timer_ps(p, s)
    if due < NEVER_PS and np_law.on_timer(p, s, due):
        sent[count] = due
        count += 1
    return count


def cnps_us(marks_us, **values):
    p = np_law.PARAMETERS.twin(np_law.PARAMETERS.record(values, 1e9))
    sent = [0] * (2 * len(marks_us) + 1)
    count = drive(p, np_law.State(), [round(m * US) for m in marks_us], sent)
    return [t / US for t in sent[:count]]


EVERY_10US = range(0, 1000, 10)


def test_u8_gate_answers_every_fifth_mark():
    assert cnps_us(EVERY_10US) == list(range(0, 1000, 50))


def test_u8_a_mark_exactly_at_the_interval_counts():
    """With elapsed > N instead of >= N it would be 17."""
    assert len(cnps_us(EVERY_10US)) == 20
    assert len(cnps_us(EVERY_10US, interval="50.001us")) == 17


def test_u8_trailing_sends_a_last_one_after_the_last_mark():
    assert cnps_us(EVERY_10US, mode="trailing") == list(range(0, 1001, 50))


def test_u8_two_marks_in_one_window():
    assert cnps_us([0, 49]) == [0]
    assert cnps_us([0, 49], mode="trailing") == [0, 50]


def test_periodic_only_on_the_grid_from_the_first_frame():
    assert cnps_us([7, 10, 60, 110], mode="periodic") == [57, 107, 157]
    assert cnps_us([0, 50], mode="periodic") == [50, 100]


@pytest.mark.parametrize("mode", np_law.MODES)
def test_interval_zero_answers_every_mark(mode):
    assert cnps_us([0, 1, 1, 2], interval="0us", mode=mode) == [0, 1, 1, 2]


MARKS = st.lists(st.integers(0, 400 * US), min_size=1, max_size=60).map(sorted)


@given(marks=MARKS, interval_us=st.integers(1, 120), mode=st.sampled_from(np_law.MODES))
def test_never_two_within_the_interval_and_every_mark_is_covered(marks, interval_us, mode):
    sent = [round(t * US) for t in cnps_us([m / US for m in marks], interval=f"{interval_us}us", mode=mode)]
    assert all(b - a >= interval_us * US for a, b in pairwise(sent))
    assert len(sent) <= len(marks)
    for mark in marks:
        covered = range(mark - interval_us * US, mark + interval_us * US + 1)
        assert any(t in covered for t in sent)


@settings(deadline=None)  # the first call compiles
@given(marks=MARKS, interval_us=st.integers(0, 120), mode=st.sampled_from(np_law.MODES))
def test_compiled_and_plain_agree(compiled, marks, interval_us, mode):
    record = np_law.PARAMETERS.record({"interval": f"{interval_us}us", "mode": mode}, 1e9)
    plain = [0] * (2 * len(marks) + 1)
    count = drive(np_law.PARAMETERS.twin(record), np_law.State(), marks, plain)
    sent = np.zeros(len(plain), np.int64)
    assert compiled(record, np.zeros(1, np_law.STATE)[0], np.array(marks), sent) == count
    assert sent.tolist() == plain


@pytest.fixture(scope="module")
def compiled():
    import numba

    compile_laws()
    return numba.njit(drive)
