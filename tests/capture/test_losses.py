"""What reading tells: joined captures, stamps that do not fit, damage, and by which frame."""

import struct
from pathlib import Path

import numpy as np
import pytest
from readings import compiled, plain

from roce_pkt import capture
from roce_pkt.capture import damage
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.model import Interface, Resolution
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.edit.copy import copy_capture

CLEAN = Path(__file__).parents[2] / "pcaps" / "clean.pcap"
FRAMES = list(capture.open(CLEAN).records())


both = pytest.mark.parametrize("read", [plain, compiled])


def classic(records, order, magic=0xA1B23C4D):
    tick = 1 if magic == 0xA1B23C4D else 1000
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    for r in records:
        seconds, rest = divmod(r.time_ns, 10**9)
        out += struct.pack(order + "IIII", seconds, rest // tick, r.cap_len, r.wire_len) + bytes(r.octets)
    return out


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(order, code, value):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def described(order, *options):
    return block(order, 1, struct.pack(order + "HHI", 1, 0, 0) + b"".join(options) + bytes(4))


def packet(order, ticks, record=FRAMES[0], options=b"", interface=0):
    octets = bytes(record.octets)
    fields = struct.pack(
        order + "IIIII", interface, ticks >> 32, ticks & 0xFFFF_FFFF, len(octets), len(octets)
    )
    return block(order, 6, fields + octets + bytes(-len(octets) % 4) + options)


def section(order):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


@both
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B23C4D, 0xA1B2C3D4])
def test_captures_joined_end_to_end_are_read_through(tmp_path, read, order, magic):
    first, second = classic(FRAMES, "<"), classic(FRAMES[:100], order, magic)
    (tmp_path / "x.pcap").write_bytes(first + second)
    frames, source = read(tmp_path / "x.pcap")
    assert frames.number.tolist() == list(range(1, len(FRAMES) + 101))
    tick = 1 if magic == 0xA1B23C4D else 1000
    assert frames.time_ns.tolist() == [r.time_ns for r in FRAMES] + [
        r.time_ns // tick * tick for r in FRAMES[:100]
    ]
    assert [bytes(frames.octets(len(FRAMES) + n)) for n in range(100)] == [
        bytes(r.octets) for r in FRAMES[:100]
    ]
    (told,) = source.losses
    assert (told.rule, told.severity, told.frame) == ("capture.joined", "warning", len(FRAMES) + 1)
    assert told.text.startswith(f"octet {len(first)}: the header of another capture")
    assert source.interfaces[int(frames.interface_id[-1])].resolution.exponent == (9 if tick == 1 else 6)


@both
@pytest.mark.parametrize("hole", [300, 30_000_000])
def test_a_joined_capture_is_found_behind_damage(tmp_path, read, hole):
    first, second = bytearray(classic(FRAMES, "<")), classic(FRAMES, ">")
    first[-300:] = b"\xff" * hole
    (tmp_path / "x.pcap").write_bytes(first + second)
    frames, source = read(tmp_path / "x.pcap")
    assert [f.rule for f in source.losses] == ["capture.damaged", "capture.joined"]
    assert frames.time_ns[-len(FRAMES) :].tolist() == [r.time_ns for r in FRAMES]


@both
@pytest.mark.parametrize("order", ["<", ">"])
def test_stamps_beyond_64_bits_of_nanoseconds_are_told(tmp_path, read, order):
    octets = section(order) + described(order, option(order, 9, b"\0"))
    octets += packet(order, 5) + packet(order, 2**64 - 1) + packet(order, 9_223_372_036) + packet(order, 7)
    octets += packet(order, 9_223_372_037)
    (tmp_path / "x.pcapng").write_bytes(octets)
    frames, source = read(tmp_path / "x.pcapng")
    assert [(f.rule, f.frame) for f in source.losses] == [("capture.time", 2), ("capture.time", 5)]
    wrapped = (2**64 - 1) * 10**9 % 2**64
    assert frames.time_ns.tolist()[:4] == [
        5 * 10**9, wrapped - 2**64 * (wrapped >> 63), 9_223_372_036 * 10**9, 7 * 10**9
    ]  # fmt: skip


@pytest.mark.parametrize(
    "resolution", [Resolution(10, 0), Resolution(10, 12), Resolution(2, 30), Resolution(2, 0)]
)
@pytest.mark.parametrize("offset_s", [0, 3, -3, 2**33, -(2**33)])
def test_the_least_and_largest_stamp_are_exact(resolution, offset_s):
    low, high = resolution.ticks_within(offset_s)
    per_second = resolution.base**resolution.exponent
    for ticks, fits in ((low - 1, False), (low, True), (high, True), (high + 1, False)):
        exact = ticks * 10**9 // per_second + offset_s * 10**9
        assert (-(2**63) <= exact < 2**63) is fits


@both
def test_a_finding_names_the_frame_that_is_lost(tmp_path, read):
    octets = section("<") + described("<") + packet("<", 1) + packet("<", 2, interface=9) + packet("<", 3)
    octets += packet("<", 4)[:-5]
    (tmp_path / "x.pcapng").write_bytes(octets)
    frames, source = read(tmp_path / "x.pcapng")
    assert len(frames) == 2
    assert [(f.rule, f.frame) for f in source.losses] == [("capture.skipped", 2), ("capture.cut", 3)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_options_survive_a_copy(tmp_path, order):
    flags, packet_id = struct.pack(order + "I", 0x201), struct.pack(order + "Q", 77)
    custom = struct.pack(order + "I", 32473) + b"mine"
    octets = section(order) + described(
        order,
        option(order, 2, b"eth0"), option(order, 6, b"\1\2\3\4\5\6"), option(order, 12, b"an OS"),
        option(order, 16, struct.pack(order + "Q", 10**11)), option(order, 2989, custom),
    )  # fmt: skip
    more = option(order, 1, b"said") + option(order, 2, flags) + option(order, 5, packet_id) + bytes(4)
    octets += packet(order, 5, options=more)
    (tmp_path / "x.pcapng").write_bytes(octets)
    copy_capture(capture.open(tmp_path / "x.pcapng"), tmp_path / "y.pcapng", lambda record: record.octets)
    source = capture.open(tmp_path / "y.pcapng")
    (record,) = source.records()
    assert record.comments == ("said",)
    assert record.options == ((2, struct.pack("<I", 0x201)), (5, struct.pack("<Q", 77)))
    (interface,) = source.interfaces
    assert interface.name == "eth0"
    assert interface.options == (
        (6, b"\1\2\3\4\5\6"), (12, b"an OS"), (16, struct.pack("<Q", 10**11)),
        (2989, struct.pack("<I", 32473) + b"mine"),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
@pytest.mark.parametrize("hole", [300_000, 6_000_000], ids=["plain search", "compiled search"])
def test_a_hole_is_searched_to_its_end(tmp_path, name, hole):
    write_pcapng(tmp_path / "x", FRAMES, [Interface("a", 1)])
    octets = classic(FRAMES, "<") if name == "pcap" else (tmp_path / "x").read_bytes()
    at = int(plain_offset(tmp_path, octets, 100)) - (16 if name == "pcap" else 28)
    dice = np.random.default_rng(1)
    junk = b"\xff" * 16 + dice.integers(0, 256, hole, dtype=np.uint8).tobytes() + bytes(-hole % 4)
    (tmp_path / "holed").write_bytes(octets[:at] + junk + octets[at:])
    frames, source = plain(tmp_path / "holed")
    other, told = compiled(tmp_path / "holed")
    assert len(frames) == len(other) == len(FRAMES)
    for column in COLUMNS:
        np.testing.assert_array_equal(frames.column(column.name), other.column(column.name))
    assert source.losses == told.losses
    assert f"octet {at}" in source.losses[0].text
    assert f"{len(junk)} octets skipped" in source.losses[0].text


def plain_offset(folder, octets, row):
    (folder / "whole").write_bytes(octets)
    return plain(folder / "whole")[0].offset[row]


def test_a_search_ends_where_it_is_told_to(tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "_MAX_OCTETS", 5_000_000)
    octets = classic(FRAMES, "<") + b"\xff" * 16 + bytes(200_000_000) + classic(FRAMES, "<")[24:]
    (tmp_path / "x").write_bytes(octets)
    frames, source = plain(tmp_path / "x")
    assert len(frames) == len(FRAMES)
    assert [f.rule for f in source.losses] == ["capture.damaged"]
    assert "given up" in source.losses[0].text


@both
def test_a_fraction_of_more_than_a_second_counts_in_the_search_behind_damage(read, tmp_path):
    record = struct.pack("<IIII", 255, 1_660_944_425, 60, 60) + bytes(60)
    damaged = struct.pack("<IIII", 255, 0, 0xF0113300, 60) + bytes(53)
    later = b"".join(struct.pack("<IIII", 87_000 + n, 0, 60, 60) + bytes(60) for n in range(12))
    path = tmp_path / "fraction.pcap"
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(head + record + damaged + later)
    frames, whole = read(path)
    # 87,000 s is within a day of 255 + 1,660 s, not of 255 s
    assert len(frames) == 13
    assert [loss.rule for loss in whole.losses] == ["capture.damaged"]
