"""Equal paths: by flow, by flowlet, by packet; how evenly they are used; thresholds that follow the queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated import Run, text_scenario

from roce_pkt.fabric.ecmp import flowlet_path, packet_path, path
from roce_pkt.run.path_shares import entropy, path_shares
from roce_pkt.run.simulate import simulate
from roce_pkt.run.simulation_names import Names


def fabric(routing, gap="50us", top='duration = "1ms"', cc="fixed", rate="none"):
    return text_scenario(
        'pattern = "flows"\npairs = [[0, 8], [1, 9], [2, 10], [3, 11], [4, 12], [5, 13], [6, 14], [7, 15]]\n'
        f'message = "64KB"\nrate = "{rate}"',
        top=top,
        fabric='kind = "leaf-spine"\nhosts = 16\nleaves = 2\nspines = 8\n'
        f'routing = "{routing}"\nflowlet_gap = "{gap}"',
        switch="[switch.ecn]\nenabled = false",
        host=f'[host.cc]\nalgorithm = "{cc}"',
    )


def shares(run):
    return path_shares(run.session, Names(run.session.scenario, run.built))


def test_a_flow_keeps_its_path_and_some_collide():
    run = Run(fabric("ecmp"))
    assert run.requester["again"].sum() == 0
    up = next(one for one in shares(run) if one.switch == "switch0")
    used = [n for n in up.sent_bytes if n > 10_000]
    assert 1 < len(used) < 8
    assert up.entropy == pytest.approx(entropy(up.sent_bytes))
    assert up.entropy < 0.9
    assert up.busiest_share > 1.5


def test_packets_one_by_one_use_all_paths_evenly_and_go_back_n_pays_for_it():
    by_flow, by_packet = Run(fabric("ecmp")), Run(fabric("per-packet"))
    assert min(one.entropy for one in shares(by_packet) if one.switch == "switch0") > 0.99
    assert by_packet.requester["naks"].sum() > 100
    assert by_packet.requester["again"].sum() > 10_000
    assert by_packet.responder["received_bytes"].sum() < by_flow.responder["received_bytes"].sum() / 4


def test_flowlets_spread_what_pauses_and_reorder_nothing():
    # at 1 Gb/s packets are 9 us apart, more than any path differs: each may begin a flowlet
    still, moving = (Run(fabric("flowlet", gap, rate="1Gbps")) for gap in ("50us", "5us"))
    assert still.requester["again"].sum() == moving.requester["again"].sum() == 0
    evenness = [min(one.entropy for one in shares(run) if one.switch == "switch0") for run in (still, moving)]
    assert evenness[0] < 0.9
    assert evenness[1] > 0.95


def test_a_collision_is_a_finding():
    found = [f for f in simulate(fabric("ecmp")).findings if f.rule == "path-collision"]
    assert found
    assert "times an even share of 8 equal paths" in found[0].text
    assert not [f for f in simulate(fabric("ecmp", rate="1Gbps")).findings if f.rule == "path-collision"]


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=16))
def test_entropy_is_one_for_an_even_split_and_never_leaves_its_bounds(parts):
    assert entropy([5] * len(parts)) == pytest.approx(1)
    assert entropy([7] + [0] * (len(parts) - 1)) == 0
    assert -1e-12 <= entropy(parts) <= 1 + 1e-12


class Entry:
    last_ps = turn = 0


def test_a_flowlet_changes_only_after_its_gap():
    entry = Entry()
    times = [0, 10, 20, 200, 210, 220, 1000]
    found = [(flowlet_path(entry, 12345, 99, 8, 100, now), entry.turn) for now in times]
    assert [turn for _, turn in found] == [0, 0, 0, 1, 1, 1, 2]
    assert len({way for way, turn in found if turn == 1}) == 1
    ways = {packet_path(12345, position, 99, 8) for position in range(100)}
    assert ways == set(range(8))
    assert path(12345, 99, 8) in ways


def marked_low(adaptive):
    return text_scenario(
        'receiver = 4\nmessage = "1MB"',
        top='duration = "60ms"\nmeasure_from = "20ms"',
        fabric='hosts = 5\ndelay = "10us"',
        switch='[switch.ecn]\nkmin = "2KB"\nkmax = "4KB"\npmax = 1.0\n'
        f"adaptive = {adaptive}\nadapt_high = 500.0",
    )


def test_adaptive_thresholds_give_back_throughput_that_low_ones_cost():
    low, adaptive = (Run(marked_low(word)) for word in ("false", "true"))
    goodput = [run.responder["received_bytes"].sum() for run in (low, adaptive)]
    assert goodput[1] > 1.02 * goodput[0]
    thresholds = adaptive.port("switch0:4")
    assert thresholds["kmin_bytes"] > 2_000
    assert thresholds["kmax_bytes"] == pytest.approx(2 * thresholds["kmin_bytes"], abs=2)
    assert low.port("switch0:4")["kmin_bytes"] == 2_000
