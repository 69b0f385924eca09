"""Machine code that is kept: loaded without the compiler, never stale, never trusted when damaged."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roce_pkt import machine_code
from roce_pkt.kernel_cache import cache_folder
from roce_pkt.machine_code import BrokenCodeError, Native, Unit

UNIT = Unit("twice", "engine", "sample_natives")
SOURCE = """
import numpy as np
from numba import from_dtype, types
from roce_pkt.jit import callable_when_compiled, native

PAIR = from_dtype(np.dtype([("x", "i8"), ("y", "i8")]))

def part(x):
    return 2 * x

callable_when_compiled(part)

def twice(pair, number):
    if number < 0:
        raise ValueError("negative")
    pair.y = part(pair.x) + number

def natives(name):
    return {name: native(twice, PAIR, types.int64)}
"""


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A module that compiles a unit, an empty cache, and nothing loaded yet."""
    (tmp_path / "sample_natives.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(machine_code, "_loaded", {})
    return tmp_path


def run(found, x, number):
    pair = (ctypes.c_int64 * 2)(x, 0)
    function = machine_code.entry(found["twice"])
    return machine_code.call(function, ctypes.addressof(pair), number), pair[1]


def kept():
    (file,) = cache_folder("engine").glob("*.code")
    return file


def test_a_unit_is_compiled_once_and_called_as_the_compiler_calls(compiler):
    assert run(machine_code.addresses([UNIT], "a test"), 20, 2) == (0, 42)
    written = kept().stat().st_mtime_ns
    machine_code._loaded.clear()
    assert run(machine_code.addresses([UNIT], "a test"), 1, 1) == (0, 3)
    assert kept().stat().st_mtime_ns == written


def test_an_exception_is_a_status(compiler):
    status, y = run(machine_code.addresses([UNIT], "a test"), 20, -1)
    assert status != 0
    assert y == 0


@pytest.mark.parametrize(
    "harm",
    [
        lambda octets: b"",
        lambda octets: octets[:-1],
        lambda octets: octets[:-1] + bytes([octets[-1] ^ 1]),
        lambda octets: b"[]" + octets[octets.index(b"\n") :],
        lambda octets: json.dumps({"stamp": "x"}).encode() + octets[octets.index(b"\n") :],
        lambda octets: octets.replace(b'"stamp": "', b'"stamp": "0', 1),
    ],
    ids=["empty", "cut", "bit", "no object", "keys missing", "stale"],
)
def test_damaged_or_stale_code_is_compiled_again(compiler, harm):
    machine_code.addresses([UNIT], "a test")
    whole = kept().read_bytes()
    kept().write_bytes(harm(whole))
    with pytest.raises(BrokenCodeError):
        machine_code._read(kept(), UNIT)
    machine_code._loaded.clear()
    assert run(machine_code.addresses([UNIT], "a test"), 20, 2) == (0, 42)
    assert kept().read_bytes() == whole


def test_without_a_place_to_keep_it_the_code_still_runs(compiler, monkeypatch):
    monkeypatch.setattr(machine_code, "cacheable", lambda: False)
    assert run(machine_code.addresses([UNIT], "a test"), 20, 2) == (0, 42)
    assert not (compiler / "cache").exists() or not list((compiler / "cache").rglob("*.code"))


def test_what_is_wrong_with_a_function_is_told(compiler):
    (compiler / "sample_natives.py").write_text(SOURCE.replace("2 * x", "2 * x.unknown"))
    with pytest.raises(Exception, match="unknown"):
        machine_code.addresses([UNIT], "a test")
    assert not list(cache_folder("engine").glob("*"))


def test_a_file_says_what_it_holds(compiler):
    packed = machine_code._packed(UNIT, {"a": Native("f", b"12"), "b": Native("g", b"345")})
    (compiler / "file").write_bytes(packed)
    assert machine_code._read(compiler / "file", UNIT) == {"a": Native("f", b"12"), "b": Native("g", b"345")}


def test_a_kept_engine_runs_without_the_compiler():
    code = (
        "import sys\n"
        "from roce_pkt.engine.session import Session\n"
        "from roce_pkt.scenario import presets\n"
        "session = Session(presets.load('two-to-one'))\n"
        "session.advance(50_000_000)\n"
        "print(int(session.built.w['data_sent']), 'numba' in sys.modules)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs[1][1] == "False"
    assert int(runs[1][0]) == int(runs[0][0]) > 100


def test_the_child_imports_nothing_from_where_it_happens_to_be(compiler, monkeypatch, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "numba.py").write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path / "here")
    # what a failing compiler leaves undone must not be made up for in this process
    monkeypatch.setattr(machine_code, "importlib", None)
    assert run(machine_code.addresses([UNIT], "a test"), 20, 2) == (0, 42)


def test_the_child_imports_this_copy_of_the_package(compiler, tmp_path):
    away = {**os.environ, "PYTHONPATH": ""}
    code = (
        f"import sys; sys.path.insert(0, {str(Path(machine_code.__file__).parent.parent)!r})\n"
        "from roce_pkt import machine_code\n"
        "from roce_pkt.machine_code import Unit\n"
        "unit = Unit('law-timely', 'engine', 'roce_pkt.engine.by_address')\n"
        "print(sorted(machine_code.addresses([unit], 'a test')), 'numba' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=away, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['on_ack'] False"
