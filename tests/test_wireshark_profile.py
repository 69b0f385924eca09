"""The Wireshark profile as tshark takes it: every filter, every column, low source ports."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess

import pytest
from conftest import ROOT
from crafted import ack, cnp, data, pcap, pfc

PROFILE = ROOT / "tools" / "wireshark" / "roce-pkt"
pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def tshark(tmp_path, *words):
    folder = tmp_path / "config"
    shutil.copytree(PROFILE, folder / "profiles" / "roce-pkt", dirs_exist_ok=True)
    out = subprocess.run(
        ["tshark", "-C", "roce-pkt", *map(str, words)],
        capture_output=True, text=True, check=False, env=os.environ | {"WIRESHARK_CONFIG_DIR": str(folder)},
    )  # fmt: skip
    said = [line for line in out.stderr.splitlines() if "root" not in line]
    assert (out.returncode, said) == (0, []), said
    return out.stdout.splitlines()


def filters():
    coloured = [
        line.split("@")[2] for line in (PROFILE / "colorfilters").read_text().splitlines() if line[0] == "@"
    ]
    buttons = re.findall(
        r'^"TRUE","[^"]*","([^"]*)"', (PROFILE / "dfilter_buttons").read_text(), re.MULTILINE
    )
    assert len(coloured) > 8
    assert len(buttons) > 6
    return coloured + buttons


def test_filters_are_understood_and_tell_frames_apart(tmp_path):
    frames = [data(), data(1, ce=True), ack(), cnp(), pfc({3: 9}), pfc({3: 0})]
    path = pcap(tmp_path / "c.pcap", list(enumerate(frames)))
    found = {
        f: [int(n) for n in tshark(tmp_path, "-r", path, "-Y", f, "-T", "fields", "-e", "frame.number")]
        for f in filters()
    }
    assert found["infiniband.bth.opcode == 129"] == [4]
    assert found["ip.dsfield.ecn == 3 || ipv6.tclass.ecn == 3"] == [2]
    assert found["macc.opcode == 0x0101 || macc.opcode == 0x0001"] == [5, 6]
    assert [numbers for f, numbers in found.items() if "pause_time.c3 > 0" in f] == [[5]]


def test_columns(tmp_path):
    path = pcap(tmp_path / "c.pcap", [(0, data(7, ce=True))])
    (line,) = tshark(tmp_path, "-r", path)
    assert re.search(r"10\.0\.0\.1 .*10\.0\.0\.2 +26 3 .*SEND Only 0x000022 7", line)


@pytest.mark.parametrize("port", [49152, 443, 1719, 1900, 4789])
def test_low_source_ports_are_still_roce(tmp_path, port):
    octets = bytearray(data())
    octets[34:36] = struct.pack("!H", port)
    path = pcap(tmp_path / "c.pcap", [(0, bytes(octets))])
    assert tshark(tmp_path, "-r", path, "-T", "fields", "-e", "frame.protocols")[0].endswith(":infiniband")
