"""Write a capture again with comments on some frames; octets, stamps, interfaces and old comments stay."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self, cast

import numpy as np

from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.capture.writer import write_pcapng

_IN_MEMORY_BYTES = 32 << 20
MOST_OF_A_FRAME = 8
"""Notes written on one frame; of more the first ones."""


class Notes:
    """Sentences about frames, in any order; their texts spill to disk, so that millions fit.

    Used with `with`, or closed.
    """

    def __init__(self) -> None:
        self._frames, self._ends = array("q"), array("q")
        self._spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES))  # noqa: SIM115
        self._size = 0

    def __len__(self) -> int:
        return len(self._frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file behind it."""
        self._spool.close()

    def add(self, frame: int, text: str) -> None:
        """Say something about a frame.

        Args:
            frame: Its 1-based number.
            text: One sentence.
        """
        octets = text.encode()
        self._spool.write(octets)
        self._size += len(octets)
        self._frames.append(frame)
        self._ends.append(self._size)

    def by_frame(self) -> Iterator[tuple[int, list[str]]]:
        """Frames with what is said of them, in order; what was said first comes first."""
        frames = np.array(self._frames, np.int64)
        order = np.argsort(frames, kind="stable").tolist()
        at = 0
        while at < len(order):
            frame = self._frames[order[at]]
            texts: list[str] = []
            while at < len(order) and self._frames[order[at]] == frame:
                if len(texts) < MOST_OF_A_FRAME:
                    texts.append(self._text(order[at]))
                at += 1
            yield frame, list(dict.fromkeys(texts))

    def _text(self, note: int) -> str:
        start = self._ends[note - 1] if note else 0
        self._spool.seek(start)
        return self._spool.read(self._ends[note] - start).decode()


def annotate(capture: Capture, path: str | Path, notes: Notes, *, force: bool = False) -> int:
    """Write the same frames as pcapng, with a comment on each frame that something is said of.

    Args:
        capture: Where frames come from.
        path: Where they go.
        notes: What to say.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: The output cannot be written.
    """
    return write_pcapng(
        path, _commented(capture, notes), capture.interfaces, blocks=capture.blocks,
        comments=capture.comments, force=force,
    )  # fmt: skip


def _commented(capture: Capture, notes: Notes) -> Iterator[Record]:
    said = notes.by_frame()
    frame, texts = next(said, (0, []))
    for record in capture.records():
        if record.number == frame:
            yield record._replace(comments=(*record.comments, ", ".join(texts)))
            frame, texts = next(said, (0, []))
        else:
            yield record
