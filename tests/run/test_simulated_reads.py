"""READs in simulated frames: as long as the engine has them, answered as `generate` and kernels do."""

from __future__ import annotations

from pathlib import Path

import pytest

from roce_pkt.capture import open as open_capture
from roce_pkt.engine.frame_sizes import FrameSizes
from roce_pkt.engine.session import Session, Sinks
from roce_pkt.run.generate import Generation
from roce_pkt.run.simulate import simulate
from roce_pkt.run.simulation_faults import DoneFaults
from roce_pkt.run.simulation_frames import FrameMaker
from roce_pkt.run.simulation_names import Names
from roce_pkt.scenario.reader import read_text
from roce_pkt.wire import ib
from roce_pkt.wire.frame import dissect

FCS = 4
READS = "verb = 'read'\nmessage = '5KB'\ncount = 3"


def scenario(traffic: str, lost: str = "", tap: str = "host0", more: str = "") -> str:
    return (
        f"taps = ['{tap}']\nduration = '20ms'\n[fabric]\nhosts = 2\n[host]\nmtu = 1024\n"
        f"ack = {{ every = 4 }}\n{more}[frames]\npsn = 1000\n"
        f"[[traffic]]\npattern = 'flows'\npairs = [[0, 1]]\n{traffic}\n"
        + (f"[[fault]]\ndo = 'drop'\n{lost}\n" if lost else "")
    )


def story(octets: list[bytes]) -> list[tuple[object, ...]]:
    """What each frame says: opcode, PSN, whether it asks, and its READ's length or its answer's MSN."""
    out = []
    for one in octets:
        read = dissect(one)
        assert read.opcode is not None
        assert read.bth is not None
        reth, answer = read.find(ib.RETH), read.find(ib.AETH)
        out.append(
            (
                read.opcode.name,
                read.bth["psn"],
                read.bth["ackreq"],
                None if reth is None else reth.values["dmalen"],
                None if answer is None else answer.values["msn"],
            )
        )
    return out


def frames(text: str) -> list[bytes]:
    kept: list[bytes] = []
    result = simulate(read_text(text), on_frame=lambda record, _: kept.append(bytes(record.octets)))
    assert all(flow.completion_ns is not None for flow in result.flows)
    return kept


def requests(told: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [one for one in told if str(one[0]).endswith("REQUEST")]


@pytest.mark.parametrize(
    "lost",
    [
        "opcode = 'RC_RDMA_READ_RESPONSE_MIDDLE'\nnth = 3",
        "opcode = 'RC_RDMA_READ_RESPONSE_MIDDLE'\nnth = 4",
        "opcode = 'RC_RDMA_READ_RESPONSE_FIRST'\nnth = 2",
        "opcode = 'RC_RDMA_READ_RESPONSE_LAST'\nnth = 2",
    ],
)
def test_a_read_of_the_rest_is_answered_as_generate_does(lost: str, tmp_path: Path):
    text = scenario(READS, lost)
    ours = story(frames(text))
    path = tmp_path / "g.pcapng"
    Generation(read_text(text)).write(path, force=True)
    theirs = story([bytes(record.octets) for record in open_capture(path).records()])
    for part in (requests, lambda told: [one for one in told if one not in requests(told)]):
        assert part(ours) == part(theirs)


def test_the_first_answer_to_a_read_of_the_rest_is_a_first_or_an_only():
    # 5 packets; what is asked again begins at the fourth, then at the last
    told = story(frames(scenario(READS, "opcode = 'RC_RDMA_READ_RESPONSE_MIDDLE'\nnth = 3")))
    asked = {psn: length for name, psn, _, length, _ in requests(told)}
    assert asked[1003] == 5000 - 3 * 1024
    assert ("RC_RDMA_READ_RESPONSE_FIRST", 1003, 0, None, 3) in told
    assert not any(name == "RC_RDMA_READ_RESPONSE_MIDDLE" and psn == 1003 for name, psn, *_ in told)
    told = story(frames(scenario(READS, "opcode = 'RC_RDMA_READ_RESPONSE_LAST'\nnth = 1")))
    assert ("RC_RDMA_READ_RESPONSE_ONLY", 1004, 0, None, 3) in told


def test_reads_of_unlike_lengths_are_asked_again_alike():
    lost = "opcode = 'RC_RDMA_READ_RESPONSE_MIDDLE'\nnth = 4\n"
    text = scenario("verb = 'read'\nsizes = 'uniform'\nmessage = '9KB'\nload = '50%'\ncount = 9", lost)
    told = story(frames(text))
    asked: list[object] = []
    rests = []
    for _, psn, *_ in requests(told):
        rests += [psn] if asked and psn < max(asked) and psn not in asked else []
        asked.append(psn)
    assert rests
    for rest in rests:
        answers = [str(one[0]) for one in told if one[1] == rest and "RESPONSE" in str(one[0])]
        assert answers[-1] in ("RC_RDMA_READ_RESPONSE_FIRST", "RC_RDMA_READ_RESPONSE_ONLY")
    begun = [psn for name, psn, *_ in told if str(name).endswith(("RESPONSE_FIRST", "RESPONSE_ONLY"))]
    assert set(begun) <= set(asked)  # nothing begins where nobody asked


def test_reads_ask_and_answers_do_not_and_count_what_is_done():
    told = story(frames(scenario(READS)))
    assert [one[2] for one in requests(told)] == [1, 1, 1]
    answers = [one for one in told if one not in requests(told)]
    assert {one[2] for one in answers} == {0}
    assert [one[4] for one in answers if one[4] is not None] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "traffic",
    [
        "verb = 'read'\nmessage = '1000B'\ncount = 5",
        READS,
        "verb = 'read'\nsizes = 'uniform'\nmessage = '4KB'\nload = '40%'\ncount = 20",
        "verb = 'write'\nmessage = '1000B'\ncount = 5",
        "verb = 'write_imm'\nmessage = '3000B'\ncount = 5",
        "verb = 'write_imm'\nsizes = 'uniform'\nmessage = '4KB'\nload = '40%'\ncount = 20",
        "verb = 'send_inv'\nmessage = '3001B'\ncount = 5",
        "verb = 'fetch_add'\nmessage = '8B'\ncount = 5",
        "verb = 'send'\ntransport = 'ud'\nmessage = '1000B'\ncount = 5",
        "verb = 'send_imm'\ntransport = 'uc'\nmessage = '3000B'\ncount = 5",
    ],
)
@pytest.mark.parametrize("lost", ["", "nth = 3"])
@pytest.mark.parametrize("more", ["", "ip = 'ipv6'\nvlan = 7\n"])
def test_frames_are_as_long_as_the_engine_has_them(traffic: str, lost: str, more: str):
    sinks, kept = Sinks(), []
    loaded = read_text(scenario(traffic, lost, more=more))
    session = Session(loaded, sinks)
    names = Names(loaded, session.built)
    maker = FrameMaker(names, DoneFaults(names))

    def sink(rows):
        kept.extend(zip(rows["size"].tolist(), rows["kind"].tolist(), maker.records(rows), strict=True))

    sinks.frames = sink
    session.prepare()
    session.advance(loaded.duration_ps)
    assert len(kept) > 3
    for size, _, record in kept:
        assert max(len(record.octets) + FCS, 64) == size


def test_an_only_response_has_one_aeth():
    sizes = FrameSizes(read_text(scenario(READS)))
    assert sizes.around("read", "rc") == (4, 4, 4)
    assert sizes.around("write_imm", "rc") == (16, 4, 20)
    assert sizes.around("send_imm", "ud") == (8, 4, 12)
    # Ethernet, IPv4, UDP, BTH, AETH, ICRC, FCS
    assert sizes.base + sizes.around("read", "rc").only == 14 + 20 + 8 + 12 + 4 + 4 + 4
