"""Frames made here open in tshark without a malformed mark or an expert error, but for its own gaps."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import tshark
from cases import CASES

from roce_pkt.capture.model import Record
from roce_pkt.capture.writer import write_pcap
from roce_pkt.wire import mac_control
from roce_pkt.wire.build import mac_control_frame

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed (Debian package tshark)"
)

# What tshark cannot read: (transport or opcode, what it shows, versions, reason)
EXPECTED = [
    ("RD", "Malformed", "4.0, 4.6", "read as Mellanox DC with a 20-octet BTH, every field eight octets off"),
    ("ipv6", "Illegal checksum value (0)", "4.0, 4.6", "zero UDP checksum over IPv6, which hardware sends"),
]


def expected(case, message: str) -> bool:
    for who, what, _, _ in EXPECTED:
        if message.startswith(what) and (case.name.startswith(f"{who}_") or case.name.endswith(f"-{who}")):
            return True
    return False


@needs_tshark
def test_every_opcode_opens(tmp_path):
    path = tmp_path / "all.pcap"
    write_pcap(
        path, (Record(i, i, 0, 1, len(c.octets), len(c.octets), c.octets) for i, c in enumerate(CASES, 1))
    )
    words = ["tshark", "-r", str(path), "-T", "fields", "-n", "-E", "separator=|", "-E", "occurrence=a"]
    for name in tshark.HEURISTICS:
        words += ["--disable-heuristic", name]
    for field in ("frame.number", "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.message"):
        words += ["-e", field]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(CASES)
    shown = set()
    for case, line in zip(CASES, lines, strict=True):
        _, opcode, malformed, experts = line.split("|", 3)
        messages = [m for m in experts.split(",") if m] + (["Malformed"] if malformed else [])
        assert int(opcode) == case.opcode, case.name
        for message in messages:
            assert expected(case, message), (case.name, message)
            shown.add(next(e for e in EXPECTED if message.startswith(e[1])))
    assert len(EXPECTED) == 2
    assert shown == set(EXPECTED)


@needs_tshark
def test_pause_frames_open(tmp_path):
    frames = [
        mac_control_frame(1, mac_control.pfc_octets({3: 0xFFFF, 4: 0})),
        mac_control_frame(1, mac_control.pause_octets(9)),
    ]
    path = tmp_path / "pause.pcap"
    write_pcap(path, (Record(i, i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1)))
    fields = [
        "macc.opcode",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c3",
        "macc.pause_time",
        "_ws.expert.message",
    ]
    words = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=|"]
    for field in fields:
        words += ["-e", field]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["0x0101|0x0018|65535||", "0x0001|||9|"]
