"""Classic pcap: a 24-octet file header, then records of a 16-octet header and the frame.

    magic u32 | major u16 | minor u16 | zone i32 | sigfigs u32 | snaplen u32 | link type u32
    seconds u32 | sub-seconds u32 | captured u32 | original u32 | octets ...

Sources: the pcap savefile manual page; draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import struct

from roce_pkt.capture.damage import words_within
from roce_pkt.capture.model import (
    MAX_RECORD_BYTES,
    MICROSECONDS,
    MIN_LENGTH_LIMIT,
    MOST_RECORDS,
    NANOSECONDS,
    Extras,
    Interface,
    Record,
    Resolution,
    Stop,
)

FILE_HEADER = "IHHiIII"
RECORD_HEADER = "IIII"
FILE_HEADER_BYTES = struct.calcsize("<" + FILE_HEADER)
MAGIC_US = 0xA1B2C3D4
MAGIC_NS = 0xA1B23C4D
MAGIC_MODIFIED = 0xA1B2CD34
"""A variant of old Linux systems: 8 more octets in each record header."""
_FCS_PRESENT = 0x0400_0000
_CHAIN = 8
_DAY_S = 86_400


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
        self.big_endian = int.from_bytes(head[:4], "big") in (MAGIC_US, MAGIC_NS, MAGIC_MODIFIED)
        order = ">" if self.big_endian else "<"
        magic, _, _, _, _, snaplen, link = struct.unpack(order + FILE_HEADER, head[:FILE_HEADER_BYTES])
        self.resolution: Resolution = NANOSECONDS if magic == MAGIC_NS else MICROSECONDS
        self.tick_ns = 1 if magic == MAGIC_NS else 1000
        self.header_bytes = 24 if magic == MAGIC_MODIFIED else 16
        self._header = struct.Struct(order + RECORD_HEADER)
        # Bits 31-28 of the link type word count FCS words when bit 26 is set.
        fcs_len = (link >> 28) * 2 if link & _FCS_PRESENT else None
        self.link_type = link & 0xFFFF
        self.limit = min(max(snaplen, MIN_LENGTH_LIMIT), MAX_RECORD_BYTES)
        self.last_s: int | None = None
        extras.interfaces.append(
            Interface("", self.link_type, None, self.resolution, snaplen, "", 0, fcs_len)
        )

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
        seconds, fraction, captured, original = self._header.unpack_from(view, pos)
        if captured > self.limit:
            return Stop(pos, "damaged", step, f"record length {captured} is impossible")
        if not (seconds or fraction or captured or original):
            return Stop(pos, "damaged", step, "record header is all zero")
        stop = pos + step + captured
        if stop > end:
            return Stop(pos, "more", step + captured)
        self.last_s = seconds
        time_ns, octets = seconds * 1_000_000_000 + fraction * self.tick_ns, view[pos + step : stop]
        lengths = (self.link_type, captured, original, octets)
        return stop, Record(count + 1, time_ns, 0, *lengths, (), at + pos + step)

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

    def resync(self, view: memoryview, pos: int) -> int | None:
        """First offset after `pos` from which a chain of record headers looks right, or None."""
        captured_at = 8
        for start in words_within(
            view, pos + 1, captured_at, big_endian=self.big_endian, low=1, high=self.limit
        ):
            if self._chained(view, start):
                return start
        return None

    def _chained(self, view: memoryview, where: int) -> bool:
        step, end = self.header_bytes, len(view)
        for links in range(_CHAIN):
            if where == end:
                return links > 0
            if where + step > end:
                return links > 1
            seconds, fraction, captured, original = self._header.unpack_from(view, where)
            if not 0 < captured <= min(original, self.limit) or original > MIN_LENGTH_LIMIT:
                return False
            if fraction * self.tick_ns >= 1_000_000_000:
                return False
            if self.last_s is not None and abs(seconds - self.last_s) > _DAY_S:
                return False
            where += step + captured
        return True
