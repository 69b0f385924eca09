"""Driving another fabric with a captured demand: as good as simulating that fabric at once."""

from __future__ import annotations

import json
import struct

import pytest
from crafted import RECEIVER, SENDER, frame, pcap

from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.cli.app import run
from roce_pkt.errors import ScenarioError
from roce_pkt.run.drive import drive
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario.reader import read_text

INCAST = """
name = "incast"
seed = 3
duration = "12ms"
taps = ["host4"]
[fabric]
hosts = 5
rate = "100Gbps"
[switch.ecn]
kmin = "{kmin}"
kmax = "{kmax}"
pmax = 0.2
[host]
cc = {{ algorithm = "dcqcn", profile = "paper" }}
[[traffic]]
pattern = "incast"
receiver = 4
message = "{message}"
count = {count}
"""


def mean_ns(flows):
    assert all(flow.completion_ns for flow in flows)
    return sum(flow.completion_ns for flow in flows) / len(flows)


@pytest.fixture(scope="module", params=[("1MB", 1), ("300KB", 3)], ids=["one", "three-in-a-row"])
def captured(request, tmp_path_factory):
    """An incast, its capture, and the same incast with a tenth of the thresholds."""
    message, count = request.param
    how = {"message": message, "count": count}
    wide = read_text(INCAST.format(kmin="400KB", kmax="1600KB", **how))
    narrow = read_text(INCAST.format(kmin="40KB", kmax="160KB", **how))
    frames, interfaces = [], []

    def take(record, known):
        frames.append(record)
        interfaces[:] = known

    before = simulate(wide, on_frame=take)
    path = tmp_path_factory.mktemp("drive") / "incast.pcapng"
    write_pcapng(path, frames, interfaces)
    return path, wide, narrow, mean_ns(before.flows), mean_ns(simulate(narrow).flows), count


def test_a_tenth_of_the_thresholds_does_what_simulating_it_does(captured):
    path, _, narrow, before, direct, count = captured
    driven = drive(open_capture(path), narrow)
    assert [len(train.messages) for train in driven.trains] == [count] * 4
    after = mean_ns(driven.result.flows)
    assert after == pytest.approx(direct, rel=0.05)
    assert (after > before) == (direct > before)
    assert direct > 1.2 * before


def test_the_same_fabric_gives_the_same_times(captured):
    path, wide, _, before, _, _ = captured
    assert mean_ns(drive(open_capture(path), wide).result.flows) == pytest.approx(before, rel=0.05)


def reth(length):
    return struct.pack("!QII", 0x1000, 0x1234, length)


def only(psn, length=512):
    return frame(SENDER, RECEIVER, 0x0A, 0x22, psn, reth(length) + bytes(length))


FABRIC = read_text(
    'name = "small"\nduration = "1ms"\n[fabric]\nhosts = 3\n[[traffic]]\npattern = "incast"\nreceiver = 2\n'
)


def test_what_follows_at_once_waits_and_what_comes_later_starts_then(tmp_path):
    frames = [(0.0, only(0)), (3.0, only(1)), (500.0, only(2)), (503.0, only(3))]
    path = pcap(tmp_path / "c.pcap", frames)
    driven = drive(open_capture(path), FABRIC)
    assert [len(train.messages) for train in driven.trains] == [2, 2]
    assert [f.rule for f in driven.findings] == ["drive.trains"]
    assert [row["start"] for row in driven.result.scenario["traffic"]] == ["0ns", "500000ns"]
    assert len(driven.result.flows) == 2
    apart = drive(open_capture(path), FABRIC, open_loop=True)
    assert [len(train.messages) for train in apart.trains] == [1] * 4


def test_lengths_that_differ_are_driven_with_their_mean_and_that_is_said(tmp_path):
    driven = drive(
        open_capture(pcap(tmp_path / "c.pcap", [(0.0, only(0, 512)), (3.0, only(1, 1024))])), FABRIC
    )
    assert driven.trains[0].octets == 768
    assert "drive.mean-length" in {f.rule for f in driven.findings}


def test_too_few_hosts_and_nothing_to_drive_with(tmp_path, pcaps):
    frames = [
        (float(n), frame(f"10.0.0.{n + 1}", "10.0.0.9", 0x0A, 0x22, 0, reth(64) + bytes(64)))
        for n in range(4)
    ]
    with pytest.raises(ScenarioError, match=r"fabric.hosts: 3, but .* between 5 hosts"):
        drive(open_capture(pcap(tmp_path / "c.pcap", frames)), FABRIC)
    with pytest.raises(ScenarioError, match="no message"):
        drive(open_capture(pcaps / "reject_no_listener.pcap"), FABRIC)


def test_the_command(tmp_path, capsys):
    path = pcap(tmp_path / "c.pcap", [(0.0, only(0)), (3.0, only(1))])
    fabric, report = tmp_path / "f.toml", tmp_path / "r.html"
    fabric.write_text('name = "small"\nduration = "1ms"\n[fabric]\nhosts = 2\n')
    words = ["replay", str(path), "--fabric", str(fabric)]
    assert run([*words, "--format", "json", "--report", str(report)]) == 0
    found = json.loads(capsys.readouterr().out)
    (flow,) = found["flows"]
    assert (flow["src"], flow["messages"], flow["message_bytes"]) == (SENDER, 2, 512)
    assert flow["driven_completion_ns"] > 0
    assert "Captured and driven" in report.read_text()
    assert run(words) == 0
    assert "2 x 512 B" in capsys.readouterr().out
    assert run([*words, "-o", str(tmp_path / "a.pcapng")]) == 2
    assert "--fabric" in capsys.readouterr().err
