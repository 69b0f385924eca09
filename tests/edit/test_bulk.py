"""What is done to many frames at a time is what is done to them one by one, octet for octet."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from cases import PATHS, cases
from conftest import PCAPS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roce_pkt.capture import Record
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcap, write_pcapng
from roce_pkt.edit import bulk
from roce_pkt.edit.anonymise import anonymous
from roce_pkt.edit.count import Messages, Transmissions
from roce_pkt.edit.fault_words import fault_from_words
from roce_pkt.edit.impair import Impairer, impair, truth_path
from roce_pkt.edit.mapping import Mapping, parse_map
from roce_pkt.edit.repair import repair_icrc
from roce_pkt.edit.rewrite import Orders, rewrite
from roce_pkt.errors import InputError
from roce_pkt.wire.build import roce_frame
from roce_pkt.wire.frame import dissect

SMALL = [path for path in PCAPS if path.stat().st_size < 60_000][::4]
TO_IPV4 = ("ip:fd00::1=10.1.1.1", "ip:fd00::2=10.1.1.2", "ip:fe80::1=10.2.1.1", "ip:fe80::2=10.2.1.2")


def orders(*texts: str, **others: object) -> Orders:
    maps: dict[str, Mapping] = {}
    for text in texts:
        parse_map(text, maps)
    return Orders(maps, **others)


LAYOUTS = {
    "push": orders("vlan:none=100", "pcp:*=4", "psn:+7"),
    "pop": orders("vlan:100=none", "vlan:7=9"),
    "one tag for all": orders("vlan:*=5"),
    "ipv6": orders("dscp:+1", family="ipv6"),
    "rocev1": orders("vlan:none=9", "ttl:+3", "sport:+1", family="rocev1"),
    "ipv4": orders(*TO_IPV4, "qpn:+5", family="ipv4"),
    "zero": orders(payload="zero"),
    "random": orders(payload="random", seed=5),
    "fix": orders(icrc="fix"),
    "bad": orders("psn:+3", icrc="bad"),
    "keep": orders("psn:+3", icrc="keep"),
    "anonymous": Orders(anonymous("k"), payload="zero", drop_other=True),
}


def both_ways(source: Path, what: Orders, tmp_path: Path, monkeypatch) -> None:
    found = []
    for large in (True, False):
        monkeypatch.setattr(bulk, "large", lambda _, large=large: large)
        out = tmp_path / f"{large}"
        try:
            told = rewrite(open_capture(source), out, what, force=True)
            found.append((out.read_bytes(), told))
        except InputError as error:
            found.append((b"", str(error)))
    assert found[0] == found[1]


@pytest.mark.parametrize("path", SMALL, ids=lambda p: p.name)
@pytest.mark.parametrize("name", LAYOUTS)
def test_another_layout_in_bulk(path: Path, name: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(bulk, "in_place", lambda *_: False)
    both_ways(path, LAYOUTS[name], tmp_path, monkeypatch)


MADE = [case.octets for case in cases()]


@st.composite
def any_frames(draw):
    """Frames of every kind, some of them damaged, cut, or with octets behind them."""
    frames = []
    for frame in draw(st.lists(st.sampled_from(MADE), min_size=1, max_size=12)):
        octets = bytearray(frame)
        for at, value in draw(
            st.lists(st.tuples(st.integers(0, len(frame) - 1), st.integers(0, 255)), max_size=2)
        ):
            octets[at] = value
        wire = len(octets)
        if draw(st.integers(0, 5)) == 0:
            del octets[draw(st.integers(0, len(octets))) :]
        elif draw(st.integers(0, 5)) == 0:
            octets += bytes(draw(st.integers(1, 6)))
        frames.append((bytes(octets), max(wire, len(octets)) + draw(st.sampled_from((0, 0, 0, 4)))))
    return frames


@given(frames=any_frames(), name=st.sampled_from(sorted(LAYOUTS)), as_blocks=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_another_layout_of_any_octets(frames, name: str, as_blocks: bool, tmp_path: Path, monkeypatch):
    source = tmp_path / ("any.pcapng" if as_blocks else "any.pcap")
    notes = (("said",), ()) if as_blocks else ((), ())
    records = [
        Record(i + 1, 1000 * i, 0, 1, len(f), wire, f, notes[i % 2]) for i, (f, wire) in enumerate(frames)
    ]
    (write_pcapng if as_blocks else write_pcap)(source, records, force=True)
    monkeypatch.setattr(bulk, "in_place", lambda *_: False)
    both_ways(source, LAYOUTS[name], tmp_path, monkeypatch)


def test_wrong_icrcs_are_repaired_and_counted(pcaps: Path, tmp_path: Path):
    out = tmp_path / "out"
    done = repair_icrc(open_capture(pcaps / "corrupt_req_5pct.pcap"), out)
    before = [r.octets for r in open_capture(pcaps / "corrupt_req_5pct.pcap").records()]
    after = [r.octets for r in open_capture(out).records()]
    wrong = [n for n, octets in enumerate(before) if (i := dissect(octets).icrc) and i.ok is False]
    assert done.repaired == len(wrong) == sum(a != b for a, b in zip(before, after, strict=True))
    assert all(dissect(after[n]).icrc.ok for n in wrong)


# -- faults

FAULTS = {
    "drop": ["drop probability=0.1"],
    "by address": ["drop src=10.0.0.1 probability=0.3 burst=2", "ce dst=10.0.0.1 nth=5"],
    "occurrence": ["drop occurrence=2", "ce occurrence=1 probability=0.1"],
    "message": ["drop message=3", "ce message=5 count=3"],
    "delay": ["delay probability=0.2 time=2ms", "drop nth=7"],
    "delay in bursts": ["delay probability=0.1 time=300us burst=3", "ce probability=0.3"],
    "reorder": ["reorder probability=0.1 distance=7", "drop probability=0.1"],
    "replay": ["replay probability=0.1 distance=40", "duplicate probability=0.1"],
    "duplicate": ["duplicate probability=0.1 time=70us", "truncate probability=0.1 bytes=50"],
    "corrupt": ["corrupt probability=0.1", "corrupt what=bit probability=0.1",
                "corrupt what=field field=bth.psn probability=0.1"],
    "many": ["truncate bytes=70 probability=0.1", "ce probability=0.2", "corrupt probability=0.1",
             "reorder probability=0.1 burst=2", "drop probability=0.05 seen=true", "drop occurrence=2",
             "delay time=1ms probability=0.1", "replay opcode=RC_ACKNOWLEDGE probability=0.2"],
}  # fmt: skip


def one_by_one(source: Path, out: Path, words: list[str]) -> tuple[bytes, list[dict]]:
    """Every frame through the machine, as a generator with faults does it."""
    capture = open_capture(source)
    machine = Impairer([fault_from_words(text) for text in words], 7, capture.udp_port)
    records = chain((left for record in capture.records() for left in machine.take(record)), machine.end())
    if capture.format == "pcapng":
        write_pcapng(out, records, capture.interfaces, blocks=capture.blocks, comments=capture.comments)
    else:
        ns = open_capture(source).interfaces[0].resolution.exponent == 9
        write_pcap(out, records, nanosecond=ns)
    return out.read_bytes(), [json.loads(line) for line in machine.truth]


def in_batches(source: Path, out: Path, words: list[str]) -> tuple[bytes, list[dict]]:
    impair(open_capture(source), out, [fault_from_words(text) for text in words], seed=7)
    return out.read_bytes(), [json.loads(line) for line in truth_path(out).read_text().splitlines()]


@pytest.mark.parametrize(
    "path", [p for p in PCAPS if p.stem in ("clean", "loss_reads", "rping_v4", "ecn_ce_v6_write", "cmtime")
             or p.name == "dcqcn_two_to_one.pcapng.gz"], ids=lambda p: p.name,
)  # fmt: skip
@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_batches(path: Path, name: str, tmp_path: Path):
    assert in_batches(path, tmp_path / "b", FAULTS[name]) == one_by_one(path, tmp_path / "o", FAULTS[name])


@given(
    frames=st.lists(st.tuples(st.sampled_from(MADE), st.integers(0, 30)), min_size=1, max_size=60),
    words=st.lists(
        st.sampled_from([word for words in FAULTS.values() for word in words]), min_size=1, max_size=3
    ),
    forwards=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_faults_to_any_frames_at_any_times(frames, words, forwards: bool, tmp_path: Path):
    times = [t for _, t in frames]
    records = [
        Record(i + 1, 100_000 * (sum(times[:i]) if forwards else time), 0, 1, len(f), len(f), f)
        for i, (f, time) in enumerate(frames)
    ]
    write_pcap(tmp_path / "any.pcap", records, force=True)
    for out in ("b", "o"):
        (tmp_path / out).unlink(missing_ok=True)
        truth_path(tmp_path / out).unlink(missing_ok=True)
    assert in_batches(tmp_path / "any.pcap", tmp_path / "b", words) == one_by_one(
        tmp_path / "any.pcap", tmp_path / "o", words
    )


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_a_large_capture_goes_through_compiled_choosers(suffix: str, tmp_path: Path):
    frames = [
        roce_frame(PATHS["ipv4"], 4, {"bth": {"psn": n % 3000, "dqpn": 17 + n % 5}}, bytes(400 + n % 3))
        for n in range(6000)
    ]
    source = tmp_path / f"large.{suffix}"
    records = (
        Record(i + 1, 1000 * i, 0, 1, len(f), len(f), f, ("noted",) * (i % 100 == 99))
        for i, f in enumerate(frames)
    )
    (write_pcapng if suffix == "pcapng" else write_pcap)(source, records)
    for n, words in enumerate(FAULTS.values()):
        assert in_batches(source, tmp_path / f"b{n}", words) == one_by_one(source, tmp_path / f"o{n}", words)


@given(st.lists(st.lists(st.integers(0, 12), max_size=12), max_size=8))
def test_transmissions_are_counted_as_by_a_dictionary(batches: list[list[int]]):
    counted, seen = Transmissions(8), {}
    for batch in batches:
        expected = []
        for key in batch:
            if len(seen) >= 8:
                for old in list(seen)[:2]:
                    del seen[old]
            seen[key] = seen.get(key, 0) + 1
            expected.append(seen[key])
        assert counted.number(np.array(batch, np.int64)).tolist() == expected


@given(st.integers(0, 0xFFFFFF), st.lists(st.integers(0, 6), max_size=60), st.integers(1, 20))
def test_messages_are_numbered_across_a_wrap_and_batches(first: int, lengths: list[int], size: int):
    psns, starts, numbers = [], [], []
    for number, length in enumerate(lengths, 1):
        for n in range(length + 1):
            psns.append((first + len(psns)) & 0xFFFFFF)
            starts.append(n == 0)
            numbers.append(number)
    again = list(range(0, len(psns), 3))
    for values in (psns, starts, numbers):
        values += [values[n] for n in again]
    messages, found = Messages(1 << 16), []
    for at in range(0, len(psns), size):
        part = slice(at, at + size)
        flows = np.zeros(len(psns[part]), np.int64)
        found += messages.number(flows, np.array(psns[part]), np.array(starts[part])).tolist()
    assert found == numbers
