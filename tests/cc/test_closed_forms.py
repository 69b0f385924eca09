"""Swift, DCTCP, PowerTCP, theta-PowerTCP and TIMELY stepped beside their papers' equations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.cc import dctcp, feedback, powertcp, swift, theta_powertcp, timely
from roce_pkt.cc.law import ALPHA, CUT, INCREASE

LINE, MTU = 100e9, 1000
US = 1_000_000
T_PS = 8 * US
BDP = LINE * T_PS / 8e12


def begun(module, **settings):
    """A law's parameters and its state as a flow begins."""
    record = module.PARAMETERS.record(settings, LINE)
    if "base_rtt_ps" in record.dtype.names:
        record["base_rtt_ps"] = T_PS
    p, s = module.PARAMETERS.twin(record), module.State()
    module.start(p, s, 0)
    return p, s


def ack_of(rtt_ps=T_PS, end=1, following=100, marked=0, hops=0, packets=1):
    ack = feedback.Ack()
    ack.mtu_bytes, ack.acked_bytes = MTU, packets * MTU
    ack.rtt_ps, ack.end, ack.next, ack.marked, ack.hops = rtt_ps, end, following, marked, hops
    return ack


# -- Swift (SIGCOMM 2020 sec. 3.1, 3.4)

SWIFT = {"base_target": "20us", "hop_delay": "1us", "fs_range": "40us", "fs_min": "0.1", "fs_max": "100"}


@pytest.mark.parametrize(
    ("window", "hops"), [(0.05, 0), (0.1, 1), (1.0, 2), (25.0, 3), (100.0, 5), (400.0, 1)]
)
def test_swifts_target_is_base_hops_and_flow_scaling(window, hops):
    p, _ = begun(swift, **SWIFT)
    a = 40 / (1 / math.sqrt(0.1) - 1 / math.sqrt(100))
    b = -a / math.sqrt(100)
    wanted = 20 + hops + min(max(a / math.sqrt(window) + b, 0), 40)
    assert swift.target_ps(p, window, hops) == pytest.approx(wanted * US, rel=1e-9)
    ends = {0.1: 60 + hops, 100.0: 20 + hops}  # all of the range, and none of it
    assert swift.target_ps(p, window, hops) == pytest.approx(ends.get(window, wanted) * US, rel=1e-9)


def test_swift_grows_by_ai_packets_in_a_round_trip():
    p, s = begun(swift, flow_scaling="off", base_target="20us", hop_delay="0us", ai="1")
    s.window_packets = 50.0
    for n in range(50):  # one window's worth of acknowledgements
        assert swift.on_ack(p, s, ack_of(rtt_ps=10 * US, end=n), n) == INCREASE
    assert s.window_packets == pytest.approx(51, abs=0.02)
    s.window_packets = 0.25  # below one packet each acknowledgement adds ai of what it acknowledges
    swift.on_ack(p, s, ack_of(rtt_ps=10 * US), 100)
    assert s.window_packets == pytest.approx(1.25)


@pytest.mark.parametrize("delay_us", [20, 25, 40, 60, 500])
def test_swift_falls_by_beta_times_the_excess_bounded_and_once_a_round_trip(delay_us):
    p, s = begun(swift, flow_scaling="off", base_target="20us", hop_delay="0us", beta="0.8", max_mdf="0.5")
    s.window_packets = 80.0
    swift.on_ack(p, s, ack_of(rtt_ps=delay_us * US), 1000 * US)
    wanted = 80 * max(1 - 0.8 * (delay_us - 20) / delay_us, 0.5)
    assert s.window_packets == pytest.approx(wanted)
    swift.on_ack(p, s, ack_of(rtt_ps=delay_us * US), 1000 * US + delay_us * US - 1)
    assert s.window_packets == pytest.approx(wanted)
    swift.on_ack(p, s, ack_of(rtt_ps=delay_us * US), 1000 * US + delay_us * US)
    assert s.window_packets == pytest.approx(wanted * max(1 - 0.8 * (delay_us - 20) / delay_us, 0.5))


def test_swift_paces_windows_below_one_packet():
    p, s = begun(swift, flow_scaling="off", base_target="20us", hop_delay="0us", min_rate="1Mbps")
    s.window_packets = 0.5
    swift.on_ack(p, s, ack_of(rtt_ps=100 * US), 0)
    assert s.window_packets == pytest.approx(0.25)
    assert s.window_bytes == MTU
    # a packet every rtt / cwnd
    assert s.rate_bps == pytest.approx(MTU * 8 / (100e-6 / 0.25))


# -- DCTCP (SIGCOMM 2010 sec. 3.1) on a rate


@pytest.mark.parametrize(("marks", "trips"), [(0, 1), (10, 1), (25, 3), (100, 5)])
def test_dctcps_alpha_averages_the_marked_share(marks, trips):
    p, s = begun(dctcp, g="1/16", alpha0="1", ai_rate="0bps")
    end, wanted = 1, 1.0
    dctcp.on_ack(p, s, ack_of(end=end, following=end + 99), 0)  # begins the first round trip
    for _ in range(trips):
        for n in range(100):
            end += 1
            dctcp.on_ack(p, s, ack_of(end=end, following=end + 99, marked=int(n < marks)), 0)
        wanted = wanted * 15 / 16 + marks / 100 / 16
    assert s.alpha == pytest.approx(wanted, rel=1e-9)


def test_dctcp_cuts_once_a_window_by_half_of_alpha_and_climbs_otherwise():
    p, s = begun(dctcp, alpha0="0.5", ai_rate="1Gbps")
    s.rate_bps = 40e9
    s.look_after = 100  # within a round trip
    assert dctcp.on_ack(p, s, ack_of(end=10, following=110, marked=1), 0) & CUT
    assert s.rate_bps == pytest.approx(40e9 * (1 - 0.25))
    dctcp.on_ack(p, s, ack_of(end=20, following=120, marked=1), 0)
    assert s.rate_bps == pytest.approx(30e9)  # that cut lasts until position 110 is acknowledged
    happened = dctcp.on_ack(p, s, ack_of(end=111, following=211), 0)
    assert happened & ALPHA
    assert happened & INCREASE
    assert s.rate_bps == pytest.approx(31e9)


# -- PowerTCP (NSDI 2022 alg. 1)


def hop(ack, time_ps, sent_bytes, queue_bytes):
    ack.hops = 1
    ack.speed_bps[0] = LINE
    ack.time[0] = time_ps // feedback.TIME_UNIT_PS & feedback.TIME_MASK
    ack.sent[0] = round(sent_bytes) // feedback.SENT_UNIT_BYTES & feedback.SENT_MASK
    ack.queue[0] = queue_bytes // feedback.QUEUE_UNIT_BYTES
    return ack


def power_of(sent_bps, growth_bps, queue_bytes):
    """(rate + dq/dt) (q + B T) over B^2 T."""
    return (sent_bps + growth_bps) * (queue_bytes * 8 + LINE * T_PS / 1e12) / (LINE * LINE * T_PS / 1e12)


@pytest.mark.parametrize(
    ("sent_bps", "before", "after"), [(100e9, 0, 0), (100e9, 40_000, 40_000), (100e9, 40_000, 80_000),
                                      (50e9, 0, 0), (100e9, 80_000, 40_000)]
)  # fmt: skip
def test_power_is_current_times_voltage(sent_bps, before, after):
    p, s = begun(powertcp, gamma="0.9", ai_rate="0bps")
    step = T_PS  # between two records: then nothing of the old average stays
    powertcp.on_ack(p, s, hop(ack_of(end=1), 0, 0, before), 0)
    s.rate_bps = s.reference_bps = 40e9
    powertcp.on_ack(p, s, hop(ack_of(end=2), step, sent_bps / 8 * step / 1e12, after), step)
    wanted = power_of(sent_bps, (after - before) * 8 / (step / 1e12), after)
    assert s.alpha == pytest.approx(wanted, rel=5e-3)  # records are coarse
    assert s.rate_bps == pytest.approx(min(0.9 * 40e9 / s.alpha + 0.1 * 40e9, LINE), rel=1e-9)


def test_power_at_rest_moves_nothing_but_the_additive_step():
    # at full rate with an empty queue power is 1: W = g (W + b) + (1 - g) W
    p, s = begun(powertcp, gamma="0.9", ai_rate="150Mbps")
    powertcp.on_ack(p, s, hop(ack_of(end=1), 0, 0, 0), 0)
    s.rate_bps = s.reference_bps = 20e9
    powertcp.on_ack(p, s, hop(ack_of(end=2), T_PS, BDP, 0), T_PS)
    assert s.alpha == pytest.approx(1, rel=5e-3)
    assert s.rate_bps == pytest.approx(20e9 / s.alpha * 0.9 + 20e9 * 0.1 + 0.9 * 150e6, rel=1e-9)
    assert s.window_bytes == pytest.approx(s.rate_bps * T_PS / 8e12)


@given(st.floats(0.05, 1.0))
def test_power_is_smoothed_over_a_base_round_trip(share):
    p, s = begun(powertcp)
    powertcp.on_ack(p, s, hop(ack_of(end=1), 0, 0, 0), 0)
    step = round(share * T_PS)
    half_rate = 50e9
    powertcp.on_ack(p, s, hop(ack_of(end=2), step, half_rate / 8 * step / 1e12, 0), step)
    assert s.alpha == pytest.approx((1 - share) * 1.0 + share * 0.5, abs=0.03)


# -- theta-PowerTCP (NSDI 2022 alg. 2)


@pytest.mark.parametrize(("first_us", "second_us"), [(8, 8), (8, 12), (16, 16), (16, 12)])
def test_theta_power_is_growth_and_length_of_the_round_trip(first_us, second_us):
    p, s = begun(theta_powertcp, gamma="0.7", ai_rate="0bps", scale="1", power_floor="0.5", update="per-ack")
    theta_powertcp.on_ack(p, s, ack_of(rtt_ps=first_us * US, end=1), 100 * US)
    s.rate_bps = s.reference_bps = 40e9
    theta_powertcp.on_ack(p, s, ack_of(rtt_ps=second_us * US, end=2), 100 * US + T_PS)
    power = ((second_us - first_us) * US / T_PS + 1) * second_us * US / T_PS
    assert s.alpha == pytest.approx(max(power, 0.5))
    assert s.rate_bps == pytest.approx(min(0.7 * 40e9 / s.alpha + 0.3 * 40e9, LINE))


def test_theta_power_of_an_empty_path_is_the_scale_and_never_below_its_floor():
    p, s = begun(theta_powertcp, scale="1.05", power_floor="0.5")
    for n in range(200):
        theta_powertcp.on_ack(p, s, ack_of(end=n, following=n + 10), n * T_PS)
    assert s.alpha == pytest.approx(1 / 1.05)
    theta_powertcp.on_ack(p, s, ack_of(rtt_ps=T_PS // 100, end=500), 201 * T_PS)
    assert s.alpha == 0.5


# -- TIMELY (SIGCOMM 2015): the three regions


@pytest.mark.parametrize(
    ("rtt_us", "wanted"),
    [
        (30, 10e9 + 10e6),  # below t_low: additive
        (800, 10e9 * (1 - 0.8 * (1 - 500 / 800))),  # above t_high: multiplicative by the excess
    ],
)
def test_timely_outside_its_gradient_region(rtt_us, wanted):
    p, s = begun(timely, ai_rate="10Mbps", beta="0.8", t_low="50us", t_high="500us")
    s.rate_bps = 10e9
    timely.on_ack(p, s, ack_of(rtt_ps=rtt_us * US, end=1, following=2, packets=20), US)
    s.rate_bps = 10e9
    timely.on_ack(p, s, ack_of(rtt_ps=rtt_us * US, end=50, following=60, packets=20), 2 * US)
    assert s.rate_bps == pytest.approx(wanted, rel=1e-9)
