"""Captures out: classic pcap and pcapng, whole files or none.

`write_pcap` and `write_pcapng` take records one by one; `roce_pkt.capture.build` makes millions of
frames from columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roce_pkt.capture import pcap, pcapng
from roce_pkt.capture.model import MAX_RECORD_BYTES, NANOSECONDS, Block, Interface, Record, Resolution
from roce_pkt.errors import InputError
from roce_pkt.files import whole_file

if TYPE_CHECKING:
    from roce_pkt.capture.run import Run

_FLUSH_BYTES = 1 << 20
_NS_PER_S = 1_000_000_000
_OWN_NAME = "roce-pkt"
_SHB_USERAPPL = 4

Chunk = tuple[int, bytes | memoryview]
"""Octets for the file, and how many frames they hold."""


def pcap_header(link_type: int, *, nanosecond: bool = True, snaplen: int = 262_144) -> bytes:
    """The 24 octets at the start of a classic pcap, little-endian."""
    magic = pcap.MAGIC_NS if nanosecond else pcap.MAGIC_US
    return struct.pack("<" + pcap.FILE_HEADER, magic, 2, 4, 0, 0, snaplen, link_type)


def write_pcap(
    path: str | Path, records: Iterable[Record | Run], *, nanosecond: bool = True, force: bool = False
) -> int:
    """Write a classic pcap.

    Args:
        path: Where the file shall be.
        records: Frames in order, all of one link type, one by one or many in a run.
        nanosecond: Nanosecond stamps; otherwise microseconds, rounded down.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: The file exists, cannot be written, or cannot hold these records.
    """
    return _write(path, _pcap_chunks(path, records, nanosecond=nanosecond), force=force)


def _pcap_chunks(path: str | Path, records: Iterable[Record | Run], *, nanosecond: bool) -> Iterator[Chunk]:
    link_type: int | None = None
    header = struct.Struct("<" + pcap.RECORD_HEADER)
    tick = 1 if nanosecond else 1000
    for item in records:
        if link_type is None:
            link_type = item.link_type if isinstance(item, Record) else int(item.link_type[0])
            yield 0, pcap_header(link_type, nanosecond=nanosecond)
        if not isinstance(item, Record):
            heads = item.pcap_heads(link_type, tick)
            if heads is not None:
                yield from item.chunks(heads, blocks=False)
                continue
        for record in (item,) if isinstance(item, Record) else item.records():
            if record.link_type != link_type:
                raise InputError(
                    f"{path}: frame {record.number} has link type {record.link_type}, the first one "
                    f"{link_type}; a pcap holds one link type, write pcapng"
                )
            seconds, rest = divmod(record.time_ns, _NS_PER_S)
            if not 0 <= seconds < 1 << 32:
                where = f"{path}: frame {record.number} is at {seconds} s"
                raise InputError(f"{where}, a pcap holds 0 to 2^32 - 1 s")
            octets = bytes(record.octets)
            _check_size(path, record, len(octets))
            yield 1, header.pack(seconds, rest // tick, len(octets), record.wire_len) + octets
    if link_type is None:
        yield 0, pcap_header(1, nanosecond=nanosecond)


def _check_size(path: str | Path, record: Record, size: int) -> None:
    if size > MAX_RECORD_BYTES - 64 or not 0 <= record.wire_len < 1 << 32:
        raise InputError(f"{path}: frame {record.number} has {size} octets ({record.wire_len} on the wire)")


def _write(path: str | Path, chunks: Iterator[Chunk], *, force: bool) -> int:
    if str(path).endswith((".gz", ".zst")):
        raise InputError(
            f"{path}: captures are written plain; name it without {Path(path).suffix} and pack it after"
        )
    count = 0
    with whole_file(path, force=force) as stream:
        held = bytearray()
        for frames, chunk in chunks:
            count += frames
            if len(chunk) >= _FLUSH_BYTES // 4:
                stream.write(held)
                held.clear()
                stream.write(chunk)
                continue
            held += chunk
            if len(held) >= _FLUSH_BYTES:
                stream.write(held)
                held.clear()
        stream.write(held)
    return count


def write_pcapng(
    path: str | Path,
    records: Iterable[Record | Run],
    interfaces: Sequence[Interface] = (),
    *,
    blocks: Sequence[Block] = (),
    comments: Sequence[str] = (),
    force: bool = False,
) -> int:
    """Write a pcapng of one little-endian section.

    Args:
        path: Where the file shall be.
        records: Frames in order, one by one or many in a run; `interface_id` says which interface each is
            from.
        interfaces: Interfaces in order. A sequence that still grows while records are read (that of a
            `Capture`) is followed. Without any, each frame's link type makes one.
        blocks: Blocks to keep, each behind the frame it followed. May grow as well. Those of
            big-endian sections are left out when they are not custom ones: their numbers would be wrong.
        comments: Comments on the whole capture.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: The file exists, cannot be written, or cannot hold these records.
    """
    return _write(path, _pcapng_chunks(path, records, interfaces, blocks, comments), force=force)


def _pcapng_chunks(
    path: str | Path,
    records: Iterable[Record | Run],
    interfaces: Sequence[Interface],
    blocks: Sequence[Block],
    comments: Sequence[str],
) -> Iterator[Chunk]:
    yield 0, section_block(comments)
    made: list[Interface] = []
    kept = described = count = 0
    for whole in records:
        rest: Record | Run | None = whole
        while rest is not None:
            while kept < len(blocks) and blocks[kept].after_frame <= count:
                yield 0, kept_block(blocks[kept])
                kept += 1
            item, rest = _until(rest, blocks[kept].after_frame - count if kept < len(blocks) else None)
            if not interfaces:
                _make_interfaces(made, item)
            known = interfaces or made
            while described < len(known):
                yield 0, interface_block(known[described])
                described += 1
            heads = None if isinstance(item, Record) else item.block_heads(known)
            if heads is not None and not isinstance(item, Record):
                yield from item.chunks(heads, blocks=True)
                count += len(item)
                continue
            for record in (item,) if isinstance(item, Record) else item.records():
                if record.interface_id >= described:
                    where = f"{path}: frame {record.number} is of interface {record.interface_id}"
                    raise InputError(f"{where}, unknown")
                yield 1, packet_block(path, record, known[record.interface_id])
                count += 1
    for interface in interfaces[described:]:
        yield 0, interface_block(interface)
    for block in blocks[kept:]:
        yield 0, kept_block(block)


def _until(item: Record | Run, most: int | None) -> tuple[Record | Run, Record | Run | None]:
    """As many frames of an item as come before the next block that is kept, and the others."""
    if isinstance(item, Record) or most is None or len(item) <= most:
        return item, None
    return item[:most], item[most:]


def _make_interfaces(made: list[Interface], item: Record | Run) -> None:
    """Interfaces for frames of a capture that describes none: the link type of the first one of each."""
    for record in (item,) if isinstance(item, Record) else item.records():
        if record.interface_id >= len(made):
            made.extend([Interface("", record.link_type)] * (record.interface_id + 1 - len(made)))


def _block(kind: int, body: bytes) -> bytes:
    padded = body + bytes(-len(body) % 4)
    length = len(padded) + pcapng.BLOCK_OVERHEAD
    return struct.pack("<II", kind, length) + padded + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _options(values: Iterable[tuple[int, bytes | None]]) -> bytes:
    made = b"".join(_option(code, value[:0xFFFF]) for code, value in values if value is not None)
    return made + _option(pcapng.OPT_END, b"") if made else b""


def _comments(comments: Iterable[str]) -> list[tuple[int, bytes | None]]:
    return [(pcapng.OPT_COMMENT, text.encode("utf-8", "replace")) for text in comments]


def section_block(comments: Sequence[str] = ()) -> bytes:
    """A section header block."""
    opts = _options([*_comments(comments), (_SHB_USERAPPL, _OWN_NAME.encode())])
    return _block(pcapng.SECTION, struct.pack("<IHHq", pcapng.BYTE_ORDER, 1, 0, -1) + opts)


def interface_block(interface: Interface) -> bytes:
    """An interface description block."""
    tick, speed_bps, fcs_len = interface.resolution, interface.speed_bps, interface.fcs_len
    offset = interface.offset_s.to_bytes(8, "little", signed=True)
    opts = _options(
        [
            *_comments(interface.comments),
            (pcapng.IF_NAME, interface.name.encode() or None),
            (pcapng.IF_DESCRIPTION, interface.description.encode() or None),
            (pcapng.IF_SPEED, None if speed_bps is None else speed_bps.to_bytes(8, "little")),
            (pcapng.IF_TSRESOL, bytes([tick.exponent | (0x80 if tick.base == 2 else 0)])),
            (pcapng.IF_FCSLEN, None if fcs_len is None else bytes([fcs_len])),
            (pcapng.IF_TSOFFSET, offset if interface.offset_s else None),
            *interface.options,
        ]
    )
    return _block(pcapng.INTERFACE, struct.pack("<HHI", interface.link_type, 0, interface.snaplen) + opts)


def packet_block(path: str | Path, record: Record, interface: Interface) -> bytes:
    """An enhanced packet block."""
    octets = bytes(record.octets)
    _check_size(path, record, len(octets))
    ticks = ticks_of(record.time_ns, interface.resolution, interface.offset_s)
    if not 0 <= ticks < 1 << 64:
        raise InputError(f"{path}: frame {record.number} is at {record.time_ns} ns, beyond its clock")
    high, low = ticks >> 32, ticks & 0xFFFF_FFFF
    fields = struct.pack("<IIIII", record.interface_id, high, low, len(octets), record.wire_len)
    body = fields + octets + bytes(-len(octets) % 4)
    return _block(pcapng.ENHANCED_PACKET, body + _options([*_comments(record.comments), *record.options]))


def ticks_of(time_ns: int, resolution: Resolution, offset_s: int = 0) -> int:
    """Clock ticks of a time: the least that reads back as `time_ns`, where the tick is fine enough."""
    if resolution == NANOSECONDS and not offset_s:
        return time_ns
    per_second: int = resolution.base**resolution.exponent
    scaled = (time_ns - offset_s * _NS_PER_S) * per_second
    return -(-scaled // _NS_PER_S) if per_second >= _NS_PER_S else scaled // _NS_PER_S


def kept_block(block: Block) -> bytes:
    """A block that was kept while reading, as it was."""
    custom = block.kind in (pcapng.CUSTOM_COPY, pcapng.CUSTOM_KEEP_HERE)
    if block.big_endian and not custom:
        return b""
    body = block.body
    if block.big_endian and len(body) >= 4:
        body = body[3::-1] + body[4:]  # the private enterprise number is in the section's order
    return _block(block.kind, body)
