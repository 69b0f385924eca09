"""Put wrong ICRCs right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.edit.copy import copy_capture
from roce_pkt.wire import ib
from roce_pkt.wire.frame import dissect


@dataclass(slots=True)
class Repaired:
    """What was done: frames in all, repaired, right already, and without an ICRC that can be checked."""

    frames: int = 0
    repaired: int = 0
    right: int = 0
    not_checked: int = 0


def repair_icrc(capture: Capture, path: str | Path, *, force: bool = False) -> Repaired:
    """Write a capture again with every wrong ICRC replaced by the right one; nothing else changes.

    Args:
        capture: Where frames come from.
        path: Where they go, in the same format.
        force: Replace a file that is there.

    Raises:
        InputError: The output cannot be written.
    """
    done = Repaired()

    def change(record: Record) -> bytes | memoryview:
        done.frames += 1
        read = dissect(record.octets, record.wire_len, record.link_type, capture.udp_port)
        if read.icrc is None or read.icrc.expected is None or read.cover is None:
            done.not_checked += 1
            return record.octets
        if read.icrc.ok:
            done.right += 1
            return record.octets
        done.repaired += 1
        end = read.cover.end
        octets = bytes(record.octets)
        return octets[:end] + read.icrc.expected + octets[end + ib.ICRC_BYTES :]

    copy_capture(capture, path, change, force=force)
    return done
