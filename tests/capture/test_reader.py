"""Reading captures: every container gives the same frames, and every loss is told."""

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from readings import compiled, plain

from roce_pkt import capture
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.kernel_walk import CLOCK_WORDS
from roce_pkt.capture.model import Block, Interface, Resolution
from roce_pkt.capture.writer import ticks_of, write_pcap, write_pcapng
from roce_pkt.errors import CaptureError, InputError
from roce_pkt.wire import net

PCAPS = Path(__file__).parents[2] / "pcaps"
CLEAN = PCAPS / "clean.pcap"


def same(one, other, but=()):
    assert len(one) == len(other)
    for column in COLUMNS:
        if column.name not in but:
            np.testing.assert_array_equal(one.column(column.name), other.column(column.name), column.name)


def records_of(path=CLEAN):
    return list(capture.open(path).records())


# -- containers, made here byte by byte


def classic(records, order, *, nano, link=1, change=lambda octets: octets):
    magic, tick = (0xA1B23C4D, 1) if nano else (0xA1B2C3D4, 1000)
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for r in records:
        octets = change(bytes(r.octets))
        grown = len(octets) - r.cap_len
        seconds, rest = divmod(r.time_ns, 10**9)
        out += struct.pack(order + "IIII", seconds, rest // tick, len(octets), r.wire_len + grown) + octets
    return out


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def described(order, resolution=9, offset_s=0, link=1):
    options = struct.pack(order + "HHB3x", 9, 1, resolution) + struct.pack(order + "HHq", 14, 8, offset_s)
    return block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options + bytes(4))


def packet(order, record, ticks, interface=0, options=b""):
    octets = bytes(record.octets)
    fields = struct.pack(
        order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(octets), record.wire_len
    )
    return block(order, 6, fields + octets + bytes(-len(octets) % 4) + options)


def sections(records, order):
    return section(order) + described(order) + b"".join(packet(order, r, r.time_ns) for r in records)


CONTAINERS = {
    "us-little.pcap": lambda r: classic(r, "<", nano=False),
    "us-big.pcap": lambda r: classic(r, ">", nano=False),
    "ns-little.pcap": lambda r: classic(r, "<", nano=True),
    "ns-big.pcap": lambda r: classic(r, ">", nano=True),
    "little.pcapng": lambda r: sections(r, "<"),
    "big.pcapng": lambda r: sections(r, ">"),
    "two-sections.pcapng": lambda r: sections(r[:50], ">") + sections(r[50:], "<"),
    "packed.gz": lambda r: gzip.compress(classic(r, "<", nano=True)),
    "members.gz": lambda r: b"".join(gzip.compress(part) for part in halves(classic(r, "<", nano=True))),
    "packed.zst": lambda r: zstandard.compress(sections(r, "<")),
    "frames.zst": lambda r: b"".join(zstandard.compress(part) for part in halves(sections(r, ">"))),
}


def halves(octets):
    return octets[: len(octets) // 2], octets[len(octets) // 2 :]


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("read", [plain, compiled])
def test_every_container_gives_the_same_columns(tmp_path, name, read):
    path = tmp_path / "no-hint-in-the-name"
    path.write_bytes(CONTAINERS[name](records_of()))
    frames, source = read(path)
    interface = ("interface_id",) if "sections" in name else ()
    same(frames, plain(CLEAN)[0], but=("offset", *interface))
    assert source.losses == []


def to_sll(octets):
    return struct.pack(">HHH8s", 0, 1, 6, octets[6:12] + b"\0\0") + octets[12:]


def to_sll2(octets):
    return octets[12:14] + bytes(2) + struct.pack(">IHBB8s", 1, 1, 0, 6, octets[6:12] + b"\0\0") + octets[14:]


def to_vlan(octets):
    return octets[:12] + b"\x81\x00\x60\x64" + octets[12:]


@pytest.mark.parametrize(
    ("link", "change"), [(113, to_sll), (276, to_sll2), (1, to_vlan), (101, lambda o: o[14:])]
)
@pytest.mark.parametrize("read", [plain, compiled])
def test_other_links_give_the_same_roce(tmp_path, link, change, read):
    path = tmp_path / "x.pcap"
    wanted = plain(CLEAN)[0]
    keep = wanted.ip_version > 0
    records = [r for r, k in zip(records_of(), keep.tolist(), strict=True) if k]
    path.write_bytes(classic(records, "<", nano=True, link=link, change=change))
    moved = [c for c in COLUMNS if any(h in (net.ETH, net.VLAN) for h, _ in c.sources)]
    places = ("l3_offset", "bth_offset", "payload_offset", "offset", "wire_len", "cap_len", "number")
    but = {"headers", "vlan_count", "link_type", *places, *(c.name for c in moved)}
    got = read(path)[0]
    same(got, wanted[keep], but=but)
    assert (got.icrc_ok[got.kind == 1] == 1).all()
    if change is to_vlan:
        assert (got.vid == 100).all()
        assert (got.pcp == 3).all()


# -- time


@given(
    base=st.sampled_from([2, 10]),
    exponent=st.integers(0, 127),
    ticks=st.integers(0, (1 << 64) - 1),
    offset_s=st.integers(-(1 << 40), 1 << 40),
)
def test_stamps_are_exact_for_every_resolution(tmp_path_factory, base, exponent, ticks, offset_s):
    path = tmp_path_factory.getbasetemp() / "t.pcapng"
    record = records_of()[0]
    code = exponent | (0x80 if base == 2 else 0)
    path.write_bytes(section("<") + described("<", code, offset_s) + packet("<", record, ticks))
    exact = (ticks * 10**9) // base**exponent + offset_s * 10**9
    wrapped = (exact + (1 << 63)) % (1 << 64) - (1 << 63)
    assert next(capture.open(path).records()).time_ns == wrapped
    assert compiled(path)[0].time_ns.tolist() == [wrapped]


@given(st.integers(0, 1 << 62), st.sampled_from([Resolution(10, 9), Resolution(10, 12), Resolution(2, 40)]))
def test_written_stamps_read_back(time_ns, resolution):
    assert resolution.to_ns(ticks_of(time_ns, resolution)) == time_ns


def test_clock_rows_are_as_wide_as_the_kernels_think():
    from roce_pkt.capture.compiled import clock_row

    assert len(clock_row(1, Resolution(), 0, 0)) == CLOCK_WORDS


# -- what a pcapng holds besides frames


@pytest.mark.parametrize("read", [plain, compiled])
def test_other_blocks_are_kept_skipped_or_told(tmp_path, read):
    records = records_of()[:4]
    comment = struct.pack("<HH4s", 1, 4, b"here") + bytes(4)
    octets = (
        section("<")
        + described("<")
        + block("<", 4, b"names...")
        + packet("<", records[0], 1, options=comment)
    )
    octets += block("<", 3, struct.pack("<I", records[1].wire_len) + bytes(records[1].octets))  # simple
    octets += block("<", 0xBAD, struct.pack("<I", 32473) + b"custom--")
    octets += packet("<", records[2], 2, interface=7)  # no such interface
    octets += block("<", 0x7777, b"unknown!") + block("<", 5, bytes(16))
    octets += described("<", 6, link=1) + packet("<", records[3], 3, interface=1)
    path = tmp_path / "x.pcapng"
    path.write_bytes(octets)
    frames, source = read(path)
    assert frames.number.tolist() == [1, 2, 3]
    assert frames.time_ns.tolist() == [1, 0, 3000]
    assert frames.interface_id.tolist() == [0, 0, 1]
    assert [bytes(frames.octets(i)) for i in range(3)] == [bytes(records[i].octets) for i in (0, 1, 3)]
    assert [(b.kind, b.after_frame) for b in source.blocks] == [(4, 0), (0xBAD, 2), (0x7777, 2), (5, 2)]
    assert [f.rule for f in source.losses] == ["capture.skipped"]
    assert "interface 7" in source.losses[0].text
    assert next(capture.open(path).records()).comments == ("here",)
    copy = tmp_path / "copy.pcapng"
    again = capture.open(path)
    write_pcapng(copy, again.records(), again.interfaces, blocks=again.blocks, comments=["copied"])
    other = capture.open(copy)
    same(other.frames(), frames, but=("offset",))
    assert [(b.kind, b.body) for b in other.blocks] == [(b.kind, b.body) for b in source.blocks]
    assert other.comments == ["copied"]


def test_interfaces_are_known_before_the_first_frame(tmp_path):
    wires = [Interface("a", 1, 10**11), Interface("b", 1, None, Resolution(10, 6), 96, "slow")]
    write_pcapng(tmp_path / "x.pcapng", records_of()[:3], wires)
    assert capture.open(tmp_path / "x.pcapng").interfaces[:1] == wires[:1]
    source = capture.open(tmp_path / "x.pcapng")
    assert len(source) == 3
    assert source.interfaces == wires


# -- losses


@pytest.mark.parametrize("read", [plain, compiled])
@pytest.mark.parametrize("name", ["us-little.pcap", "big.pcapng"])
def test_a_cut_capture_gives_what_is_whole_and_says_where(tmp_path, name, read):
    octets = CONTAINERS[name](records_of())
    path = tmp_path / "cut"
    path.write_bytes(octets[:-7])
    frames, source = read(path)
    whole = plain(CLEAN)[0]
    assert len(frames) == len(whole) - 1
    assert [f.rule for f in source.losses] == ["capture.cut"]
    assert source.losses[0].severity == "warning"
    assert f"octet {len(octets) - 7 - (len(octets) - 7 - int(source.losses[0].text.split()[1][:-1]))}" in (
        source.losses[0].text
    )


@pytest.mark.parametrize("read", [plain, compiled])
@pytest.mark.parametrize("name", ["us-little.pcap", "ns-big.pcap", "little.pcapng", "big.pcapng"])
def test_reading_goes_on_behind_a_damaged_place(tmp_path, name, read):
    octets = bytearray(CONTAINERS[name](records_of()))
    (tmp_path / "whole").write_bytes(octets)
    at = int(plain(tmp_path / "whole")[0].offset[100]) - (16 if name.endswith("pcap") else 28)
    octets[at : at + 16] = b"\xff" * 16
    (tmp_path / "damaged").write_bytes(octets)
    frames, source = read(tmp_path / "damaged")
    lost = len(plain(CLEAN)[0]) - len(frames)
    assert 1 <= lost <= 2
    assert [f.rule for f in source.losses] == ["capture.damaged"]
    assert f"octet {at}:" in source.losses[0].text
    assert "reading goes on" in source.losses[0].text


def test_a_stream_that_breaks_off_is_told(tmp_path):
    packed = gzip.compress(classic(records_of(), "<", nano=True))
    (tmp_path / "x").write_bytes(packed[: len(packed) // 2])
    source = capture.open(tmp_path / "x")
    assert 0 < len(source.frames()) < len(records_of())
    assert [f.rule for f in source.losses] == ["capture.cut"]
    assert "broke off" in source.losses[0].text


NOTHING = classic([], "<", nano=False)
LIARS = {
    "pcap record of 4 GB": NOTHING + struct.pack("<IIII", 1, 1, 0xFFFFFFF0, 100) + b"x" * 100,
    "pcap record of 200 kB": NOTHING + struct.pack("<IIII", 1, 1, 200_000, 200_000) + b"x" * 9,
    "pcapng block of 2 GB": section("<") + struct.pack("<II", 6, 0x7FFFFFF0) + bytes(100),
    "pcapng frame longer than its block": section("<") + described("<")
    + block("<", 6, struct.pack("<IIIII", 0, 0, 0, 5000, 5000) + bytes(64)),
}  # fmt: skip


@pytest.mark.parametrize("what", LIARS)
@pytest.mark.parametrize("read", [plain, compiled])
def test_lying_lengths_cost_nothing(tmp_path, what, read):
    (tmp_path / "x").write_bytes(LIARS[what])
    frames, source = read(tmp_path / "x")
    assert len(frames) == 0
    assert len(source.losses) == 1


NO_CAPTURES = {
    b"": "empty",
    b"# a text file of some length\n": "text that starts",
    b"\x7fELF\x02\x01\x01" + bytes(30): "it starts with octets 7f 45",
    b"\xd4\xc3\xb2\xa1\x02\x00": "cut inside the pcap file header",
    b"\n\r\r\n" + bytes(30): "section header is damaged",
    b"\xfd7zXZ\x00" + bytes(30): "packed with xz",
    b"PK\x03\x04" + bytes(30): "packed with zip",
    gzip.compress(b"hello"): "not a capture",
    b"\x1f\x8b\x08\x00garbage": "cannot be unpacked",
    b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff": "empty or cut",
}


@pytest.mark.parametrize("octets", NO_CAPTURES)
def test_what_is_no_capture_is_refused_in_one_line(tmp_path, octets):
    (tmp_path / "x").write_bytes(octets)
    with pytest.raises(CaptureError, match=NO_CAPTURES[octets]) as caught:
        capture.open(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(CaptureError, match="no such file"):
        capture.open(tmp_path / "nothing")
    with pytest.raises(CaptureError, match="a directory"):
        capture.open(tmp_path)
    if os.geteuid():
        (tmp_path / "x").write_bytes(b"x")
        (tmp_path / "x").chmod(0)
        with pytest.raises(CaptureError, match="cannot be opened"):
            capture.open(tmp_path / "x")


def test_standard_input_is_read_once():
    code = (
        "from roce_pkt import capture; c = capture.open('-'); print(len(c.frames()), len(c.losses))\n"
        "try: c.frames()\nexcept Exception as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=zstandard.compress(CLEAN.read_bytes()),
        capture_output=True,
        check=True,
    )
    first, second = done.stdout.decode().splitlines()
    assert first == f"{len(records_of())} 0"
    assert "a pipe can be read once" in second


def test_a_live_pipe_gives_its_frames_before_it_ends():
    code = "from roce_pkt import capture\nfor r in capture.open('-').records(): print(r.number, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        octets = classic(records_of()[:5], "<", nano=True)
        child.stdin.write(octets)
        child.stdin.flush()
        assert [child.stdout.readline() for _ in range(5)] == [b"%d\n" % n for n in range(1, 6)]
        child.stdin.close()
        assert child.stdout.read() == b""


# -- two threads


@pytest.mark.parametrize("name", ["us-little.pcap", "little.pcapng"])
@pytest.mark.parametrize("damage", [False, True])
def test_two_threads_read_what_one_reads(tmp_path, monkeypatch, name, damage):
    octets = CONTAINERS[name](records_of() * 40)
    if damage:
        octets = bytearray(octets)
        for at in range(300_000, len(octets), 700_001):
            octets[at : at + 40] = b"\xff" * 40
    path = tmp_path / "x"
    path.write_bytes(octets)
    assert len(octets) > 2_000_000
    monkeypatch.setenv("ROCE_PKT_THREADS", "2")
    two, losses = compiled(path)
    monkeypatch.setenv("ROCE_PKT_THREADS", "1")
    one, other = compiled(path)
    wanted, third = plain(path)
    same(one, wanted)
    same(two, wanted)
    assert losses.losses == other.losses == third.losses
    assert bool(losses.losses) == damage


# -- writing


def test_files_appear_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.pcap"
    mixed = [*records_of()[:3], records_of()[3]._replace(link_type=101)]
    with pytest.raises(InputError, match="a pcap holds one link type"):
        write_pcap(path, mixed)
    assert list(tmp_path.iterdir()) == []
    write_pcap(path, records_of())
    before = path.read_bytes()
    with pytest.raises(InputError, match="--force"):
        write_pcap(path, [])
    assert path.read_bytes() == before


def test_big_endian_custom_blocks_keep_their_number_others_are_left_out(tmp_path):
    blocks = [Block(0xBAD, struct.pack(">I", 32473) + b"data", True, 0), Block(4, b"\0\1\0\4abcd", True, 0)]
    write_pcapng(tmp_path / "x.pcapng", records_of()[:1], blocks=blocks)
    kept = capture.open(tmp_path / "x.pcapng")
    assert len(kept) == 1
    assert [b.body for b in kept.blocks] == [struct.pack("<I", 32473) + b"data"]


def test_frames_behave_like_a_table():
    frames = capture.open(CLEAN).frames()
    assert repr(frames).startswith(f"Frames({len(frames)} frames, 1..{len(frames)}: ")
    assert len(frames[3:7]) == 4
    assert frames[3]["number"] == 4
    assert "psn" in frames[3] or frames[3]["kind"] == 0
    with pytest.raises(AttributeError, match="did you mean 'psn'"):
        frames.psm  # noqa: B018
    table = frames.to_arrow()
    assert table.num_rows == len(frames)
    assert table["psn"].null_count == int((~frames.present("psn")).sum())
    assert table["src"].to_pylist()[:3] == [s or None for s in frames.src[:3].tolist()]
