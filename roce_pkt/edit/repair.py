"""Put wrong ICRCs right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.capture.run import Run
from roce_pkt.edit.act import replaced
from roce_pkt.edit.copy import write_like
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

    def repaired() -> Iterator[Run | Record]:
        for frames in capture.batches():
            run, wrong = (
                Run.of(frames, pcapng=capture.format == "pcapng"),
                np.flatnonzero(frames.icrc_ok == 0),
            )
            run.put(wrong.tolist(), [_right(run.record(row), capture.udp_port) for row in wrong.tolist()])
            done.frames += len(run)
            done.repaired += len(wrong)
            done.right += int((frames.icrc_ok == 1).sum())
            yield from run.pieces()
        done.not_checked = done.frames - done.repaired - done.right

    write_like(capture, path, repaired(), force=force)
    return done


def _right(record: Record, udp_port: int) -> Record:
    read = dissect(record.octets, record.wire_len, record.link_type, udp_port)
    if read.icrc is None or read.icrc.expected is None or read.cover is None:
        return record
    return record._replace(octets=replaced(bytes(record.octets), read.cover.end, read.icrc.expected))
