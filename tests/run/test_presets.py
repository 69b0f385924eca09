"""Presets make their point, and each cure that one names visibly cures."""

import shlex

import pytest

from roce_pkt.run.simulate import simulate
from roce_pkt.scenario import presets


def cure(name):
    words = shlex.split(presets.find(name).about.partition("Cure:")[2])
    return dict(word.split("=", 1) for word in words if word != "--set")


def switch(result):
    return max((p for p in result.ports if p.name.startswith("switch")), key=lambda p: p.queue_max_bytes)


def both(name):
    return simulate(name), simulate(name, cure(name))


def p99(result):
    return switch(result).queue_p99_bytes


def goodput(result):
    return result.summary["goodput_bps"]


def test_low_throughput_is_under_half_of_line_beside_an_empty_queue():
    ill, well = both("low-throughput")
    assert goodput(ill) < 50e9
    assert switch(ill).queue_p99_bytes < 5_000
    assert goodput(well) > 80e9
    assert switch(well).marked == 0


def test_latency_jitter_is_pauses_and_a_standing_queue():
    ill, well = both("latency-jitter")
    assert sum(p.xoff for p in ill.ports) > 1000
    assert sum(p.xoff for p in well.ports) == 0
    assert switch(ill).queue_p99_bytes > 20 * switch(well).queue_p99_bytes
    assert goodput(well) == pytest.approx(goodput(ill), rel=0.02)


def test_notifications_in_a_class_of_their_own_give_throughput_back():
    ill, well = both("cnp-lost")
    assert goodput(well) > 1.2 * goodput(ill)


def test_more_queue_pairs_spread_over_the_paths():
    ill, well = both("ecmp-collision")
    assert any(f.rule == "path-collision" for f in ill.findings)
    assert min(f.goodput_bps for f in ill.flows) < 35e9
    assert goodput(well) > 1.25 * goodput(ill)


def test_the_ring_deadlocks_and_the_watchdog_frees_it():
    ill, well = both("deadlock-ring")
    [found] = [f for f in ill.findings if f.rule == "deadlock"]
    assert found.severity == "error"
    assert found.time_ns < 300_000
    assert found.text.count("QP 0x") == 5
    assert goodput(well) > 100 * goodput(ill)
    assert {f.time_ns for f in well.findings if f.rule == "pfc-storm"} == {3_000_000}


def test_the_watchdog_ends_a_storms_harm_to_others():
    ill, well = both("pfc-storm")
    assert ill.flows[1].goodput_bps < 2e9
    assert well.flows[1].goodput_bps > 15e9
    [found] = [f for f in well.findings if f.rule == "pfc-storm"]
    assert 4_000_000 <= found.time_ns - 2_000_000 <= 6_100_000


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("storage-tuning", lambda ill, well: p99(well) < p99(ill) / 5),
        (
            "ai-training-tuning",
            lambda ill, well: goodput(well) > 1.05 * goodput(ill) and p99(well) < p99(ill) / 2,
        ),
    ],
)
def test_tuning_presets_can_be_tuned(name, better):
    ill, well = both(name)
    assert better(ill, well)
