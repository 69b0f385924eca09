from __future__ import annotations

import json
from pathlib import Path

import pytest

from roce_pkt.capture import open as open_capture
from roce_pkt.cli.app import run
from roce_pkt.wire import ib
from roce_pkt.wire.frame import dissect


def test_a_preset_becomes_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "a.pcapng"
    words = ["generate", "--preset", "pipeline", "-o", str(out), "--set", "host.mtu=1024"]
    assert run([*words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["frames"] == len(open_capture(out))
    assert document["scenario"]["host"]["mtu"] == 1024
    assert document["connections"] == 6


def test_like_perftest(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "a.pcap"
    words = [
        "generate",
        "--like",
        "ib_write_bw -d mlx5_0 -q 4 -s 65536 -m 4096 -n 2 10.0.0.1",
        "-o",
        str(out),
    ]
    assert run(words) == 0
    frames = [dissect(r.octets) for r in open_capture(out).records()]
    firsts = [d for d in frames if d.opcode.name == "RC_RDMA_WRITE_FIRST"]
    assert len(firsts) == 8
    assert {d.find(ib.RETH).values["dmalen"] for d in firsts} == {65536}
    assert len({d.bth["dqpn"] for d in firsts}) == 4
    assert max(d.payload_len for d in frames) == 4096
    capsys.readouterr()
    assert run(["generate", "--like", "ib_read_lat -s 8 -n 5", "--scenario"]) == 0
    assert 'verb = "read"' in capsys.readouterr().out


def test_faults_of_a_scenario_are_listed_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    scenario, out = tmp_path / "s.toml", tmp_path / "a.pcap"
    scenario.write_text(
        '[fabric]\nhosts = 2\n[[traffic]]\nsenders = [1]\nmessage = "4KB"\ncount = 5\n'
        '[[fault]]\ndo = "drop"\nnth = 3\n'
    )
    assert run(["generate", str(scenario), "-o", str(out)]) == 0
    assert "1 drop" in capsys.readouterr().out
    (line,) = Path(f"{out}.truth.jsonl").read_text().splitlines()
    assert json.loads(line)["frame"] == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give one of SCENARIO.toml"),
        (["--preset", "ring-alreduce"], "did you mean 'ring-allreduce'"),
        (["--like", "ib_write_bw -s 64 --warp"], "unrecognized arguments: --warp"),
        (["--like", "ib_wrte_bw"], "did you mean 'ib_write_bw'"),
        (["--preset", "incast", "--set", "traffic.load=140%"], "not between 0% and 100%"),
        (["--preset", "incast", "--set", "traffic.load=fast"], "is no rate"),
        (["--preset", "incast", "--set", "frames.ecn=ect2"], "ect0, ect1"),
        (["--preset", "incast", "--tap", "switch0:1"], "there are only hosts"),
        (["--preset", "incast", "--set", "traffic.transport=uc", "--set", "traffic.verb=read"], "UC carries"),
    ],
)
def test_wrong_use_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], words, says):
    assert run(["generate", *words, "-o", str(tmp_path / "a.pcap")]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "a.pcap").exists()


def test_what_is_not_simulated_is_said(capsys: pytest.CaptureFixture[str]):
    for words in ("transport=xrc", "verb=flush"):
        assert run(["simulate", "--preset", "incast", "--set", f"traffic.{words}"]) == 2
        assert "is for generate" in capsys.readouterr().err
