"""Presets make their point, in numbers and in their picture, and each cure that one names visibly cures."""

import shlex
from functools import cache

import numpy as np
import pytest

from roce_pkt.report.simulate_page import SimulationPage
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario import presets


def cure(name):
    words = shlex.split(presets.find(name).about.partition("Cure:")[2])
    return dict(word.split("=", 1) for word in words if word != "--set")


@cache
def pictured(name, cured=False, **changes):
    """A preset's result, and the panels of its picture by title."""
    scenario = presets.load(name, (cure(name) if cured else {}) | changes)
    page = SimulationPage(scenario.duration_ps)
    result = simulate(scenario, on_samples=page.samples, on_rows=page.rows, sample_every_ps=5_000_000)
    return result, {panel.title: panel for panel in page.page(name, result).panels if not panel.empty}


def both(name):
    return pictured(name)[0], pictured(name, cured=True)[0]


def switch(result):
    return max((p for p in result.ports if p.name.startswith("switch")), key=lambda p: p.queue_max_bytes)


def p99(result):
    return switch(result).queue_p99_bytes


def goodput(result):
    return result.summary["goodput_bps"]


def rules(result):
    return {finding.rule for finding in result.findings}


def marks(panel):
    """(lane, what) -> times of what happened in the lanes of a panel, in seconds."""
    return {(m.lane, m.name): m.time_s for m in panel.marks}


def paused(panel, lane):
    """Spans that a lane shows, in seconds."""
    return [(a, b) for bands in panel.bands if bands.lane == lane
            for a, b in zip(bands.start_s, bands.stop_s, strict=True)]  # fmt: skip


def test_low_throughput_is_under_half_of_line_beside_an_empty_queue():
    ill, well = both("low-throughput")
    assert goodput(ill) < 50e9
    assert p99(ill) < 5_000
    assert goodput(well) > 85e9
    assert switch(well).marked == 0
    [together] = [
        c for c in pictured("low-throughput")[1]["Goodput of all flows"].curves if c.weight == "main"
    ]
    assert together.value[len(together.value) // 2 :].max() < 50
    assert pictured("low-throughput")[1]["Marked frames"].curves


def test_latency_jitter_is_pauses_and_a_standing_queue():
    ill, well = both("latency-jitter")
    assert sum(p.xoff for p in ill.ports) > 1000
    assert sum(p.xoff for p in well.ports) == 0
    assert p99(ill) > 20 * p99(well)
    assert goodput(well) == pytest.approx(goodput(ill), rel=0.02)
    panels = pictured("latency-jitter")[1]
    assert len(panels["Pauses"].lanes) == 8
    assert max(curve.value.max() for curve in panels["Time paused"].curves) > 50
    assert max(curve.value.max() for curve in panels["Queues"].curves) > 1000
    assert (
        "Pauses" not in pictured("latency-jitter", cured=True)[1]
        or not paused(pictured("latency-jitter", cured=True)[1]["Pauses"], "host0 class 3")[20:]
    )


def test_notifications_that_never_arrive_leave_it_to_pauses_and_a_victim_pays():
    ill, well = both("cnp-lost")
    sent = sum(f.cnps for f in ill.flows)
    assert sent > 1000
    assert all(f.cnp_delay_mean_ns == 0 for f in ill.flows)  # none came through
    assert "cnp-stuck" in rules(ill)
    assert not rules(well) & {"cnp-stuck", "cnp-late", "cnp-lost"}
    # the cause and nothing else: in a class of their own they take as long as empty queues do
    late = [f.cnp_delay_max_ns for f in well.flows if f.cnps]
    assert late
    assert max(late) < 5_000
    assert goodput(well) > 1.25 * goodput(ill)
    assert ill.flows[0].goodput_bps < 20e9
    assert well.flows[0].goodput_bps > 60e9
    assert p99(ill) > 20 * p99(well)
    assert sum(p.xoff for p in ill.ports) > 1000
    assert sum(p.xoff for p in well.ports) == 0
    sent, arrived = pictured("cnp-lost")[1]["Notifications of all flows"].curves
    assert (sent.name, arrived.name) == ("sent", "arrived")
    assert sent.value.sum() > 0
    assert arrived.value.sum() == 0


def test_notifications_in_the_data_class_come_late():
    changes = {"host.np.dscp": "26", "duration": "5ms", "measure_from": "0us"}
    late, panels = pictured("cnp-lost", **changes)
    assert "cnp-late" in rules(late)
    assert max(f.cnp_delay_max_ns for f in late.flows) > 100_000
    mean, longest = panels["Delay of notifications"].curves
    assert longest.value.max() == pytest.approx(max(f.cnp_delay_max_ns for f in late.flows) / 1e3, rel=0.3)
    assert (mean.value <= longest.value + 1e-9).all()


def test_packets_spread_over_the_paths_that_flows_collide_on():
    ill, well = both("ecmp-collision")
    assert "path-collision" in rules(ill)
    assert "path-collision" not in rules(well)
    assert min(f.goodput_bps for f in ill.flows) < 35e9
    assert min(f.goodput_bps for f in well.flows) > 80e9
    assert goodput(ill) < 0.6 * 800e9
    assert goodput(well) > 0.84 * 800e9
    for cured, most, least in ((False, 98, 0), (True, 91, 88)):
        panel = pictured("ecmp-collision", cured)[1]["Equal paths of switch0"]
        loads = [bar.value for bar in panel.bars]
        assert len(loads) == 8
        assert max(loads) == pytest.approx(most, abs=5)
        assert min(loads) == pytest.approx(least, abs=5)
        assert panel.level == pytest.approx(np.mean(loads))


def test_more_queue_pairs_help_a_collision_too():
    many = pictured("ecmp-collision", **{"traffic.qps": "32"})[0]
    assert goodput(many) > 1.25 * goodput(pictured("ecmp-collision")[0])


def test_the_ring_deadlocks_and_the_watchdog_frees_it():
    ill, well = both("deadlock-ring")
    [found] = [f for f in ill.findings if f.rule == "deadlock"]
    assert found.severity == "error"
    assert found.time_ns < 300_000
    assert found.text.count("QP 0x") == 5
    assert goodput(well) > 100 * goodput(ill)
    assert {f.time_ns for f in well.findings if f.rule == "pfc-storm"} == {3_000_000}
    panel = pictured("deadlock-ring")[1]["Pauses"]
    trunks = ["switch0:1", *(f"switch{n}:2" for n in range(1, 5))]
    happened = marks(panel)
    for trunk in trunks:
        lane = f"{trunk} class 3"
        assert paused(panel, lane)[-1][1] == pytest.approx(12e-3)  # and it never ends
        assert happened[lane, "watchdog: storm"] == pytest.approx([3e-3])
    assert next(lane for lane, what in happened if what == "deadlock").removesuffix(" class 3") in trunks
    cured = pictured("deadlock-ring", cured=True)[1]["Pauses"]
    assert paused(cured, "switch0:1 class 3")[-1][1] == pytest.approx(3e-3)


def test_the_watchdog_ends_a_storms_harm_to_others():
    ill, well = both("pfc-storm")
    assert ill.flows[1].goodput_bps < 5e9
    assert well.flows[1].goodput_bps > 15e9
    for result in (ill, well):
        [found] = [f for f in result.findings if f.rule == "pfc-storm"]
        assert 4_000_000 <= found.time_ns - 2_000_000 <= 6_100_000
    panel = pictured("pfc-storm", cured=True)[1]["Pauses"]
    happened = marks(panel)
    assert happened["switch0:1 class 3", "watchdog: storm"] == pytest.approx([8e-3])
    # the storm ends at 32 ms: 4 ms without a pause frame, and what is left to the next poll
    [restored] = happened["switch0:1 class 3", "watchdog: restored"]
    assert 36e-3 <= restored <= 38.1e-3
    assert paused(panel, "host0 class 3")
    [(start, stop)] = paused(panel, "switch0:1 class 3")
    assert (start, stop) == pytest.approx((2e-3, 8e-3), abs=1e-4)


def step_ns(result):
    return max(f.completion_ns for f in result.flows)


def test_an_incast_is_paused_first_then_cut_too_deep_and_done_sooner_with_larger_steps():
    ill, well = both("incast")
    for result, most in ((ill, 4.5e6), (well, 2.5e6)):
        assert len(result.flows) == 16
        assert all(f.completion_ns is not None for f in result.flows)
        assert 16e6 * 8 / 100 < step_ns(result) < most  # no sooner than the link can
    panels = pictured("incast")[1]
    assert len(panels["Pauses"].lanes) == 12
    assert max(bands.stop_s[-1] for bands in panels["Pauses"].bands) < 0.3e-3
    [together] = [c for c in panels["Goodput of all flows"].curves if c.weight == "main"]
    early, valley = (together.value[(together.time_s > a) & (together.time_s < b)]
                     for a, b in ((0.1e-3, 0.4e-3), (0.6e-3, 1e-3)))  # fmt: skip
    assert early.min() > 85
    assert valley.max() < 20
    assert "Goodput of receivers" not in panels


@pytest.mark.parametrize("seed", ["1", "3"])
def test_a_training_step_is_tuned_to_a_third_of_its_time(seed):
    ill, well = (pictured("ai-training-tuning", cured, seed=seed)[0] for cured in (False, True))
    assert step_ns(ill) > 3 * step_ns(well)
    panels = pictured("ai-training-tuning", seed=seed)[1]
    [under_way] = panels["Flows under way"].curves
    assert under_way.value.max() == 960
    tail = under_way.value[(under_way.time_s > 3e-3) & (under_way.time_s < step_ns(ill) / 1e9)]
    assert 0 < tail.max() < 100


def test_storage_is_tuned_for_short_queues_at_the_same_goodput():
    ill, well = both("storage-tuning")
    assert p99(well) < p99(ill) / 5
    assert goodput(well) > 0.97 * goodput(ill)
    tops = [
        max(c.value.max() for c in pictured("storage-tuning", c)[1]["Queues"].curves) for c in (False, True)
    ]
    assert tops[1] < tops[0]
