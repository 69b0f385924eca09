from __future__ import annotations

import json
from pathlib import Path

import pytest

from roce_pkt.cli.app import run


def test_impair_states_what_it_did(pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out.pcap"
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\ndo = "ce"\nprobability = 0.1\n')
    words = [
        "impair",
        str(pcaps / "clean.pcap"),
        "-o",
        str(out),
        "--fault",
        "drop nth=5",
        "--faults",
        str(faults),
    ]
    assert run([*words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["frames_in"] - document["frames_out"] == document["faults"]["drop"] == 1
    assert len(Path(document["truth"]).read_text().splitlines()) == sum(document["faults"].values())
    assert run(words) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0


def test_impair_without_a_fault_says_how(pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["impair", str(pcaps / "clean.pcap"), "-o", str(tmp_path / "x")]) == 2
    assert "--fault 'drop" in capsys.readouterr().err
