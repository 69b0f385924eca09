"""Posting times of messages keep the rate that is asked for, and their law."""

from __future__ import annotations

import numpy as np
import pytest

from roce_pkt.errors import ScenarioError
from roce_pkt.scenario import dice
from roce_pkt.scenario.arrivals import WHEN_ROOM, Arrivals
from roce_pkt.scenario.pace import pace_of
from roce_pkt.scenario.reader import read_text
from roce_pkt.scenario.sizes import quantiles

MTU, HEADERS = 1000, 100
LINE = 100e9
MS = 10**9


def octets(length):
    packets = -(-length // MTU)
    return packets, packets * HEADERS + length


def draw(words, end=20 * MS, room=1 << 22, seed=1):
    traffic = read_text(f"[[traffic]]\nreceiver = 2\n{words}").traffic[0]
    arrivals = Arrivals(
        traffic, quantiles(traffic, 1 << 31), pace_of(traffic, int(LINE), "load"), LINE, octets,
        lambda stream, count: dice.throws(seed, stream, count),
    )  # fmt: skip
    return arrivals.draw(0, end, room)


def line_ps(length, extra=24):
    packets, captured = octets(length)
    return (captured + extra * packets) * 80.0


def test_constant_load_is_exact():
    length, due = draw('message = "10KB"\nload = "40%"')
    assert (length == 10_000).all()
    gap = line_ps(length)[0] / 0.4
    assert np.abs(due - gap * np.arange(len(due))).max() <= 1
    assert len(due) == int(20 * MS / gap) + 1


def test_layer_two_and_packet_rates():
    _, due = draw('message = "900B"\nload = "10Gbps L2"')
    assert due[1] - due[0] == round((900 + 100 + 4) * 8e12 / 10e9)
    _, due = draw('message = "1500B"\nload = "2Mpps"')
    assert due[1] - due[0] == 2 * 500_000


@pytest.mark.parametrize("sizes", ["fixed", "uniform", "log-normal", "web-search"])
def test_poisson_load_has_its_mean_and_its_spread(sizes):
    length, due = draw(f'message = "20KB"\nsizes = "{sizes}"\nload = "50%"\narrival = "poisson"', 2000 * MS)
    gaps = np.diff(due)
    # a mean of n exponential gaps is within 5 / sqrt(n) of the law's; so is the deviation, about
    slack = 5 / np.sqrt(len(gaps))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=2 * slack)
    traffic = read_text(f'[[traffic]]\nreceiver = 2\nmessage = "20KB"\nsizes = "{sizes}"').traffic[0]
    assert gaps.mean() == pytest.approx(line_ps(quantiles(traffic, 1 << 31)).mean() / 0.5, rel=slack)
    if sizes != "fixed":
        assert np.corrcoef(gaps, length[1:])[0, 1] == pytest.approx(0, abs=slack)


def test_bursts_are_whole_messages_and_gaps_follow_their_end():
    length, due = draw('message = "4KB"\narrival = "burst"\nburst = 10\ngap = "7us"')
    # 4 packets each: messages 0 to 2 make the first ten packets
    burst, each = 3, line_ps(length)[0]
    assert (due[:burst] == due[0]).all()
    assert due[burst] == due[0] + round(burst * each) + 7_000_000
    assert len(np.unique(np.diff(due))) > 1


def test_on_and_off_times_share_the_time():
    length, due = draw(
        'message = "1KB"\nload = "30%"\narrival = "on-off"\non = "10us"\noff = "30us"', 400 * MS
    )
    carried = line_ps(length).sum() / due[-1]
    assert carried == pytest.approx(0.3 * 10 / 40, rel=0.05)
    silent = np.diff(due) > 2 * line_ps(length)[0] / 0.3
    assert silent.sum() == pytest.approx(due[-1] / 40_000_000, rel=0.1)


def test_without_a_load_messages_wait_for_room_only():
    length, due = draw('message = "20KB"\nsizes = "uniform"')
    assert (due == WHEN_ROOM).all()
    assert line_ps(length).sum() >= 20 * MS * 0.99


def test_a_count_is_kept_and_a_seed_decides():
    words = 'message = "20KB"\nsizes = "uniform"\nload = "10%"\narrival = "poisson"\ncount = 50'
    one, two, other = draw(words), draw(words), draw(words, seed=2)
    assert len(one[0]) == 50
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()
    assert not (one[1] == other[1]).all()


def test_too_many_messages_are_refused():
    with pytest.raises(ScenarioError, match="messages in one run"):
        draw('message = "64B"\nload = "90%"', room=1000)
