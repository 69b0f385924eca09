"""Compiled functions kept as machine code, loaded and called without importing the compiler.

Importing the compiler and what it unpickles of a kept kernel take a second, object code a tenth.
Functions that are compiled together are a unit. Missing units are compiled by processes of their
own: several at a time, and the memory that a compiler takes is given back.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from roce_pkt.kernel_cache import PACKAGE, announce_compile, cache_folder, cacheable, cores, source_stamp


@dataclass(frozen=True, slots=True)
class Native:
    """A compiled function.

    Args:
        symbol: Its name in the object code.
        octets: The object code.
    """

    symbol: str
    octets: bytes


@dataclass(frozen=True, slots=True)
class Unit:
    """Functions that are compiled together.

    Args:
        name: Tells the units of a room apart.
        room: Whose sources it is made from.
        module: Imported to compile it: its `natives(name)` gives the functions by name.
    """

    name: str
    room: str
    module: str


class BrokenCodeError(Exception):
    """A file of machine code is not what was written, or belongs to another compiler or machine."""


def addresses(units: Iterable[Unit], what: str) -> dict[str, int]:
    """Where the functions of units are in memory, by name; what is not kept is compiled first.

    Args:
        units: What is needed.
        what: Named to a person who waits for the compiler.
    """
    found: dict[str, int] = {}
    missing = [unit for unit in units if not _load_kept(unit, found)]
    if missing:
        announce_compile(what)
        _compile(missing, found)
    return found


_loaded: dict[Unit, dict[str, int]] = {}


def _load_kept(unit: Unit, found: dict[str, int]) -> bool:
    """Add a unit's functions to `found` if they are loaded already or kept on disk."""
    if unit not in _loaded:
        try:
            _loaded[unit] = link(_read(_file_of(unit), unit))
        except (OSError, BrokenCodeError):
            return False
    found |= _loaded[unit]
    return True


def _compile(units: list[Unit], found: dict[str, int]) -> None:
    """Compile units, as many at a time as there are cores."""
    with tempfile.TemporaryDirectory() as folder:
        folders = [_file_of(unit).parent if cacheable() else Path(folder) for unit in units]
        files = [place / _file_of(unit).name for place, unit in zip(folders, units, strict=True)]
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(_compile_apart, units, files))
        for unit, file in zip(units, files, strict=True):
            try:
                functions = _read(file, unit)
            except (OSError, BrokenCodeError):
                functions = importlib.import_module(unit.module).natives(unit.name)  # says what is wrong
            _loaded[unit] = link(functions)
            found |= _loaded[unit]


def _compile_apart(unit: Unit, file: Path) -> None:
    """Compile a unit in a process of its own; what goes wrong there shows as a file that is missing."""
    code = "import sys; from roce_pkt.machine_code import compile_to; compile_to(*sys.argv[1:])"
    path = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-P", "-c", code, unit.name, unit.room, unit.module, str(file)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def compile_to(name: str, room: str, module: str, file: str) -> None:
    """Compile a unit into a file, whole or not at all."""
    unit, place = Unit(name, room, module), Path(file)
    functions = importlib.import_module(module).natives(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as part:
        part.write(_packed(unit, functions))
    Path(part.name).replace(place)


# -- files


@cache
def _machine() -> str:
    """What code is compiled by and for."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features} numba {version('numba')}"


def _file_of(unit: Unit) -> Path:
    """Where a unit is kept: a file for each machine, so that machines may share a home directory."""
    machine = hashlib.sha256(_machine().encode()).hexdigest()[:16]
    return cache_folder(unit.room) / f"{unit.name}-{machine}.code"


def _packed(unit: Unit, functions: dict[str, Native]) -> bytes:
    """A line of JSON that says what follows, then the object code of each function."""
    octets = b"".join(native.octets for native in functions.values())
    head = {
        "stamp": source_stamp(unit.room),
        "sha256": hashlib.sha256(octets).hexdigest(),
        "functions": [[name, native.symbol, len(native.octets)] for name, native in functions.items()],
    }
    return json.dumps(head).encode() + b"\n" + octets


def _read(file: Path, unit: Unit) -> dict[str, Native]:
    """The functions of a file.

    Raises:
        OSError: There is no such file.
        BrokenCodeError: It is stale or damaged.
    """
    head, _, octets = file.read_bytes().partition(b"\n")
    try:
        told = json.loads(head)
        if told["stamp"] != source_stamp(unit.room) or told["sha256"] != hashlib.sha256(octets).hexdigest():
            raise BrokenCodeError(file)
        functions, at = {}, 0
        for name, symbol, size in told["functions"]:
            functions[name] = Native(symbol, octets[at : at + size])
            at += size
    except (ValueError, KeyError, TypeError):
        raise BrokenCodeError(file) from None
    return functions


# -- memory


@cache
def _engine() -> Any:
    """What links object code into this process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def link(functions: dict[str, Native]) -> dict[str, int]:
    """Link functions into this process, for as long as it lives; their addresses by name."""
    import llvmlite.binding as llvm

    engine = _engine()
    for native in functions.values():
        engine.add_object_file(llvm.ObjectFileRef.from_data(native.octets))
    engine.finalize_object()
    return {name: engine.get_function_address(native.symbol) for name, native in functions.items()}


def entry(address: int) -> Any:
    """`f(record, int64)` at an address, for `call`."""
    pointer = ctypes.c_void_p
    return ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer, ctypes.c_int64)(address)


def call(function: Any, record: int, number: int) -> int:
    """Call an `entry`, without the interpreter lock; its status is 0 when it raised no exception.

    The compiler's functions take room for a result and for an exception before their arguments.
    """
    result, exception = ctypes.c_void_p(), ctypes.c_void_p()
    return int(function(ctypes.byref(result), ctypes.byref(exception), record, number))
