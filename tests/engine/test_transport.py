"""Queue pairs in the engine: losses are recovered, waits are kept, responses come back."""

import pytest
from simulated import Run, text_scenario, two_to_one

from roce_pkt.engine import records, rows

SMALL = 'buffer = "200KB"\necn = { enabled = false }\npfc = { headroom = "2KB" }'
FIXED = 'cc = { algorithm = "fixed" }'
PAIR = 'pattern = "flows"\npairs = [[0, 1]]\n'


def delivered(run, messages, octets):
    assert (run.requester["messages"] == messages).all()
    assert (run.requester["ended_ps"] >= 0).all()
    assert (run.requester["failed"] == 0).all()
    taker = run.requester if (run.requester["verb"] == records.READ).all() else run.responder
    assert (taker["received_bytes"] == octets).all()


@pytest.mark.parametrize("verb", ["write", "send", "write_imm"])
def test_headroom_too_small_loses_frames_and_go_back_n_recovers_them_all(verb):
    run = Run(
        text_scenario(
            f'receiver = 2\nmessage = "100KB"\ncount = 20\nverb = "{verb}"', switch=SMALL, host=FIXED
        )
    )
    assert run.arrays.port["drops"].sum() > 100
    assert run.requester["naks"].sum() > 10
    assert run.requester["again"].sum() >= run.arrays.port["drops"].sum()
    delivered(run, 20, 2_000_000)
    # each refusal names the packet that was lost first, and sending starts again from there
    naks, again = run.events(rows.RC_NAK), run.events(rows.RC_RETRANSMIT)
    for nak in naks:
        later = again[(again["half"] == nak["half"]) & (again["time_ps"] >= nak["time_ps"])]
        assert later["number"][0] == nak["number"]


def test_lost_responses_of_reads_are_asked_for_again():
    # responses of two responders meet at the requester's port and overflow it
    run = Run(
        text_scenario(
            'pattern = "flows"\npairs = [[0, 1], [0, 2]]\nmessage = "100KB"\ncount = 20\nverb = "read"',
            switch=SMALL,
            host=FIXED + "\ntransport = { timeout = 7 }",
        )
    )
    assert run.arrays.port["drops"].sum() > 100
    delivered(run, 20, 2_000_000)
    assert run.requester["naks"].sum() > 0


def test_a_lost_last_packet_is_found_by_the_retry_timer():
    run = Run(
        text_scenario(
            'receiver = 2\nmessage = "1KB"\ncount = 1\nqps = 200',
            top='duration = "20ms"',
            switch='buffer = "10KB"\necn = { enabled = false }\npfc = { mode = "off" }',
            host=FIXED + "\ntransport = { timeout = 6 }",
        )
    )
    assert run.arrays.port["drops"].sum() > 100
    delivered(run, 1, 1000)
    timeouts = run.events(rows.RC_TIMEOUT)
    assert len(timeouts)
    # the first to run out was armed when its packet left, at most 200 frames after the start
    wait = int(timeouts["time_ps"][0]) - 4_096_000 * 2**6
    assert 0 <= wait < 200 * 1106 * 80


def test_retries_end_in_failure():
    run = Run(
        text_scenario(
            PAIR + 'message = "1KB"\ncount = 1',
            top='duration = "20ms"',
            host="transport = { timeout = 1, retry_cnt = 2 }",
            fabric='hosts = 2\ndelay = "100us"',
        )
    )
    # the round trip is longer than 8.192 us x 3: given up before the first ACK can be there
    assert run.requester["failed"][0] == 1
    assert run.requester["timeouts"][0] == 2
    assert len(run.events(rows.RC_FAILED)) == 1
    assert run.events(rows.RC_FAILED)["time_ps"][0] == 3 * 8_192_000


def test_not_ready_waits_are_kept():
    run = Run(
        text_scenario(
            PAIR + 'message = "8KB"\ncount = 50\nverb = "send"',
            host='transport = { receive_queue = 4, repost = "20us", min_rnr_timer = 1 }',
        )
    )
    delivered(run, 50, 400_000)
    rnr, again = run.events(rows.RC_RNR), run.events(rows.RC_RETRANSMIT)
    assert len(rnr) > 5
    for one in rnr:
        later = again[again["time_ps"] > one["time_ps"]]
        assert later["time_ps"][0] - one["time_ps"] >= 10_000_000  # code 1: 10 us
        assert later["number"][0] == one["number"]


def test_not_ready_retries_are_counted():
    run = Run(
        text_scenario(
            PAIR + 'message = "8KB"\ncount = 50\nverb = "send"',
            host='transport = { receive_queue = 1, repost = "10ms", min_rnr_timer = 1, rnr_retry = 2 }',
        )
    )
    assert run.requester["failed"][0] == 1
    assert len(run.events(rows.RC_RNR)) == 3


def test_reads_outstanding_are_bounded():
    def took(outstanding):
        scenario = text_scenario(
            PAIR + 'message = "1KB"\ncount = 100\nverb = "read"',
            host=f"transport = {{ max_rd_atomic = {outstanding} }}",
        )
        run = Run(scenario)
        delivered(run, 100, 100_000)
        return int(run.requester["ended_ps"][0])

    assert took(1) == pytest.approx(4 * took(4), rel=0.03)


def test_atomics_come_back_one_for_one():
    run = Run(text_scenario(PAIR + 'message = "8B"\ncount = 500\nverb = "fetch_add"'))
    assert run.requester["messages"][0] == 500
    assert run.responder["msn"][0] == 500


@pytest.mark.parametrize("service", ["uc", "ud"])
def test_unacknowledged_services_lose_what_is_lost(service):
    size = {"uc": "10KB", "ud": "1KB"}[service]
    run = Run(
        text_scenario(
            f'receiver = 2\nmessage = "{size}"\ncount = 200\nverb = "send"\ntransport = "{service}"',
            switch='buffer = "100KB"\necn = { enabled = false }\npfc = { mode = "off" }',
            host=FIXED,
        )
    )
    assert run.arrays.port["drops"].sum() > 0
    assert run.requester["again"].sum() == 0
    assert (run.responder["msn"] < 200).all()
    assert (run.responder["msn"] > 0).any()
    if service == "ud":
        lost = run.arrays.port["drops"].sum()
        assert run.responder["msn"].sum() + lost == 400


def test_acknowledgements_are_coalesced():
    def acks(every):
        run = Run(text_scenario(PAIR + 'message = "64KB"\ncount = 10', host=f"ack = {{ every = {every} }}"))
        delivered(run, 10, 640_000)
        return int(run.built.w["frames_sent"]) // 2 - 10 * 63

    assert acks(1) == 630
    assert acks(16) == 10 * 4
    assert acks(4096) == 10


def test_a_full_pool_is_one_clear_error():
    from roce_pkt.engine.session import Session
    from roce_pkt.errors import InputError

    session = Session(two_to_one(fabric='hosts = 3\ndelay = "100us"', host=FIXED))
    session.built.w["packets"] = 64
    with pytest.raises(InputError, match=r"all .* packets of the engine's pool are in use"):
        session.advance(10**9)
