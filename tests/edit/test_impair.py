"""For each fault kind, a reader of its own (struct, nothing of the room) finds what the truth file says."""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_left
from pathlib import Path

import pytest

from roce_pkt.capture import Record
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcap, write_pcapng
from roce_pkt.edit.fault_words import fault_from_words
from roce_pkt.edit.impair import impair, truth_path
from roce_pkt.errors import InputError
from roce_pkt.wire.build import Path as Way
from roce_pkt.wire.exchange import Pair, message, read, read_answer

Seen = tuple[int, bytes]


def exchange(messages: int = 30) -> list[bytes]:
    """Two queue pairs of different addresses, each frame unlike any other."""
    frames = []
    for n in range(messages):
        for k in range(2):
            way = Way(src=f"10.0.{k}.1", dst=f"10.0.{k}.2", ip_id=(n * 64 + k) & 0xFFFF)
            pair = Pair(way, dqpn=0x20 + k, sqpn=0x30 + k, psn=(0xFFFFF0 + 10 * n) & 0xFFFFFF, mtu_bytes=256)
            if n % 3 == 2:
                frames += [*read(pair, 700), *read_answer(pair, bytes([n, k]) * 350)]
            else:
                frames += [*message(pair, ("SEND", "RDMA_WRITE")[n % 2], bytes([n, k]) * 450)]
                frames.append(pair.ack(3, msn=n))
    assert len(set(frames)) == len(frames)
    return frames


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.pcap"
    frames = exchange()
    records = (Record(i + 1, 1000 * i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames))
    write_pcap(path, records)
    return path


def seen(path: Path) -> list[Seen]:
    """Times in nanoseconds and octets, read by hand."""
    data = path.read_bytes()
    assert data[:4] == b"\x4d\x3c\xb2\xa1"  # nanosecond pcap, little-endian
    out, at = [], 24
    while at < len(data):
        s, ns, kept, _ = struct.unpack_from("<IIII", data, at)
        out.append((s * 10**9 + ns, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return out


def icrc_right(frame: bytes) -> bool:
    ip = bytearray(frame[14:])
    ip[1] = ip[8] = ip[10] = ip[11] = ip[26] = ip[27] = ip[32] = 0xFF
    return zlib.crc32(ip[:-4], zlib.crc32(b"\xff" * 8)).to_bytes(4, "little") == frame[-4:]


def ip_sum_right(frame: bytes) -> bool:
    total = sum(struct.unpack("!10H", frame[14:34]))
    return (total & 0xFFFF) + (total >> 16) == 0xFFFF


def dropped(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    left = {frame for _, frame in after}
    return {(i, None) for i, (_, frame) in enumerate(before, 1) if frame not in left}


def same_place(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    assert len(before) == len(after)
    pairs = enumerate(zip(before, after, strict=True), 1)
    return {(i, i) for i, ((_, old), (_, new)) in pairs if old != new}


def marked(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    found = same_place(before, after)
    for i, _ in found:
        frame = after[i - 1][1]
        assert frame[15] & 3 == 3
        assert before[i - 1][1][15] & 3 != 3
        assert icrc_right(frame)
        assert ip_sum_right(frame)
    return found


def corrupted(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    found = same_place(before, after)
    for i, _ in found:
        assert len(after[i - 1][1]) == len(before[i - 1][1])
        assert after[i - 1][1][-4:] == before[i - 1][1][-4:]
        assert not icrc_right(after[i - 1][1])
    return found


def cut(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    found = same_place(before, after)
    for i, _ in found:
        assert before[i - 1][1].startswith(after[i - 1][1])
        assert len(after[i - 1][1]) == 60
    return found


def repeated(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    number = {frame: i for i, (_, frame) in enumerate(before, 1)}
    met, found = set(), set()
    for place, (_, frame) in enumerate(after, 1):
        if frame in met:
            found.add((number[frame], place))
        met.add(frame)
    return found


def moved(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    """Frames outside the longest run that kept its order."""
    number = {frame: i for i, (_, frame) in enumerate(before, 1)}
    order = [number[frame] for _, frame in after]
    assert sorted(order) == list(range(1, len(before) + 1))
    tails: list[int] = []
    best: list[list[int]] = []
    for value in order:
        at = bisect_left(tails, value)
        run = [*(best[at - 1] if at else []), value]
        tails[at : at + 1] = [value]
        best[at : at + 1] = [run]
    kept = set(best[-1])
    return {(value, place) for place, value in enumerate(order, 1) if value not in kept}


def later(before: list[Seen], after: list[Seen]) -> set[tuple[int, int | None]]:
    when = {frame: time for time, frame in before}
    number = {frame: i for i, (_, frame) in enumerate(before, 1)}
    found = {(number[f], i) for i, (time, f) in enumerate(after, 1) if time != when[f]}
    assert all(after[i - 1][0] - when[after[i - 1][1]] == 7500 for _, i in found if i)
    return found


CASES = [
    ("drop psn=0xfffff1 qp=0x20", dropped, 1),
    ("drop src=10.0.1.2 opcode=RC_ACKNOWLEDGE nth=3", dropped, 1),
    ("drop message=4 qp=0x21", dropped, 4),
    ("drop probability=0.03 burst=3", dropped, None),
    ("ce nth=9 qp=0x21", marked, 1),
    ("ce probability=0.1 count=5", marked, 5),
    ("corrupt what=payload probability=0.1 opcode=RC_SEND_MIDDLE", corrupted, None),
    ("corrupt what=bit bit=336 qp=0x20 count=4", corrupted, 4),
    ("corrupt what=field field=bth.psn probability=0.05", corrupted, None),
    ("corrupt what=field field=bth.dqpn value=5 nth=2 message=2 qp=0x20", corrupted, 1),
    ("truncate bytes=60 probability=0.1", cut, None),
    ("duplicate probability=0.1 burst=2", repeated, None),
    ("duplicate time=3500ns probability=0.05", repeated, None),
    ("replay distance=12 nth=20 qp=0x20", repeated, 1),
    ("reorder distance=3 nth=11 qp=0x21", moved, 1),
    ("reorder distance=9 message=5 opcode=RC_SEND_FIRST", moved, None),
    ("delay time=7500ns probability=0.02", later, None),
]


@pytest.mark.parametrize(("words", "detect", "count"), CASES, ids=[c[0] for c in CASES])
def test_a_reader_of_its_own_recovers_the_truth(source: Path, tmp_path: Path, words, detect, count):
    out = tmp_path / "out.pcap"
    done = impair(open_capture(source), out, [fault_from_words(words)], seed=7)
    truth = [json.loads(line) for line in truth_path(out).read_text().splitlines()]
    found = detect(seen(source), seen(out))
    assert found == {(t["frame"], t["output_frame"]) for t in truth}
    assert len(truth) == len(found) == sum(done.faults.values())
    assert len(found) == count if count else len(found) > 0
    assert {t["do"] for t in truth} == {words.split()[0]}


def test_the_same_seed_gives_the_same_file_and_another_seed_another(source: Path, tmp_path: Path):
    fault = [fault_from_words("drop probability=0.2"), fault_from_words("corrupt probability=0.2")]
    files = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        impair(open_capture(source), tmp_path / name, fault, seed=seed)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1] != files[2]


def test_occurrence_counts_transmissions_of_one_packet(tmp_path: Path):
    pair = Pair(mtu_bytes=256)
    first = list(message(pair, "SEND", bytes(700)))
    frames = [*first, *first[1:], *first[1:]]
    path = tmp_path / "again.pcap"
    write_pcap(path, (Record(i + 1, i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames)))
    for occurrence, expected in ((1, 2), (2, 4), (3, 6)):
        out = tmp_path / f"{occurrence}.pcap"
        impair(open_capture(path), out, [fault_from_words(f"drop psn=1 occurrence={occurrence}")])
        (line,) = truth_path(out).read_text().splitlines()
        assert json.loads(line)["frame"] == expected


def test_a_pcapng_keeps_its_interfaces_and_what_is_no_roce(tmp_path: Path):
    frames = [*exchange(3), bytes(60)]
    path, out = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    records = (Record(i + 1, i, 0, 1, len(f), len(f), f, (f"note {i}",)) for i, f in enumerate(frames))
    write_pcapng(path, records)
    impair(open_capture(path), out, [fault_from_words("drop")])
    (record,) = open_capture(out).records()
    assert bytes(record.octets) == bytes(60)
    assert record.comments == (f"note {len(frames) - 1}",)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("drp psn=1", "did you mean 'drop'"),
        ("drop spn=1", "did you mean 'psn'"),
        ("drop psn", "KEY=VALUE"),
        ("delay time=5", "has no unit"),
        ("drop opcode=RC_SEND_ONYL", "RC_SEND_ONLY"),
        ("drop src=10.0.0", "is no IPv4"),
        ("corrupt what=field field=bth.pns", "bth.psn"),
    ],
)
def test_a_fault_that_cannot_be_done_is_refused_in_words(source: Path, tmp_path: Path, words, says):
    with pytest.raises(InputError, match=says):
        impair(open_capture(source), tmp_path / "out", [fault_from_words(words)])
    assert not (tmp_path / "out").exists()
    assert not truth_path(tmp_path / "out").exists()
