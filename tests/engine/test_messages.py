"""Lists of messages in the engine: lengths, times, waits, READs among WRITEs, and what is lost."""

import numpy as np
import pytest
from simulated import Run, text_scenario

from roce_pkt.engine import records
from roce_pkt.engine.frame_sizes import FrameSizes
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario import presets

FIXED = 'cc = { algorithm = "fixed" }'
PAIR = 'pattern = "flows"\npairs = [[0, 1]]\n'
SMALL = 'buffer = "200KB"\necn = { enabled = false }\npfc = { headroom = "2KB" }'
BIG = "mtu = 4096\nack = { every = 16 }\n" + FIXED
SCRIPTS = ["ring-allreduce", "tree-allreduce", "pipeline", "moe-alltoall", "storage-mix"]


def listed(run):
    """Messages of each flow's list."""
    works = run.pairs.works
    return [
        works.message[int(works.work[n]["first"]) : int(works.work[n]["end"])]
        for n in works.of_flow.tolist()
        if n >= 0
    ]


def complete(run):
    messages = listed(run)
    assert all((part["done_ps"] > part["ready_ps"]).all() for part in messages)
    assert (run.requester["failed"] == 0).all()
    assert (run.requester["ended_ps"] >= 0).all()
    carried = run.requester["received_bytes"] + run.responder["received_bytes"]
    assert carried.tolist() == [int(part["length"].sum()) for part in messages]
    return messages


@pytest.mark.parametrize("verb", ["write", "send", "read", "fetch_add"])
@pytest.mark.parametrize("trouble", ["", SMALL])
def test_a_list_of_equal_lengths_is_the_plain_loop(verb, trouble):
    size = "8B" if verb == "fetch_add" else "100KB"
    flows = f'pattern = "flows"\npairs = [[0, 2], [1, 2]]\nmessage = "{size}"\ncount = 12\nverb = "{verb}"\n'
    host = FIXED + "\ntransport = { timeout = 8 }"
    plain = Run(text_scenario(flows, switch=trouble, host=host))
    many = Run(
        text_scenario(flows + f'sizes = "uniform"\nmessage_min = "{size}"\n', switch=trouble, host=host)
    )
    assert (plain.pairs.works.of_flow == -1).all()
    assert (many.pairs.works.of_flow >= 0).all()
    if trouble and verb in ("write", "send"):
        assert plain.requester["again"].sum() > 0
    for name in ("ended_ps", "sent", "again", "naks", "timeouts", "messages", "received_bytes", "ce"):
        assert (plain.arrays.half[name] == many.arrays.half[name]).all(), name
    assert plain.built.w["events"] == many.built.w["events"]


@pytest.mark.parametrize("hosts", [3, 8])
def test_a_ring_carries_its_closed_form_in_its_closed_time(hosts):
    size = 16 << 20
    run = Run(
        text_scenario(
            'pattern = "ring-allreduce"\nmessage = "16MiB"\nthink = "0us"',
            fabric=f"hosts = {hosts}",
            host=BIG,
            top='duration = "20ms"',
        )
    )
    steps = 2 * (hosts - 1)
    messages = complete(run)
    chunk = -(-size // hosts)
    assert all(part["length"].tolist() == [chunk] * steps for part in messages)
    took = int(run.requester["ended_ps"].max())
    bound = chunk * steps * 8e12 / 100e9
    share = 4096 / (FrameSizes(run.session.scenario).full_frame + 20)
    assert bound / share < took < 1.03 * bound / share


def test_a_step_starts_when_the_one_it_waits_for_has_arrived():
    run = Run(
        text_scenario(
            'pattern = "ring-allreduce"\nmessage = "1MiB"\nthink = "3us"', fabric="hosts = 4", host=BIG
        )
    )
    messages = complete(run)
    for rank, mine in enumerate(messages):
        before = messages[(rank - 1) % 4]
        assert mine["ready_ps"][0] == 0
        # posted 3 us after the last packet is in; its acknowledgement takes a microsecond and more
        waited = mine["ready_ps"][1:] - before["done_ps"][:-1]
        assert (waited < 3_000_000 - 2_000_000).all()
        assert (waited > 3_000_000 - 2_200_000).all()


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_complete_and_carry_what_they_say(name):
    scenario = presets.load(name)
    run = Run(scenario)
    messages = complete(run)
    total = sum(int(part["length"].sum()) for part in messages)
    size, hosts = scenario.traffic[0].message_bytes, scenario.fabric.hosts
    match name:
        case "ring-allreduce":
            assert total == hosts * 2 * (hosts - 1) * -(-size // hosts)
        case "tree-allreduce":
            assert total == 2 * 2 * (hosts - 1) * size
        case "pipeline":
            assert total == 8 * 2 * (hosts - 1) * size
        case "moe-alltoall":
            # what a host sends to its experts is `message`, less the share it keeps; all of it comes back
            assert total % 2 == 0
            assert total < 2 * hosts * size
        case "storage-mix":
            capsules = [part["length"] for part in messages[::2]]
            assert all(part.tolist() == [64] * 50 for part in capsules)
            assert all(len(part) == 100 and (part["length"][1::2] == 16).all() for part in messages[1::2])


def test_data_waits_for_its_command_and_the_response_for_its_data():
    run = Run(presets.load("storage-mix"))
    messages = complete(run)
    for commands, answers in zip(messages[::2], messages[1::2], strict=True):
        data, responses = answers[::2], answers[1::2]
        one_way = 1_000_000
        assert (data["ready_ps"] >= commands["ready_ps"] + 2 * one_way + 1_000_000).all()
        assert (responses["ready_ps"] == data["done_ps"] + 1_000_000).all()


@pytest.mark.parametrize("seed", range(4))
def test_mixed_verbs_survive_losses(seed):
    run = Run(
        text_scenario(
            'pattern = "storage-mix"\nsenders = [0, 1, 2, 3, 4, 5]\nreceiver = 0\nsizes = "storage"\n'
            "depth = 16\ncount = 60\nqps = 2\n",
            top=f'seed = {seed}\nduration = "200ms"',
            fabric="hosts = 6",
            switch='buffer = "60KB"\necn = { enabled = false }\npfc = { mode = "off" }',
            host="mtu = 4096\ntransport = { timeout = 8 }\nack = { every = 16 }\n" + FIXED,
        )
    )
    assert run.arrays.port["drops"].sum() > 10
    assert run.requester["naks"].sum() > 0
    complete(run)


def test_messages_outstanding_are_bounded_by_depth():
    def took(depth):
        run = Run(
            text_scenario(
                PAIR
                + f'message = "1KB"\nmessage_min = "1KB"\nsizes = "uniform"\ncount = 128\ndepth = {depth}',
                fabric="hosts = 2",
            )
        )
        complete(run)
        return int(run.requester["ended_ps"][0])

    assert took(1) == pytest.approx(4 * took(4), rel=0.03)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_sender_under_poisson_load_is_the_queue_of_the_books(load):
    # M/D/1: the mean wait is load x service / 2 (1 - load)
    run = Run(
        text_scenario(
            PAIR + f'message = "4KB"\nload = "{load:.0%}"\narrival = "poisson"\ndepth = 4096',
            top='duration = "30ms"',
            fabric="hosts = 2",
            host=FIXED + "\nack = { every = 4096 }",
        ),
        events=False,
    )
    part = listed(run)[0]
    done = part[part["done_ps"] >= 0]
    assert len(done) > 20_000
    took = done["done_ps"] - done["ready_ps"]
    sizes = FrameSizes(run.session.scenario)
    service = (4 * sizes.base + 16 + 4000 + 4 * 20) * 80
    alone = int(took.min())
    assert alone == pytest.approx(service + 4_000_000, rel=0.08)
    assert (took - alone).mean() == pytest.approx(load * service / (2 * (1 - load)), rel=0.08)
    carried = len(part) * service / run.session.scenario.duration_ps
    assert carried == pytest.approx(load, rel=0.03)


def test_slowdown_on_an_idle_path_is_one():
    for fabric in (
        "hosts = 4",
        'kind = "leaf-spine"\nhosts = 4\nleaves = 2\nspines = 2\ntrunk_rate = "40Gbps"',
    ):
        for verb in ("write", "send", "read"):
            result = simulate(
                text_scenario(
                    'pattern = "flows"\npairs = [[0, 3]]\nsizes = "uniform"\nmessage = "30KB"\n'
                    f'verb = "{verb}"\nload = "1%"\ncount = 20',
                    fabric=fabric,
                    host=FIXED,
                    top='duration = "20ms"',
                )
            )
            times = result.flows[0].times
            assert times.count == 20
            assert times.slowdown_mean == pytest.approx(1, abs=0.01)
            assert times.slowdown_p99 == pytest.approx(1, abs=0.02)


def test_times_are_told_by_length():
    result = simulate(
        text_scenario('receiver = 2\nsizes = "web-search"\nload = "20%"\narrival = "poisson"', host=FIXED)
    )
    told = result.messages
    assert told["count"] == sum(part["count"] for part in told["by_length"])
    assert told["count"] == sum(f.times.count for f in result.flows if f.times)
    assert told["slowdown_p50"] >= 1
    assert [p["above_bytes"] for p in told["by_length"]] == sorted(
        p["above_bytes"] for p in told["by_length"]
    )
    assert simulate("two-to-one", {"duration": "100us", "measure_from": "0us"}).messages is None


@pytest.mark.parametrize(("service", "most"), [("uc", 9000), ("ud", 1000)])
def test_unacknowledged_messages_of_many_lengths_are_sent_and_counted(service, most):
    words = f'sizes = "uniform"\nmessage = "{most}B"\ncount = 50\nverb = "send"\ntransport = "{service}"'
    run = Run(text_scenario(PAIR + words, fabric="hosts = 2"))
    part = listed(run)[0]
    assert (part["done_ps"] >= 0).all()
    assert run.responder["msn"][0] == 50
    assert run.responder["received_bytes"][0] == part["length"].sum()
    assert np.all(part["length"] <= most)


def test_no_packet_in_the_middle_is_of_another_kind():
    run = Run(presets.load("storage-mix", {"taps": '["host0"]'}))
    kinds = set(run.frames["kind"].tolist())
    assert {records.DATA, records.READ_REQUEST, records.READ_RESPONSE, records.ACK} == kinds


def test_selective_repeat_follows_lists_too():
    run = Run(
        text_scenario(
            'pattern = "ring-allreduce"\nmessage = "600KB"\nthink = "0us"\n'
            '[[traffic]]\npattern = "incast"\nreceiver = 0\nsizes = "uniform"\nmessage = "30KB"\ncount = 20',
            fabric="hosts = 4",
            switch='buffer = "60KB"\necn = { enabled = false }\npfc = { mode = "off" }',
            host='transport = { recovery = "selective-repeat" }\n' + FIXED,
            top='duration = "100ms"',
        )
    )
    assert run.arrays.port["drops"].sum() > 20
    complete(run)
