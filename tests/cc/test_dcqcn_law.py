"""The DCQCN law against exact traces: closed forms, and values a packet simulator printed."""

import json
from pathlib import Path

import pytest

from roce_pkt.cc import dcqcn
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.cc.profiles import PROFILES

US = 1_000_000
GOLDEN = json.loads((Path(__file__).parent / "golden_dcqcn.json").read_text())


class Flow:
    """A reaction point stepped in plain Python, its timers run in order."""

    def __init__(self, profile="paper", line_rate_bps=40e9, **settings):
        table = dcqcn.PARAMETERS
        self.p = table.twin(table.record(PROFILES[profile].settings() | settings, line_rate_bps))
        self.s = dcqcn.State()
        self.now = 0
        dcqcn.start(self.p, self.s, 0)

    def run_until(self, until_us):
        """Run timers up to and including a time; yields (time_us, what happened)."""
        until = round(until_us * US)
        while (due := dcqcn.next_timer_ps(self.p, self.s)) <= until:
            assert due >= self.now
            self.now = due
            yield due / US, dcqcn.on_timer(self.p, self.s, due)
        self.now = until

    def cnp(self, at_us):
        list(self.run_until(at_us))
        return dcqcn.on_cnp(self.p, self.s, self.now)

    def rates_at(self, *times_us):
        rates = []
        for time_us in times_us:
            list(self.run_until(time_us))
            rates.append(self.s.rate_bps)
        return rates

    def alpha_at(self, time_us):
        list(self.run_until(time_us))
        dcqcn.on_timer(self.p, self.s, self.now)
        return self.s.alpha


def test_u1_one_notification_halves_and_then_closes_half_the_gap_each_period():
    flow = Flow()
    assert flow.cnp(0) & dcqcn.CUT
    for k in range(13):
        expected = 40e9 * (1 - 2.0 ** -(k + 1))
        assert flow.rates_at(55 * k)[0] == pytest.approx(expected, rel=1e-12)
    assert flow.s.target_bps == 40e9


def test_u1_alpha_decays_by_255_256_each_quiet_period():
    flow = Flow()
    flow.cnp(0)
    assert flow.s.alpha == 1
    printed = [0.99609375, 0.9922027587890625, 0.9883269667625427, 0.9844663145486265, 0.980620743007421]
    for j, value in enumerate(printed, start=1):
        assert flow.alpha_at(55 * j) == pytest.approx(value, rel=1e-12)
    assert flow.alpha_at(550) == pytest.approx(0.961617, abs=5e-7)


def test_u2_three_notifications_then_fast_recovery_and_additive_increase():
    flow = Flow()
    cuts = []
    for at in (0, 50, 100):
        flow.cnp(at)
        cuts.append((flow.s.rate_bps, flow.s.target_bps))
    assert cuts == [(20e9, 40e9), (10e9, 20e9), (5e9, 10e9)]
    recovery = flow.rates_at(155, 210, 265, 320, 375)
    assert recovery == pytest.approx([7.5e9, 8.75e9, 9.375e9, 9.6875e9, 9.84375e9], rel=1e-12)
    assert (flow.s.target_bps, flow.s.phase) == (10e9, dcqcn.FAST_RECOVERY)
    additive = flow.rates_at(430, 485, 540, 595, 650)
    printed = [9.941875e9, 10.0109375e9, 10.06546875e9, 10.112734375e9, 10.1563671875e9]
    assert additive == pytest.approx(printed, rel=1e-12)
    assert flow.s.phase == dcqcn.ADDITIVE_INCREASE
    flow.rates_at(650 + 55 * 60)
    assert flow.s.target_bps - flow.s.rate_bps == pytest.approx(40e6, rel=1e-9)  # the steady lag


def test_u2_with_the_boundary_of_the_figure_instead_of_the_prose():
    flow = Flow(fast_recovery="one-step-fewer")
    for at in (0, 50, 100):
        flow.cnp(at)
    assert flow.rates_at(375)[0] == pytest.approx(9.86375e9, rel=1e-12)


@pytest.mark.parametrize("case", ["paper_single", "paper_three"])
def test_golden_paper_traces(case):
    """Rows: time in us, what, timer step, rate, target, alpha, of a separate stepwise model."""
    flow = Flow()
    for time_us, what, step, rate, target, alpha in GOLDEN[case]:
        if what == "cnp":
            flow.cnp(time_us)
        elif what == "timer":
            list(flow.run_until(time_us))
        else:
            continue  # alpha's own row: the timer's row at the same instant repeats its value
        assert (flow.s.timer_steps, flow.s.rate_bps, flow.s.target_bps) == (step, rate, target)
        assert flow.s.alpha == pytest.approx(alpha, rel=1e-12)


def test_u3_back_to_back_notifications_halve_each_time():
    flow = Flow()
    for n in range(1, 12):
        flow.cnp(n * 0.1)
        assert flow.s.rate_bps == pytest.approx(40e9 / 2**n, rel=1e-12)
        assert flow.s.alpha == 1


def test_u3_with_alpha_raised_before_the_cut():
    flow = Flow(alpha_order="alpha-first", alpha0="0.5")
    for n, share, alpha in GOLDEN["ns3rdma_backtoback"]:
        flow.cnp(n * 0.1)
        assert flow.s.rate_bps / 40e9 == pytest.approx(share, abs=1e-9)
        assert flow.s.alpha == pytest.approx(alpha, abs=1e-9)


@pytest.mark.parametrize(("cuts", "steps"), [(1, 4), (2, 456), (3, 706), (4, 831), (5, 894)])
def test_u4_additive_increase_takes_this_many_periods_to_reach_95_percent(cuts, steps):
    flow = Flow()
    for n in range(cuts):
        flow.cnp(n * 0.001)
    base = flow.now / US
    assert flow.rates_at(base + 55 * (steps - 1))[0] < 0.95 * 40e9
    assert flow.rates_at(base + 55 * steps)[0] >= 0.95 * 40e9


def test_u5_hpcc_ns3_single_notification():
    flow = Flow("hpcc-ns3", 100e9)
    assert flow.cnp(0) == 0
    assert list(flow.run_until(4.0)) == []
    assert flow.rates_at(4.001)[0] == pytest.approx(50.77668427e9, abs=5)
    assert flow.s.alpha == pytest.approx((255 / 256) ** 4, rel=1e-14)
    rates = flow.rates_at(304.001, 604.001, 904.001, 1204.001)
    assert rates == pytest.approx([75.38834214e9, 87.69417107e9, 93.84708553e9, 96.92354277e9], abs=5)
    assert flow.s.target_bps == 100e9


def test_u5_golden_hpcc_trace():
    flow = Flow("hpcc-ns3", 100e9)
    flow.cnp(0)
    names = {dcqcn.FAST_RECOVERY: "FR", dcqcn.ADDITIVE_INCREASE: "AI", dcqcn.HYPER_INCREASE: "HAI"}
    for time_us, what, rate, target, alpha in GOLDEN["mlx_single"]:
        steps = list(flow.run_until(time_us + 0.001))
        assert steps[-1][0] == pytest.approx(time_us + 0.001, abs=1e-9)
        assert names.get(flow.s.phase, "cut") == what
        assert (flow.s.rate_bps, flow.s.target_bps) == pytest.approx((rate, target), rel=1e-12)
        assert flow.s.alpha == pytest.approx(alpha, rel=1e-12)


def test_u5_a_second_marked_tick_gives_the_value_the_packet_simulator_printed():
    """A notification in each microsecond from 1 to 2 us on: alpha is (255/256)^3 at the first cut."""
    flow = Flow("hpcc-ns3", 100e9)
    flow.cnp(0)
    flow.cnp(0.5)
    assert flow.rates_at(4.001)[0] == pytest.approx(50.5836517e9, abs=50)
    # with a target of 100G, the last three steps of the peer's run follow from its lowest rate
    flow.s.rate_bps, flow.s.target_bps = 7.7099186e9, 100e9
    assert flow.rates_at(304.001)[0] == pytest.approx(53.8549593e9, abs=50)
    assert flow.rates_at(604.001)[0] == pytest.approx(76.9274797e9, abs=50)


@pytest.mark.parametrize(("g", "periods"), [("1/256", 177.1), ("5/1024", 141.6), ("1/16", 10.74)])
def test_u6_alpha_half_life(g, periods):
    flow = Flow(g=g)
    flow.cnp(0)
    whole = int(periods)
    assert flow.alpha_at(55 * whole) > 0.5 > flow.alpha_at(55 * (whole + 1))
    before, after = flow.alpha_at(55 * (whole + 2)), flow.alpha_at(55 * (whole + 3))
    assert after / before == pytest.approx(0.5 ** (1 / periods), rel=1e-4)


@pytest.mark.parametrize("every", [2, 4, 10])
def test_u6_free_running_alpha_settles_at_the_fraction_of_marked_periods(every):
    """Averaged over one cycle of the pattern, alpha is exactly the fraction of periods with a mark."""
    flow = Flow("hpcc-ns3", 100e9)
    total, counted = 0.0, 0
    for period in range(4000 * every // 2):
        if period % every == 0:
            flow.cnp(period + 0.5)
        alpha = flow.alpha_at(period + 0.9)
        if period >= 4000 * every // 2 - 10 * every:
            total, counted = total + alpha, counted + 1
    assert total / counted == pytest.approx(1 / every, rel=0.01)


def test_a_polled_cut_waits_for_the_grid_and_happens_once_per_period():
    flow = Flow("hpcc-ns3", 100e9)
    for at in (0, 1, 2, 3):
        flow.cnp(at)
    assert [time for time, what in flow.run_until(290) if what & dcqcn.CUT] == [4.001]
    flow.cnp(291.5)
    assert [time for time, what in flow.run_until(300) if what & dcqcn.CUT] == [292.001]


def test_hyper_increase_needs_both_counters_and_grows():
    flow = Flow(threshold=1, byte_reset="1000B", increase_period="10us")
    flow.cnp(0)
    flow.cnp(0.001)
    flow.cnp(0.002)
    target = flow.s.target_bps
    gains = []
    for step in range(1, 5):
        list(flow.run_until(0.002 + 10 * step))
        dcqcn.on_bytes(flow.p, flow.s, 999, flow.now)
        assert dcqcn.on_bytes(flow.p, flow.s, 1, flow.now) == dcqcn.INCREASE
        gains.append(round((flow.s.target_bps - target) / 1e6))
        target = flow.s.target_bps
    # per round: a timer step, then a byte step that lifts the smaller counter
    assert gains == [0, 40 + 200, 200 + 400, 400 + 600]


@pytest.mark.parametrize(
    ("clamp", "after_timer", "raised_by", "target"),
    [
        ("on", "off", None, 20e9),
        ("off", "on", None, 40e9),
        ("off", "on", "timer", 30e9),
        ("off", "off", "timer", 40e9),
        ("off", "off", "bytes", 30e9),
    ],
)
def test_what_a_second_cut_does_to_the_target(clamp, after_timer, raised_by, target):
    flow = Flow(clamp_target=clamp, clamp_after_timer=after_timer, byte_reset="1KB")
    flow.cnp(0)
    if raised_by == "timer":
        list(flow.run_until(55))
    elif raised_by == "bytes":
        dcqcn.on_bytes(flow.p, flow.s, 1000, 0)
    flow.cnp(56 if raised_by == "timer" else 1)
    assert flow.s.target_bps == target


def test_extra_fast_recovery_lowers_a_target_far_above_the_rate():
    for switch, target in (("on", 5e9), ("off", 40e9)):
        flow = Flow(clamp_target="off", clamp_after_timer="off", extra_fast_recovery=switch)
        for at in range(5):
            flow.cnp(at)
        assert (flow.s.rate_bps, flow.s.target_bps) == (1.25e9, 40e9)
        flow.rates_at(4 + 55)
        assert (flow.s.target_bps, flow.s.rate_bps) == (target, (target + 1.25e9) / 2)


def test_hyper_increase_may_halve_its_periods():
    settings = {
        "threshold": 1,
        "hyper_increase": "after-one-step",
        "byte_counter": "off",
        "increase_period": "10us",
    }
    for switch, times in (("on", [10, 20, 30, 35, 40]), ("off", [10, 20, 30, 40])):
        flow = Flow(hyper_halves_periods=switch, **settings)
        flow.cnp(0)
        flow.cnp(0)
        steps = [time for time, what in flow.run_until(40) if what & dcqcn.INCREASE]
        assert steps == times


def test_one_cut_leaves_at_least_min_dec_fac_and_never_goes_below_the_floor():
    flow = Flow(min_dec_fac="90%", min_rate="30Gbps")
    flow.cnp(0)
    assert flow.s.rate_bps == pytest.approx(36e9)
    for n in range(1, 6):
        flow.cnp(n)
    assert flow.s.rate_bps == 30e9


def test_cut_gain_of_one_takes_all_of_alpha():
    flow = Flow(rpg_gd=10, alpha0="0.25")
    flow.cnp(0)
    assert flow.s.rate_bps == 30e9


def test_rate_on_first_cnp_is_loaded_once_and_before_the_cut():
    flow = Flow("hpcc-ns3", 100e9, rate_to_set_on_first_cnp=10_000)
    flow.cnp(0)
    assert (flow.s.rate_bps, flow.s.target_bps) == (10e9, 10e9)
    flow.rates_at(5)
    assert flow.s.rate_bps == pytest.approx(10e9 * (1 - (255 / 256) ** 4 / 2))


def test_max_rate_is_the_ceiling():
    flow = Flow(max_rate="10Gbps")
    assert flow.s.rate_bps == 10e9
    flow.cnp(0)
    assert flow.rates_at(55 * 200)[0] == 10e9


def test_back_at_line_rate_the_timers_rest_and_alpha_still_decays():
    flow = Flow()
    flow.cnp(0)
    list(flow.run_until(55 * 100))
    assert (flow.s.rate_bps, dcqcn.next_timer_ps(flow.p, flow.s)) == (40e9, NEVER_PS)
    assert flow.alpha_at(55 * 1000) == pytest.approx((255 / 256) ** 1000, rel=1e-11)
    assert flow.cnp(55 * 1000 + 1) & dcqcn.CUT


def test_looking_more_often_changes_nothing():
    seldom, often = Flow("mlx"), Flow("mlx")
    for flow in (seldom, often):
        flow.cnp(0)
    for k in range(1, 2000):
        often.alpha_at(k * 0.7)
    seldom.alpha_at(1999 * 0.7)
    assert repr(seldom.s) == repr(often.s)
