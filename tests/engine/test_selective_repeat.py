"""Selective repeat in the engine: under loss, under reordering, and what it is not for."""

import pytest
from simulated import Run, text_scenario

from roce_pkt.errors import ScenarioError

GO_BACK = 'transport = { recovery = "go-back-n", window = "120KB" }'
SELECTIVE = 'transport = { recovery = "selective-repeat" }'


def lossy(host, verb="write"):
    """Eight to one, 200 messages of 50 KB each, into a buffer that drops."""
    return text_scenario(
        f'receiver = 8\nmessage = "50KB"\ncount = 25\nverb = "{verb}"',
        top='duration = "40ms"',
        fabric="hosts = 9",
        switch='buffer = "200KB"\npfc = { mode = "off" }\n[switch.ecn]\nenabled = false',
        host=f'{host}\n[host.cc]\nalgorithm = "fixed"',
    )


@pytest.mark.parametrize("verb", ["write", "send"])
def test_every_message_arrives_once_through_a_fabric_that_drops(verb):
    run = Run(lossy(SELECTIVE, verb))
    assert run.arrays.port["drops"].sum() > 100
    assert (run.requester["messages"] == 25).all()
    assert (run.responder["msn"] == 25).all()
    assert (run.responder["received_bytes"] == 25 * 50_000).all()
    # each drop is repaired by one packet, but for timers that run out before the answer is there
    assert run.requester["again"].sum() < 2 * run.arrays.port["drops"].sum()


def test_loss_costs_go_back_n_more():
    one, many = Run(lossy(SELECTIVE)), Run(lossy(GO_BACK))
    assert one.requester["again"].sum() < many.requester["again"].sum()
    assert one.requester["ended_ps"].min() > 0
    assert one.requester["ended_ps"].max() < 12e9  # eight times 1.25 MB at 100 Gb/s take 0.8 ms of it
    ended = many.requester["ended_ps"]
    assert (ended < 0).any() or ended.max() > one.requester["ended_ps"].max()


def sprayed(host):
    return text_scenario(
        'pattern = "flows"\npairs = [[0, 8], [1, 9], [2, 10], [3, 11], [4, 12], [5, 13], [6, 14], [7, 15]]\n'
        'message = "64KB"',
        top='duration = "1ms"\nmeasure_from = "200us"',
        fabric='kind = "leaf-spine"\nhosts = 16\nleaves = 2\nspines = 8\nrouting = "per-packet"',
        switch="[switch.ecn]\nenabled = false",
        host=f'{host}\n[host.cc]\nalgorithm = "fixed"',
    )


def goodput_bps(run):
    return run.responder["received_bytes"].sum() * 8 / 800e-6


def test_packets_over_many_paths_break_go_back_n_and_not_selective_repeat():
    many = Run(sprayed(GO_BACK), events=False)
    hasty = Run(sprayed(SELECTIVE), events=False)
    calm = Run(sprayed('transport = { recovery = "selective-repeat", reordering = 64 }'), events=False)
    assert goodput_bps(many) < 100e9  # eight links of 100 Gb/s
    assert goodput_bps(hasty) > 300e9
    assert goodput_bps(calm) > 600e9
    assert calm.requester["again"].sum() < hasty.requester["again"].sum() / 10
    assert calm.requester["timeouts"].sum() == 0


def test_without_loss_or_reordering_it_is_go_back_n():
    host = "transport = { recovery = %s, window = '120KB' }"
    runs = [
        Run(
            text_scenario(
                'receiver = 2\nmessage = "100KB"\ncount = 20', host=host % f"'{kind}'", top='duration = "3ms"'
            )
        )
        for kind in ("go-back-n", "selective-repeat")
    ]
    for name in ("snd", "una", "messages", "ended_ps", "again"):
        assert (runs[0].requester[name] == runs[1].requester[name]).all()


def test_what_it_is_not_for_is_refused():
    for traffic, host, told in (
        ('verb = "read"', SELECTIVE, "read over rc: selective-repeat"),
        ('transport = "uc"', SELECTIVE, "write over uc: selective-repeat"),
        (
            'verb = "send"',
            'transport = { recovery = "selective-repeat", receive_queue = 4 }',
            "leave it at 0",
        ),
    ):
        with pytest.raises(ScenarioError, match=told):
            Run(text_scenario(f'receiver = 2\nmessage = "1KB"\n{traffic}', host=host))
