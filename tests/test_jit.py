"""The compiled-code helpers: the numba interfaces they lean on, and a cache that is never stale."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from roce_pkt import jit

PACKAGE = Path(jit.__file__).parent


@jit.kernel
def _sum_words(mem, count):
    total = np.uint64(0)
    for i in range(count):
        total += np.uint64(jit.be32(mem, np.uint64(i)))
        jit.prefetch(mem, np.uint64(i + 64))
    return total


@jit.kernel
def _bump(array):
    held = jit.borrow(array)
    held[1] += 1


@jit.kernel
def _store(mem):
    jit.put64(mem, np.uint64(3), np.uint64(0x1122334455667788))
    jit.put16(mem, np.uint64(0), np.uint16(0xAABB))
    return jit.le64(mem, np.uint64(3)) ^ jit.be64(mem, np.uint64(3))


def test_loads_are_unaligned_and_in_the_order_named():
    data = np.arange(64, dtype=np.uint8)
    words = [int.from_bytes(data[i : i + 4].tobytes(), "big") for i in range(61)]
    assert _sum_words(jit.memory(data), 61) == sum(words)


def test_stores_land_where_they_are_sent():
    data = np.full(16, 0xA5, np.uint8)
    assert _store(jit.memory(data)) == 0x1122334455667788 ^ 0x8877665544332211
    assert data.tobytes().hex() == "bbaaa58877665544332211a5a5a5a5a5"


def test_borrowed_arrays_are_the_same_array():
    data = np.zeros(3, np.int64)
    _bump(data)
    assert data.tolist() == [0, 1, 0]
    assert sys.getrefcount(data) == 2


def test_memory_refuses_arrays_with_gaps():
    with pytest.raises(ValueError, match="contiguous"):
        jit.memory(np.zeros(8, np.uint8)[::2])


def test_numba_still_has_the_private_parts_used_here():
    assert jit.caching.CacheImpl._locator_classes[0] is jit.PackageLocator
    assert hasattr(jit.caching.IndexDataCacheFile, "_load_index")
    assert not jit.is_compiled(jit.kernel(lambda x: x))


def test_the_checked_build_stops_at_the_end_of_its_memory():
    code = (
        "import numpy as np\nfrom roce_pkt import jit\n"
        "from numba import njit\n"
        "@njit\ndef load(mem, at):\n    return jit.be32(mem, at)\n"
        "mem = jit.memory(np.zeros(8, np.uint8))\n"
        "assert load(mem, np.uint64(4)) == 0\n"
        "for at in (5, 8, 2**64 - 1):\n"
        "    try: load(mem, np.uint64(at))\n"
        "    except IndexError: print('stopped')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ROCE_PKT_CHECKED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["stopped"] * 3


def _run(root, **env):
    code = (
        "from roce_pkt.capture.entry import entry; entry(1);"
        "print(entry(20), sum(entry.stats.cache_hits.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "cache"), **env},
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_an_edit_of_another_file_never_runs_a_stale_kernel(tmp_path):
    package = tmp_path / "roce_pkt"
    for room in ("capture", "wire"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").touch()
    (package / "__init__.py").touch()
    for name in ("jit.py", "kernel_cache.py", "machine_code.py"):
        shutil.copy(PACKAGE / name, package)
    (package / "capture" / "entry.py").write_text(
        textwrap.dedent("""
            from roce_pkt.jit import kernel
            from roce_pkt.wire.rule import rule
            @kernel
            def entry(x):
                return rule(x)
        """)
    )
    rule = "from roce_pkt.jit import law\n@law\ndef rule(x):\n    return x + {}\n"
    (package / "wire" / "rule.py").write_text(rule.format(1))
    assert _run(tmp_path) == ["21", "0"]
    assert _run(tmp_path) == ["21", "1"]
    (package / "wire" / "rule.py").write_text(rule.format(2))
    assert _run(tmp_path) == ["22", "0"]
    assert _run(tmp_path, ROCE_PKT_CHECKED="1") == ["22", "0"]
    assert _run(tmp_path) == ["22", "1"]
