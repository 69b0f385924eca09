"""Captures in and out, and frames as columns."""

from roce_pkt.capture.model import Block, Interface, Record, Resolution
from roce_pkt.capture.reader import Capture, open  # noqa: A004 - the promised name

__all__ = ["Block", "Capture", "Interface", "Record", "Resolution", "open"]
