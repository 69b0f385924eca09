from __future__ import annotations

import json
from pathlib import Path

import pytest

from roce_pkt.cli.app import run


def test_rewrite_and_reverse_from_the_shell(pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    there, back = str(tmp_path / "there"), str(tmp_path / "back")
    maps = ["--map", "psn:+1", "--map", "ip:10.0.0.1=10.0.0.77", "--format", "json"]
    assert run(["rewrite", str(pcaps / "clean.pcap"), "-o", there, *maps]) == 0
    assert json.loads(capsys.readouterr().out) == {"frames": 226, "changed": 226, "kept": 0, "left_out": 0}
    assert run(["rewrite", there, "-o", back, *maps, "--reverse"]) == 0
    assert Path(back).read_bytes()[24:] == (pcaps / "clean.pcap").read_bytes()[24:]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "ipv5"], "did you mean 'ipv"),
        (["--icrc", "good"], "auto, keep, bad, fix"),
        (["--map", "qp:1=2"], "fields are ip, mac"),
    ],
)
def test_rewrite_says_what_is_wrong(
    pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words, says
):
    assert run(["rewrite", str(pcaps / "clean.pcap"), "-o", str(tmp_path / "o"), *words]) == 2
    assert says in capsys.readouterr().err
