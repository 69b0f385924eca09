"""Captures through the machines: known truths, who is paced with whom, the tap, and what is not guessed."""

from collections import Counter

import pytest
from crafted import START_NS, ack, cnp, data, pause, pcap, pcapng, pfc, tcp
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.errors import ScenarioError
from roce_pkt.run import clock, clockwork, machines
from roce_pkt.run import observe as module
from roce_pkt.run.observe import observe
from roce_pkt.run.setup import set_up

LINE = {"line_rate_bps": 40e9}


def run(path, **how):
    """The observation and its events."""
    events = []
    settings = {name.replace("np_", "np."): value for name, value in how.pop("settings", {}).items()}
    seen = observe(open_capture(path), settings=settings, on_event=events.append, **how)
    assert [e.time_ns for e in events] == sorted(e.time_ns for e in events)
    return seen, events


def craft(tmp_path, frames, name="c.pcap", **how):
    return run(pcap(tmp_path / name, frames), **how)


def at_us(events, kind):
    return [(e.time_ns - START_NS) / 1000 for e in events if e.kind == kind]


@pytest.mark.parametrize(
    ("name", "at_50us", "at_4us"),
    [("ecn_ce_write", 16, 24), ("ecn_ce_ud", 4, 6), ("ecn_ce_v6_write", 11, 12)],
)
def test_real_marks_that_nobody_answered(pcaps, name, at_50us, at_4us):
    for interval, expected in (("50us", at_50us), ("4us", at_4us)):
        seen, events = run(pcaps / f"{name}.pcap", settings={"np_interval": interval})
        flow = seen.flows[0]
        assert (flow.cnps_expected, flow.cnps_seen, flow.cnps_missing) == (expected, 0, expected)
        assert sum(other.cnps_expected for other in seen.flows) == expected
        assert Counter(e.kind for e in events)["np.cnp"] == expected
        assert [f.rule for f in seen.findings] == ["cnp.none", "line-rate.unknown"]
        assert not seen.failed
    assert run(pcaps / f"{name}.pcap", profile="mlx")[0].flows[0].cnps_expected == at_4us


def marks(times):
    return [(t, data(i, ce=True)) for i, t in enumerate(times)]


@pytest.mark.parametrize(
    ("mode", "times", "expected"),
    [
        ("gate", range(0, 1000, 10), list(range(0, 1000, 50))),
        ("trailing", range(0, 1000, 10), list(range(0, 1001, 50))),
        ("gate", [0, 49], [0]),
        ("trailing", [0, 49], [0, 50]),
        ("periodic", [0, 49, 120], [50, 150]),
    ],
)
def test_u8_through_a_capture(tmp_path, mode, times, expected):
    seen, events = craft(tmp_path, marks(times), settings={"np_mode": mode}, **LINE)
    assert at_us(events, "np.cnp") == expected
    assert seen.flows[0].cnps_expected == len(expected)
    assert at_us(events, "cp.mark") == list(times)


def test_a_periodic_grid_starts_with_the_first_frame_marked_or_not(tmp_path):
    frames = [(0, data()), (30, data(1, ce=True)), (60, data(2, ce=True))]
    assert at_us(craft(tmp_path, frames, settings={"np_mode": "periodic"})[1], "np.cnp") == [50, 100]


def test_u2_three_captured_notifications(tmp_path):
    frames = sorted(
        [(t, cnp()) for t in (0, 50, 100)] + [(t, data(t)) for t in range(0, 700, 10)], key=lambda f: f[0]
    )
    seen, events = craft(tmp_path, frames, **LINE)
    cuts = [e.state["rate_bps"] for e in events if e.kind == "rp.cut"]
    assert cuts == [20e9, 10e9, 5e9]
    rises = [e.state["rate_bps"] for e in events if e.kind == "rp.increase"]
    assert rises[:5] == pytest.approx([7.5e9, 8.75e9, 9.375e9, 9.6875e9, 9.84375e9], rel=1e-12)
    additive = [9.941875e9, 10.0109375e9, 10.06546875e9, 10.112734375e9, 10.1563671875e9]
    assert rises[5:] == pytest.approx(additive, rel=1e-12)
    assert at_us(events, "rp.increase") == list(range(155, 651, 55))
    flow = seen.flows[0]
    assert (flow.cnps_seen, flow.cnps_expected, flow.rp.rate_min_bps) == (3, 0, 5e9)
    assert [e.state["stage"] for e in events if e.kind == "rp.increase"] == list(range(1, 11))


def test_captured_notifications_are_believed_over_expected_ones(tmp_path):
    frames = [(0, data(ce=True)), (100, data(1, ce=True)), (200, data(2, ce=True)), (250, cnp())]
    seen, events = craft(tmp_path, frames, **LINE)
    assert at_us(events, "rp.cut") == [250]
    flow = seen.flows[0]
    assert (flow.cnps_expected, flow.cnps_seen, flow.cnps_missing) == (3, 1, 2)
    assert [e.state["source"] for e in events if e.kind == "np.cnp"] == ["expected"] * 3 + ["captured"]


@pytest.mark.parametrize(("scope", "expected"), [("qp", 4), ("ip_pair", 3), ("dst_ip", 2), ("port", 1)])
def test_what_is_paced_together(tmp_path, scope, expected):
    """Four flows into one port within one interval: two of one pair, one address more, one sender more."""
    port = data(dst="10.0.0.2")[:6]
    frames = [
        (0, data(ce=True, dqpn=1)),
        (1, data(ce=True, dqpn=2)),
        (2, data(ce=True, dst="10.0.1.2", dqpn=3)),
        (3, data(ce=True, src="10.0.0.3", dqpn=4)),
    ]
    assert all(octets[:6] == port for _, octets in frames)
    seen, _ = craft(tmp_path, frames, settings={"np_scope": scope})
    assert sum(flow.cnps_expected for flow in seen.flows) == expected


def test_ports_pace_for_themselves(tmp_path):
    frames = [(0, data(ce=True)), (1, data(ce=True, dst="10.0.0.3"))]
    seen, _ = craft(tmp_path, frames, settings={"np_scope": "port"})
    assert [flow.cnps_expected for flow in seen.flows] == [1, 1]


@pytest.mark.parametrize(
    ("tap", "np_at", "cut_at"), [("receiver", 10, 16), ("sender", 16, 22), ("middle", 13, 19)]
)
def test_the_tap_and_the_path_delay_for_expected_notifications(tmp_path, tap, np_at, cut_at):
    _, events = craft(tmp_path, [(10, data(ce=True))], tap=tap, path_delay_ps=6_000_000, **LINE)
    assert (at_us(events, "np.cnp"), at_us(events, "rp.cut")) == ([np_at], [cut_at])


@pytest.mark.parametrize(
    ("tap", "np_at", "cut_at"), [("receiver", 20, 26), ("sender", 14, 20), ("middle", 17, 23)]
)
def test_the_tap_and_the_path_delay_for_captured_notifications(tmp_path, tap, np_at, cut_at):
    _, events = craft(tmp_path, [(10, data()), (20, cnp())], tap=tap, path_delay_ps=6_000_000, **LINE)
    assert (at_us(events, "np.cnp"), at_us(events, "rp.cut")) == ([np_at], [cut_at])


def test_the_byte_counter_counts_what_the_sender_sends(tmp_path):
    """1082 octets a frame: with a counter of 3246 every third frame after the cut is a step."""
    frames = [(0, cnp())] + [(1 + i, data(i)) for i in range(10)]
    _, events = craft(tmp_path, frames, settings={"byte_reset": "3246B"}, **LINE)
    assert at_us(events, "rp.increase") == [3, 6, 9]


def test_fractions_of_line_without_a_line_rate(tmp_path):
    seen, _ = craft(tmp_path, [(0, data(ce=True)), (5, data(1))])
    flow = seen.flows[0]
    assert (flow.rp.rate_min_bps, seen.setup.rate_unit) == (0.5, "fraction of line rate")
    assert seen.as_json()["line_rate_bps"] is None
    assert "line-rate.unknown" in [f.rule for f in seen.findings]


def test_the_line_rate_a_capture_states(tmp_path):
    path = pcapng(tmp_path / "c.pcapng", [(0, data(ce=True)), (5, data(1))], speed_bps=25_000_000_000)
    seen, _ = run(path)
    assert (seen.setup.line_rate_bps, seen.flows[0].rp.rate_min_bps) == (25e9, 12.5e9)
    assert run(path, line_rate_bps=10e9)[0].flows[0].rp.rate_min_bps == 5e9


def test_an_unmatched_notification_slows_nobody(tmp_path):
    frames = [(0, data(dqpn=0x22)), (1, data(dqpn=0x23)), (2, cnp())]
    seen, events = craft(tmp_path, frames, **LINE)
    (event,) = [e for e in events if e.kind == "cnp_unmatched"]
    assert event.flow == ("10.0.0.2", "10.0.0.1", 0x11)
    assert [c["dqpn"] for c in event.state["candidates"]] == [0x22, 0x23]
    assert all(flow.rp is None for flow in seen.flows)
    assert [(u.count, len(u.candidates)) for u in seen.unmatched] == [(1, 2)]
    assert [f.rule for f in seen.findings] == ["cnp.unmatched"]


def test_marks_on_frames_a_nic_would_drop_do_not_count(tmp_path):
    seen, events = craft(tmp_path, [(0, data(ce=True, wrong_icrc=True)), (9, data(1))], **LINE)
    assert (seen.flows[0].cnps_expected, at_us(events, "np.cnp")) == (0, [])
    assert seen.flows[0].sums.ce == 1
    assert [f.rule for f in seen.findings] == ["icrc.wrong"]
    assert seen.failed


def test_marks_on_acknowledgements_ask_for_nothing(tmp_path):
    marked = bytearray(ack())
    marked[15] |= 3  # TOS is not under the ICRC
    seen, _ = craft(tmp_path, [(0, bytes(marked)), (1, data())])
    assert [flow.cnps_expected for flow in seen.flows] == [0, 0]
    assert sum(flow.sums.ce for flow in seen.flows) == 1


def test_notifications_without_marks_are_remarked_on(tmp_path):
    frames = [(0, data()), (1, cnp())]
    assert [f.rule for f in craft(tmp_path, frames, **LINE)[0].findings] == ["cnp.unasked"]
    assert craft(tmp_path, frames, tap="sender", **LINE)[0].findings == []


def test_time_that_runs_backwards_is_said_and_survived(tmp_path):
    frames = [(100, data(ce=True)), (20, data(1, ce=True)), (160, data(2, ce=True))]
    seen, events = craft(tmp_path, frames, **LINE)
    assert [f.rule for f in seen.findings] == ["capture.time", "cnp.none"]
    assert at_us(events, "np.cnp") == [20, 100, 160]


def test_absurd_times_neither_hang_nor_overflow(tmp_path, monkeypatch):
    monkeypatch.setattr(clockwork, "MOST_STEPS", 1000)
    monkeypatch.setattr(machines, "MANY_STEPS", 1e30)
    frames = [(0, data(ce=True)), (3e12, data(1, ce=True))]  # a month later
    seen, _ = craft(tmp_path, frames, settings={"cap_target": "off", "increase_period": "1ns"}, **LINE)
    assert "rp.gap" in [f.rule for f in seen.findings]
    assert seen.flows[0].cnps_expected == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_a_stamp_of_another_decade_is_the_end_of_the_clock(tmp_path, monkeypatch, compiled):
    for name in ("MANY_STEPS", "MANY_FRAMES", "MANY_ROWS", "MANY_PAUSES"):
        monkeypatch.setattr(machines, name, -1 if compiled else 1e30)
    frames = [(0, data(ce=True)), (10, cnp()), (1e15, data(1, ce=True)), (1e15, pfc({3: 0xFFFF}))]
    seen, events = craft(tmp_path, frames, **LINE)
    assert seen.flows[0].cnps_expected == 2
    assert seen.flows[0].rp.cuts == 1
    assert at_us(events, "np.cnp") == [0, 10, clock.FAR_NS / 1000]
    assert seen.duration_ns == 10**18


def test_no_roce_says_what_is_there(tmp_path):
    seen, _ = craft(tmp_path, [(0, tcp()), (1, tcp())])
    (finding,) = seen.findings
    assert finding.rule == "capture.no-roce"
    assert "2 (tcp 2)" in finding.text
    assert "bypasses the kernel" in finding.text
    assert craft(tmp_path, [])[0].findings[0].text == "the capture holds no frames"


def test_reading_twice_equals_keeping(pcaps, tmp_path, monkeypatch):
    frames = sorted(
        [(t, data(t, dqpn=0x22 + t // 3 % 3, ce=t % 7 == 0)) for t in range(0, 3000, 3)]
        + [(t + 1, ack(t, dqpn=0x11 + t // 3 % 3)) for t in range(0, 3000, 3)]
        + [(t + 2, cnp(dqpn=0x11 + t // 100 % 3)) for t in range(0, 3000, 100)]
        + [(t + 0.5, pfc({3: 100})) for t in range(0, 3000, 200)],
        key=lambda f: f[0],
    )
    path = pcap(tmp_path / "mixed.pcap", frames)
    kept = run(path, **LINE)
    monkeypatch.setattr(module, "KEPT_FRAMES", 10)
    again = run(path, **LINE)
    assert again[0].as_json() == kept[0].as_json()
    assert again[1] == kept[1]
    assert Counter(e.kind for e in kept[1])["rp.cut"] == 30
    assert not kept[0].unmatched


def test_compiled_and_plain_runs_are_equal(pcaps, monkeypatch):
    path = pcaps / "ecn_ce_write.pcap"
    plain = run(path, profile="paper", **LINE)
    monkeypatch.setattr(machines, "MANY_STEPS", 0)
    monkeypatch.setattr(machines, "MANY_ROWS", 0)
    monkeypatch.setattr(machines, "MANY_PAUSES", 0)
    compiled = run(path, profile="paper", **LINE)
    assert compiled[0].as_json() == plain[0].as_json()
    assert compiled[1] == plain[1]


# -- pauses


def paused_ns(tmp_path, frames, line_rate_bps=100e9):
    seen, events = craft(tmp_path, frames, line_rate_bps=line_rate_bps)
    return {p.priority: p.paused_ns for p in seen.pauses}, Counter(e.kind for e in events)


def test_u9_a_refresh_replaces_the_running_pause(tmp_path):
    """10 quanta from the second frame: 5 us + 10 x 5.12 ns at 100 Gb/s."""
    frames = [(0, pfc({3: 0xFFFF})), (5, pfc({3: 10})), (1000, data())]
    assert paused_ns(tmp_path, frames) == ({3: 5051}, {"pfc.xoff": 2, "pfc.expire": 1})


def test_u9_zero_resumes_at_once_and_a_clear_enable_bit_does_nothing(tmp_path):
    frames = [(0, pfc({3: 0xFFFF})), (2, pfc({3: 0, 4: 99}, enable=0)), (7, pfc({3: 0})), (1000, data())]
    assert paused_ns(tmp_path, frames) == ({3: 7000}, {"pfc.xoff": 1, "pfc.xon": 1})


@pytest.mark.parametrize(
    ("gbps", "expected"), [(10, 51200), (25, 20480), (100, 5120), (400, 1280), (800, 640)]
)
def test_a_quantum_is_512_bit_times(tmp_path, gbps, expected):
    frames = [(0, pfc({0: 1000})), (1, pause(1000)), (1000, data())]
    assert paused_ns(tmp_path, frames, gbps * 1e9)[0] == {0: expected, None: expected}


def test_a_pause_still_running_counts_to_the_end(tmp_path):
    assert paused_ns(tmp_path, [(0, pfc({3: 0xFFFF, 5: 1})), (20, data())])[0] == {3: 20_000, 5: 5}


def test_without_a_speed_pauses_are_counted_but_not_timed(tmp_path):
    seen, _ = craft(tmp_path, [(0, pfc({3: 1000})), (9, pfc({3: 0}))])
    (line,) = seen.pauses
    assert (line.direction, line.xoff, line.xon, line.paused_ns) == ("02:00:00:00:00:09", 1, 1, None)


# -- setting up


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"settings": {"ai_rte": "1Mbps"}}, "--set ai_rte: .*did you mean 'ai_rate'"),
        ({"settings": {"np.intervall": "1us"}}, "--set np.intervall: .*did you mean 'interval'"),
        ({"settings": {"np.interval": "1MB"}}, "--set np.interval: unknown unit 'MB'"),
        (
            {"profile": "hpcc-ns3", "line_rate_bps": 1e8},
            "profile hpcc-ns3: min_rate: 1Gbps is above the line rate",
        ),
        ({"tap": "midle"}, "--tap: 'midle' .did you mean 'middle'"),
        ({"path_delay_ps": -1}, "not negative"),
    ],
)
def test_mistakes_are_told(how, message):
    with pytest.raises(ScenarioError, match=message):
        set_up(**how)


def test_foreign_names_reach_the_right_machine(tmp_path):
    settings = {"min_time_between_cnps": "10", "rpg_ai_rate": 5, "cc.threshold": 1, "np.mode": "trailing"}
    setup = set_up(settings=settings, line_rate_bps=1e11)
    assert (setup.np.interval_ps, setup.np.mode) == (10_000_000, 1)
    assert (setup.rp["ai_rate_bps"], setup.rp["threshold"]) == (5e6, 1)
    assert setup.as_json()["np.mode"] == "trailing"


KINDS_OF_FRAME = ["data", "marked", "cnp", "ack", "pfc"]


@examples(max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.sampled_from(["data", "marked", "cnp", "ack", "pfc"])), max_size=40
    ),
    st.sampled_from(["paper", "mlx", "hpcc-ns3", "primer"]),
    st.sampled_from(["gate", "trailing", "periodic"]),
)
def test_any_order_of_frames_gives_a_sane_result(tmp_path_factory, script, profile, mode):
    makers = {
        "data": data,
        "marked": lambda t: data(t, ce=True),
        "cnp": lambda _: cnp(),
        "ack": ack,
        "pfc": lambda t: pfc({3: t}),
    }
    frames = [(t, makers[what](t)) for t, what in script]
    path = pcap(tmp_path_factory.mktemp("any") / "c.pcap", frames)
    seen, events = run(path, profile=profile, settings={"np_mode": mode}, **LINE)
    for flow in seen.flows:
        lowest, last = seen.rates(flow)
        assert 0 < lowest <= last <= 40e9
        assert flow.cnps_expected <= flow.sums.ce
    assert seen.as_json()["capture"]["frames"] == len(frames)
    assert all(event.as_json() for event in events)


# -- ties


@pytest.mark.parametrize(
    ("profile", "second_us", "words"),
    [
        ("paper", 55, ["alpha's period", "the increase timer"]),
        ("paper", 54.999, []),
        ("paper", 55.001, []),
        ("hpcc-ns3", 30, ["alpha's period"]),
        ("hpcc-ns3", 28.001, ["the poll for a cut"]),
        ("hpcc-ns3", 30.5, []),
    ],
)
def test_a_notification_on_a_tick_is_a_tie_and_a_nanosecond_beside_it_is_none(
    tmp_path, profile, second_us, words
):
    frames = [(0, data()), (0.5, cnp()), (0.5 + second_us, cnp()), (700, data(1))]
    seen, _ = craft(tmp_path, frames, profile=profile, **LINE)
    (rp,) = [flow.rp for flow in seen.flows if flow.rp is not None]
    assert [(tie.frame, tie.words) for tie in rp.ties] == ([(3, words)] if words else [])
    shown = next(flow["ties"] for flow in seen.as_json()["flows"] if flow["ties"])
    after_ns = (0.5 + second_us) * 1000
    assert shown["first"] == ([{"after_ns": after_ns, "frame": 3, "with": words}] if words else [])
    found = [(f.severity, f.frame) for f in seen.findings if f.rule == "rp.tie"]
    assert found == ([("note", 3)] if words else [])


@pytest.mark.parametrize(("beside_us", "tied"), [(0, True), (0.001, False)])
def test_a_frame_sent_as_a_cut_clears_the_byte_counter_is_a_tie(tmp_path, beside_us, tied):
    frames = [(1, cnp()), (1 + beside_us, data()), (9, data(1))]
    seen, _ = craft(tmp_path, frames, **LINE)
    (rp,) = [flow.rp for flow in seen.flows if flow.rp is not None]
    assert [tie.words for tie in rp.ties] == ([["a frame being sent"]] if tied else [])
