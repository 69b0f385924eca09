"""Whom a notification is for: by evidence, by being the only one, or honestly nobody."""

import pytest
from crafted import READ_REQUEST, READ_RESPONSE_ONLY, RECEIVER, SENDER, ack, cnp, data, datagram, frame, pcap

from roce_pkt.capture import open as open_capture
from roce_pkt.flows import pairs
from roce_pkt.flows.survey import Survey


def read(path):
    survey = Survey()
    rows = [survey.add(batch) for batch in open_capture(path)]
    return survey, rows


def owners(tmp_path, frames):
    """For each kind of CNP (by its QPN): the destination QPN of the flow it is for, or its candidates'."""
    survey, batches = read(pcap(tmp_path / "c.pcap", frames))
    evidence = pairs.Evidence(survey, pairs.ambiguous(survey))
    for rows in batches:
        evidence.add(rows)
    out = {}
    dqpn = [key[4] for key in survey.flows.keys]
    for number, owner in enumerate(pairs.owners(survey, evidence.partners())):
        found = None if owner.flow is None else dqpn[owner.flow]
        out[survey.cnps.keys[number][4]] = found or [dqpn[c] for c in owner.candidates]
    return out


@pytest.mark.parametrize("name", ["rc_two_qps_parallel", "write_4qp", "nvme_connect_io", "srq"])
def test_acknowledgements_pair_real_queue_pairs(pcaps, name):
    """In these captures both ends of a connection happen to have the same number: the known truth."""
    survey, batches = read(pcaps / f"{name}.pcap")
    evidence = pairs.Evidence(survey, range(len(survey.flows)))
    for rows in batches:
        evidence.add(rows)
    partners = evidence.partners()
    dqpn = [key[4] for key in survey.flows.keys]
    reliable = [flow for flow in range(len(dqpn)) if flow not in survey.senders]
    assert sorted(partners) == reliable
    assert all(dqpn[a] == dqpn[b] and partners[b] == a for a, b in partners.items())


def test_the_only_pair_between_two_addresses(tmp_path):
    assert owners(tmp_path, [(0, data(ce=True)), (1, cnp())]) == {0x11: 0x22}
    assert owners(tmp_path, [(0, data(ce=True)), (1, cnp()), (2, ack())]) == {0x11: 0x22}


def test_a_number_that_contradicts_the_only_pair_is_not_joined(tmp_path):
    assert owners(tmp_path, [(0, data()), (1, ack()), (2, cnp(dqpn=0x99))]) == {0x99: [0x22]}


def test_two_pairs_without_evidence_are_candidates(tmp_path):
    frames = [(0, data(dqpn=0x22)), (1, data(dqpn=0x23)), (2, cnp())]
    assert owners(tmp_path, frames) == {0x11: [0x22, 0x23]}


def test_two_pairs_with_acknowledgements(tmp_path):
    frames = []
    for i in range(10):
        frames += [(i, data(100 + i, dqpn=0x22)), (i, data(7000 + i, dqpn=0x23))]
        frames += [(i, ack(100 + i, dqpn=0x12)), (i, ack(7000 + i, dqpn=0x11))]
    frames += [(11, cnp(dqpn=0x11)), (12, cnp(dqpn=0x12))]
    assert owners(tmp_path, frames) == {0x11: 0x23, 0x12: 0x22}


def test_equal_sequence_numbers_are_no_evidence(tmp_path):
    frames = []
    for i in range(10):
        frames += [(i, data(i, dqpn=0x22)), (i, data(i, dqpn=0x23))]
        frames += [(i, ack(i, dqpn=0x12)), (i, ack(i, dqpn=0x11))]
    assert owners(tmp_path, [*frames, (11, cnp(dqpn=0x11))]) == {0x11: [0x22, 0x23]}


def test_a_few_coincidences_do_not_spoil_the_evidence(tmp_path):
    frames = [(0, data(i, dqpn=0x23)) for i in (103, 104)]
    for i in range(10):
        frames += [(i, data(100 + i, dqpn=0x22)), (i, ack(100 + i, dqpn=0x12))]
    frames += [(i, data(500 + i, dqpn=0x23)) for i in range(9)]
    frames += [(i, ack(500 + i, dqpn=0x11)) for i in range(9)]
    assert owners(tmp_path, [*frames, (11, cnp(dqpn=0x11)), (11, cnp(dqpn=0x12))]) == {0x11: 0x23, 0x12: 0x22}


def test_read_responses_are_data_and_evidence(tmp_path):
    """The reader (10.0.0.1, QP 0x11) is told nothing; the notification goes to the responder, QP 0x22."""
    frames = []
    for i in range(4):
        for reader, responder in ((0x11, 0x22), (0x12, 0x23)):
            psn = reader * 1000 + i
            frames.append((i, frame(SENDER, RECEIVER, READ_REQUEST, responder, psn, bytes(16))))
            answer = bytes(4) + bytes(512)
            frames.append((i, frame(RECEIVER, SENDER, READ_RESPONSE_ONLY, reader, psn, answer, ecn=3)))
    frames.append((9, cnp(src=SENDER, dst=RECEIVER, dqpn=0x22)))
    assert owners(tmp_path, frames) == {0x22: 0x11}


def test_a_datagram_names_its_sender(tmp_path):
    frames = [(0, datagram(dqpn=0x22, sqpn=0x11)), (1, datagram(dqpn=0x23, sqpn=0x12)), (2, cnp(dqpn=0x12))]
    assert owners(tmp_path, frames) == {0x12: 0x23}


def test_one_datagram_sender_with_two_destinations_is_not_guessed(tmp_path):
    frames = [(0, datagram(dqpn=0x22, sqpn=0x11)), (1, datagram(dqpn=0x23, sqpn=0x11)), (2, cnp(dqpn=0x11))]
    assert owners(tmp_path, frames) == {0x11: [0x22, 0x23]}


def test_management_datagrams_do_not_hide_the_only_pair(tmp_path):
    frames = [(0, datagram(dqpn=1, sqpn=1)), (1, datagram(src=RECEIVER, dst=SENDER, dqpn=1, sqpn=1))]
    assert owners(tmp_path, [*frames, (2, data(ce=True)), (3, cnp())]) == {0x11: 0x22}


def test_nothing_to_be_for(tmp_path):
    assert owners(tmp_path, [(0, cnp())]) == {0x11: []}
