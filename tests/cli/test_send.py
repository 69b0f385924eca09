"""Frames really leave: over a veth pair in the test's own network namespace."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roce_pkt.capture import Record
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcap
from roce_pkt.cli.app import run
from roce_pkt.run.send import Pace, Sender
from roce_pkt.run.wire_socket import _Message
from roce_pkt.wire.exchange import Pair, message
from roce_pkt.wire.frame import dissect

IN_NAMESPACE = """
import json, socket, subprocess, sys
for words in ("link add va type veth peer name vb", "link set va addrgenmode none",
              "link set vb addrgenmode none", "link set va mtu 9000 up", "link set vb mtu 9000 up"):
    subprocess.run(["ip", *words.split()], check=True)
ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
ear.bind(("vb", 0))
ear.settimeout(2)
import threading
heard = []
def listen():
    try:
        while True:
            heard.append(ear.recv(65536).hex())
            if heard[-1].startswith("feed"):
                return
    except TimeoutError:
        return
thread = threading.Thread(target=listen)
thread.start()
from roce_pkt.cli.app import run
code = run(sys.argv[1:])
end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
end.bind(("va", 0))
end.send(bytes.fromhex("feed") + bytes(60))
thread.join()
print(json.dumps({"code": code, "heard": heard[:-1]}), file=sys.stderr)
"""


def namespace() -> list[str]:
    """The words that start a program in network namespaces of its own, or skip."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("unshare and ip (util-linux, iproute2) are needed")
    for words in (["unshare", "-n"], ["unshare", "-rn"]):
        veth = [*words, "ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"]
        if subprocess.run(veth, capture_output=True, check=False).returncode == 0:
            return words
    pytest.skip("no network namespace with a veth pair may be made here")


def over_veth(tmp_path: Path, *words: str) -> tuple[dict, list[bytes]]:
    program = tmp_path / "inside.py"
    program.write_text(IN_NAMESPACE)
    command = [*namespace(), sys.executable, str(program), "send", *words, "-i", "va", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    inside = json.loads(done.stderr.splitlines()[-1])
    assert inside["code"] in (0, 1)
    return json.loads(done.stdout), [bytes.fromhex(frame) for frame in inside["heard"]]


def test_what_leaves_is_what_the_capture_holds(pcaps: Path, tmp_path: Path):
    path = pcaps / "clean.pcap"
    stats, heard = over_veth(tmp_path, str(path), "--rate", "max")
    assert heard == [bytes(r.octets) for r in open_capture(path).records()]
    assert stats["sent"] == stats["attempted"] == len(heard)
    assert stats["octets"] == sum(map(len, heard))


def test_psns_go_on_from_pass_to_pass(tmp_path: Path):
    pair = Pair(psn=0xFFFFFD, mtu_bytes=256)
    frames = [*message(pair, "SEND", bytes(1000)), pair.ack(3)]
    path = tmp_path / "one.pcap"
    write_pcap(path, (Record(i + 1, i * 1000, 0, 1, len(f), len(f), f) for i, f in enumerate(frames)))
    _, heard = over_veth(tmp_path, str(path), "--loop", "3", "--rate", "100kpps")
    read = [dissect(frame) for frame in heard]
    requests = [d.bth["psn"] for d in read if d.opcode.request]
    assert requests == [(0xFFFFFD + n) & 0xFFFFFF for n in range(12)]
    assert [d.bth["psn"] for d in read if not d.opcode.request] == requests[3::4]
    assert all(d.icrc.ok for d in read)


def test_a_frame_too_long_is_refused_and_counted(tmp_path: Path):
    frames = [bytes(100), bytes(9100), bytes(200)]
    path = tmp_path / "long.pcap"
    write_pcap(path, (Record(i + 1, 0, 0, 1, len(f), len(f), f) for i, f in enumerate(frames)))
    stats, heard = over_veth(tmp_path, str(path))
    assert [len(frame) for frame in heard] == [100, 200]
    assert (stats["attempted"], stats["sent"], stats["refused"]) == (3, 2, 1)


def test_messages_lie_as_the_kernel_reads_them():
    assert ctypes.sizeof(_Message) == (64 if ctypes.sizeof(ctypes.c_void_p) == 8 else 32)


class Wire:
    """Takes frames and remembers when."""

    def __init__(self) -> None:
        self.now, self.log = 0, []

    def clock(self) -> int:
        self.now += 100
        return self.now

    def send(self, addresses, sizes) -> int:
        self.log += [(self.now, int(size)) for size in sizes]
        return len(sizes)


@pytest.mark.parametrize(
    ("pace", "due"),
    [
        (Pace(), [0, 5_000, 10_000, 15_000]),
        (Pace(speed=2), [0, 2_500, 5_000, 7_500]),
        (Pace(rate_pps=1e6), [0, 1_000, 2_000, 3_000]),
        (Pace(rate_bps=1e9), [0, 992, 1_984, 2_976]),
    ],
)
def test_no_frame_leaves_before_it_is_due(tmp_path: Path, pace: Pace, due: list[int]):
    path = tmp_path / "four.pcap"
    write_pcap(path, (Record(i + 1, 10**9 + i * 5000, 0, 1, 100, 100, bytes(100)) for i in range(4)))
    wire = Wire()
    done = Sender(open_capture(path), wire, pace, wire.clock).run()
    start = wire.log[0][0]
    assert all(d <= when - start + 100 <= d + 500 for (when, _), d in zip(wire.log, due, strict=True))
    assert done.sent == 4
    assert done.latest_ns <= 500


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "none is ever guessed"),
        (["-i", "no-such-if"], "no such interface"),
        (["-i", "lo", "--rate", "fast"], "is no rate"),
        (["-i", "lo", "--rate", "max", "--speed", "2"], "exclude each other"),
    ],
)
def test_wrong_use_is_told(pcaps: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str):
    assert run(["send", str(pcaps / "clean.pcap"), *words]) == 2
    assert says in capsys.readouterr().err


def test_without_the_right_it_says_which(pcaps: Path, tmp_path: Path):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can give up rights here")
    words = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--reuid=65534", "--clear-groups"]
    probe = subprocess.run(
        [*words, sys.executable, "-c", "import roce_pkt"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("another user cannot reach this interpreter")
    command = [*words, sys.executable, "-m", "roce_pkt", "send", str(pcaps / "clean.pcap"), "-i", "lo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "CAP_NET_RAW" in done.stderr
