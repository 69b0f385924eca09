"""Put a capture on a wire: when each frame is due, in batches, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.model import LINK_ETHERNET, Record
from roce_pkt.capture.reader import Capture
from roce_pkt.edit.resume import Resume
from roce_pkt.errors import InputError
from roce_pkt.run.wire_socket import BATCH

KEPT_BYTES = 256 << 20
"""A capture up to this size is held in memory, so that nothing is read while sending."""
_CHUNK = 1 << 14
_WIRE_BYTES = 24
"""Preamble, frame check sequence and gap that a frame takes besides its octets."""
_SLEEP_NS = 200_000
"""Waits longer than this sleep; shorter ones spin, for a sleep ends late by tens of microseconds."""


class Sink(Protocol):
    """What takes frames: a `WireSocket`, or something else in a test."""

    def send(self, addresses: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> int:
        """Take frames; fewer than given means that the next one is refused."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When frames are due; with nothing set, as their time stamps say.

    Args:
        speed: Time stamps are divided by it.
        rate_bps: Bits a second on the wire, preamble and gap included.
        rate_pps: Frames a second.
        flat_out: As fast as the interface takes them.
    """

    speed: float = 1.0
    rate_bps: float | None = None
    rate_pps: float | None = None
    flat_out: bool = False


@dataclass(slots=True)
class Sent:
    """What became of the frames.

    Args:
        attempted: Frames handed to the interface.
        sent: Frames it took.
        refused: Frames it cannot send: too long for it, or too short.
        octets: Octets of the sent ones.
        seconds: From the first frame to the last.
        latest_ns: The longest a frame left after it was due.
    """

    attempted: int = 0
    sent: int = 0
    refused: int = 0
    octets: int = 0
    seconds: float = 0.0
    latest_ns: int = 0

    def as_json(self) -> dict[str, object]:
        """The counts with the rates they make."""
        seconds = max(self.seconds, 1e-9)
        return {
            "attempted": self.attempted,
            "sent": self.sent,
            "refused": self.refused,
            "octets": self.octets,
            "seconds": self.seconds,
            "rate_bps": 8 * self.octets / seconds,
            "rate_pps": self.sent / seconds,
            "latest_ns": self.latest_ns,
        }


@dataclass(slots=True)
class _Chunk:
    """Frames side by side in memory."""

    octets: NDArray[np.uint8]
    addresses: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    times_ns: NDArray[np.int64]


class Sender:
    """Sends a capture.

    Args:
        capture: Ethernet frames.
        sink: Takes them.
        pace: When they are due.
        clock: Nanoseconds that only grow; another one in tests.
    """

    def __init__(
        self, capture: Capture, sink: Sink, pace: Pace, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._capture, self._sink, self._pace, self._clock = capture, sink, pace, clock
        self.done = Sent()
        self._start = 0
        self._frames_due, self._octets_due = 0, 0

    def run(self, loops: int = 1) -> Sent:
        """Send all frames, `loops` times (0: until interrupted), PSNs going on from pass to pass.

        Raises:
            InputError: Frames that are not Ethernet, or an interface that fails.
        """
        resume = Resume(self._capture) if loops != 1 else None
        kept = self._keep()
        self._start = self._clock()
        passes = 0
        ended_ns = 0
        while loops == 0 or passes < loops:
            shift_ns = ended_ns if passes else 0
            for chunk in self._pass(kept, resume, passes):
                ended_ns = shift_ns + int(chunk.times_ns[-1])
                self._send(chunk, self._due(chunk, shift_ns))
            if not self._frames_due:
                raise InputError(f"{self._capture.path}: has no frames to send")
            passes += 1
        return self.stopped()

    def stopped(self) -> Sent:
        """The counts up to now."""
        self.done.seconds = (self._clock() - self._start) / 1e9
        return self.done

    def _pass(self, kept: list[_Chunk] | None, resume: Resume | None, passes: int) -> Iterator[_Chunk]:
        if kept is not None and not passes:
            return iter(kept)
        return self._chunks(resume if passes else None, passes)

    def _keep(self) -> list[_Chunk] | None:
        """The first pass's frames in memory, unless they are too many."""
        kept, size = [], 0
        if self._capture.path == "-":
            return None
        for chunk in self._chunks(None, 0):
            kept.append(chunk)
            size += chunk.octets.nbytes
            if size > KEPT_BYTES:
                return None
        return kept

    def _chunks(self, resume: Resume | None, passes: int) -> Iterator[_Chunk]:
        records = self._capture.records()
        first_ns: int | None = None
        while batch := list(islice(records, _CHUNK)):
            if first_ns is None:
                first_ns = batch[0].time_ns
            yield _chunk(batch, first_ns, resume, passes)

    def _due(self, chunk: _Chunk, shift_ns: int) -> NDArray[np.int64]:
        """Nanoseconds from the start at which each frame of the chunk is due."""
        pace, count = self._pace, len(chunk.sizes)
        first, octets_before = self._frames_due, self._octets_due
        wire = chunk.sizes.astype(np.int64) + _WIRE_BYTES
        self._frames_due += count
        self._octets_due += int(wire.sum())
        if pace.flat_out:
            return np.zeros(count, np.int64)
        if pace.rate_pps:
            return ((first + np.arange(count)) * (1e9 / pace.rate_pps)).astype(np.int64)
        if pace.rate_bps:
            before = octets_before + np.cumsum(wire) - wire
            return (before * (8e9 / pace.rate_bps)).astype(np.int64)
        return ((chunk.times_ns + shift_ns) / pace.speed).astype(np.int64)

    def _send(self, chunk: _Chunk, due_ns: NDArray[np.int64]) -> None:
        due_ns = np.maximum.accumulate(due_ns)  # a stamp that runs backwards does not wait
        at, count = 0, len(due_ns)
        while at < count:
            now = self._clock() - self._start
            end = min(int(np.searchsorted(due_ns, now, "right")), at + BATCH, count)
            if end <= at:
                wait_ns = int(due_ns[at]) - now
                if wait_ns > _SLEEP_NS:
                    time.sleep((wait_ns - _SLEEP_NS / 2) / 1e9)
                continue
            if not self._pace.flat_out:
                self.done.latest_ns = max(self.done.latest_ns, now - int(due_ns[at]))
            taken = self._sink.send(chunk.addresses[at:end], chunk.sizes[at:end])
            self.done.sent += taken
            self.done.octets += int(chunk.sizes[at : at + taken].sum())
            refused = at + taken < end
            self.done.attempted += taken + refused
            self.done.refused += refused
            at += taken + refused


def _chunk(batch: list[Record], first_ns: int, resume: Resume | None, passes: int) -> _Chunk:
    for record in batch:
        if record.link_type != LINK_ETHERNET:
            raise InputError(
                f"frame {record.number}: link type {record.link_type} is no Ethernet frame to send"
            )
    frames = [resume.frame(record, passes) if resume else record.octets for record in batch]
    octets = np.frombuffer(b"".join(frames), np.uint8)
    sizes = np.array([len(frame) for frame in frames], np.uint64)
    ends: Any = np.cumsum(sizes)
    addresses = np.uint64(octets.ctypes.data) + ends - sizes
    return _Chunk(octets, addresses, sizes, np.array([r.time_ns - first_ns for r in batch], np.int64))
