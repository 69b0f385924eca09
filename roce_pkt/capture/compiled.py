"""Columns by compiled walks, several pieces of a window at a time.

A piece starts at a place that only looks like the start of a record. It counts only when the walk over
the piece before arrives at exactly that place; otherwise it is thrown away. So the result is that of one
walk from front to back, always.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture import kernel_walk as kernels
from roce_pkt.capture.blocks import Block, BlockPool
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.kernel_crc import SCRATCH_BYTES, crc_way, slicing_table
from roce_pkt.capture.kernel_fields import ROWS
from roce_pkt.capture.model import Record, Resolution, Stop
from roce_pkt.capture.pcap import Pcap
from roce_pkt.capture.pcapng import Pcapng
from roce_pkt.capture.reader import Walk
from roce_pkt.kernel_cache import announce_compile, cores

_U = np.uint64
_SPLIT_BYTES = 1 << 20
"""A window with less left is walked by one thread."""
_POOL = BlockPool()
_WRAP = (1 << 64) - 1

Checks = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
Walked = tuple[int, int]
"""Place, why the walk stopped."""


def threads() -> int:
    """Threads that walk a capture: both of two cores; ROCE_PKT_THREADS overrules."""
    return int(os.environ.get("ROCE_PKT_THREADS") or min(2, cores()))


def ready(walk: Walk) -> bool:
    """True when the kernel that the walk needs is compiled, in this process or on disk."""
    return jit.is_compiled(kernels.walk_pcap if isinstance(walk.format, Pcap) else kernels.walk_pcapng)


class _Checks:
    """What the kernels need to compute ICRCs: one scratch for each walk that runs at the same time."""

    def __init__(self, *, verify: bool) -> None:
        self._table = slicing_table()
        self._scratch = [np.zeros(SCRATCH_BYTES, np.uint8) for _ in range(threads() + 1)]
        common = _U(verify), _U(crc_way()), _U(self._table.ctypes.data)
        self.of_walk: list[Checks] = [(*common, _U(scratch.ctypes.data)) for scratch in self._scratch]


def clock_row(link_type: int, resolution: Resolution, offset_s: int, interface: int) -> list[int]:
    """One interface for the kernels; see `kernel_walk.CLOCK_WORDS`."""
    mode, factor = kernels.MULTIPLY, 0
    if resolution.base == 2:
        mode, factor = kernels.SHIFT, resolution.exponent
    elif resolution.exponent <= 9:
        factor = 10 ** (9 - resolution.exponent)
    elif resolution.exponent <= 28:
        mode, factor = kernels.DIVIDE, 10 ** (resolution.exponent - 9)
    low, high = resolution.ticks_within(offset_s)
    low, high = min(max(low, 0), _WRAP), max(min(high, _WRAP), 0)
    offset_ns = offset_s * 10**9 & _WRAP
    return [link_type & 0xFFFF, int(mode), factor, offset_ns, interface & 0xFFFF, low, high]


class _Window:
    """A window of a walk as the kernels see it.

    Args:
        walk: The walk; its format keeps interfaces and byte order.
        udp_port: UDP destination port that carries RoCEv2.
        checks: For the ICRC.
    """

    def __init__(self, walk: Walk, udp_port: int, checks: _Checks) -> None:
        self.walk, self.checks = walk, checks
        self.view, self.at = walk.view(), walk.at
        self._octets = np.frombuffer(self.view, np.uint8)
        self.size = len(self.view)
        self.mem = (_U(self._octets.ctypes.data), _U(self.size))
        self._udp_port = _U(udp_port)
        self.taken = 0
        self.learn()

    def learn(self) -> None:
        """Take over what the plain walk knows of byte order and interfaces."""
        form = self.walk.format
        if isinstance(form, Pcap):
            where = form.link_type | form.interface_id << 16
            values = (form.big_endian, form.header_bytes, form.tick_ns, form.limit, where)
            self._kernel, self._guess = kernels.walk_pcap, kernels.guess_pcap
        else:
            rows = [
                clock_row(c.link_type, c.resolution, c.offset_s, form.first_interface + n)
                for n, c in enumerate(form.clocks)
            ]
            self._clocks = np.array(rows, _U).reshape(-1, kernels.CLOCK_WORDS)
            values = (form.big_endian, self._clocks.ctypes.data, len(rows), form.limit, 0)
            self._kernel, self._guess = kernels.walk_pcapng, kernels.guess_pcapng
        self.shape = tuple(_U(value) for value in values)

    def state(self) -> tuple[int, int]:
        """Changes when the plain walk meets a section, an interface or a file header."""
        form = self.walk.format
        return (form.sections, len(form.clocks)) if isinstance(form, Pcapng) else (form.headers, 0)

    def run(self, block: Block, pos: int, stop: int, number: int, checks: Checks) -> Walked:
        """Walk from `pos` to `stop` or until the block is full; may run beside another one."""
        place, row, why, written = self._kernel(
            self.mem, _U(pos), _U(stop), _U(self.at), _U(number), block.memory, _U(block.rows),
            self.shape, self._udp_port, checks,
        )  # fmt: skip
        block.rows, block.written = int(row), block.written | int(written)
        return int(place), int(why)

    def guess(self, pos: int, end: int, near: int) -> int:
        """Where a record may start, from `pos` on."""
        return int(self._guess(self.mem, _U(pos), _U(end), self.shape, _U(near)))

    def put(self, block: Block, record: Record) -> None:
        """A frame that the plain walk found."""
        written = kernels.one_record(
            self.mem, block.memory, _U(block.rows), _U(record.number), _U(record.time_ns & _WRAP),
            _U(record.offset), _U(record.offset - self.at), _U(record.cap_len), _U(record.wire_len),
            _U(record.link_type & 0xFFFF), _U(record.interface_id & 0xFFFF), self._udp_port,
            self.checks.of_walk[0],
        )  # fmt: skip
        block.rows, block.written = block.rows + 1, block.written | int(written)


@dataclass(slots=True)
class _Piece:
    """A part of a window that is walked beside others.

    Args:
        start: Where it begins: a guess, except for the first one.
        stop: Where the next one begins.
        walked: Its blocks, where the walk arrived, and why it stopped.
    """

    start: int
    stop: int
    walked: Future[tuple[list[Block], int, int]]


class _Filler:
    """Fills block after block from the windows of a walk."""

    def __init__(self, walk: Walk, udp_port: int, *, verify: bool) -> None:
        self.walk, self.udp_port, self.checks = walk, udp_port, _Checks(verify=verify)
        self.block = _POOL.take()
        self.record_bytes = 256.0
        self.last_ns: int | None = None
        self.threads = threads()
        self.pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self.pieces: deque[_Piece] = deque()
        self.begun = 0

    def flush(self) -> Iterator[Frames]:
        """The block so far, if it holds anything."""
        if self.block.rows:
            block, self.block = self.block, _POOL.take()
            yield block.frames()

    def batches(self) -> Iterator[Frames]:
        try:
            while not self.walk.over:
                yield from self.window()
            yield from self.flush()
        finally:
            self.forget_pieces()
            self.block.discard()
            if self.pool is not None:
                self.pool.shutdown()

    def window(self) -> Iterator[Frames]:
        """All whole records of the next window."""
        window = _Window(self.walk, self.udp_port, self.checks)
        pos, stop, split_from = 0, None, 0
        while stop is None:
            self.hold(window, self.block)
            if self.pool is not None and window.size - pos >= _SPLIT_BYTES and pos >= split_from:
                pos, why, whole = yield from self.beside(window, pos)
                split_from = pos + (0 if whole else 4 * self.piece_bytes())
            else:
                end = window.size if self.pool is None or pos >= split_from else split_from
                pos, why = yield from self.until(window, pos, min(end, window.size))
            if why == kernels.OTHER:
                if self.block.rows >= ROWS:
                    yield from self.flush()
                    self.hold(window, self.block)
                found = self.one(window, pos)
                stop = found if isinstance(found, Stop) else None
                pos = pos if isinstance(found, Stop) else found
                split_from = max(split_from, pos + self.piece_bytes())
            elif why == kernels.REACHED and pos >= window.size:
                stop = Stop(pos, "more", 1)
        # a pipe's frames are given before it is waited on
        if not self.walk.source.mapped:
            yield from self.flush()
        self.walk.advance(window.view, stop, window.taken)

    def hold(self, window: _Window, block: Block) -> None:
        """Let the block's frames find their octets."""
        segment = self.walk.source.segment(window.at, window.view)
        if segment not in block.segments:
            block.segments.append(segment)

    def number(self, window: _Window) -> int:
        return self.walk.count + window.taken + 1

    def until(self, window: _Window, pos: int, stop: int) -> Any:
        """Walk on to `stop`, handing out full blocks; returns (place, why)."""
        checks = self.checks.of_walk[0]
        while True:
            before, start = self.block.rows, pos
            pos, why = window.run(self.block, pos, stop, self.number(window), checks)
            self.count(window, self.block, self.block.rows - before, pos - start)
            if why != kernels.FULL:
                return pos, why
            yield from self.flush()
            self.hold(window, self.block)

    def count(self, window: _Window, block: Block, frames: int, octets: int) -> None:
        window.taken += frames
        if frames:
            self.record_bytes = octets / frames
        if block.rows:
            self.last_ns = int(block.column("time_ns", block.rows)[-1])

    def piece_bytes(self) -> int:
        """Octets that fill most of a block."""
        return int(min(max(0.9 * ROWS * self.record_bytes, _SPLIT_BYTES / 4), 8 * _SPLIT_BYTES))

    def beside(self, window: _Window, pos: int) -> Any:
        """Walk pieces of the window on all threads, handing out blocks in order.

        Returns:
            (place, why it stopped there, False when no more pieces could be found).
        """
        yield from self.flush()
        following: int | None = pos
        while True:
            while following is not None and following < window.size and len(self.pieces) <= self.threads:
                following = self.begin(window, following)
            if not self.pieces:
                return pos, kernels.REACHED, following is not None
            piece = self.pieces.popleft()
            blocks, place, why = piece.walked.result()
            before, octets, pos = self.number(window) - 1, place - pos, place
            self.count(window, blocks[-1], sum(block.rows for block in blocks), octets)
            for block in blocks:
                block.column("number", block.rows)[:] += before
                self.hold(window, block)
                if block.rows:
                    yield block.frames()
                else:
                    block.discard()
            if why == kernels.OTHER or place != piece.stop:
                # the next piece begins at no record, or something is to be judged first
                self.forget_pieces()
                return pos, why, True

    def begin(self, window: _Window, start: int) -> int | None:
        """Send a thread over the octets from `start` on; returns where the next piece begins, if known."""
        size = self.piece_bytes()
        stop: int | None = window.size
        if window.size - start > size + size // 2:
            limit = min(start + 2 * size, window.size)
            guess = window.guess(start + size, limit, start)
            stop = guess if guess < limit else None
        if stop is None or self.pool is None:
            return None
        checks = self.checks.of_walk[self.begun % len(self.checks.of_walk)]
        self.begun += 1
        self.pieces.append(_Piece(start, stop, self.pool.submit(_walk_piece, window, start, stop, checks)))
        return stop

    def forget_pieces(self) -> None:
        """Wait for the threads and throw away what they did."""
        while self.pieces:
            for block in self.pieces.popleft().walked.result()[0]:
                block.discard()

    def one(self, window: _Window, pos: int) -> int | Stop:
        """Let the plain walk judge what stands at `pos`."""
        form, state = self.walk.format, window.state()
        if isinstance(form, Pcap) and self.last_ns is not None:
            form.last_s = self.last_ns // 10**9
        found = form.one(window.view, pos, window.at, self.number(window) - 1)
        if isinstance(found, Stop):
            return found
        following, record = found
        if window.state() != state:
            window.learn()
        if record is not None:
            window.put(self.block, record)
            window.taken += 1
            self.last_ns = record.time_ns
        return following


def _walk_piece(window: _Window, pos: int, stop: int, checks: Checks) -> tuple[list[Block], int, int]:
    """Walk a piece into as many blocks as it takes, numbering its frames from 1."""
    blocks: list[Block] = []
    rows = 0
    while True:
        blocks.append(_POOL.take())
        pos, why = window.run(blocks[-1], pos, stop, rows + 1, checks)
        rows += blocks[-1].rows
        if why != kernels.FULL:
            return blocks, pos, why


def compiled_batches(walk: Walk, udp_port: int, *, verify: bool) -> Iterator[Frames]:
    """Columns of the rest of a walk.

    Args:
        walk: Where reading stands; moves on.
        udp_port: UDP destination port that carries RoCEv2.
        verify: Compute every ICRC.
    """
    if not ready(walk):
        announce_compile("the capture kernels")
    return _Filler(walk, udp_port, verify=verify).batches()
