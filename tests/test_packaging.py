"""The package as it is installed, and the direction of its imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_package_list_equals_the_tree():
    found = {"roce_pkt", "roce_pkt.layers"}
    for init in (ROOT / "roce_pkt").rglob("__init__.py"):
        found.add(".".join(init.parent.relative_to(ROOT).parts))
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == found


def test_data_files_are_packaged():
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    packaged = {
        file.resolve()
        for package, patterns in data.items()
        for pattern in patterns
        for file in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    ours = {
        file.resolve()
        for file in (ROOT / "roce_pkt").rglob("*")
        if file.is_file() and file.suffix not in (".py", ".pyc") and not file.is_symlink()
    }
    assert {file for file in ours if not file.is_relative_to(ROOT / "layers")} == packaged


def test_layers_is_one_room_under_two_names():
    assert (ROOT / "roce_pkt" / "layers").resolve() == ROOT / "layers"
    import roce_pkt.layers

    assert Path(roce_pkt.layers.__file__).resolve().parent == ROOT / "layers"


def test_plain_layers_is_refused():
    code = "import layers"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert out.returncode == 1
    assert "roce_pkt.layers" in out.stderr.splitlines()[-1]


def test_the_licence_is_one_scapy_accepts():
    assert PYPROJECT["project"]["license"] == "GPL-2.0-or-later"
    assert "GNU GENERAL PUBLIC LICENSE" in (ROOT / "LICENSE").read_text()


def test_imports_go_one_way():
    out = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out.stdout[-3000:] + out.stderr[-2000:]
    assert re.search(r"[1-9]\d* kept, 0 broken", out.stdout)


def test_only_layers_imports_scapy():
    for path in (ROOT / "roce_pkt").rglob("*.py"):
        if path.resolve().is_relative_to(ROOT / "layers") or path.name == "scapy_shim.py":
            continue
        assert not re.search(r"^\s*(from|import) scapy\b", path.read_text(), re.MULTILINE), path


@pytest.mark.parametrize("heavy", ["numba", "scapy", "pyarrow", "plotly", "matplotlib", "pandas"])
def test_the_command_starts_without(heavy):
    code = f"import sys, roce_pkt.cli.app as a; a.run(['--help']); sys.exit({heavy!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_files_stay_small():
    for room in ("roce_pkt", "layers", "tools"):
        for path in (ROOT / room).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= 450, path
