"""Classic pcap: a 24-octet file header, then records of a 16-octet header and the frame.

    magic u32 | major u16 | minor u16 | zone i32 | sigfigs u32 | snaplen u32 | link type u32
    seconds u32 | sub-seconds u32 | captured u32 | original u32 | octets ...

Sources: the pcap savefile manual page; draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import re
import struct

from roce_pkt.capture.damage import Search
from roce_pkt.capture.model import (
    MAX_RECORD_BYTES,
    MICROSECONDS,
    MIN_LENGTH_LIMIT,
    MOST_RECORDS,
    NANOSECONDS,
    Extras,
    Interface,
    Oddity,
    Record,
    Resolution,
    Stop,
)

FILE_HEADER = "IHHiIII"
RECORD_HEADER = "IIII"
FILE_HEADER_BYTES, RECORD_HEADER_BYTES = (struct.calcsize("<" + f) for f in (FILE_HEADER, RECORD_HEADER))
MAGIC_US = 0xA1B2C3D4
MAGIC_NS = 0xA1B23C4D
MAGIC_MODIFIED = 0xA1B2CD34
"""A variant of old Linux systems: 8 more octets in each record header."""
_FCS_PRESENT = 0x0400_0000
_CHAIN = 8
_DAY_S = 86_400
_VERSION = (2, 4)
_HEADERS = re.compile(
    b"|".join(
        re.escape(struct.pack(order + "IHH", magic, *_VERSION))
        for order in "<>"
        for magic in (MAGIC_US, MAGIC_NS, MAGIC_MODIFIED)
    )
)
"""What a file header begins with; one in the middle of a capture is that of a file joined to it."""


def sniff(head: bytes) -> bool:
    """True when `head` starts a classic pcap."""
    magics = (MAGIC_US, MAGIC_NS, MAGIC_MODIFIED)
    return len(head) >= 4 and any(int.from_bytes(head[:4], order) in magics for order in ("little", "big"))


class Pcap:
    """The walk over a classic pcap.

    Args:
        head: The first 24 octets.
        extras: Where the interface goes.
    """

    name = "pcap"
    start = FILE_HEADER_BYTES

    def __init__(self, head: bytes, extras: Extras) -> None:
        self.extras = extras
        self.last_s: int | None = None
        self.headers = 0
        self._adopt(head)

    def _adopt(self, head: bytes) -> None:
        """Read on as a file header says."""
        self.big_endian = int.from_bytes(head[:4], "big") in (MAGIC_US, MAGIC_NS, MAGIC_MODIFIED)
        order = ">" if self.big_endian else "<"
        magic, _, _, _, _, snaplen, link = struct.unpack(order + FILE_HEADER, head[:FILE_HEADER_BYTES])
        self.resolution: Resolution = NANOSECONDS if magic == MAGIC_NS else MICROSECONDS
        self.tick_ns = 1 if magic == MAGIC_NS else 1000
        self.header_bytes = RECORD_HEADER_BYTES + (8 if magic == MAGIC_MODIFIED else 0)
        self._header = struct.Struct(order + RECORD_HEADER)
        # Bits 31-28 of the link type word count FCS words when bit 26 is set.
        fcs_len = (link >> 28) * 2 if link & _FCS_PRESENT else None
        self.link_type = link & 0xFFFF
        self.limit = min(max(snaplen, MIN_LENGTH_LIMIT), MAX_RECORD_BYTES)
        made = Interface("", self.link_type, None, self.resolution, snaplen, "", 0, fcs_len)
        interfaces = self.extras.interfaces
        if made not in interfaces:
            interfaces.append(made)
        self.interface_id = interfaces.index(made)
        self.headers += 1

    def _join(self, head: bytes, offset: int, count: int) -> None:
        """A second file header: the rest is a capture of its own."""
        self._adopt(head)
        self.last_s = None
        order = "big" if self.big_endian else "little"
        text = f"the header of another capture: what follows is {order}-endian in {self.resolution} ticks"
        self.extras.odd.append(Oddity(offset, count + 1, text, "capture.joined"))

    def one(self, view: memoryview, pos: int, at: int, count: int) -> tuple[int, Record | None] | Stop:
        """The record at `pos` of a window that starts at file offset `at`, and where the next one is.

        Args:
            view: Octets from file offset `at` on.
            pos: Place of the record in the window.
            at: File offset of the window.
            count: Frames read before.
        """
        step, end = self.header_bytes, len(view)
        if pos + step > end:
            return Stop(pos, "more", step)
        if _HEADERS.match(view, pos):
            if pos + FILE_HEADER_BYTES > end:
                return Stop(pos, "more", FILE_HEADER_BYTES)
            self._join(bytes(view[pos : pos + FILE_HEADER_BYTES]), at + pos, count)
            return pos + FILE_HEADER_BYTES, None
        seconds, fraction, captured, original = self._header.unpack_from(view, pos)
        if captured > self.limit:
            return Stop(pos, "damaged", step, f"record length {captured} is impossible")
        if not (seconds or fraction or captured or original):
            return Stop(pos, "damaged", step, "record header is all zero")
        stop = pos + step + captured
        if stop > end:
            return Stop(pos, "more", step + captured)
        time_ns, octets = seconds * 1_000_000_000 + fraction * self.tick_ns, view[pos + step : stop]
        self.last_s = time_ns // 1_000_000_000  # a damaged fraction may hold more than a second
        lengths = (self.link_type, captured, original, octets)
        return stop, Record(count + 1, time_ns, self.interface_id, *lengths, (), at + pos + step)

    def records(
        self, view: memoryview, at: int, number: int, out: list[Record], most: int = MOST_RECORDS
    ) -> Stop:
        """Append the records of a window to `out`.

        Args:
            view: Octets from file offset `at` on.
            at: File offset of the window.
            number: Frames read before.
            out: Receives the records.
            most: Records to take.
        """
        pos = 0
        while len(out) < most:
            found = self.one(view, pos, at, number + len(out))
            if isinstance(found, Stop):
                return found
            pos, record = found
            if record is not None:
                out.append(record)
        return Stop(pos, "full", 1)

    def resync(self, view: memoryview, pos: int, search: Search) -> int | None:
        """First offset after `pos` from which a chain of record headers looks right, or None.

        Args:
            view: Octets to search.
            pos: Where the damage is.
            search: How far searching went already.
        """
        joined = None if search.compiled(view, pos + 1) else _HEADERS.search(view, pos + 1)
        limit = joined.start() if joined else len(view)
        candidates = search.records(view, pos + 1, self.header_bytes, self.limit, big_endian=self.big_endian)
        for start in candidates:
            if start >= limit:
                break
            if _HEADERS.match(view, start) or self._chained(view, start):
                return start
        return joined.start() if joined else None

    def _chained(self, view: memoryview, where: int) -> bool:
        step, end = self.header_bytes, len(view)
        for links in range(_CHAIN):
            if where == end:
                return links > 0
            if where + step > end:
                return links > 1
            if links and _HEADERS.match(view, where):
                return True
            seconds, fraction, captured, original = self._header.unpack_from(view, where)
            if not 0 < captured <= min(original, self.limit) or original > MIN_LENGTH_LIMIT:
                return False
            if fraction * self.tick_ns >= 1_000_000_000:
                return False
            if self.last_s is not None and abs(seconds - self.last_s) > _DAY_S:
                return False
            where += step + captured
        return True
