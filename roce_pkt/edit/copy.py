"""Write a capture again with some frames' octets changed and everything else kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from roce_pkt.capture.model import NANOSECONDS, Record
from roce_pkt.capture.reader import Capture
from roce_pkt.capture.writer import write_pcap, write_pcapng

if TYPE_CHECKING:
    from roce_pkt.capture.run import Run

Change = Callable[[Record], bytes | memoryview]


def copy_capture(capture: Capture, path: str | Path, change: Change, *, force: bool = False) -> int:
    """Copy a capture, octets passed through `change`; time stamps, interfaces and comments are kept.

    Args:
        capture: Where frames come from.
        path: Where they go, in the same format (pcap or pcapng).
        change: Gives the octets to write for a frame.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: The output cannot be written.
    """

    def changed() -> Iterator[Record]:
        for record in capture.records():
            yield with_octets(record, change(record))

    return write_like(capture, path, changed(), force=force)


def with_octets(record: Record, octets: bytes | memoryview) -> Record:
    """The record with other octets; octets that the capture had cut off stay cut off."""
    grown = len(octets) - record.cap_len
    wire_len = max(len(octets), record.wire_len + grown)
    return record._replace(octets=octets, cap_len=len(octets), wire_len=wire_len)


def write_like(
    capture: Capture, path: str | Path, records: Iterable[Record | Run], *, force: bool = False
) -> int:
    """Write records made from those of a capture: same format, interfaces, blocks and comments.

    Args:
        capture: Being read while the records are taken.
        path: Where they go.
        records: In order.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: The output cannot be written.
    """
    if capture.format == "pcapng":
        return write_pcapng(
            path, records, capture.interfaces, blocks=capture.blocks, comments=capture.comments, force=force
        )
    return write_pcap(path, records, nanosecond=_nanosecond(capture), force=force)


def _nanosecond(capture: Capture) -> bool:
    """Keep the stamps' resolution: a classic pcap has one interface, known once it is open."""
    return bool(capture.interfaces) and capture.interfaces[0].resolution == NANOSECONDS
