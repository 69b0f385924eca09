"""Octets of a capture in windows: a mapped file, a pipe, or a compressed stream, all read alike.

A window starts where the reader stands and holds as much as it asked for, or all that is left.
Nothing else of the file is kept, so memory does not grow with the file.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import stat
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roce_pkt.errors import CaptureError

WINDOW_BYTES = 16 << 20
"""Octets looked at together; large enough to keep two cores busy, small beside the memory bound."""
_MAPPED_WINDOW_BYTES = 64 << 20
"""The same for a mapped file, which costs no memory of its own."""
_FIRST_WINDOW_BYTES = 64 << 10
_COMPRESSED_READ = 256 << 10
_GZIP_IN_BYTES = 8 << 10
_GZIP_OUT_BYTES = 2 << 10
_ZSTD_WINDOW_LIMIT = 1 << 27
_SETTLED_S = 2.0

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_OTHER_PACKERS = {
    b"\xfd7zX": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
    b"7z\xbc\xaf": "7z",
    b"\x04\x22\x4d\x18": "lz4",
}

Fill = Callable[[memoryview], int]
"""Puts octets into a buffer and says how many; zero means the end."""
Waits = Callable[[], bool]
RawFile = Any
"""A binary file with `readinto`."""


class Source:
    """Windows over the octets of one capture, read front to back.

    Args:
        path: The file as the user named it.
        fill: Reads on; None for a mapped file.
        mapping: The whole file, for a mapped one.
        waits: True when a read would have to wait; a window then ends early.
    """

    def __init__(
        self,
        path: str,
        fill: Fill | None = None,
        mapping: mmap.mmap | None = None,
        waits: Waits = lambda: False,
    ) -> None:
        self.path = path
        self.mapped = mapping is not None
        self.trouble: str | None = None
        self.cut = False
        self._fill, self._map, self._waits = fill, mapping, waits
        self._whole = memoryview(mapping) if mapping is not None else memoryview(b"")
        self._held, self._start, self._dropped = memoryview(b""), 0, 0
        self._next_bytes = _FIRST_WINDOW_BYTES

    def view(self, at: int, need: int) -> memoryview:
        """The octets from `at` on: at least `need` of them unless the capture ends sooner.

        Args:
            at: Absolute offset, never before that of the last call.
            need: Octets wanted.

        Returns:
            A read-only view; it stays valid after later calls.
        """
        if self._map is not None:
            self._drop(at)
            return self._whole[at : at + max(need, _MAPPED_WINDOW_BYTES)]
        held = self._held[at - self._start :]
        if len(held) < need and self._fill is not None:
            # small at first: a short capture does not pay for a long one's window
            buffer = memoryview(bytearray(max(need, self._next_bytes)))
            self._next_bytes = min(4 * self._next_bytes, WINDOW_BYTES)
            buffer[: len(held)] = held
            filled, self._start = len(held), at
            while filled < len(buffer) and (got := self._read(buffer[filled:])):
                filled += got
                if filled >= need and self._waits():
                    break
            self._held = held = buffer[:filled].toreadonly()
        return held

    def segment(self, at: int, view: memoryview) -> tuple[int, memoryview]:
        """What to hold on to so that octets of the window `view` at `at` can be found by file offset."""
        return (0, self._whole) if self.mapped else (at, view)

    def _read(self, buffer: memoryview) -> int:
        try:
            got = self._fill(buffer) if self._fill is not None else 0
        except _unpack_errors() as error:
            self.trouble = str(error) or type(error).__name__
            self.cut = isinstance(error, EOFError)
            got = 0
        if not got:
            self._fill = None
        return got

    def _drop(self, at: int) -> None:
        """Give pages that were read back to the system; they can be read again from the file."""
        page = at // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and page - self._dropped >= WINDOW_BYTES:
            self._map.madvise(mmap.MADV_DONTNEED, self._dropped, page - self._dropped)
            self._dropped = page


def _unpack_errors() -> tuple[type[Exception], ...]:
    """What reading may raise, without importing unpackers for captures that are not packed."""
    found: list[type[Exception]] = [OSError, EOFError]
    if (zstandard := sys.modules.get("zstandard")) is not None:
        found.append(zstandard.ZstdError)
    if (isal_zlib := sys.modules.get("isal.isal_zlib")) is not None:
        found.append(isal_zlib.error)
    return tuple(found)


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a capture, or standard input for `-`, unpacked whatever its name.

    Raises:
        CaptureError: Missing, a directory, not readable, empty, or packed in a way that is not read.
    """
    name = os.fspath(path)
    if not name:
        raise CaptureError("''", "no file name")
    if name == "-":
        if sys.stdin is None:
            raise CaptureError("standard input", "is closed")
        return _unpacked("standard input", getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
    try:
        file = Path(name).open("rb", buffering=0)  # noqa: SIM115 - the source owns it
        info = os.fstat(file.fileno())
    except IsADirectoryError:
        raise CaptureError(name, "a directory; name a capture file in it") from None
    except FileNotFoundError:
        raise CaptureError(name, "no such file") from None
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise CaptureError(name, f"cannot be opened: {what}") from None
    try:
        source = _source_of(name, file, info)
    except BaseException:
        file.close()
        raise
    # the file closes with its source, however far it was read
    weakref.finalize(source, file.close)
    return source


def _source_of(name: str, file: RawFile, info: os.stat_result) -> Source:
    if not stat.S_ISREG(info.st_mode):
        return _unpacked(name, file)
    if info.st_size == 0:
        raise CaptureError(name, "empty file; a capture has at least a file header")
    head = os.pread(file.fileno(), 4, 0)
    # A file that shrinks under a mapping kills the process; one that was just written is read instead.
    settled = abs(time.time() - info.st_mtime) > _SETTLED_S
    if settled and not head.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        with contextlib.suppress(OSError):
            return Source(name, mapping=mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ))
    return _unpacked(name, file)


def _unpacked(name: str, file: RawFile) -> Source:
    plain = _reader(file)
    head = bytearray(4)
    view, had = memoryview(head), 0
    try:
        while had < len(head) and (got := plain(view[had:])):
            had += got
    except OSError as error:
        raise CaptureError(name, f"cannot be read: {error.strerror}") from None
    if had == 0:
        raise CaptureError(name, "empty; a capture has at least a file header")
    magic = bytes(head[:had])
    rest = _chained(magic, plain)
    if magic.startswith(GZIP_MAGIC):
        return Source(name, _gunzip(rest))
    if magic == ZSTD_MAGIC:
        return Source(name, _unzstd(rest))
    for start, packer in _OTHER_PACKERS.items():
        if magic.startswith(start):
            raise CaptureError(name, f"packed with {packer}: unpack it first (gzip and zstd need not be)")
    return Source(name, rest, waits=_waits(file))


def _reader(file: RawFile) -> Fill:
    return lambda buffer: file.readinto(buffer) or 0


def _waits(file: RawFile) -> Waits:
    """For a pipe or a terminal: True when a read would wait for whoever writes into it."""
    try:
        number = file.fileno()
        if stat.S_ISREG(os.fstat(number).st_mode):
            return lambda: False
    except (OSError, AttributeError):
        return lambda: False
    return lambda: not select.select([number], [], [], 0)[0]


def _chained(first: bytes, then: Fill) -> Fill:
    """`first`, then what `then` reads."""
    left = memoryview(first)

    def fill(buffer: memoryview) -> int:
        nonlocal left
        if not left:
            return then(buffer)
        size = min(len(left), len(buffer))
        buffer[:size] = left[:size]
        left = left[size:]
        return size

    return fill


def _gunzip(packed: Fill) -> Fill:
    """Members of a gzip file, one after the other, never more than asked for.

    Small pieces in and out, so that damage costs no more than a piece of what came before it.
    """
    from isal import isal_zlib

    inbuf = memoryview(bytearray(_GZIP_IN_BYTES))
    member, waiting = isal_zlib.decompressobj(wbits=31), b""

    def fill(buffer: memoryview) -> int:
        nonlocal member, waiting
        while True:
            if member.eof:
                waiting = member.unused_data or bytes(inbuf[: packed(inbuf)])
                # zero octets after the last member are padding
                if not waiting.lstrip(b"\0"):
                    return 0
                member = isal_zlib.decompressobj(wbits=31)
            elif not waiting:
                waiting = member.unconsumed_tail or bytes(inbuf[: packed(inbuf)])
                if not waiting:
                    raise EOFError("the gzip stream ends early")
            piece = min(len(buffer), _GZIP_OUT_BYTES)
            out, waiting = member.decompress(waiting, piece), member.unconsumed_tail
            if out:
                buffer[: len(out)] = out
                return len(out)

    return fill


def _unzstd(packed: Fill) -> Fill:
    import zstandard

    class Packed:
        """What zstandard wants to read from."""

        def read(self, size: int) -> bytes:
            chunk = bytearray(size)
            return bytes(memoryview(chunk)[: packed(memoryview(chunk))])

    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_LIMIT)
    source: Any = Packed()
    reader = unpacker.stream_reader(source, read_size=_COMPRESSED_READ, read_across_frames=True)
    return lambda buffer: int(reader.readinto(buffer))
