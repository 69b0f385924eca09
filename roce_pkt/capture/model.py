"""What a capture holds besides octets: interfaces, records, and blocks that a copy must keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MAX_RECORD_BYTES = 16 << 20
"""No capture block is longer; a larger length field is damage."""
MIN_LENGTH_LIMIT = 262_144
"""A record length up to this is believed whatever the snapshot length says."""

MOST_RECORDS = 16_384
"""Records taken from one window at a time."""

LINK_ETHERNET = 1

Options = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """Length of one time stamp tick: `base` to the power of minus `exponent` seconds.

    Source: the pcapng specification, option if_tsresol.
    """

    base: Literal[2, 10] = 10
    exponent: int = 6

    def to_ns(self, ticks: int, offset_s: int = 0) -> int:
        """Nanoseconds of a stamp, rounded down, exact, wrapped into 64 signed bits as a column holds it."""
        per_second: int = self.base**self.exponent
        value = ticks * 1_000_000_000 // per_second + offset_s * 1_000_000_000
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)

    def ticks_within(self, offset_s: int = 0) -> tuple[int, int]:
        """Least and largest stamp whose nanoseconds a column holds; beyond them `to_ns` wraps."""
        per_second: int = self.base**self.exponent
        offset_ns, half = offset_s * 1_000_000_000, 1 << 63
        low = -(-(-half - offset_ns) * per_second // 1_000_000_000)
        high = ((half - offset_ns) * per_second - 1) // 1_000_000_000
        return low, high

    def __str__(self) -> str:
        named = {3: "1 ms", 6: "1 us", 9: "1 ns"} if self.base == 10 else {}
        return named.get(self.exponent, f"{self.base}^-{self.exponent} s")


MICROSECONDS = Resolution(10, 6)
NANOSECONDS = Resolution(10, 9)


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface of a capture.

    Args:
        name: As the capture names it, or an empty string.
        link_type: LINKTYPE_ number (1 is Ethernet).
        speed_bps: Line rate in bits per second, if the capture says so.
        resolution: Time stamp tick.
        snaplen: Octets kept of each frame; 0 means no limit.
        description: Free text.
        offset_s: Seconds added to every stamp.
        fcs_len: Octets of frame check sequence kept at the end of each frame, if the capture says so.
        comments: Comments on the interface.
        options: Other options of the description as (code, value), little-endian, for a copy.
    """

    name: str = ""
    link_type: int = LINK_ETHERNET
    speed_bps: int | None = None
    resolution: Resolution = NANOSECONDS
    snaplen: int = 0
    description: str = ""
    offset_s: int = 0
    fcs_len: int | None = None
    comments: tuple[str, ...] = ()
    options: Options = ()


class Record(NamedTuple):
    """One frame as the capture holds it.

    Args:
        number: 1-based frame number.
        time_ns: Nanoseconds since 1970.
        interface_id: Index into `Capture.interfaces`.
        link_type: LINKTYPE_ number.
        cap_len: Octets kept.
        wire_len: Octets the frame had on the wire.
        octets: The octets kept.
        comments: Comments on the frame.
        offset: Octet offset of the frame in the (unpacked) capture.
        options: Other options of the frame as (code, value), little-endian, for a copy.
    """

    number: int
    time_ns: int
    interface_id: int
    link_type: int
    cap_len: int
    wire_len: int
    octets: memoryview | bytes
    comments: tuple[str, ...] = ()
    offset: int = 0
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A pcapng block that is no frame: name resolution, statistics, custom or unknown.

    Args:
        kind: Block type.
        body: Octets between the two length fields, in the byte order of its section.
        big_endian: Byte order of the section it came from.
        after_frame: Frames read before it.
    """

    kind: int
    body: bytes
    big_endian: bool
    after_frame: int


@dataclass(slots=True)
class Stop:
    """Where a walk over a window stopped, and why.

    Args:
        consumed: Octets of the window that were used.
        why: `more` octets are needed, the place is `damaged`, or a `block` stands there that the
            compiled walk leaves to the plain one.
        need: Octets wanted from the stop on.
        text: What is damaged.
    """

    consumed: int
    why: Literal["more", "damaged", "full", "block"] = "more"
    need: int = 0
    text: str = ""


class Oddity(NamedTuple):
    """Something to tell about a place of a capture that was read on behind.

    Args:
        offset: Octet offset of the place.
        frame: Number of the frame that it is about, or None.
        text: What is odd.
        rule: Name of the finding.
    """

    offset: int
    frame: int | None
    text: str
    rule: str = "capture.skipped"


@dataclass(slots=True)
class Extras:
    """What a walk collects besides records.

    Args:
        interfaces: Grows as interface descriptions are met.
        blocks: Blocks that a copy must keep.
        odd: What was met and is to be told, blocks passed over for example.
        comments: Comments on the whole capture.
    """

    interfaces: list[Interface] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    odd: list[Oddity] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def clear(self) -> None:
        """Forget all, for another pass; the lists stay the same objects."""
        for collected in (self.interfaces, self.blocks, self.odd, self.comments):
            collected.clear()
