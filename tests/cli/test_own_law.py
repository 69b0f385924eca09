"""A law of one's own through the command: named as a file or announced by a package; mistakes in one line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tools/examples/aimd_by_echo.py"
SHORT = ["--preset", "two-to-one", "--set", "duration=200us", "--set", "measure_from=0us"]


def simulate(*words, path=""):
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (path, environment.get("PYTHONPATH", ""))))
    return subprocess.run(
        [sys.executable, "-m", "roce_pkt", "simulate", *SHORT, *words],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def installed(tmp_path):
    """A package that announces the example as `aimd`, as an installer leaves it."""
    package, info = tmp_path / "our_laws", tmp_path / "our_laws-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("")
    (package / "aimd.py").write_text(EXAMPLE.read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-laws\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[roce_pkt.cc]\naimd = our_laws.aimd\nabsent = our_laws.nothing_here\n"
    )
    return str(tmp_path)


def test_a_law_that_a_package_announces_has_a_name(installed):
    done = simulate("--cc", "aimd", "--set", "host.cc.cut=0.7", "--format", "json", path=installed)
    assert done.returncode == 0, done.stderr
    by_name = json.loads(done.stdout)
    assert by_name["scenario"]["host"]["cc"]["algorithm"] == "aimd"
    assert by_name["scenario"]["host"]["cc"]["cut"] == "0.7"
    done = simulate("--cc", str(EXAMPLE), "--set", "host.cc.cut=0.7", "--format", "json")
    by_file = json.loads(done.stdout)
    assert by_name["flows"] == by_file["flows"]
    assert all(flow["goodput_bps"] > 0 for flow in by_name["flows"])


def test_an_announced_law_that_is_not_there_is_one_line(installed):
    done = simulate("--cc", "absent", path=installed)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "our_laws.nothing_here" in done.stderr
    done = simulate("--cc", "aimdd", path=installed)
    assert "did you mean 'aimd'" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def on_ack(p, s, ack, now):\n    s.rate_bps = 1e9 / (now - now)\n", ":2: on_ack: ZeroDiv"),
        ("def on_ack(p, s, ack, now):\n    s.rate_bps *= float('nan')\n", ":1: on_ack leaves s.rate_bps ="),
        ("def on_cnp(p, s, now):\n    s.rate_bps -= 2e12\n", ":1: on_cnp leaves s.rate_bps = -1.96e+12"),
        ("def on_timer(p, s):\n    s.rate_bps = 1e9\n", ":1: on_timer(p, s) takes other arguments"),
    ],
)  # fmt: skip
def test_a_bad_law_is_one_line_with_file_and_function(tmp_path, text, told):
    file = tmp_path / "bad.py"
    file.write_text(text)
    done = simulate("--cc", str(file))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"{file}{told}" in done.stderr


def test_the_readme_shows_the_example_as_it_is():
    readme = (ROOT / "README.md").read_text()
    [block] = [b for b in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "PARAMETERS" in b]
    source = EXAMPLE.read_text()
    assert source.endswith(block)
    assert source.removesuffix(block).strip().endswith('"""')
    assert "PARAMETERS" not in source.removesuffix(block)
