"""Both sides of a queue pair react to faults; real Soft-RoCE captures with loss show the same patterns."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from roce_pkt import psn as serial
from roce_pkt.analysis.check import check
from roce_pkt.capture import open as open_capture
from roce_pkt.edit.impair import impair, truth_path
from roce_pkt.endpoint.behaviour import PROFILES
from roce_pkt.run.generate import Generation
from roce_pkt.scenario.reader import read_text
from roce_pkt.wire import aeth, ib, net
from roce_pkt.wire.frame import dissect

NEVER = "[[fault]]\ndo = 'drop'\nnth = 1000000000\n"


def scenario(traffic: str, faults: str = "", behaviour: str = "spec", more: str = "") -> str:
    return (
        "[fabric]\nhosts = 2\n[host]\nmtu = 256\nack = { every = 4096 }\n"
        f"transport = {{ behaviour = '{behaviour}' {more} }}\n[frames]\npsn = 1000\n"
        f"[[traffic]]\npattern = 'flows'\npairs = [[1, 0]]\ndepth = 8\n{traffic}\n{faults}"
    )


def write(text: str, path: Path) -> list[dict]:
    """Generate, and what matters of each frame."""
    Generation(read_text(text)).write(path, force=True)
    return frames_of(path)


def frames_of(path: Path) -> list[dict]:
    out = []
    for record in open_capture(path).records():
        read = dissect(record.octets)
        if read.bth is None or read.status != "ok" or not read.icrc.ok:
            continue
        ack, reth = read.find(ib.AETH), read.find(ib.RETH)
        out.append(
            {
                "number": record.number,
                "flow": read.find(net.IPV4).values["src"],
                "op": read.opcode.operation,
                "request": read.opcode.request,
                "psn": read.bth["psn"],
                "ask": read.bth["ackreq"],
                "last": read.opcode.ends_message,
                "starts": read.opcode.starts_message,
                "syndrome": ack.values["syndrome"] if ack else None,
                "msn": ack.values["msn"] if ack else None,
                "length": reth.values["dmalen"] if reth else None,
                "va": reth.values["va"] if reth else None,
                "size": read.payload_len,
            }
        )
    return out


@pytest.mark.parametrize(
    "traffic",
    [
        "verb = 'write'\nmessage = '1500B'\ncount = 20",
        "verb = 'send_imm'\nmessage = '700B'\ncount = 20\nload = '7Gbps'",
        "verb = 'read'\nmessage = '3000B'\ncount = 10",
        "verb = 'fetch_add'\nmessage = '8B'\ncount = 10",
        "verb = 'send'\ntransport = 'uc'\nmessage = '900B'\ncount = 10",
        "verb = 'write'\nmessage = '1500B'\ncount = 20\nqps = 3",
    ],
)
def test_without_a_fault_that_fits_it_is_what_the_compiled_schedule_makes(traffic: str, tmp_path: Path):
    plain, careful = tmp_path / "plain.pcap", tmp_path / "careful.pcap"
    write(scenario(traffic), plain)
    write(scenario(traffic, NEVER), careful)
    assert careful.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("pattern", ["ring-allreduce", "pipeline", "storage-mix"])
def test_scripts_run_to_their_end_through_losses(pattern: str, tmp_path: Path):
    text = (
        f"[fabric]\nhosts = 3\n[host]\ntransport = {{ timeout = 8 }}\n[[traffic]]\npattern = '{pattern}'\n"
        "verb = 'write_imm'\n"
        "message = '9000B'\ncount = 2\n"
    )
    clean, lossy = tmp_path / "clean.pcap", tmp_path / "lossy.pcap"
    want = write(text, clean)
    got = write(text + "[[fault]]\ndo = 'drop'\nprobability = 0.15\n", lossy)

    def requests(frames: list[dict]) -> set[tuple]:
        return {
            (f["flow"], f["psn"], f["size"]) for f in frames if f["request"] and f["op"] != "read_request"
        }

    lost = [json.loads(line) for line in truth_path(lossy).read_text().splitlines()]
    assert len(lost) > 3
    assert requests(got) == requests(want)


def test_a_lost_request_is_named_by_one_nak_and_everything_from_it_is_sent_again(tmp_path: Path):
    fault = "[[fault]]\ndo = 'drop'\nopcode = 'RC_RDMA_WRITE_MIDDLE'\npsn = 1008\noccurrence = 1\n"
    frames = write(scenario("verb = 'write'\nmessage = '1500B'\ncount = 6", fault), tmp_path / "a.pcap")
    naks = [f for f in frames if f["syndrome"] == 0x60]
    assert [n["psn"] for n in naks] == [1008]
    after = [f["psn"] for f in frames if f["request"] and f["number"] > naks[0]["number"]]
    assert after == list(range(1008, 1036))
    assert frames[-1]["psn"] == 1035
    assert frames[-1]["msn"] == 6


def test_the_second_retransmission_can_be_hit(tmp_path: Path):
    fault = "[[fault]]\ndo = 'drop'\nopcode = 'RC_RDMA_WRITE_MIDDLE'\npsn = 1008\noccurrence = {}\n"
    faults = "".join(fault.format(n) for n in (1, 2, 3))
    path = tmp_path / "a.pcap"
    frames = write(
        scenario("verb = 'write'\nmessage = '1500B'\ncount = 6", faults, more=", timeout = 8"), path
    )
    assert len(truth_path(path).read_text().splitlines()) == 3
    assert sum(f["psn"] == 1008 and f["op"] == "write" for f in frames) == 1
    assert frames[-1]["msn"] == 6


def test_a_lost_acknowledgement_is_made_good_by_the_timer(tmp_path: Path):
    fault = "[[fault]]\ndo = 'drop'\nopcode = 'RC_ACKNOWLEDGE'\nnth = 1\n"
    text = scenario("verb = 'send'\nmessage = '600B'\ncount = 1", fault, more=", timeout = 10")
    path = tmp_path / "a.pcap"
    frames = write(text, path)
    assert [f["op"] for f in frames] == ["send"] * 6 + ["ack"]
    times = [r.time_ns for r in open_capture(path).records()]
    assert times[3] - times[0] == (4096 << 10)


def test_a_lost_response_makes_the_requester_ask_for_the_rest(tmp_path: Path):
    fault = "[[fault]]\ndo = 'drop'\nopcode = 'RC_RDMA_READ_RESPONSE_MIDDLE'\npsn = 1004\noccurrence = 1\n"
    frames = write(scenario("verb = 'read'\nmessage = '2000B'\ncount = 1", fault), tmp_path / "a.pcap")
    first, again = (f for f in frames if f["request"])
    assert (again["psn"], again["length"], again["va"] - first["va"]) == (1004, 2000 - 4 * 256, 4 * 256)
    assert [f["psn"] for f in frames if f["op"] == "read_response"][-4:] == [1004, 1005, 1006, 1007]


@pytest.mark.parametrize(("behaviour", "answers"), [("spec", 1), ("rxe", 2)])
def test_a_duplicate_that_asks_for_nothing(behaviour: str, answers: int, tmp_path: Path):
    fault = "[[fault]]\ndo = 'duplicate'\nopcode = 'RC_SEND_FIRST'\ntime = '50us'\n"
    frames = write(
        scenario("verb = 'send'\nmessage = '600B'\ncount = 1", fault, behaviour), tmp_path / "a.pcap"
    )
    acks = [(f["psn"], f["msn"], f["syndrome"]) for f in frames if f["op"] == "ack"]
    assert acks == [(1002, 1, 31)] * answers


@pytest.mark.parametrize(("behaviour", "naks"), [("spec", 0), ("rxe", 1)])
def test_packets_behind_a_receiver_not_ready(behaviour: str, naks: int, tmp_path: Path):
    more = ", receive_queue = 1, repost = '200us', min_rnr_timer = 14"
    frames = write(
        scenario("verb = 'send'\nmessage = '600B'\ncount = 2", NEVER, behaviour, more), tmp_path / "a.pcap"
    )
    rnrs = [f for f in frames if f["syndrome"] is not None and aeth.ack_type(f["syndrome"]) == "rnr"]
    assert [(f["psn"], f["syndrome"]) for f in rnrs] == [(1003, 0x20 | 14)]
    assert sum(f["syndrome"] == 0x60 and f["psn"] == 1003 for f in frames) == naks
    assert frames[-1]["msn"] == 2


@pytest.mark.parametrize(("behaviour", "transmissions"), [("spec", 8), ("rxe", None)])
def test_seven_retries(behaviour: str, transmissions: int | None, tmp_path: Path):
    fault = "[[fault]]\ndo = 'drop'\nopcode = 'RC_ACKNOWLEDGE'\n"
    text = scenario("verb = 'send'\nmessage = '100B'\ncount = 1", fault, behaviour, ", timeout = 17")
    sends = [f for f in write(text, tmp_path / "a.pcap") if f["request"]]
    assert len(sends) == (transmissions or 38)  # 20 s of patience, 537 ms each


@pytest.mark.parametrize("kind", ["ce", "corrupt", "duplicate", "reorder", "delay", "truncate", "replay"])
def test_every_fault_is_survived_and_listed(kind: str, tmp_path: Path):
    fault = f"[[fault]]\ndo = '{kind}'\nprobability = 0.05\ntime = '3us'\n"
    path = tmp_path / "a.pcap"
    frames = write(
        scenario("verb = 'write'\nmessage = '1500B'\ncount = 40", fault, more=", timeout = 8"), path
    )
    truth = [json.loads(line) for line in truth_path(path).read_text().splitlines()]
    assert len(truth) > 3
    assert {t["do"] for t in truth} == {kind}
    assert max(f["msn"] for f in frames if f["msn"] is not None) == 40
    octets = [bytes(r.octets) for r in open_capture(path).records()]
    for t in truth:
        frame = octets[t["output_frame"] - 1]
        if kind == "ce":
            assert frame[15] & 3 == net.CE
        elif kind == "truncate":
            assert len(frame) == t["octets"]
        elif kind == "corrupt":
            assert dissect(frame).icrc.ok is False


# -- Soft-RoCE


def patterns(frames: list[dict]) -> dict[str, Counter]:
    """What both sides show, whatever was lost: gaps named, duplicates answered, READs asked again.

    Written for any capture between two hosts: a frame counts for a receiver when its effect shows.
    """
    found: dict[str, Counter] = {
        "nak": Counter(),
        "resend": Counter(),
        "read_again": Counter(),
        "ack": Counter(),
    }
    requests: list[dict] = []
    reads: dict[int, dict] = {}
    newest_ack: dict[str, int] | None = None
    naked: dict | None = None
    highest: int | None = None
    for f in frames:
        if f["request"]:
            if naked is not None and serial.distance(f["psn"], highest) <= 0:
                found["resend"]["from the PSN named" if f["psn"] == naked["psn"] else "elsewhere"] += 1
                naked = None
            if highest is None or serial.distance(f["psn"], highest) > 0:
                highest = f["psn"]
            if f["op"] == "read_request":
                for start, r in list(reads.items()):
                    into = serial.distance(f["psn"], start)
                    if 0 < into < -(-r["length"] // 256):
                        moved = (f["va"] - r["va"], r["length"] - f["length"]) == (256 * into, 256 * into)
                        found["read_again"]["rest of it" if moved else "otherwise"] += 1
                if f["psn"] not in reads and not any(
                    0 < serial.distance(f["psn"], s) < -(-r["length"] // 256) for s, r in reads.items()
                ):
                    reads[f["psn"]] = f
            requests.append(f)
        elif f["op"] == "ack" and f["syndrome"] == 0x60:
            sent = {r["psn"] for r in requests}
            # a NAK names a packet that was sent before, never one that was acknowledged
            behind = newest_ack is None or serial.distance(f["psn"], newest_ack["psn"]) > 0
            found["nak"][
                "a packet that was sent, not acknowledged" if f["psn"] in sent and behind else "other"
            ] += 1
            naked = f
        elif f["op"] == "ack":
            if newest_ack is not None and f["psn"] == newest_ack["psn"]:
                found["ack"][
                    "again, same PSN and MSN" if f["msn"] == newest_ack["msn"] else "again, other MSN"
                ] += 1
            elif newest_ack is not None and serial.distance(f["psn"], newest_ack["psn"]) < 0:
                found["ack"]["backwards"] += 1
            newest_ack = f
    return found


REAL = {
    "loss_egress_req": "[[fault]]\ndo = 'drop'\nsrc = '10.0.0.2'\nprobability = 0.03\n",
    "loss_ingress_resp": "[[fault]]\ndo = 'drop'\nseen = true\nsrc = '10.0.0.2'\nprobability = 0.03\n",
    "loss_egress_resp": "[[fault]]\ndo = 'drop'\nsrc = '10.0.0.1'\nprobability = 0.03\n",
    "loss_ingress_req": "[[fault]]\ndo = 'drop'\nseen = true\nsrc = '10.0.0.1'\nprobability = 0.03\n",
    "duplicate": "[[fault]]\ndo = 'duplicate'\nprobability = 0.03\n",
    "reorder": "[[fault]]\ndo = 'delay'\ntime = '6ms'\nsrc = '10.0.0.2'\nprobability = 0.02\n",
    "corrupt_req_5pct": "[[fault]]\ndo = 'corrupt'\nsrc = '10.0.0.2'\nwhat = 'bit'\nprobability = 0.05\n",
}


def real_capture(name: str, pcaps: Path) -> Path:
    """A shipped capture, or one of the larger set, or skip."""
    shipped = pcaps / f"{name}.pcap"
    larger = Path(os.environ.get("ROCE_PKT_CAPTURES", "/nowhere")) / f"s3_{name}.pcap"
    for path in (shipped, larger):
        if path.is_file():
            return path
    pytest.skip("not among the shipped captures, and ROCE_PKT_CAPTURES names no folder that has it")


@pytest.mark.parametrize("name", REAL)
def test_the_rxe_profile_shows_the_patterns_of_soft_roce(name: str, pcaps: Path, tmp_path: Path):
    real = patterns(frames_of(real_capture(name, pcaps)))
    ours: dict[str, Counter] = {}
    for verb, size in (("write", 1500), ("send", 1501), ("read", 1500)):
        for depth in (1, 8):
            text = scenario(f"verb = '{verb}'\nmessage = '{size}B'\ncount = 90", REAL[name], "rxe")
            text = text.replace("depth = 8", f"depth = {depth}")
            for kind, seen in patterns(write(text, tmp_path / "a.pcap")).items():
                ours.setdefault(kind, Counter()).update(seen)
    for kind, seen in real.items():
        if sum(seen.values()) > 4:
            assert ours[kind].most_common(1)[0][0] == seen.most_common(1)[0][0], kind
        frequent = {what for what, count in ours[kind].items() if count > 0.2 * sum(ours[kind].values())}
        assert frequent <= set(seen) or not seen, kind


def test_reads_with_loss_restart_like_soft_roce(pcaps: Path, tmp_path: Path):
    real = patterns(frames_of(real_capture("loss_reads", pcaps)))
    fault = "[[fault]]\ndo = 'drop'\nseen = true\nsrc = '10.0.0.1'\nprobability = 0.04\n"
    ours = patterns(
        write(scenario("verb = 'read'\nmessage = '3000B'\ncount = 60", fault, "rxe"), tmp_path / "a.pcap")
    )
    assert real["read_again"]["rest of it"] > 10
    assert ours["read_again"]["rest of it"] > 10
    assert set(ours["read_again"]) == set(real["read_again"])


def test_receiver_not_ready_looks_like_soft_roce(pcaps: Path, tmp_path: Path):
    def after_rnr(frames: list[dict]) -> Counter:
        """For each RNR NAK: what the next answer says, relative to the PSN refused."""
        answers = [f for f in frames if f["op"] == "ack"]
        return Counter(
            (later["syndrome"], serial.distance(later["psn"], rnr["psn"]))
            for rnr, later in pairwise(answers)
            if aeth.ack_type(rnr["syndrome"]) == "rnr"
        )

    real = after_rnr(frames_of(pcaps / "err_rnr_t12.pcap"))
    more = ", receive_queue = 1, repost = '3ms', min_rnr_timer = 12"
    text = scenario("verb = 'send'\nmessage = '600B'\ncount = 3", NEVER, "rxe", more)
    ours = after_rnr(write(text, tmp_path / "a.pcap"))
    assert set(real) == {(0x60, 0)}
    assert sum(ours.values()) > 3
    assert set(ours) == set(real)


def test_the_profile_has_every_switch():
    assert all(getattr(PROFILES["rxe"], name) for name in PROFILES["rxe"].__slots__)
    assert not any(getattr(PROFILES["spec"], name) for name in PROFILES["spec"].__slots__)


def test_check_sees_loss_but_no_wrong_frame(tmp_path: Path):
    path = tmp_path / "a.pcap"
    fault = "[[fault]]\ndo = 'drop'\nprobability = 0.02\n"
    write(scenario("verb = 'write'\nmessage = '1500B'\ncount = 60", fault), path)
    verdict = check(open_capture(path))
    assert not verdict.failed


UNHEARD = {
    "drop": "do = 'drop'\nprobability = 0.05\nburst = 2\n",
    "seen": "do = 'drop'\nseen = true\nprobability = 0.05\n",
    "occurrence": "do = 'drop'\noccurrence = 1\nprobability = 0.1\n",
    "message": "do = 'ce'\nmessage = 7\n",
    "ce": "do = 'ce'\nprobability = 0.1\n",
    "corrupt": "do = 'corrupt'\nprobability = 0.05\n",
    "truncate": "do = 'truncate'\nbytes = 50\nprobability = 0.05\n",
    "reorder": "do = 'reorder'\ndistance = 700\nprobability = 0.2\n",
    "replay": "do = 'replay'\ndistance = 30\nprobability = 0.1\n",
    "duplicate": "do = 'duplicate'\nprobability = 0.1\n",
    "delay": "do = 'delay'\ntime = '90us'\nprobability = 0.3\n",
}


@pytest.mark.parametrize(
    "names", [[name] for name in UNHEARD] + [["corrupt", "reorder", "drop", "ce", "replay"]]
)
def test_where_nobody_reacts_it_is_what_impair_does_to_the_same_frames(names: list[str], tmp_path: Path):
    text = scenario(
        "verb = 'send'\ntransport = 'uc'\nsizes = 'uniform'\nmessage = '900B'\ncount = 2500\nqps = 3"
    )
    faults = "".join(f"[[fault]]\n{UNHEARD[name]}" for name in names)
    plain, reacting, impaired = (tmp_path / f"{name}.pcap" for name in ("plain", "reacting", "impaired"))
    Generation(read_text(text + "[[fault]]\ndo = 'drop'\nnth = 1000000000\n")).write(plain)
    done = Generation(read_text(text + faults)).write(reacting)
    told = impair(open_capture(plain), impaired, read_text(text + faults).fault, seed=read_text(text).seed)
    assert reacting.read_bytes() == impaired.read_bytes()
    assert truth_path(reacting).read_bytes() == truth_path(impaired).read_bytes()
    assert done.faults == told.faults
    assert sum(done.faults.values()) > 3
