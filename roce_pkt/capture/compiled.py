"""Columns by compiled walks, two halves of a window at a time.

The second half starts at a place that only looks like the start of a record. It counts only when
the walk over the first half arrives at exactly that place; otherwise it is thrown away. So the
result is that of one walk from front to back, always.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture import kernel_walk as kernels
from roce_pkt.capture.blocks import Block, BlockPool
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.kernel_crc import SCRATCH_BYTES, crc_address, slicing_table
from roce_pkt.capture.kernel_fields import ROWS
from roce_pkt.capture.model import Record, Resolution, Stop
from roce_pkt.capture.pcap import Pcap
from roce_pkt.capture.pcapng import Pcapng
from roce_pkt.capture.reader import Walk

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
    return int(os.environ.get("ROCE_PKT_THREADS") or min(2, len(os.sched_getaffinity(0))))


def ready(walk: Walk) -> bool:
    """True when the kernel that the walk needs is compiled, in this process or on disk."""
    return jit.is_compiled(kernels.walk_pcap if isinstance(walk.format, Pcap) else kernels.walk_pcapng)


class _Checks:
    """What the kernels need to compute ICRCs: one scratch for each thread."""

    def __init__(self, *, verify: bool) -> None:
        self._table = slicing_table()
        self._scratch = [np.zeros(SCRATCH_BYTES, np.uint8) for _ in range(2)]
        common = _U(verify), _U(crc_address()), _U(self._table.ctypes.data)
        self.of_thread: list[Checks] = [(*common, _U(scratch.ctypes.data)) for scratch in self._scratch]


def clock_row(link_type: int, resolution: Resolution, offset_s: int, interface: int) -> list[int]:
    """One interface for the kernels; see `kernel_walk.CLOCK_WORDS`."""
    mode, factor = kernels.MULTIPLY, 0
    if resolution.base == 2:
        mode, factor = kernels.SHIFT, resolution.exponent
    elif resolution.exponent <= 9:
        factor = 10 ** (9 - resolution.exponent)
    elif resolution.exponent <= 28:
        mode, factor = kernels.DIVIDE, 10 ** (resolution.exponent - 9)
    return [link_type & 0xFFFF, int(mode), factor, offset_s * 10**9 & _WRAP, interface & 0xFFFF]


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
            values = (form.big_endian, form.header_bytes, form.tick_ns, form.limit, form.link_type)
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
        """Changes when the plain walk meets a section or an interface."""
        form = self.walk.format
        return (form.sections, len(form.clocks)) if isinstance(form, Pcapng) else (0, 0)

    def run(self, block: Block, pos: int, stop: int, number: int, thread: int) -> Walked:
        """Walk from `pos` to `stop` or until the block is full; may run beside another one."""
        place, row, why, written = self._kernel(
            self.mem, _U(pos), _U(stop), _U(self.at), _U(number), block.address, _U(block.rows),
            self.shape, self._udp_port, self.checks.of_thread[thread],
        )  # fmt: skip
        block.rows, block.written = int(row), block.written | int(written)
        return int(place), int(why)

    def guess(self, pos: int, end: int, near: int) -> int:
        """Where a record may start, from `pos` on."""
        return int(self._guess(self.mem, _U(pos), _U(end), self.shape, _U(near)))

    def put(self, block: Block, record: Record) -> None:
        """A frame that the plain walk found."""
        written = kernels.one_record(
            self.mem, block.address, _U(block.rows), _U(record.number), _U(record.time_ns & _WRAP),
            _U(record.offset), _U(record.offset - self.at), _U(record.cap_len), _U(record.wire_len),
            _U(record.link_type & 0xFFFF), _U(record.interface_id & 0xFFFF), self._udp_port,
            self.checks.of_thread[0],
        )  # fmt: skip
        block.rows, block.written = block.rows + 1, block.written | int(written)


class _Filler:
    """Fills block after block from the windows of a walk."""

    def __init__(self, walk: Walk, udp_port: int, *, verify: bool) -> None:
        self.walk, self.udp_port, self.checks = walk, udp_port, _Checks(verify=verify)
        self.block = _POOL.take()
        self.record_bytes = 256.0
        self.pool = ThreadPoolExecutor(1) if threads() > 1 else None

    def flush(self) -> Iterator[Frames]:
        """The block so far, if it holds anything."""
        if self.block.rows:
            frames, self.block = self.block.frames(), _POOL.take()
            yield frames

    def batches(self) -> Iterator[Frames]:
        try:
            while not self.walk.over:
                yield from self.window()
        finally:
            self.block.discard()
            if self.pool is not None:
                self.pool.shutdown()

    def window(self) -> Iterator[Frames]:
        """All whole records of the next window."""
        window = _Window(self.walk, self.udp_port, self.checks)
        pos, stop = 0, None
        while stop is None:
            self.hold(window)
            ahead = self.start_ahead(window, pos)
            pos, why = yield from self.until(window, pos, ahead.start if ahead else window.size)
            if ahead is not None:
                pos, why = yield from self.join(ahead, pos, why)
            if why == kernels.OTHER:
                found = self.one(window, pos)
                stop = found if isinstance(found, Stop) else None
                pos = pos if isinstance(found, Stop) else found
            elif why == kernels.REACHED and pos >= window.size:
                stop = Stop(pos, "more", 1)
        yield from self.flush()
        self.walk.advance(window.view, stop, window.taken)

    def hold(self, window: _Window) -> None:
        """Let the block's frames find their octets."""
        segment = self.walk.source.segment(window.at, window.view)
        if segment not in self.block.segments:
            self.block.segments.append(segment)

    def number(self, window: _Window) -> int:
        return self.walk.count + window.taken + 1

    def until(self, window: _Window, pos: int, stop: int) -> Any:
        """Walk on to `stop`, handing out full blocks; returns (place, why)."""
        while True:
            before, start = self.block.rows, pos
            pos, why = window.run(self.block, pos, stop, self.number(window), 0)
            self.count(window, self.block.rows - before, pos - start)
            if why != kernels.FULL:
                return pos, why
            yield from self.flush()
            self.hold(window)

    def count(self, window: _Window, frames: int, octets: int) -> None:
        window.taken += frames
        if frames:
            self.record_bytes = octets / frames

    def start_ahead(self, window: _Window, pos: int) -> _Ahead | None:
        """Send the other thread ahead, as far as one block will probably reach."""
        left = window.size - pos
        if self.pool is None or left < _SPLIT_BYTES:
            return None
        room = (ROWS - self.block.rows) * self.record_bytes
        start = window.guess(pos + int(min(left / 2, room)), window.size, pos)
        return _Ahead(self.pool, window, start) if start < window.size else None

    def join(self, ahead: _Ahead, pos: int, why: int) -> Any:
        """Take what the other thread did, if this one arrived where it began."""
        place, ahead_why = ahead.walked.result()
        if pos != ahead.start or ahead.state != ahead.window.state():
            ahead.block.discard()
            return pos, why
        yield from self.flush()
        self.block, window = ahead.block, ahead.window
        self.hold(window)
        self.block.column("number", self.block.rows)[:] += self.number(window) - 1
        self.count(window, self.block.rows, place - pos)
        if ahead_why == kernels.FULL:
            yield from self.flush()
        return place, ahead_why

    def one(self, window: _Window, pos: int) -> int | Stop:
        """Let the plain walk judge what stands at `pos`."""
        form, state = self.walk.format, window.state()
        if isinstance(form, Pcap) and self.block.rows:
            form.last_s = int(self.block.column("time_ns", self.block.rows)[-1]) // 10**9
        found = form.one(window.view, pos, window.at, self.number(window) - 1)
        if isinstance(found, Stop):
            return found
        following, record = found
        if window.state() != state or isinstance(form, Pcapng):
            window.learn()
        if record is not None:
            window.put(self.block, record)
            window.taken += 1
        return following


class _Ahead:
    """The other thread's walk, from a guessed place on."""

    def __init__(self, pool: ThreadPoolExecutor, window: _Window, start: int) -> None:
        self.window, self.start, self.state = window, start, window.state()
        self.block = _POOL.take()
        self.walked: Future[Walked] = pool.submit(window.run, self.block, start, window.size, 1, 1)


def compiled_batches(walk: Walk, udp_port: int, *, verify: bool) -> Iterator[Frames]:
    """Columns of the rest of a walk.

    Args:
        walk: Where reading stands; moves on.
        udp_port: UDP destination port that carries RoCEv2.
        verify: Compute every ICRC.
    """
    if not ready(walk):
        jit.announce_compile("the capture kernels")
    return _Filler(walk, udp_port, verify=verify).batches()
