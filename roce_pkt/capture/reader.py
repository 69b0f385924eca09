"""Captures: one `open` for pcap and pcapng, plain, gzip or zstd, from a path or standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from roce_pkt.capture import pcap, pcapng
from roce_pkt.capture.damage import Search
from roce_pkt.capture.model import Block, Extras, Interface, Record, Stop
from roce_pkt.capture.source import Source, open_source
from roce_pkt.errors import CaptureError, Finding

if TYPE_CHECKING:
    from roce_pkt.capture.frames import Frames

ROCE_UDP_PORT = 4791
_RULE_LIMIT = 100
"""Losses told one by one; a hostile file can have millions."""


class Capture:
    """A capture file: frames as records or as columns, and what was lost while reading.

    Made by `open`. Reading again starts over, except from a pipe.

    Args:
        path: File, or `-` for standard input.
        udp_port: UDP destination port that carries RoCEv2.

    Attributes:
        format: `pcap` or `pcapng`, as it begins.
        losses: What could not be read, so far.
    """

    def __init__(self, path: str | os.PathLike[str], udp_port: int = ROCE_UDP_PORT) -> None:
        self.path = os.fspath(path)
        self.udp_port = udp_port
        self.losses: list[Finding] = []
        self._extras = Extras()
        self._length: int | None = None
        self._ready: Walk | None = Walk(self)
        self.format: str = self._ready.format.name

    @property
    def interfaces(self) -> list[Interface]:
        """Interfaces met so far; all of them once the capture is read."""
        return self._extras.interfaces

    @property
    def blocks(self) -> list[Block]:
        """Blocks of a pcapng that are no frames and that a copy must keep."""
        return self._extras.blocks

    @property
    def comments(self) -> list[str]:
        """Comments on the whole capture."""
        return self._extras.comments

    def __repr__(self) -> str:
        count = "" if self._length is None else f", {self._length} frames"
        return f"Capture({self.path!r}{count}, interfaces={len(self.interfaces)})"

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        """Frames in the capture; counts them on first use."""
        if self._length is None:
            if self.path == "-":
                raise TypeError("standard input is read once; count the frames while reading")
            for _ in self.records():
                pass
        return self._length or 0

    def walk(self) -> Walk:
        """A fresh walk over the octets."""
        walk, self._ready = self._ready, None
        if walk is None:
            if self.path == "-":
                raise CaptureError("standard input", "already read; a pipe can be read once")
            walk = Walk(self)
        return walk

    def finished(self, count: int) -> None:
        """A walk reached the end after `count` frames."""
        self._length = count

    def records(self) -> Iterator[Record]:
        """Frames one by one, in file order."""
        walk = self.walk()
        while (batch := walk.records()) is not None:
            yield from batch

    def __iter__(self) -> Iterator[Frames]:
        return self.batches()

    def batches(self, *, verify: bool = True) -> Iterator[Frames]:
        """Frames as columns, in batches of bounded size.

        Args:
            verify: Compute every ICRC; without, `icrc_ok` is -1 throughout.
        """
        from roce_pkt.capture.fill import batches

        return batches(self, verify=verify)

    def frames(self, *, verify: bool = True) -> Frames:
        """All frames as columns; memory grows with the number of frames.

        Args:
            verify: Compute every ICRC; without, `icrc_ok` is -1 throughout.
        """
        from roce_pkt.capture.frames import Frames

        return Frames.concat(self.batches(verify=verify))


def open(path: str | os.PathLike[str], udp_port: int = ROCE_UDP_PORT) -> Capture:  # noqa: A001 - the promised name
    """Open a capture.

    Args:
        path: A pcap or pcapng file, plain, gzip or zstd whatever its name, or `-` for standard input.
        udp_port: UDP destination port that carries RoCEv2.

    Raises:
        CaptureError: The file cannot be read, or is no capture.
    """
    return Capture(path, udp_port)


class Walk:
    """One pass over a capture: where it stands, and what it met.

    Args:
        capture: Receives losses, interfaces and kept blocks.
    """

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.source: Source = open_source(capture.path)
        capture.losses.clear()
        self.extras = capture._extras  # noqa: SLF001 - the walk fills its capture
        self.extras.clear()
        self.format = _recognise(self.source, self.extras)
        self.at = self.format.start
        self.count = 0
        self._preamble()
        self._need = 1
        self._lost = 0
        self._over = False

    def _preamble(self) -> None:
        """Take in what stands before the first frame, so that interfaces are known at once."""
        form = self.format
        while isinstance(form, pcapng.Pcapng):
            view = self.source.view(self.at, pcapng.BLOCK_OVERHEAD)
            if form.is_frame(view):
                return
            found = form.one(view, 0, self.at, 0)
            if isinstance(found, Stop):
                return
            self.at += found[0]

    def view(self) -> memoryview:
        """Octets from where the walk stands."""
        return self.source.view(self.at, self._need)

    def records(self) -> list[Record] | None:
        """The records of the next window, or None at the end."""
        while not self._over:
            out: list[Record] = []
            view = self.view()
            stop = self.format.records(view, self.at, self.count, out)
            self.advance(view, stop, len(out))
            if out:
                return out
        return None

    @property
    def over(self) -> bool:
        """True at the end of the capture."""
        return self._over

    def advance(self, view: memoryview, stop: Stop, frames: int) -> None:
        """Move on after `frames` frames were taken from `view` as `stop` says.

        Args:
            view: The window.
            stop: Where and why the walk over it stopped.
            frames: Frames taken.
        """
        self.count += frames
        self.at += stop.consumed
        left = len(view) - stop.consumed
        self._need = stop.need
        for odd in self.extras.odd:
            self._lose(odd.rule, "warning", f"octet {odd.offset}: {odd.text}", odd.frame)
        self.extras.odd.clear()
        if stop.why == "damaged":
            self._resync(view, stop)
        elif stop.why == "more" and self._ended(frames, stop.need):
            self._end(left)

    def _ended(self, frames: int, need: int) -> bool:
        """True when `need` octets are not there; no pipe is waited on while there are frames to give."""
        may_look = frames == 0 or self.source.mapped
        return may_look and len(self.source.view(self.at, need)) < need

    def _end(self, left: int) -> None:
        self._over = True
        # what is lost would have been the frame behind the last one
        trouble, following = self.source.trouble, self.count + 1
        if left or trouble:
            if trouble and not self.source.cut:
                text = f"octet {self.at}: the packed stream is damaged or cut here: {trouble}"
                self._lose("capture.damaged", "error", text, following)
            else:
                why = f"the stream broke off ({trouble})" if trouble else "it is cut, or still being written"
                text = f"octet {self.at}: {left} octets of an unfinished record; {why}"
                self._lose("capture.cut", "warning", text, following)
        if self._lost > _RULE_LIMIT:
            text = f"{self._lost} losses in all; only the first {_RULE_LIMIT} are listed"
            self.capture.losses.append(Finding("capture.losses", "error", text))
        self.capture.finished(self.count)

    def _resync(self, view: memoryview, stop: Stop) -> None:
        """Search on from a damaged place, window after window, but not for ever."""
        damaged_at, where, window = self.at, stop.consumed, view
        search = Search()
        while True:
            found = self.format.resync(window, where, search)
            if found is not None:
                self.at += found - where if window is view else found
                self._need = 1
                skipped = f"{self.at - damaged_at} octets skipped, reading goes on after them"
                self._lose(
                    "capture.damaged", "error", f"octet {damaged_at}: {stop.text}; {skipped}", self.count + 1
                )
                return
            # a header may lie across the window's end
            keep = min(64, len(window) - 1) if len(window) > 64 else 0
            self.at += len(window) - keep - (where if window is view else 0)
            given_up = search.over
            window, where = self.source.view(self.at, keep + 1), -1
            if len(window) <= keep or given_up:
                nothing = "nothing readable after it"
                if given_up:
                    nothing = f"nothing readable in the {self.at - damaged_at} octets after it; given up"
                self.at = damaged_at
                text = f"octet {damaged_at}: {stop.text}; {nothing}"
                self._lose("capture.damaged", "error", text, self.count + 1)
                self._end(0)
                return

    def _lose(self, rule: str, severity: str, text: str, frame: int | None) -> None:
        self._lost += 1
        if self._lost <= _RULE_LIMIT:
            self.capture.losses.append(Finding(rule, severity, text, frame))  # type: ignore[arg-type]


def _recognise(source: Source, extras: Extras) -> pcap.Pcap | pcapng.Pcapng:
    """The format, by its magic number."""
    head = bytes(source.view(0, pcap.FILE_HEADER_BYTES)[: pcap.FILE_HEADER_BYTES])
    if source.trouble and len(head) < pcap.FILE_HEADER_BYTES:
        raise CaptureError(source.path, f"cannot be unpacked: {source.trouble}")
    if not head:
        raise CaptureError(source.path, "nothing comes out of it: the packed stream is empty or cut")
    if pcapng.sniff(head):
        return pcapng.Pcapng(extras)
    if pcap.sniff(head):
        if len(head) < pcap.FILE_HEADER_BYTES:
            raise CaptureError(source.path, f"cut inside the pcap file header ({len(head)} of 24 octets)")
        return pcap.Pcap(head, extras)
    read = "pcap and pcapng are read, plain, gzip or zstd"
    raise CaptureError(source.path, f"not a capture: {_looks_like(head)}; {read}")


def _looks_like(head: bytes) -> str:
    if head[:4] == b"\n\r\r\n":
        return "it starts like pcapng but the section header is damaged"
    if head[:16].rstrip() and all(32 <= c < 127 or c in b"\t\r\n" for c in head[:16]):
        return f"it is text that starts {head[:16].decode('ascii')!r}"
    return f"it starts with octets {head[:8].hex(' ')}"
