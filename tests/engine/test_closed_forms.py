"""What can be worked out on paper: latency, framing, pacing, pauses, sharing."""

import numpy as np
import pytest
from simulated import Run, text_scenario, two_to_one

from roce_pkt.engine import rows

NS = 1000
LOSSLESS = 'buffer = "400KB"\necn = { enabled = false }\npfc = { PFC }'
FIXED = 'cc = { algorithm = "fixed" }'


def one_packet(**parts):
    return Run(text_scenario('pattern = "flows"\npairs = [[0, 1]]\nmessage = "1000B"\ncount = 1', **parts))


def test_latency_of_one_packet_store_and_forward():
    # there: 1000 + 58 + 4 + 16 (RETH) octets, 20 of preamble and gap; back: 66 + 20
    run = one_packet()
    there, back = 2 * (1098 * 80 + 1_000_000), 2 * (86 * 80 + 1_000_000)
    assert run.requester["ended_ps"][0] == there + back


def test_cut_through_saves_the_frame_but_not_its_header():
    stored, cut = one_packet(), one_packet(switch='forwarding = "cut-through"')
    # a frame longer than 84 octets on the wire is passed on at 84; so is the ACK of 86
    assert stored.requester["ended_ps"][0] - cut.requester["ended_ps"][0] == (1098 - 84 + 86 - 84) * 80


def test_zero_delay_links_work():
    run = one_packet(fabric='hosts = 3\ndelay = "0ns"')
    assert run.requester["ended_ps"][0] == 2 * 1098 * 80 + 2 * 86 * 80


@pytest.mark.parametrize(("host", "head"), [("", 62), ('ip = "ipv6"', 82), ("vlan = 5", 66)])
def test_goodput_is_what_framing_allows(host, head):
    # Ethernet 14, FCS 4, IP 20 or 40, UDP 8, BTH 12, ICRC 4; preamble and gap 20
    run = Run(
        text_scenario(
            'pattern = "flows"\npairs = [[0, 1]]\nmessage = "1GB"',
            top='duration = "1ms"',
            host=f"mtu = 4096\n{host}",
        )
    )
    frame_ps = (4096 + head + 20) * 80
    first_arrives = 2 * (frame_ps + 16 * 80 + 1_000_000)
    assert run.responder["received_bytes"][0] == 4096 * ((10**9 - first_arrives) // frame_ps + 1)


def test_rate_limits_of_queue_pair_and_host():
    pair = Run(
        text_scenario('pattern = "flows"\npairs = [[0, 1]]\nmessage = "1GB"\nrate = "10Gbps"\nqps = 3')
    )
    assert pair.requester["sent"] * 1106 * 8 / 5e-3 == pytest.approx(10e9, rel=1e-3)
    host = Run(
        text_scenario(
            'pattern = "flows"\npairs = [[0, 1]]\nmessage = "1GB"\nqps = 3', host='rate_limit = "30Gbps"'
        )
    )
    assert host.requester["sent"].sum() * 1106 * 8 / 5e-3 == pytest.approx(30e9, rel=2e-3)
    assert np.ptp(host.requester["sent"]) <= 1


def test_window_bounds_what_is_in_flight():
    run = Run(
        text_scenario(
            'pattern = "flows"\npairs = [[0, 1]]\nmessage = "1GB"', host='transport = { window = "20480B" }'
        )
    )
    round_trip_ps = 2 * (1106 * 80 + 1_000_000) + 2 * (86 * 80 + 1_000_000)
    assert run.requester["sent"][0] == pytest.approx(20 * 5e9 / round_trip_ps, rel=0.01)


def test_a_pause_lasts_its_quanta_when_nothing_renews_it():
    run = Run(
        two_to_one(
            switch=LOSSLESS.replace("PFC", 'quanta = 300, refresh = "1s", headroom = "90KB"'), host=FIXED
        )
    )
    paused, expired = run.events(rows.PFC_PAUSED), run.events(rows.PFC_EXPIRE)
    assert len(expired)
    for end in expired:
        before = paused[(paused["port"] == end["port"]) & (paused["time_ps"] < end["time_ps"])]
        assert end["time_ps"] - before["time_ps"][-1] == 300 * 5_120


def test_a_renewed_pause_does_not_expire():
    run = Run(two_to_one(switch=LOSSLESS.replace("PFC", 'quanta = 1000, refresh = "auto"'), host=FIXED))
    assert len(run.events(rows.PFC_PAUSED)) > 10
    assert len(run.events(rows.PFC_EXPIRE)) == 0
    assert run.arrays.port["xoffs"].sum() > len(run.events(rows.PFC_PAUSED))
    assert run.arrays.port["drops"].sum() == 0


@pytest.mark.parametrize("response", ["0ns", "2us"])
def test_a_pause_takes_effect_after_flight_and_response(response):
    run = Run(two_to_one(switch=LOSSLESS.replace("PFC", f'response = "{response}"'), host=FIXED))
    asked, obeyed = run.events(rows.PFC_XOFF)[0], run.events(rows.PFC_PAUSED)[0]
    delay = {"0ns": 0, "2us": 2_000_000}[response]
    # 84 octets on an idle wire, or behind an ACK in progress of 86
    assert 0 <= obeyed["time_ps"] - asked["time_ps"] - 1_000_000 - delay - 84 * 80 <= 86 * 80


def test_computed_headroom_loses_nothing():
    run = Run(two_to_one(switch=LOSSLESS.replace("PFC", ""), host=FIXED))
    assert run.arrays.port["xoffs"].sum() > 0
    assert run.arrays.port["drops"].sum() == 0
    assert (run.requester["ended_ps"] > 0).all()


def test_plain_pause_stops_every_class_and_pfc_does_not():
    def sent_by_other_class(mode):
        scenario = text_scenario(
            'receiver = 2\nmessage = "1GB"\nsenders = [0, 1]',
            top='duration = "1ms"',
            switch=LOSSLESS.replace("PFC", f'mode = "{mode}"'),
            host=FIXED + "\nack = { dscp = 26 }",
        )
        run = Run(scenario)
        bits = run.events(rows.PFC_PAUSED)
        return run, bits

    pfc, _ = sent_by_other_class("pfc")
    plain, _ = sent_by_other_class("pause")
    assert pfc.arrays.line["paused_ps"].reshape(-1, 8)[0].astype(bool).tolist() == [c == 3 for c in range(8)]
    assert plain.arrays.line["paused_ps"].reshape(-1, 8)[0].astype(bool).all()


def test_a_victim_is_paused_though_its_receiver_is_idle():
    from roce_pkt.run.simulate import simulate

    result = simulate("victim-flow")
    assert [f.rule for f in result.findings] == ["victim-flow"]
    victim, others = result.flows[-1], result.flows[:-1]
    assert victim.goodput_bps < 30e9
    assert victim.goodput_bps == pytest.approx(others[0].goodput_bps, rel=0.05)
    marking = '{ kmin = "20KB", kmax = "100KB", pmax = 0.2 }'
    changes = {"switch.ecn": marking, "host.cc": '{ algorithm = "dcqcn" }', "duration": "60ms"}
    relieved = simulate("victim-flow", changes | {"measure_from": "30ms"})
    assert relieved.flows[-1].goodput_bps > 2 * victim.goodput_bps
    assert relieved.flows[-1].paused_ns == 0


TWO_CLASSES = """receiver = 2
message = "1GB"
senders = [0]
[[traffic]]
receiver = 2
message = "1GB"
senders = [1]
dscp = 10
"""


def test_weighted_classes_share_a_port_by_weight():
    qos = "qos = { dscp_to_priority = { 26 = 3, 10 = 4, 48 = 6 }, weights = { 3 = 3, 4 = 1 } }"
    scenario = text_scenario(
        TWO_CLASSES,
        top='duration = "2ms"',
        switch=f"ecn = {{ enabled = false }}\npfc = {{ priorities = [3, 4] }}\n{qos}",
        host=FIXED,
    )
    first, second = Run(scenario).responder["received_bytes"].astype(float)
    assert first / second == pytest.approx(3, rel=0.05)


def test_strict_priority_starves_the_lower_class():
    qos = "qos = { dscp_to_priority = { 26 = 3, 10 = 4, 48 = 6 } }"
    scenario = text_scenario(
        TWO_CLASSES,
        top='duration = "2ms"',
        switch=f"ecn = {{ enabled = false }}\npfc = {{ priorities = [3, 4] }}\n{qos}",
        host=FIXED,
    )
    low, high = Run(scenario).responder["received_bytes"].astype(float)
    assert low < 0.1 * high
    assert high * 8 / 2e-3 > 0.9 * 92.6e9


def test_untagged_frames_have_no_priority_to_trust():
    run = Run(
        two_to_one(switch='buffer = "400KB"\necn = { enabled = false }\nqos = { trust = "pcp" }', host=FIXED)
    )
    assert run.arrays.port["xoffs"].sum() == 0  # class 0 is not lossless
    tagged = Run(
        two_to_one(
            switch='buffer = "400KB"\necn = { enabled = false }\nqos = { trust = "pcp" }',
            host=FIXED + "\nvlan = 7",
        )
    )
    assert tagged.arrays.port["xoffs"].sum() > 0
