"""Captures in and out, and frames as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_pkt.capture.model import Block, Interface, Record, Resolution
from roce_pkt.capture.reader import Capture, open  # noqa: A004 - the promised name

if TYPE_CHECKING:
    from roce_pkt.capture.frames import Frames

__all__ = ["Block", "Capture", "Frames", "Interface", "Record", "Resolution", "open"]


def __getattr__(name: str) -> Any:
    if name == "Frames":  # numpy is loaded only when columns are asked for
        from roce_pkt.capture.frames import Frames

        return Frames
    raise AttributeError(name)
