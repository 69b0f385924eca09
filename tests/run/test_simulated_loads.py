"""Every preset runs in both engines; what patterns with waits send is clean to a checker and to tshark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from roce_pkt.analysis.check import check
from roce_pkt.capture import open as open_capture
from roce_pkt.cli.app import run
from roce_pkt.run.generate import Generation
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario import presets

SCRIPTS = ["ring-allreduce", "tree-allreduce", "pipeline", "moe-alltoall", "storage-mix"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_frames_of_patterns_with_waits_are_clean(name: str, tmp_path: Path):
    path = tmp_path / "x.pcapng"
    assert run(["simulate", "--preset", name, "--tap", "host0", "--tap", "host1", "-o", str(path)]) == 0
    assert check(open_capture(path)).counts == {}
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    words = ["tshark", "-r", str(path), "-Y", "_ws.malformed || _ws.expert.severity >= 6291456"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_begins_in_both_engines(name: str):
    result = simulate(name, {"duration": "300us", "measure_from": "0us"})
    assert result.summary["data_packets"] > 0
    rows = next(Generation(presets.load(name)).rows())
    assert len(rows) > 0
