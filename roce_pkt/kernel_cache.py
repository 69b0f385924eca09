"""Where compiled kernels are kept and when a kept copy is fresh. Imports no compiler."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

CHECKED = os.environ.get("ROCE_PKT_CHECKED", "") not in ("", "0")
"""The build in which every load, store and index is tested against its memory."""

PACKAGE = Path(__file__).resolve().parent
_COMPILER = ("jit.py", "kernel_cache.py")
_ROOM_SOURCES = {
    "capture": (*_COMPILER, "capture", "wire"),
    "cc": (*_COMPILER, "cc"),
    "engine": (
        *(*_COMPILER, "machine_code.py", "cc", "endpoint", "engine", "fabric"),
        *("edit/choose.py", "scenario/dice.py", "scenario/fault.py"),
    ),
    "flows": (*_COMPILER, "capture/columns.py", "flows", "wire"),
    "run": (*_COMPILER, "cc", "endpoint", "fabric/pause.py", "run"),
    "traffic": (
        *(*_COMPILER, "wire", "traffic", "capture", "cc", "endpoint"),
        *("scenario/schema.py", "scenario/pace.py", "scenario/sizes.py", "scenario/dice.py"),
        *("scenario/fault.py", "edit/choose.py", "edit/pick.py", "psn.py"),
    ),
}
"""What a room's kernels are made from, where that is less than the whole package."""


@cache
def source_stamp(room: str) -> str:
    """Digest of every source file that can end up in a kernel of `room`."""
    digest = hashlib.sha256(f"checked={CHECKED}".encode())
    for part in _ROOM_SOURCES.get(room, (".",)):
        root = PACKAGE / part
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cache_root() -> Path:
    """Where compiled kernels are kept: NUMBA_CACHE_DIR if set, else the user's cache directory."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roce-pkt" / "kernels"


def cache_folder(room: str) -> Path:
    """Where the kernels of a room of this copy of the package are kept."""
    kind = "checked" if CHECKED else "plain"
    copy = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]
    return cache_root() / copy / kind / room


@cache
def cacheable() -> bool:
    """True when kernels can be kept on disk; otherwise each process compiles its own."""
    try:
        cache_root().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_root()):
            return True
    except OSError:
        return False


def announce_compile(what: str) -> None:
    """Tell a person at a terminal why the next seconds are spent."""
    if sys.stderr.isatty():
        kept = "once; kept in" if cacheable() else "each time: it cannot be kept in"
        print(f"compiling {what} for this machine ({kept} {cache_root()})", file=sys.stderr)  # noqa: T201


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
