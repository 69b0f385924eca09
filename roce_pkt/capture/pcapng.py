"""pcapng: sections of blocks, each with its length at both ends.

    type u32 | length u32 | body ... | length u32

Section header (0x0A0D0D0A), interface description (1), enhanced packet (6), simple packet (3) and
the obsolete packet block (2) are read; name resolution (4), statistics (5), custom and unknown
blocks are kept as octets so that a copy can hold them.

Source: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from roce_pkt.capture.damage import Search
from roce_pkt.capture.model import (
    MAX_RECORD_BYTES,
    MICROSECONDS,
    MOST_RECORDS,
    Block,
    Extras,
    Interface,
    Oddity,
    Options,
    Record,
    Resolution,
    Stop,
)

SECTION = 0x0A0D0D0A
INTERFACE = 1
OBSOLETE_PACKET = 2
SIMPLE_PACKET = 3
NAMES = 4
STATISTICS = 5
ENHANCED_PACKET = 6
SECRETS = 10
CUSTOM_COPY = 0x0BAD
CUSTOM_KEEP_HERE = 0x4000_0BAD
_LIKELY = frozenset(
    {
        SECTION,
        INTERFACE,
        OBSOLETE_PACKET,
        SIMPLE_PACKET,
        NAMES,
        STATISTICS,
        ENHANCED_PACKET,
        SECRETS,
        CUSTOM_COPY,
        CUSTOM_KEEP_HERE,
    }
)

OPT_END = 0
OPT_COMMENT = 1
IF_NAME = 2
IF_DESCRIPTION = 3
IF_SPEED = 8
IF_TSRESOL = 9
IF_FCSLEN = 13
IF_TSOFFSET = 14

_CUSTOM_OPTIONS = frozenset({2988, 2989, 19372, 19373})
_PACKET_NUMBERS = frozenset({2, 4, 5, 6})
"""Flags, drop count, packet identifier and queue: numbers in the section's byte order."""
_PACKET_OCTETS = frozenset({3, 7})
_INTERFACE_KNOWN = frozenset({IF_NAME, IF_DESCRIPTION, IF_SPEED, IF_TSRESOL, IF_FCSLEN, IF_TSOFFSET})
_INTERFACE_NUMBERS = frozenset({10, 16, 17})
"""Time zone and the speeds of either direction."""
_INTERFACE_OCTETS = frozenset({4, 5, 6, 7, 11, 12, 15, 18})

BYTE_ORDER = 0x1A2B3C4D
BLOCK_OVERHEAD = 12
PACKET_FIELDS = 20
"""Octets of an enhanced packet block between its length and the frame."""
_MIN_SECTION = 28
_CHAIN = 3
_KEPT_BYTES_LIMIT = 64 << 20


def sniff(head: bytes) -> bool:
    """True when `head` starts a pcapng file."""
    return head[:4] == SECTION.to_bytes(4, "big") and len(head) >= 12 and _order(head) is not None


def _order(block: memoryview | bytes) -> str | None:
    """Byte order of a section header block, or None when its magic is wrong."""
    magic = bytes(block[8:12])
    return {BYTE_ORDER.to_bytes(4, "little"): "<", BYTE_ORDER.to_bytes(4, "big"): ">"}.get(magic)


def options(octets: memoryview | bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Options as (code, value) until the end mark or the end of the octets."""
    head, pos = struct.Struct(order + "HH"), 0
    while pos + 4 <= len(octets):
        code, length = head.unpack_from(octets, pos)
        pos += 4
        if code == OPT_END or pos + length > len(octets):
            return
        yield code, bytes(octets[pos : pos + length])
        pos += (length + 3) & ~3


def comments_in(octets: memoryview | bytes, order: str) -> tuple[str, ...]:
    """The comment options, as text."""
    found = (value for code, value in options(octets, order) if code == OPT_COMMENT)
    return tuple(value.decode("utf-8", "replace") for value in found)


def kept_options(
    octets: memoryview | bytes,
    order: str,
    numbers: frozenset[int],
    plain: frozenset[int],
    known: frozenset[int] = frozenset(),
) -> Options:
    """Options other than comments and `known` ones as (code, value), little-endian.

    What a number is in an option that nobody described is not known: from a big-endian section such an
    option is left out.
    """
    found = []
    for code, value in options(octets, order):
        if code == OPT_COMMENT or code in known:
            continue
        if order == ">" and code in numbers:
            value = value[::-1]  # noqa: PLW2901 - the same value in another order
        elif order == ">" and code in _CUSTOM_OPTIONS:
            value = value[3::-1] + value[4:]  # noqa: PLW2901 - the private enterprise number
        elif order == ">" and code not in plain:
            continue
        found.append((code, value))
    return tuple(found)


def notes_around(view: memoryview, at: int, size: int) -> tuple[tuple[str, ...], Options]:
    """Comments and other options of the packet block around a frame, whatever its byte order.

    Args:
        view: Octets with the whole block.
        at: First octet of the frame.
        size: Octets of the frame in the block.
    """
    start = at - 8 - PACKET_FIELDS
    for order in "<>":
        if start < 0:
            break
        kind, length, _, _, _, captured = struct.unpack_from(order + "IIIIII", view, start)
        # a simple packet block has its length where these have the octets captured, which are fewer
        if kind in (ENHANCED_PACKET, OBSOLETE_PACKET) and captured == size:
            found = view[at + (size + 3 & ~3) : start + length - 4]
            return comments_in(found, order), kept_options(found, order, _PACKET_NUMBERS, _PACKET_OCTETS)
    return (), ()


@dataclass(slots=True)
class _Clock:
    link_type: int
    snaplen: int
    resolution: Resolution
    offset_s: int
    within: tuple[int, int]
    tick_ns: int
    """Nanoseconds in a tick when that is a whole number and no offset applies, else 0."""


class Pcapng:
    """The walk over a pcapng file.

    Args:
        extras: Receives interfaces, kept blocks and the reasons for skipped ones.
    """

    name = "pcapng"
    start = 0
    limit = MAX_RECORD_BYTES

    def __init__(self, extras: Extras) -> None:
        self.extras = extras
        self.order = "<"
        self.first_interface = 0
        self.clocks: list[_Clock] = []
        self._kept_bytes = 0
        self.sections = 0

    @property
    def big_endian(self) -> bool:
        """Byte order of the current section."""
        return self.order == ">"

    def _length(self, view: memoryview, pos: int) -> tuple[int, int] | str:
        """Type and length of the block at `pos`, or what is wrong with them."""
        order = self.order
        (kind,) = struct.unpack_from(order + "I", view, pos)
        if kind == SECTION:
            found = _order(view[pos : pos + 12])
            if found is None:
                return "section header without its byte-order magic"
            order = found
        (length,) = struct.unpack_from(order + "I", view, pos + 4)
        least = _MIN_SECTION if kind == SECTION else BLOCK_OVERHEAD
        if length < least or length % 4 or length > MAX_RECORD_BYTES:
            return f"block length {length} is impossible"
        return kind, length

    def is_frame(self, view: memoryview) -> bool:
        """True when the block at the start of a window holds a frame."""
        kind = int.from_bytes(view[:4], "big" if self.big_endian else "little")
        return kind in (ENHANCED_PACKET, SIMPLE_PACKET, OBSOLETE_PACKET)

    def one(self, view: memoryview, pos: int, at: int, count: int) -> tuple[int, Record | None] | Stop:
        """The block at `pos` of a window that starts at file offset `at`; see `Pcap.one`."""
        end = len(view)
        if pos + BLOCK_OVERHEAD > end:
            return Stop(pos, "more", BLOCK_OVERHEAD)
        sized = self._length(view, pos)
        if isinstance(sized, str):
            return Stop(pos, "damaged", BLOCK_OVERHEAD, sized)
        kind, length = sized
        if pos + length > end:
            return Stop(pos, "more", length)
        order = _order(view[pos : pos + 12]) or self.order if kind == SECTION else self.order
        (trailer,) = struct.unpack_from(order + "I", view, pos + length - 4)
        if trailer != length:
            return Stop(pos, "damaged", BLOCK_OVERHEAD, f"block lengths {length} and {trailer} differ")
        return pos + length, self.block(kind, view[pos + 8 : pos + length - 4], at + pos, count)

    def records(
        self, view: memoryview, at: int, number: int, out: list[Record], most: int = MOST_RECORDS
    ) -> Stop:
        """Append the records of a window to `out`; see `Pcap.records`."""
        pos = 0
        while len(out) < most:
            found = self.one(view, pos, at, number + len(out))
            if isinstance(found, Stop):
                return found
            pos, record = found
            if record is not None:
                out.append(record)
        return Stop(pos, "full", 1)

    def block(self, kind: int, body: memoryview, offset: int, count: int) -> Record | None:
        """Take in one whole block; a frame comes back as a record.

        Args:
            kind: Block type.
            body: Octets between the lengths.
            offset: File offset of the block.
            count: Frames read before it.
        """
        match kind:
            case 6:
                return self._packet(body, offset, count)
            case 3:
                return self._simple(body, offset, count)
            case 2:
                return self._obsolete(body, offset, count)
            case 0x0A0D0D0A:
                self._section(body)
            case 1:
                self._interface(body, offset)
            case _:
                self._keep(Block(kind, bytes(body), self.big_endian, count), offset)
        return None

    def _section(self, body: memoryview) -> None:
        self.order = _order(memoryview(bytes(8) + bytes(body[:4]))) or self.order
        self.first_interface = len(self.extras.interfaces)
        self.clocks = []
        self.sections += 1
        self.extras.comments.extend(comments_in(body[16:], self.order))

    def _interface(self, body: memoryview, offset: int) -> None:
        if len(body) < 8:
            self.extras.odd.append(Oddity(offset, None, "interface description is too short; skipped"))
            return
        link_type, _, snaplen = struct.unpack_from(self.order + "HHI", body)
        name = description = ""
        speed_bps: int | None = None
        fcs_len: int | None = None
        resolution, offset_s = MICROSECONDS, 0
        for code, value in options(body[8:], self.order):
            number = int.from_bytes(value, "big" if self.big_endian else "little")
            if code == IF_NAME:
                name = value.decode("utf-8", "replace")
            elif code == IF_DESCRIPTION:
                description = value.decode("utf-8", "replace")
            elif code == IF_SPEED and len(value) == 8:
                speed_bps = number
            elif code == IF_TSRESOL and len(value) == 1:
                resolution = Resolution(2 if value[0] & 0x80 else 10, value[0] & 0x7F)
            elif code == IF_FCSLEN and len(value) == 1:
                fcs_len = value[0]
            elif code == IF_TSOFFSET and len(value) == 8:
                offset_s = number - (1 << 64) if number >> 63 else number
        known = (name, link_type, speed_bps, resolution, snaplen, description, offset_s, fcs_len)
        kept = kept_options(body[8:], self.order, _INTERFACE_NUMBERS, _INTERFACE_OCTETS, _INTERFACE_KNOWN)
        self.extras.interfaces.append(Interface(*known, comments_in(body[8:], self.order), kept))
        exact = resolution.base == 10 and resolution.exponent <= 9 and offset_s == 0
        tick_ns = 10 ** (9 - resolution.exponent) if exact else 0
        within = resolution.ticks_within(offset_s)
        self.clocks.append(_Clock(link_type, snaplen, resolution, offset_s, within, tick_ns))

    def _skip(self, offset: int, count: int, text: str) -> None:
        """A frame that cannot be read; it would have been the one behind `count` others."""
        self.extras.odd.append(Oddity(offset, count + 1, f"{text}; skipped"))

    def _clock(self, interface: int, offset: int, count: int) -> _Clock | None:
        if interface < len(self.clocks):
            return self.clocks[interface]
        self._skip(offset, count, f"frame of interface {interface}, which is not described")
        return None

    def _packet(self, body: memoryview, offset: int, count: int) -> Record | None:
        if len(body) < PACKET_FIELDS:
            self._skip(offset, count, "packet block is too short")
            return None
        return self._frame(body, struct.unpack_from(self.order + "IIIII", body), offset, count)

    def _obsolete(self, body: memoryview, offset: int, count: int) -> Record | None:
        if len(body) < PACKET_FIELDS:
            self._skip(offset, count, "packet block is too short")
            return None
        interface, _, *rest = struct.unpack_from(self.order + "HHIIII", body)
        return self._frame(body, (interface, *rest), offset, count)

    def _frame(self, body: memoryview, fields: tuple[int, ...], offset: int, count: int) -> Record | None:
        interface, high, low, captured, original = fields
        clock = self._clock(interface, offset, count)
        if clock is None:
            return None
        stop = PACKET_FIELDS + captured
        if stop > len(body):
            self._skip(offset, count, f"frame of {captured} octets does not fit its block")
            return None
        ticks = high << 32 | low
        time_ns = ticks * clock.tick_ns
        if not clock.tick_ns or time_ns >> 63:
            time_ns = clock.resolution.to_ns(ticks, clock.offset_s)
            if not clock.within[0] <= ticks <= clock.within[1]:
                stamp = f"stamp {ticks} of {clock.resolution} ticks is beyond 64 bits of nanoseconds"
                self.extras.odd.append(Oddity(offset, count + 1, f"{stamp}; its time wraps", "capture.time"))
        after = (stop + 3) & ~3
        comments: tuple[str, ...] = ()
        kept: Options = ()
        if after < len(body):
            comments = comments_in(body[after:], self.order)
            kept = kept_options(body[after:], self.order, _PACKET_NUMBERS, _PACKET_OCTETS)
        where = offset + 8 + PACKET_FIELDS
        lengths = (clock.link_type, captured, original, body[PACKET_FIELDS:stop])
        return Record(count + 1, time_ns, self.first_interface + interface, *lengths, comments, where, kept)

    def _simple(self, body: memoryview, offset: int, count: int) -> Record | None:
        clock = self._clock(0, offset, count)
        if clock is None or len(body) < 4:
            return None
        (original,) = struct.unpack_from(self.order + "I", body)
        captured = min(original, clock.snaplen or original, len(body) - 4)
        octets = body[4 : 4 + captured]
        lengths = (clock.link_type, captured, original, octets)
        return Record(count + 1, 0, self.first_interface, *lengths, (), offset + 12)

    def _keep(self, block: Block, offset: int) -> None:
        self._kept_bytes += len(block.body) + 64
        if self._kept_bytes <= _KEPT_BYTES_LIMIT:
            self.extras.blocks.append(block)
        else:
            text = f"block of type {block.kind:#x} not kept: too many of them"
            self.extras.odd.append(Oddity(offset, None, text))

    def resync(self, view: memoryview, pos: int, search: Search) -> int | None:
        """First offset after `pos` from which a chain of blocks looks right, or None.

        Args:
            view: Octets to search.
            pos: Where the damage is.
            search: How far searching went already.
        """
        for start in search.blocks(view, pos + 1, big_endian=self.big_endian):
            if self._chained(view, start):
                return start
        return None

    def _chained(self, view: memoryview, where: int) -> bool:
        for links in range(_CHAIN):
            if where == len(view):
                return links > 0
            if where + BLOCK_OVERHEAD > len(view):
                return links > 1
            sized = self._length(view, where)
            if isinstance(sized, str) or sized[0] not in _LIKELY:
                return False
            stop = where + sized[1]
            if stop > len(view):
                return links > 0
            if bytes(view[where + 4 : where + 8]) != bytes(view[stop - 4 : stop]):
                return False
            where = stop
        return True
