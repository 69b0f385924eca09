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


def test_lengths_that_differ_are_driven_each_as_it_is(tmp_path):
    lengths = [512, 1024, 64, 1024, 700]
    frames = [(n * 3.0, only(n, length)) for n, length in enumerate(lengths)]
    driven = drive(open_capture(pcap(tmp_path / "c.pcap", frames)), FABRIC)
    (train,) = driven.trains
    assert [message.octets for message in train.messages] == lengths
    (table,) = driven.result.scenario["traffic"]
    assert (table["pattern"], table["lengths"]) == ("messages", lengths)
    (flow,) = driven.result.flows
    assert (flow.messages, flow.times.count) == (5, 5)
    assert driven.findings == []
    assert driven.as_json()["flows"][0]["lengths"] == sorted(set(lengths))
    again = simulate(read_text(WRITTEN.format(table=toml(table))))
    assert [f.completion_ns for f in again.flows] == [f.completion_ns for f in driven.result.flows]


WRITTEN = 'name = "small"\nduration = "1ms"\n[fabric]\nhosts = 3\n[[traffic]]\n{table}\n'


def toml(table):
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


def test_a_longer_message_takes_longer_than_the_mean_would(tmp_path):
    """The near miss of averaging: a large message last, behind small ones, ends when all octets have left."""
    small = [(n * 3.0, only(n, 64)) for n in range(4)]
    large = [(12.0, only(4, 1024))]
    (flow,) = drive(open_capture(pcap(tmp_path / "c.pcap", small + large)), FABRIC).result.flows
    assert flow.times.count == 5
    assert flow.goodput_bps == pytest.approx((4 * 64 + 1024) * 8e9 / flow.completion_ns, rel=1e-3)


def ud(psn, size=256):
    body = struct.pack("!II", 0x1234, 0x11) + bytes(size)
    return frame(SENDER, RECEIVER, 0x64, 0x33, psn, body)


def test_datagrams_keep_their_times_and_lengths(tmp_path):
    """40 us apart, more than a round trip: one queue pair all the same, and nothing waits for an answer."""
    frames = [(n * 40.0, ud(n, 64 + 4 * n)) for n in range(5)]
    driven = drive(open_capture(pcap(tmp_path / "c.pcap", frames)), FABRIC)
    (train,) = driven.trains
    assert (train.transport, train.verb, len(train.messages)) == ("ud", "send", 5)
    (table,) = driven.result.scenario["traffic"]
    assert (table["transport"], table["lengths"]) == ("ud", [64, 68, 72, 76, 80])
    assert table["times"] == ["0ns", "40000ns", "80000ns", "120000ns", "160000ns"]
    (flow,) = driven.result.flows
    assert (flow.messages, flow.completion_ns) == (5, pytest.approx(160_000, abs=2000))


def test_management_is_nobody_s_demand_and_a_long_datagram_is_cut_and_said(tmp_path):
    mad = frame(SENDER, RECEIVER, 0x64, 1, 0, struct.pack("!II", 1 << 31, 1) + bytes(256))
    driven = drive(open_capture(pcap(tmp_path / "c.pcap", [(0.0, mad), (5.0, ud(0, 2048))])), FABRIC)
    assert [(train.key.dqpn, train.transport) for train in driven.trains] == [(0x33, "ud")]
    (finding,) = driven.findings
    assert (finding.rule, finding.severity) == ("drive.datagrams", "warning")
    assert driven.result.scenario["traffic"][0]["lengths"] == [1024]


@pytest.mark.parametrize(("opcode", "verb"), [(0x13, "cmp_swp"), (0x14, "fetch_add")])
def test_atomics_are_driven_as_atomics(tmp_path, opcode, verb):
    ask = struct.pack("!QIQQ", 0x1000, 0x1234, 1, 0)
    answer = struct.pack("!BBHQ", 0x1F, 0, 1, 7)
    frames = []
    for n in range(3):
        frames.append((n * 6.0, frame(SENDER, RECEIVER, opcode, 0x22, n, ask)))
        frames.append((n * 6.0 + 4.0, frame(RECEIVER, SENDER, 0x12, 0x11, n, answer)))
    driven = drive(open_capture(pcap(tmp_path / "c.pcap", frames)), FABRIC)
    (train,) = driven.trains
    assert (train.verb, train.transport, train.completion_ns) == (verb, "rc", 16_000)
    assert [(m.octets, m.last_ns - m.first_ns) for m in train.messages] == [(8, 4000)] * 3
    (flow,) = driven.result.flows
    assert (flow.verb, flow.messages) == (verb, 3)


def test_plain_and_listed_queue_pairs_keep_to_their_own_results(tmp_path):
    """Lists come last in the engine: rows must still be of their own queue pair."""
    mixed = [(n * 3.0, only(n, length)) for n, length in enumerate([512, 1024])]
    plain = [
        (n * 3.0 + 1, frame("10.0.0.3", RECEIVER, 0x0A, 0x44, n, reth(256) + bytes(256))) for n in range(3)
    ]
    driven = drive(open_capture(pcap(tmp_path / "c.pcap", sorted(mixed + plain, key=lambda f: f[0]))), FABRIC)
    rows = {train.key.dqpn: (len(train.messages), flow.messages) for train, flow in driven.rows()}
    assert rows == {0x22: (2, 2), 0x44: (3, 3)}


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
