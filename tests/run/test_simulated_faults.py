"""Faults in a simulation: a reader finds what the truth says, and both ends react as without a fabric."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from roce_pkt.capture import open as open_capture
from roce_pkt.cli.app import run
from roce_pkt.edit.impair import truth_path
from roce_pkt.run.generate import Generation
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario.reader import read_text
from roce_pkt.wire import aeth, ib, net
from roce_pkt.wire.frame import dissect

DATA_QP = 0x11


def scenario(traffic: str, faults: str = "", more: str = "", taps: str = '"host1"') -> str:
    return (
        f"taps = [{taps}]\nduration = '60ms'\n[fabric]\nhosts = 2\n"
        "[host]\nmtu = 256\nack = { every = 4096 }\n"
        f"cc = {{ algorithm = 'fixed' }}\ntransport = {{ timeout = 8 }}\n[frames]\npsn = 1000\n{more}\n"
        f"[[traffic]]\npattern = 'flows'\npairs = [[1, 0]]\ndepth = 8\n{traffic}\n{faults}"
    )


def fault(**keys: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "[[fault]]\n" + "\n".join(lines) + "\n"


def simulated(text: str, path: Path) -> list[dict]:
    """Simulate; what the truth file says."""
    (path.parent / "s.toml").write_text(text)
    assert run(["simulate", str(path.parent / "s.toml"), "-o", str(path), "--force"]) in (0, 1)
    return [json.loads(line) for line in truth_path(path).read_text().splitlines()]


def frames_of(path: Path) -> list[dict]:
    """Every frame, read without the room's own code."""
    out = []
    for record in open_capture(path).records():
        read = dissect(record.octets)
        ack = read.find(ib.AETH)
        ip = read.find(net.IPV4)
        whole = read.bth is not None and read.status == "ok" and read.icrc is not None and read.icrc.ok
        out.append(
            {
                "number": record.number,
                "octets": bytes(record.octets),
                "whole": whole,
                "psn": read.bth["psn"] if read.bth else None,
                "qp": read.bth["dqpn"] if read.bth else None,
                "name": read.opcode.name if whole and read.opcode else "",
                "ecn": ip.values["ecn"] if ip else None,
                "syndrome": ack.values["syndrome"] if ack else None,
                "src": ip.values["src"] if ip else None,
            }
        )
    return out


WRITES = "verb = 'write'\nmessage = '1500B'\ncount = 20"
ON_DATA = {"opcode": "RC_RDMA_WRITE_MIDDLE"}


def test_dropped_frames_are_those_that_are_missing(tmp_path: Path):
    path = tmp_path / "x.pcapng"
    told = simulated(scenario(WRITES, fault(do="drop", probability=0.1, count=9, **ON_DATA)), path)
    sent = [f["psn"] for f in frames_of(path) if "WRITE" in f["name"]]
    # go-back-N sends everything from the lost one on: what is not in front of a repetition was dropped
    missing, expected = [], 1000
    for psn in sent:
        missing += range(expected, psn) if psn > expected else []
        expected = psn + 1
    assert missing == [line["psn"] for line in told]
    assert len(told) == 9
    assert all(line["output_frame"] is None for line in told)
    assert set(range(1000, 1000 + 120)) == set(sent)


def test_marked_frames_are_those_with_ce(tmp_path: Path):
    path = tmp_path / "x.pcapng"
    told = simulated(scenario(WRITES, fault(do="ce", probability=0.2, src="10.0.0.2")), path)
    marked = [f["number"] for f in frames_of(path) if f["ecn"] == 3]
    assert marked == [line["output_frame"] for line in told]
    assert len(told) > 10


@pytest.mark.parametrize("what", ["payload", "bit"])
def test_corrupted_frames_differ_in_the_bit_that_is_told(what: str, tmp_path: Path):
    path, plain = tmp_path / "x.pcapng", tmp_path / "p.pcapng"
    told = simulated(
        scenario(WRITES, fault(do="corrupt", what=what, probability=0.1, count=12, src="10.0.0.2")), path
    )
    simulated(scenario(WRITES, fault(do="drop", nth=1 << 30)), plain)
    clean = {f["psn"]: f["octets"] for f in frames_of(plain) if f["qp"] == DATA_QP and "WRITE" in f["name"]}
    frames = {f["number"]: f for f in frames_of(path)}
    for line in told:
        bit, octets = line["bit"], bytearray(frames[line["output_frame"]]["octets"])
        octets[bit // 8] ^= 0x80 >> bit % 8
        # a repetition asks for acknowledgement where the first may not: those bits belong to the BTH
        same = clean[line["psn"]]
        assert bytes(octets[:50]) == same[:50]
        assert bytes(octets[54:-4]) == same[54:-4]
    wrong = [number for number, f in frames.items() if not f["whole"]]
    assert set(wrong) <= {line["output_frame"] for line in told}
    assert len(wrong) >= (12 if what == "payload" else 6)


def test_truncated_frames_end_where_they_are_told_to(tmp_path: Path):
    path = tmp_path / "x.pcapng"
    told = simulated(scenario(WRITES, fault(do="truncate", bytes=70, nth=5)), path)
    short = [f["number"] for f in frames_of(path) if len(f["octets"]) == 70]
    assert short == [line["output_frame"] for line in told]
    assert len(short) == 1


def test_doubled_frames_are_doubled(tmp_path: Path):
    path = tmp_path / "x.pcapng"
    told = simulated(scenario(WRITES, fault(do="duplicate", probability=0.1, src="10.0.0.2")), path)
    seen = Counter(f["psn"] for f in frames_of(path) if "WRITE" in f["name"])
    assert sorted(psn for psn, times in seen.items() if times == 2) == [line["psn"] for line in told]
    assert len(told) > 3


@pytest.mark.parametrize("distance", [1, 4])
def test_reordered_frames_come_behind_those_that_pass(distance: int, tmp_path: Path):
    path = tmp_path / "x.pcapng"
    told = simulated(scenario(WRITES, fault(do="reorder", distance=distance, nth=9, src="10.0.0.2")), path)
    psns = [f["psn"] for f in frames_of(path) if "WRITE" in f["name"]]
    late = told[0]["psn"]
    assert late == 1008
    first = psns.index(late)
    assert psns[first - distance : first] == list(range(late + 1, late + 1 + distance))


def test_delayed_frames_come_later(tmp_path: Path):
    path = tmp_path / "x.pcapng"
    told = simulated(scenario(WRITES, fault(do="delay", time="30us", nth=7, src="10.0.0.2")), path)
    record = next(r for r in open_capture(path).records() if r.number == told[0]["output_frame"])
    assert record.time_ns == pytest.approx(told[0]["time_ns"] + 30_000, abs=300)
    result = simulate(read_text(scenario(WRITES, fault(do="delay", time="30us", nth=7))))
    assert result.flows[0].messages == 20


def pattern(frames: list[dict]) -> list[tuple]:
    """Who sent what in which order, as far as a fault decides it: NAKs, and where sending starts again."""
    out, expected = [], 1000
    for f in frames:
        if "WRITE" in f["name"] or "SEND" in f["name"]:
            if f["psn"] < expected:
                out.append(("again from", f["psn"]))
            expected = f["psn"] + 1
        elif f["syndrome"] is not None and aeth.TYPES[f["syndrome"] >> 5] == "nak":
            out.append(("nak", f["psn"]))
    return out


RULES = [
    fault(do="drop", psn=1007, occurrence=1, **ON_DATA),
    fault(do="drop", psn=1007, occurrence=1, **ON_DATA) + fault(do="drop", psn=1007, occurrence=2, **ON_DATA),
    fault(do="drop", message=3, nth=2, src="10.0.0.2"),
    fault(do="drop", opcode="RC_RDMA_WRITE_LAST", nth=20),
    fault(do="drop", nth=10, burst=5, src="10.0.0.2"),
    fault(do="corrupt", psn=1010, occurrence=1, **ON_DATA),
    fault(do="truncate", psn=1010, occurrence=1, **ON_DATA),
    fault(do="duplicate", psn=1010, **ON_DATA),
    fault(do="reorder", psn=1010, occurrence=1, **ON_DATA),
    fault(do="drop", opcode="RC_ACKNOWLEDGE", nth=2),
]


@pytest.mark.parametrize("rule", RULES)
def test_both_ends_react_as_without_a_fabric(rule: str, tmp_path: Path):
    text = scenario(WRITES.replace("count = 20", "count = 6"), rule)
    ours, theirs = tmp_path / "sim.pcapng", tmp_path / "gen.pcapng"
    told = simulated(text, ours)
    Generation(read_text(text)).write(theirs, force=True)
    said = [json.loads(line) for line in truth_path(theirs).read_text().splitlines()]
    keys = ("do", "rule", "src", "dst", "dqpn", "opcode", "psn")
    assert [[line[key] for key in keys] for line in told] == [[line[key] for key in keys] for line in said]
    one, other = (pattern([f for f in frames_of(path) if f["whole"]]) for path in (ours, theirs))
    if "reorder" in rule:  # the frame that comes late meets the repetition a round trip later, or sooner
        one, other = sorted(one), sorted(other)
    assert one == other


def test_a_lost_response_is_asked_for_again():
    lost = fault(do="drop", opcode="RC_RDMA_READ_RESPONSE_MIDDLE", nth=3)
    result = simulate(read_text(scenario("verb = 'read'\nmessage = '3000B'\ncount = 10", lost)))
    assert [line["opcode"] for line in result.faults] == ["RC_RDMA_READ_RESPONSE_MIDDLE"]
    assert result.flows[0].messages == 10
    assert result.flows[0].naks == 1


def test_chance_bursts_and_limits_are_kept():
    rule = fault(do="ce", probability=0.05, burst=3, count=30, src="10.0.0.2")
    result = simulate(read_text(scenario("message = '100KB'\ncount = 20", rule)))
    psns = [line["psn"] for line in result.faults]
    assert len(psns) == 30
    runs = [n for n in range(0, 30, 3) if psns[n : n + 3] == list(range(psns[n], psns[n] + 3))]
    assert len(runs) == 10
    assert simulate(read_text(scenario("message = '100KB'\ncount = 20", rule))).faults == result.faults


def test_harmless_corruption_arrives():
    covered = {"bth.psn": True, "ip.ttl": True, "udp.chksum": False, "bth.resv6": False, "eth.src": False}
    for name, hurts in covered.items():
        rule = fault(do="corrupt", what="field", field=name, nth=3, src="10.0.0.2")
        flow = simulate(read_text(scenario(WRITES, rule))).flows[0]
        assert (flow.damaged, flow.naks > 0) == (int(hurts), hurts), name


def test_faults_under_scripts_and_lists_are_recovered():
    text = (
        "duration = '200ms'\n[fabric]\nhosts = 4\n[host]\ntransport = { timeout = 8 }\n[[traffic]]\n"
        "pattern = 'storage-mix'\nsizes = 'storage'\ncount = 20\n" + fault(do="drop", probability=0.02)
    )
    result = simulate(read_text(text))
    assert len(result.faults) > 10
    assert all(f.completion_ns is not None for f in result.flows)
