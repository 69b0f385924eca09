"""Laws over acknowledgements in the engine: the peer's curves, fixed points, refusals, own laws."""

import numpy as np
import pytest
from simulated import Run, peer_scenario, text_scenario

from roce_pkt.errors import InputError, ScenarioError

PS_PER_US = 1_000_000
FRAME_G = 1090


def bottleneck(run):
    net = run.built.topology
    return run.queues[:, net.ports[int(run.responder["port"][0])].peer]


def goodput_bps(run):
    return run.responder["received_bytes"].sum() * 8e12 / run.session.now_ps


def sender_rates(run):
    return run.rates["rate_bps"][:, run.pairs.requester]


def test_hpcc_as_the_peer_has_it():
    run = Run(peer_scenario("star-hpcc-100g"), 1_000_000, events=False)
    queue = bottleneck(run)
    # peer, run G: 54 497 packets of 1000 B in 5 ms, queue 56 KB at 6 us, then all but empty
    assert goodput_bps(run) == pytest.approx(54_497 * 8000 / 5e-3, rel=0.02)
    assert queue.max() == pytest.approx(56_000, rel=0.02)
    assert run.times[queue.argmax()] == 6 * PS_PER_US
    assert queue[run.times >= 1_000 * PS_PER_US].max() < 2 * FRAME_G
    # rates of the peer's first reactions, in Gb/s at 5, 10 and 13 us
    early = sender_rates(run)[[5, 10, 13]].min(axis=1) / 1e9
    assert early == pytest.approx([93.45, 60.09, 33.98], rel=0.01)


def test_timely_as_the_peer_has_it():
    run = Run(peer_scenario("star-timely-100g"), 1_000_000, events=False)
    queue, rates = bottleneck(run), sender_rates(run)
    # peer, run H: falls to the floor at 131 us, queue 1 637 856 B at 132 us, 52 420 packets in 5 ms
    collapse = run.times[np.argmax(rates.min(axis=1) <= 1e9)]
    assert abs(collapse - 131 * PS_PER_US) <= 10 * PS_PER_US
    assert queue.max() == pytest.approx(1_637_856, rel=0.10)
    assert goodput_bps(run) == pytest.approx(52_420 * 8000 / 5e-3, rel=0.05)


@pytest.mark.parametrize("senders", [2, 4, 10, 16])
def test_patched_timely_settles_where_its_closed_form_says(senders):
    run = Run(
        text_scenario(
            f'receiver = {senders}\nmessage = "1GB"',
            top='duration = "150ms"',
            fabric=f'hosts = {senders + 1}\nrate = "10Gbps"\ndelay = "1us"\nframe_overhead = "48B"',
            switch='buffer = "32MiB"\n[switch.ecn]\nenabled = false\n[switch.pfc]\nmode = "off"',
            host='mtu = 1000\n[host.cc]\nalgorithm = "patched-timely"\nt_low = "50us"\nai_rate = "10Mbps"'
            '\nmin_rate = "10Mbps"',
        ),
        10_000_000,
        events=False,
    )
    late = run.times >= run.times[-1] // 2
    # the round trip at rest is t_low (1 + N delta / (beta C)); what is not queueing is 4 links and 2 frames
    empty_us = 4 + 2 * (1048 + 60) * 8 / 10e3
    trip_us = bottleneck(run)[late].mean() * 8 / 10e3 + empty_us
    assert trip_us == pytest.approx(50 * (1 + senders * 10e6 / (0.008 * 10e9)), rel=0.10)
    shares = sender_rates(run)[late].mean(axis=0)
    assert shares.sum() ** 2 / (senders * (shares**2).sum()) > 0.97  # still drawing together


@pytest.mark.parametrize("step", ["1Gbps", "2Gbps"])
def test_hpcc_rests_at_its_fixed_point(step):
    run = Run(
        peer_scenario("star-hpcc-100g", host__cc__ai_rate=step, duration="3ms"), 1_000_000, events=False
    )
    late = run.times >= 1_000 * PS_PER_US
    load = run.rates["alpha"][late][:, run.pairs.requester]
    share = float(step.removesuffix("Gbps")) * 1e9 / sender_rates(run)[late].mean()
    assert load.mean() == pytest.approx(0.95 / (1 - share), rel=0.01)


@pytest.mark.parametrize("senders", [2, 4, 10, 16])
def test_hpcc_of_many_senders_rests_at_its_fixed_point(senders):
    run = Run(
        text_scenario(
            f'receiver = {senders}\nmessage = "1GB"',
            top='duration = "4ms"',
            fabric=f"hosts = {senders + 1}",
            switch='buffer = "32MiB"\n[switch.ecn]\nenabled = false',
            host=f'[host.cc]\nalgorithm = "hpcc"\nai_rate = "{1.2 / senders:g}Gbps"\nmax_stage = 0',
        ),
        1_000_000,
        events=False,
    )
    late = run.times >= 2_000 * PS_PER_US
    # U at rest is eta / (1 - W_AI / W); W_AI / W is the additive step over the rate
    share = 1.2e9 / senders / sender_rates(run)[late].mean()
    load = run.rates["alpha"][late][:, run.pairs.requester].mean()
    assert load == pytest.approx(0.95 / (1 - share), rel=0.01)
    assert bottleneck(run)[late].mean() < 10_000


LAWS = ["timely", "patched-timely", "hpcc", "swift", "dctcp", "powertcp", "theta-powertcp"]


@pytest.mark.parametrize("law", LAWS)
def test_every_law_fills_the_link_and_keeps_the_queue_out_of_pauses(law):
    run = Run(
        text_scenario(
            'receiver = 2\nmessage = "1GB"',
            top='duration = "3ms"',
            switch='[switch.ecn]\nkmin = "100KB"\nkmax = "100KB"',
            host=f'[host.cc]\nalgorithm = "{law}"',
        ),
        10_000_000,
    )
    assert (
        goodput_bps(run) > (0.2 if "timely" in law else 0.8) * 100e9
    )  # TIMELY falls to its floor and climbs slowly
    assert run.arrays.port["drops"].sum() == 0
    assert (run.responder["cnps"] == 0).all()
    names = run.session.built.resolved
    assert names["host.cc.algorithm"] == law


def test_a_mark_comes_back_in_the_acknowledgement():
    run = Run(
        text_scenario(
            'receiver = 2\nmessage = "1GB"',
            top='duration = "200us"\ntaps = ["host0"]',
            switch='[switch.ecn]\nkmin = "20KB"\nkmax = "20KB"',
            host='[host.cc]\nalgorithm = "dctcp"',
        )
    )
    acks = run.frames[(run.frames["kind"] == 5) & (run.frames["sent"] == 0)]
    told = acks["flags"] & 16 != 0
    assert 0 < told.sum() < len(acks)
    assert told.sum() <= run.responder["ce"][0]


def test_a_law_without_the_acknowledgements_it_needs_is_refused():
    scenario = text_scenario(
        'receiver = 2\nmessage = "1MB"\nverb = "read"', host='[host.cc]\nalgorithm = "timely"'
    )
    with pytest.raises(ScenarioError, match="timely learns from acknowledgements of data, and read has none"):
        Run(scenario)


def test_a_speed_without_a_code_is_refused_for_records_of_hops():
    scenario = text_scenario(
        'receiver = 2\nmessage = "1MB"',
        fabric='hosts = 3\nrate = "30Gbps"',
        host='[host.cc]\nalgorithm = "hpcc"',
    )
    with pytest.raises(ScenarioError, match="hops have codes for 1, 10, 25"):
        Run(scenario)


def own_run(path, **host):
    more = "".join(f"\n{k} = {v}" for k, v in host.items())
    return Run(
        text_scenario(
            'receiver = 2\nmessage = "1GB"',
            top='duration = "1ms"',
            switch='[switch.ecn]\nkmin = "100KB"\nkmax = "100KB"',
            host=f'[host.cc]\nalgorithm = "{path}"{more}',
        ),
        1_000_000,
    )


BY_ECHO = """
PARAMETERS = {"step": "1Gbps", "cut": 0.5}
STATE = {"reduced_until": 0}
FEEDBACK = "echo"

def lower(p, s):
    s.rate_bps = max(1e9, s.rate_bps * p.cut)

def on_ack(p, s, ack, now):
    if ack.marked and ack.end > s.reduced_until:
        lower(p, s)
        s.reduced_until = ack.next
    elif not ack.marked:
        s.rate_bps = min(p.line_rate_bps, s.rate_bps + p.step_bps * ack.acked_bytes / 1e6)
"""


def test_a_law_of_ones_own_runs_and_takes_parameters(tmp_path):
    file = tmp_path / "by_echo.py"
    file.write_text(BY_ECHO)
    run = own_run(file)
    assert 25e9 < goodput_bps(run) < 40e9
    assert run.built.resolved["host.cc.step"] == "1Gb/s"
    gentle = own_run(file, cut="0.9")
    assert goodput_bps(gentle) > 80e9


def test_a_law_by_notifications_and_timer(tmp_path):
    file = tmp_path / "by_cnp.py"
    file.write_text(
        "def on_cnp(p, s, now):\n    s.rate_bps = p.line_rate_bps / 10\n    s.timer_ps = now + 20_000_000\n"
        "\ndef on_timer(p, s, now):\n    s.rate_bps = p.line_rate_bps\n"
    )
    run = own_run(file)
    assert set(np.unique(sender_rates(run) / 1e9)) == {10.0, 100.0}
    assert (run.responder["cnps"] > 1).any()
    cuts, rises = run.events(0), run.events(1)
    assert len(cuts) == len(rises) > 0
    assert (rises["time_ps"] - cuts["time_ps"] == 20_000_000).all()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "def on_ack(p, s, ack, now):\n    s.rat_bps = 1.0\n",
            "s has no 'rat_bps' (did you mean 'rate_bps'?)",
        ),
        ("def on_ack(p, s, ack, now):\n    s.rate_bps = 1 / 0\n", ":2: on_ack: ZeroDivisionError"),
        ("def on_ack(p, s, ack, now):\n    s.rate_bps = float('nan')\n", ":1: on_ack leaves s.rate_bps = Na"),
        ("def on_ack(p, s, ack, now):\n    s.rate_bps = -5.0\n", ":1: on_ack leaves s.rate_bps = -5"),
        ("def on_ack(p, s, now):\n    pass\n", ":1: on_ack(p, s, now) takes other arguments"),
        ("def on_ack(p, s, ack, now)\n    pass\n", ":1: expected ':'"),
        ("import nothing_of_the_kind\n", ":1: ModuleNotFoundError"),
        ("x = 1\n", "has none of on_ack, on_cnp, on_timer"),
        ('STATE = {"n": 0}\ndef on_ack(p, s, ack, now):\n    s.n = 0.5\n', ":2: on_ack stores 0.5 in s.n"),
        ('PARAMETERS = {"n": "x"}\ndef on_ack(p, s, ack, now):\n    pass\n', "PARAMETERS['n'] is 'x'"),
        ("def on_ack(p, s, ack, now):\n    s.rate_bps = eval('1e9')\n", ":2: on_ack: runs as Python but"),
    ],
)  # fmt: skip
def test_a_bad_law_gets_one_line_naming_file_and_function(tmp_path, text, told):
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        own_run(file)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert told in message
    assert "\n" not in message


def test_a_law_that_fails_only_later_is_named_with_its_line(tmp_path, capfd):
    file = tmp_path / "late.py"
    file.write_text(
        'STATE = {"n": 0}\n\ndef on_ack(p, s, ack, now):\n    s.n += 1\n'
        "    s.rate_bps = 4e10 * (3000 - s.n) / (3000 - s.n)\n"
    )
    with pytest.raises(InputError, match=r"late\.py:5: on_ack: ZeroDivisionError: float division by zero"):
        own_run(file)
    assert capfd.readouterr().err == ""
