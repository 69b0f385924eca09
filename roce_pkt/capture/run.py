"""Many frames in a row on their way into a capture: what `Record` is for one, as arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roce_pkt.capture import pcapng
from roce_pkt.capture.frames import Array, Frames
from roce_pkt.capture.model import MAX_RECORD_BYTES, Interface, Options, Record

_NS_PER_S = 1_000_000_000
_BUFFER_BYTES = 1 << 20
_FEW = 16
"""When more than one frame of so many has notes, they are written one by one."""

Notes = tuple[tuple[str, ...], Options]
"""Comments and other options of a frame."""


@dataclass(slots=True)
class Run:
    """Frames in the order in which they are written, one array element each.

    Args:
        number: Frame number in the capture it comes from.
        time_ns: Nanoseconds since 1970.
        interface_id: Index of the interface.
        link_type: LINKTYPE number.
        wire_len: Octets on the wire.
        address: Where the captured octets lie in memory.
        size: How many there are.
        held: What keeps that memory alive.
        notes: Comments and options, by row, of the frames that have some.
        compiled: The capture is large: they are written by a compiled kernel.
    """

    number: Array
    time_ns: Array
    interface_id: Array
    link_type: Array
    wire_len: Array
    address: Array
    size: Array
    held: tuple[Any, ...]
    notes: Mapping[int, Notes]
    compiled: bool = True

    @classmethod
    def of(cls, frames: Frames, *, pcapng: bool) -> Run:
        """The frames of a batch as they were read."""
        address, views = addresses_of(frames)
        size = frames.cap_len.astype(np.uint64)
        notes = notes_of(frames) if pcapng else {}
        return cls(
            frames.number, frames.time_ns, frames.interface_id, frames.link_type,
            frames.wire_len.astype(np.int64), address, size, views, notes, frames.kernel == "compiled",
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which: Any) -> Run:
        """Rows by slice, mask or index; notes go along with a slice only."""
        names = ("number", "time_ns", "interface_id", "link_type", "wire_len", "address", "size")
        notes: Mapping[int, Notes] = {}
        if self.notes and isinstance(which, slice):
            first, end, _ = which.indices(len(self))
            notes = {row - first: note for row, note in self.notes.items() if first <= row < end}
        elif self.notes:
            rows = np.arange(len(self))[which]
            at = np.flatnonzero(np.isin(rows, list(self.notes)))
            notes = {place: self.notes[int(rows[place])] for place in at.tolist()}
        return replace(self, **{name: getattr(self, name)[which] for name in names}, notes=notes)

    def pieces(self) -> Iterator[Run | Record]:
        """The same frames, those with notes as records of their own."""
        if not self.compiled or len(self.notes) * _FEW > len(self):
            yield from self.records()
            return
        at = 0
        for row in sorted(self.notes):
            if row > at:
                yield self[at:row]
            yield self.record(row)
            at = row + 1
        if at < len(self):
            yield self[at:]

    def record(self, row: int) -> Record:
        """One of the frames."""
        comments, options = self.notes.get(row, ((), ()))
        size = int(self.size[row])
        return Record(
            int(self.number[row]), int(self.time_ns[row]), int(self.interface_id[row]),
            int(self.link_type[row]), size, int(self.wire_len[row]), octets_at(int(self.address[row]), size),
            comments, 0, options,
        )  # fmt: skip

    def records(self) -> Iterator[Record]:
        """The same frames one by one."""
        arrays = (self.number, self.time_ns, self.interface_id, self.link_type, self.size, self.wire_len)
        rows = zip(*(array.tolist() for array in arrays), self.address.tolist(), strict=True)
        for row, (number, time_ns, interface, link, size, wire, address) in enumerate(rows):
            comments, options = self.notes.get(row, ((), ()))
            octets = octets_at(address, size)
            yield Record(number, time_ns, interface, link, size, wire, octets, comments, 0, options)

    def put(self, rows: Sequence[int], records: Sequence[Record]) -> None:
        """Put other frames in the place of some."""
        if not rows:
            return
        at, octets = list(rows), np.frombuffer(b"".join(bytes(record.octets) for record in records), np.uint8)
        for name in ("number", "time_ns", "interface_id", "link_type", "wire_len"):
            getattr(self, name)[at] = [getattr(record, name) for record in records]
        sizes = np.array([len(record.octets) for record in records], np.uint64)
        self.size[at] = sizes
        self.address[at] = np.cumsum(sizes, dtype=np.uint64) - sizes + np.uint64(octets.ctypes.data)
        notes = {row: note for row, note in self.notes.items() if row not in set(rows)}
        for row, record in zip(rows, records, strict=True):
            if record.comments or record.options:
                notes[row] = record.comments, record.options
        self.notes, self.held = notes, (*self.held, octets)

    def pcap_heads(self, link_type: int, tick_ns: int) -> Array | None:
        """A pcap record header for each frame; None when one of them is not as it must be.

        Args:
            link_type: Of all frames.
            tick_ns: Nanoseconds in a tick.
        """
        seconds, rest = np.divmod(self.time_ns, _NS_PER_S)
        if (
            not self._fits()
            or (self.link_type != link_type).any()
            or ((seconds < 0) | (seconds >> 32 > 0)).any()
        ):
            return None
        return _words(seconds, rest // tick_ns, self.size, self.wire_len)

    def block_heads(self, interfaces: Sequence[Interface]) -> Array | None:
        """What stands in front of each frame in a pcapng; None when that must be looked at one by one."""
        if not self._fits() or self.interface_id.max(initial=0) >= len(interfaces):
            return None
        ticks = np.empty(len(self), np.uint64)
        for number in np.unique(self.interface_id).tolist():
            mine, clock = self.interface_id == number, interfaces[number]
            times = self.time_ns[mine]
            per_tick = 10 ** (9 - clock.resolution.exponent) if clock.resolution.exponent <= 9 else 0
            if clock.resolution.base != 10 or clock.offset_s or not per_tick or (times < 0).any():
                return None
            ticks[mine] = times // per_tick
        whole = ((self.size.astype(np.int64) + 3) & ~3) + pcapng.BLOCK_OVERHEAD + pcapng.PACKET_FIELDS
        kind = np.full(len(self), pcapng.ENHANCED_PACKET)
        times = (ticks >> np.uint64(32), ticks & np.uint64(0xFFFF_FFFF))
        return _words(kind, whole, self.interface_id, *times, self.size, self.wire_len)

    def _fits(self) -> bool:
        sizes, wire = int(self.size.max(initial=0)), self.wire_len
        return sizes <= MAX_RECORD_BYTES - 64 and bool(((wire >= 0) & (wire >> 32 == 0)).all())

    def chunks(self, heads: Array, *, blocks: bool) -> Iterator[tuple[int, memoryview]]:
        """The frames behind their record headers; each piece is overwritten by the next one.

        Args:
            heads: A row of octets for each frame.
            blocks: They are pcapng blocks, which end with pads and their length.
        """
        from roce_pkt.capture import kernel_run
        from roce_pkt.jit import memory

        heads, row, rows = np.ascontiguousarray(heads), 0, len(self)
        addresses = np.ascontiguousarray(self.address, dtype=np.uint64)
        sizes = np.ascontiguousarray(self.size, dtype=np.uint64)
        head_bytes = heads.nbytes // rows if rows else 0
        longest = int(sizes.max(initial=0)) + head_bytes + kernel_run.SLACK_BYTES
        out: Any = np.empty(max(_BUFFER_BYTES, longest), np.uint8)
        put: Any = kernel_run.put_run
        while row < rows:
            size, after = put(
                memory(out), memory(heads), np.uint64(head_bytes), memory(addresses), memory(sizes),
                np.uint64(row), np.uint64(rows), np.uint64(blocks),
            )  # fmt: skip
            yield int(after) - row, out[: int(size)].data
            row = int(after)


def _words(*columns: Array) -> Array:
    """Columns side by side as 32-bit words."""
    made = np.empty((len(columns[0]), len(columns)), "<u4")
    for n, column in enumerate(columns):
        made[:, n] = column
    return made


def octets_at(address: int, size: int) -> bytes:
    """A copy of octets that are known to lie at an address."""
    return ctypes.string_at(address, size)


def memory_at(address: int, size: int) -> Array:
    """The octets themselves, as an array."""
    octets: Any = (ctypes.c_ubyte * size).from_address(address)
    return np.frombuffer(octets, np.uint8)


def addresses_of(frames: Frames) -> tuple[Array, tuple[Any, ...]]:
    """Addresses of the octets of each frame, and what keeps them alive.

    Raises:
        LookupError: Octets that were not kept.
    """
    segments = list(frames.segments)
    firsts = np.array([first for first, _ in segments], np.uint64)
    views = [np.frombuffer(view, np.uint8) for _, view in segments]
    starts = np.array([view.__array_interface__["data"][0] for view in views], np.uint64)
    sizes = np.array([view.size for view in views], np.uint64)
    if not len(frames):
        return np.zeros(0, np.uint64), ()
    offset = frames.offset
    which = (
        np.searchsorted(firsts, offset, "right") - 1 if len(segments) > 1 else np.zeros(len(frames), np.int64)
    )
    if not segments or (which < 0).any():
        raise LookupError("the octets of these frames were not kept; read the capture in batches")
    into = offset - firsts[which]
    if (into + frames.cap_len > sizes[which]).any():
        raise LookupError("the octets of these frames were not kept; read the capture in batches")
    return starts[which] + into, tuple(views)


def notes_of(frames: Frames) -> dict[int, Notes]:
    """Comments and options of the frames of a pcapng, by row, of those that have some."""
    found: dict[int, Notes] = {}
    segments = sorted(frames.segments, key=lambda segment: segment[0])
    for n, (first, view) in enumerate(segments):
        after = segments[n + 1][0] if n + 1 < len(segments) else 1 << 63
        rows = np.flatnonzero((frames.offset >= np.uint64(first)) & (frames.offset < np.uint64(after)))
        at = (frames.offset[rows] - np.uint64(first)).astype(np.int64)
        for row in _unlike_most(view, at, frames.cap_len[rows]).tolist():
            notes = pcapng.notes_around(view, int(at[row]), int(frames.cap_len[rows[row]]))
            if notes != ((), ()):
                found[int(rows[row])] = notes
    return found


def _unlike_most(view: memoryview, at: Array, size: Array) -> Array:
    """Which frames are not in a little-endian packet block without options."""
    octets = np.frombuffer(view, np.uint8)
    words = np.ndarray((max(0, octets.size - 3),), "<u4", octets, 0, (1,))
    before = 8 + pcapng.PACKET_FIELDS
    safe = np.maximum(at - before, 0)
    whole = ((size.astype(np.int64) + 3) & ~3) + pcapng.BLOCK_OVERHEAD + pcapng.PACKET_FIELDS
    usual = (words[safe] == pcapng.ENHANCED_PACKET) & (words[safe + 4] == whole) & (words[safe + 20] == size)
    return np.flatnonzero(~usual | (at < before))
