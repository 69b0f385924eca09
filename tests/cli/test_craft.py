"""`craft`: exchanges that pass the check, faults that it finds, every header within reach."""

from __future__ import annotations

import json

import pytest
from conftest import said

from roce_pkt.capture import open as open_capture

POSITIONS = ("FIRST", "MIDDLE", "LAST")
SEND_EXCHANGE = [*(f"RC_SEND_{p}" for p in POSITIONS), "RC_ACKNOWLEDGE"]
READ_EXCHANGE = ["RC_RDMA_READ_REQUEST", *(f"RC_RDMA_READ_RESPONSE_{p}" for p in POSITIONS)]


@pytest.mark.parametrize(
    ("words", "opcodes"),
    [
        ("send --length 0", ["RC_SEND_ONLY"]),
        ("send --length 2049 --exchange", SEND_EXCHANGE),
        ("write --length 10 --imm 7 --transport uc", ["UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE"]),
        ("send --inv 0x99", ["RC_SEND_ONLY_WITH_INVALIDATE"]),
        ("read --length 3000 --exchange --v1", READ_EXCHANGE),
        ("atomic --exchange --src fd00::1 --dst fd00::2", ["RC_COMPARE_SWAP", "RC_ATOMIC_ACKNOWLEDGE"]),
        ("fetch-add --transport xrc", ["XRC_FETCH_ADD"]),
        ("flush --exchange", ["RC_FLUSH", "RC_RDMA_READ_RESPONSE_ONLY"]),
        ("atomic-write --vlan 5", ["RC_ATOMIC_WRITE"]),
        ("ack --code 10", ["RC_ACKNOWLEDGE"]),
        ("nak --code 2", ["RC_ACKNOWLEDGE"]),
        ("rnr --code 12", ["RC_ACKNOWLEDGE"]),
        ("cnp --count 3 --gap 50us", ["CNP"] * 3),
        ("ud --set deth.qkey=0x80010000", ["UD_SEND_ONLY"]),
        ("opcode --opcode RD_SEND_MIDDLE --length 256", ["RD_SEND_MIDDLE"]),
        ("opcode --opcode 0xe0", ["0xe0"]),
        ("pfc --quanta 3=65535 --quanta 4=0", [None]),
        ("pause --quanta 9", [None]),
    ],
)  # fmt: skip
def test_crafted_frames_pass_the_check(capsys, tmp_path, words, opcodes):
    target = tmp_path / "c.pcap"
    assert said(capsys, "craft", *words.split(), "-o", target)[0] == 0
    _, out, _ = said(capsys, "dissect", target, "--format", "jsonl")
    documents = [json.loads(line) for line in out.splitlines()]
    assert [d["bth"]["name"] if "bth" in d else None for d in documents] == opcodes
    assert all(d["icrc"]["ok"] for d in documents if "bth" in d)
    code, out, _ = said(capsys, "check", target, "--format", "json")
    unknown = {"bth.opcode"} if opcodes == ["0xe0"] else set()
    assert set(json.loads(out)["counts"]) == unknown
    assert code == 0


def test_crafted_faults_are_found(capsys, tmp_path):
    for setting, rule in {
        "bth.version=1": "bth.version",
        "bth.padcount=1": "pad.count",
        "icrc.value=0": "icrc.wrong",
        "bth.resv7=1": "bth.reserved",
        "udp.len=99": "length.disagrees",
        "ip.chksum=1": "ip.checksum",
        "bth.opcode=0xe1": "bth.opcode",
        "bth.dqpn=0": "gsi.transport",
    }.items():
        target = tmp_path / f"{rule}.pcap"
        assert said(capsys, "craft", "send", "--set", setting, "-o", target)[0] == 0
        _, out, _ = said(capsys, "check", target, "--format", "json")
        assert rule in json.loads(out)["counts"], setting


@pytest.mark.parametrize(
    ("words", "header", "want"),
    [
        ("pfc --set pfc.enable=0xf0", "pfc", {"enabled": [4, 5, 6, 7]}),
        ("pfc --set pfc.quanta7=9", "pfc", {"enabled": [3], "quanta": [0, 0, 0, 65535, 0, 0, 0, 9]}),
        ("pfc --set eth.dst=02:00:00:00:00:09", "eth", {"dst": "02:00:00:00:00:09"}),
        ("pause --set pause.quanta=7", "pause", {"quanta": 7}),
        ("send --vlan 5 --set vlan.dei=1", "vlan", [{"pcp": 3, "dei": 1, "vid": 5, "type": 2048}]),
        ("send --set ip.dst=10.9.9.9", "ip", {"dst": "10.9.9.9"}),
        ("send --src fd00::1 --dst fd00::2 --set ip.flowlabel=5", "ip", {"version": 6, "flowlabel": 5}),
    ],
)
def test_every_header_can_be_set(capsys, tmp_path, words, header, want):
    target = tmp_path / "set.pcap"
    assert said(capsys, "craft", *words.split(), "-o", target)[0] == 0
    frame = json.loads(said(capsys, "dissect", target, "--format", "jsonl")[1])
    found = frame[header]
    assert found == want if isinstance(want, list) else {name: found.get(name) for name in want} == want


def test_nothing_is_printed_when_the_file_is_refused(capsys, tmp_path):
    target = tmp_path / "there.pcap"
    target.write_bytes(b"mine")
    code, out, _ = said(capsys, "craft", "send", "-o", target)
    assert (code, out, target.read_bytes()) == (2, "", b"mine")


def test_three_cnps_are_spaced_as_asked(capsys, tmp_path):
    target = tmp_path / "c.pcapng"
    said(capsys, "craft", "cnp", "--count", 3, "--gap", "50us", "-o", target)
    assert [r.time_ns for r in open_capture(target).records()] == [0, 50_000, 100_000]
