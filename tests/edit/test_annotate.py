"""Annotated captures: the same frames to the bit, with sentences that tshark shows."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest
from crafted import START_NS, ack, cnp, data, pcap, pfc

from roce_pkt.capture import open as open_capture
from roce_pkt.capture.model import Interface, Record, Resolution
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.cli.app import run
from roce_pkt.edit.annotate import MOST_OF_A_FRAME, Notes, annotate

FRAMES = [
    (0.0, data(0)), (1.0, ack(0)), (10.0, data(1, ce=True)), (12.0, cnp()), (20.0, data(2, ce=True)),
    (30.0, pfc({3: 0xFFFF}, src="10.0.0.9")), (33.1, data(3)), (40.0, pfc({3: 0}, src="10.0.0.9")),
    (100.0, data(4, ce=True)), (200.0, data(5)),
]  # fmt: skip


def comments_in(path):
    return {record.number: record.comments for record in open_capture(path).records() if record.comments}


def same(one, other):
    mine, theirs = (list(open_capture(path).records()) for path in (one, other))
    assert [(r.time_ns, r.wire_len, r.cap_len, bytes(r.octets), r.interface_id) for r in mine] == [
        (r.time_ns, r.wire_len, r.cap_len, bytes(r.octets), r.interface_id) for r in theirs
    ]


def test_what_is_said_of_each_frame(tmp_path, capsys):
    path, out = pcap(tmp_path / "c.pcap", FRAMES), tmp_path / "a.pcapng"
    assert run(["replay", str(path), "--line-rate", "100Gbps", "-o", str(out)]) == 1  # a frame inside a pause
    assert {number: comments[0] for number, comments in comments_in(out).items()} == {
        3: "CE mark, CNP due now",
        4: "CNP 1 for 10.0.0.2 QP 0x22: on time (2 us), rate 100 -> 50 Gb/s, alpha 1.000",
        5: "CE mark",
        6: "XOFF of class 3 by 02:00:00:00:00:09, 65535 quanta",
        7: "sent 3.1 us inside a pause of class 3",
        8: "XON of class 3 by 02:00:00:00:00:09 after 10 us",
        9: "CE mark, CNP due now, the CNP it called for never came",
    }
    same(path, out)
    capsys.readouterr()


def test_a_notification_that_is_due_later(tmp_path, capsys):
    path, out = pcap(tmp_path / "c.pcap", [(0.0, data(ce=True)), (99.0, data(1))]), tmp_path / "a.pcapng"
    run(["replay", str(path), "--tap", "sender", "--path-delay", "12.4us", "-o", str(out)])
    assert comments_in(out)[1][0].startswith("CE mark, CNP due in 12.4 us")
    capsys.readouterr()


def test_a_polled_cut_is_said_on_the_notification_behind_it(tmp_path, capsys):
    path, out = (
        pcap(tmp_path / "c.pcap", [(0.0, data(ce=True)), (1.0, cnp()), (99.0, data(1))]),
        tmp_path / "a.pcapng",
    )
    run(["replay", str(path), "--profile", "mlx", "--line-rate", "100Gbps", "-o", str(out)])
    assert "4.001 us later" in comments_in(out)[2][0]
    capsys.readouterr()


@pytest.mark.parametrize("resolution", [Resolution(10, 6), Resolution(10, 9), Resolution(2, 30)])
def test_interfaces_stamps_and_old_comments_stay(tmp_path, resolution, capsys):
    tick = 1000 if resolution.exponent == 6 else 1
    path, out = tmp_path / "c.pcapng", tmp_path / "a.pcapng"
    interfaces = [
        Interface("eth0", speed_bps=100_000_000_000, resolution=resolution, comments=("mine",)),
        Interface("eth1", resolution=resolution, snaplen=128, fcs_len=4, description="the other"),
    ]
    records = [
        Record(n + 1, (START_NS + int(t * 1000)) // tick * tick, n % 2, 1, min(len(o), 100), len(o), o[:100],
               ("seen before",) if n == 2 else ())
        for n, (t, o) in enumerate(FRAMES)
    ]  # fmt: skip
    write_pcapng(path, records, interfaces, comments=["of the whole"])
    run(["replay", str(path), "-o", str(out)])
    same(path, out)
    before, after = open_capture(path), open_capture(out)
    assert len(before) == len(after)
    assert before.interfaces == after.interfaces
    assert before.comments == after.comments == ["of the whole"]
    assert comments_in(out)[3][0] == "seen before"
    assert comments_in(out)[3][1].startswith("CE mark")
    capsys.readouterr()


def test_unknown_blocks_stay_where_they_were(tmp_path):
    path, out = tmp_path / "c.pcapng", tmp_path / "a.pcapng"
    write_pcapng(path, [Record(1, START_NS, 0, 1, len(FRAMES[0][1]), len(FRAMES[0][1]), FRAMES[0][1])])
    block = struct.pack("<III", 0x0BAD, 16, 0x12345678) + struct.pack("<I", 16)
    path.write_bytes(path.read_bytes() + block)
    with Notes() as notes:
        notes.add(1, "here")
        annotate(open_capture(path), out, notes)
    assert out.read_bytes().endswith(block)
    assert comments_in(out) == {1: ("here",)}


def test_notes_in_any_order_and_without_end():
    with Notes() as notes:
        for n in range(100):
            notes.add(7, f"note {n}")
        notes.add(3, "é" * 10)
        notes.add(3, "é" * 10)
        assert list(notes.by_frame()) == [(3, ["é" * 10]), (7, [f"note {n}" for n in range(MOST_OF_A_FRAME)])]
        assert len(notes) == 102


def test_a_pipe_and_a_file_that_is_there(tmp_path, capsys):
    path = pcap(tmp_path / "c.pcap", FRAMES)
    assert run(["replay", "-", "-o", str(tmp_path / "a.pcapng")]) == 2
    assert "pipe" in capsys.readouterr().err
    assert run(["replay", str(path), "-o", str(path)]) == 2
    assert "is the input itself" in capsys.readouterr().err
    (tmp_path / "there.pcapng").touch()
    assert run(["replay", str(path), "-o", str(tmp_path / "there.pcapng")]) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_shows_the_comments(tmp_path, capsys):
    path, out = pcap(tmp_path / "c.pcap", FRAMES), tmp_path / "a.pcapng"
    run(["replay", str(path), "--line-rate", "100Gbps", "-o", str(out)])
    shown = subprocess.run(
        ["tshark", "-r", str(out), "-T", "fields", "-e", "frame.comment"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert shown[3] == "CNP 1 for 10.0.0.2 QP 0x22: on time (2 us), rate 100 -> 50 Gb/s, alpha 1.000"
    assert [n for n, line in enumerate(shown, 1) if line] == sorted(comments_in(out))
    capsys.readouterr()
