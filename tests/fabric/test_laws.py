import math
from types import SimpleNamespace as Record

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.fabric import buffer, ecmp, headroom, link, pause, red, scheduler
from roce_pkt.scenario import dice

RED = Record(kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01)


def stream(number=0, seed=1):
    start, step = dice.stream_of(seed, number)
    return Record(dice=start, dice_step=step)


# -- marking


@pytest.mark.parametrize("queue", [20_000, 60_000, 102_500, 150_000, 199_999, 200_000])
def test_marks_are_binomial_with_the_probability_of_the_line(queue):
    p = 0.01 * (queue - 5_000) / 195_000
    dice_of_port, n = stream(), 100_000
    marked = sum(red.marks(RED, dice_of_port, queue) for _ in range(n))
    assert abs(marked - n * p) < 4 * math.sqrt(n * p * (1 - p))


def test_corners_of_the_line():
    s = stream()
    assert not any(red.marks(RED, s, q) for q in (0, 1, 4_999, 5_000) for _ in range(1000))
    assert all(red.marks(RED, s, q) for q in (200_001, 10**9) for _ in range(1000))
    step = Record(kmin_bytes=30_000, kmax_bytes=30_000, pmax=0.5)
    assert not red.marks(step, s, 30_000)
    assert red.marks(step, s, 30_001)


def test_streams_are_uniform_and_differ():
    first, second = stream(0), stream(1)
    a = np.array([dice.throw(first) for _ in range(50_000)])
    b = np.array([dice.throw(second) for _ in range(50_000)])
    for draws in (a, b):
        counts = np.histogram(draws, bins=64, range=(0, 1 << 32))[0]
        chi = ((counts - 50_000 / 64) ** 2 / (50_000 / 64)).sum()
        assert chi < 63 + 5 * math.sqrt(2 * 63)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert dice.stream_of(1, 0) != dice.stream_of(2, 0)


# -- pausing


def line():
    return Record(paused_until_ps=NEVER_PS, paused_since_ps=0, paused_ps=0)


def test_a_pause_frame_replaces_the_running_time_and_zero_ends_it():
    port, c3 = Record(paused=0, quantum_ps=5_120), line()
    pause.pause(port, c3, 8, 0xFFFF, 1_000)
    assert port.paused == 8
    assert c3.paused_until_ps == 1_000 + 0xFFFF * 5_120
    pause.pause(port, c3, 8, 10, 2_000)
    assert c3.paused_until_ps == 2_000 + 10 * 5_120
    pause.pause(port, c3, 8, 0, 3_000)
    assert (port.paused, c3.paused_until_ps, c3.paused_ps) == (0, NEVER_PS, 2_000)


def test_resuming_what_runs_changes_nothing():
    port, c3 = Record(paused=0x10, quantum_ps=1), line()
    pause.pause(port, c3, 8, 0, 3_000)
    assert (port.paused, c3.paused_ps) == (0x10, 0)


# -- buffer


def groups(count, total, **values):
    sw = Record(shared_total_bytes=total, shared_used_bytes=0)
    fields = {"used_bytes": 0, "reserve_bytes": 4096, "headroom_bytes": 37_500, "headroom_used_bytes": 0}
    return sw, [Record(**fields | {"alpha": 0.125} | values) for _ in range(count)]


def test_equal_groups_pause_at_the_closed_form():
    # n equally loaded groups pause at S* = (B - H - R) / (1/alpha + n) shared octets each
    total = (1 << 20) - 3 * 37_500 - 3 * 4096
    sw, two = groups(2, total)
    while not any(buffer.must_pause(sw, g) for g in two):
        for g in two:
            assert buffer.admit(sw, g, 1048)
    expected = total / (8 + 2)
    assert expected == pytest.approx(92_379, abs=1)
    for g in two:
        assert abs(buffer.shared_bytes(g) - expected) <= 1048


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(64, 9000)), max_size=300))
def test_what_is_admitted_is_what_is_released(frames):
    sw, three = groups(3, 200_000, headroom_bytes=20_000)
    held = []
    for index, size in frames:
        if buffer.admit(sw, three[index], size):
            held.append((index, size))
        assert sum(size for _, size in held) == sum(g.used_bytes + g.headroom_used_bytes for g in three)
        assert sw.shared_used_bytes <= 200_000
        assert all(g.headroom_used_bytes <= 20_000 for g in three)
    for index, size in held:
        buffer.release(sw, three[index], size)
    assert sw.shared_used_bytes == 0
    assert all(g.used_bytes == g.headroom_used_bytes == 0 for g in three)


def test_headroom_is_used_only_beyond_the_threshold_and_blocks_resuming():
    sw, (g,) = groups(1, 100_000)
    while g.headroom_used_bytes == 0:
        assert buffer.admit(sw, g, 1000)
    assert buffer.must_pause(sw, g)
    assert not buffer.may_resume(sw, g, 3072)
    released = 0
    while not buffer.may_resume(sw, g, 3072):
        buffer.release(sw, g, 1000)
        released += 1
    assert released >= 4
    assert not buffer.must_pause(sw, g)


def test_computed_headroom_covers_the_flight_there_and_back():
    # 100 Gb/s, 1 us: 25 000 octets fly in 2 us; two frames, the pause frame, the response
    assert headroom.headroom_bytes(100e9, 1_000_000, 1_100, 0) == 25_000 + 84 + 2_200
    assert headroom.response_ps(100e9) == pytest.approx(394 * 5_120)
    assert headroom.response_ps(40e9) == pytest.approx(118 * 12_800)


# -- sharing a port


def test_highest_bit():
    assert [scheduler.highest(m) for m in range(1, 256)] == [m.bit_length() - 1 for m in range(1, 256)]


def test_deficit_round_robin_shares_octets_by_weight():
    port = Record(turn=0, turn_open=0)
    lines = {1: Record(deficit_bytes=0, quantum_bytes=3000), 4: Record(deficit_bytes=0, quantum_bytes=1000)}
    sizes, sent, class_ = {1: 700, 4: 1500}, {1: 0, 4: 0}, 0
    ready = 1 << 1 | 1 << 4
    for _ in range(4000):
        while not (port.turn_open and scheduler.pays(lines[class_], sizes[class_])):
            class_ = scheduler.next_in_turn(ready, class_)
            scheduler.turn(port, lines[class_])
        sent[class_] += sizes[class_]
    assert sent[1] / sent[4] == pytest.approx(3, rel=0.01)


# -- paths


def test_the_array_hash_is_the_law_of_scalars():
    src, dst, sport = (np.arange(100) * k % 97 for k in (1, 3, 7))
    hashes = ecmp.flow_hashes(src, dst, sport, 5)
    value = dice.mixed(dice.mixed(dice.mixed((5 ^ (17 << 16 | 4791)) ^ 3) ^ 9) ^ 21)
    assert hashes[3] == value


def test_flows_spread_over_equal_paths():
    flows = np.arange(8000)
    hashes = ecmp.flow_hashes(flows % 64, flows // 64, 0xC000 + flows, 1)
    for switch in range(4):
        chosen = [ecmp.path(int(h), dice.stream_of(1, switch)[0], 4) for h in hashes]
        counts = np.bincount(chosen, minlength=4)
        assert ((counts - 2000) ** 2 / 2000).sum() < 3 + 5 * math.sqrt(6)


def test_two_switches_choose_independently():
    hashes = ecmp.flow_hashes(np.arange(4000), np.arange(4000) * 7, np.arange(4000), 1)
    pairs = [(ecmp.path(int(h), 11, 2), ecmp.path(int(h), 12, 2)) for h in hashes]
    counts = [pairs.count(p) for p in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert all(abs(c - 1000) < 4 * math.sqrt(750) for c in counts)


# -- wires


@pytest.mark.parametrize(
    ("rate", "size", "ps"), [(100e9, 1048, 83_840), (40e9, 1048, 209_600), (800e9, 64, 640)]
)
def test_time_on_the_wire(rate, size, ps):
    port = Record(known_size=-1, known_ps=0, ps_per_byte=link.ps_per_byte(rate))
    assert link.serialisation_ps(port, size, 1) == ps
    assert link.serialisation_ps(port, size, 1) == ps
    port.known_size = -1
    assert link.serialisation_ps(port, size, 1000) == ps // 1000 * 1000


def test_quanta():
    assert [link.quantum_ps(r * 1e9) for r in (10, 25, 40, 100, 400)] == [
        51_200,
        20_480,
        12_800,
        5_120,
        1_280,
    ]
