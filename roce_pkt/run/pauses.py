"""Pause frames of a capture: who told whom to stop, how often, and for how long in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

from roce_pkt.capture.columns import KIND_PAUSE
from roce_pkt.capture.frames import Frames
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.fabric.pause import pause, paused_total_ps, resume
from roce_pkt.units import PS_PER_NS
from roce_pkt.wire.header import mac_text
from roce_pkt.wire.mac_control import CLASSES, pause_time_ps

WHOLE_PORT = CLASSES
"""Row of 802.3x PAUSE, which knows no classes."""

Tell = Callable[[int, str, str, int | None, int | None], None]
"""Told of each pause event: (time_ps, kind, port, priority, frame)."""


@dataclass(frozen=True, slots=True)
class Pause:
    """One direction and class.

    Args:
        direction: MAC address that sent the pauses; its link partner is what stops.
        priority: Class 0..7, or None for an 802.3x PAUSE of the whole port.
        xoff: Frames that paused.
        xon: Frames that resumed.
        paused_ns: Time paused within the capture, overlaps counted once; None without a link speed.
        violations: Frames sent inside a pause; None: not looked for.
    """

    direction: str
    priority: int | None
    xoff: int
    xon: int
    paused_ns: int | None
    violations: int | None = None

    def as_json(self) -> dict[str, object]:
        """As a JSON object."""
        return asdict(self)


class Pauses:
    """The pauses of a capture, batch after batch.

    Args:
        speed_bps: Link speed for the length of a quantum, if known.
        to_ps: A frame's time on the machines' clock.
        tell: Told of each event, or None.
    """

    def __init__(self, speed_bps: float | None, to_ps: Callable[[int], int], tell: Tell | None) -> None:
        self._quantum_ps = None if speed_bps is None else pause_time_ps(1, speed_bps)
        self._to_ps, self._tell = to_ps, tell
        self._lines: dict[tuple[int, int], Any] = {}

    def add(self, frames: Frames) -> None:
        """Pause frames, in time order."""
        for time_ns, source, number, kind, quanta, enabled, whole in zip(
            *(frames.column(name).tolist() for name in PAUSE_COLUMNS), strict=True
        ):
            now = self._to_ps(time_ns)
            if kind == KIND_PAUSE:
                self._frame(source, WHOLE_PORT, whole, now, number)
                continue
            # spec: 802.1Qbb: a class whose enable bit is clear is not touched, whatever its time says
            for priority in range(CLASSES):
                if enabled >> priority & 1:
                    self._frame(source, priority, quanta[priority], now, number)

    def _frame(self, source: int, priority: int, quanta: int, now: int, number: int) -> None:
        line = self._lines.get((source, priority))
        if line is None:
            line = self._lines[source, priority] = SimpleNamespace(
                paused=0, quantum_ps=self._quantum_ps or 0, paused_until_ps=NEVER_PS, paused_since_ps=0,
                paused_ps=0, xoff=0, xon=0,
            )  # fmt: skip
        self._expire(line, source, priority, now)
        pause(line, line, 1, quanta, now)
        line.xoff += quanta > 0
        line.xon += quanta == 0
        self._event(now, "pfc.xoff" if quanta else "pfc.xon", source, priority, number)

    def advance(self, until_ps: int) -> None:
        """Pauses that run out by `until_ps` do."""
        for (source, priority), line in self._lines.items():
            self._expire(line, source, priority, until_ps)

    def _expire(self, line: Any, source: int, priority: int, now: int) -> None:
        if self._quantum_ps is not None and line.paused and line.paused_until_ps <= now:
            until = line.paused_until_ps
            resume(line, line, 1, until)
            self._event(until, "pfc.expire", source, priority, None)

    def _event(self, time_ps: int, kind: str, source: int, priority: int, number: int | None) -> None:
        if self._tell is not None:
            self._tell(time_ps, kind, mac_text(source), _priority(priority), number)

    def result(self, end_ps: int) -> list[Pause]:
        """All directions and classes; a pause still running is counted to the capture's end."""
        self.advance(end_ps)
        return [
            Pause(
                direction=mac_text(source),
                priority=_priority(priority),
                xoff=line.xoff,
                xon=line.xon,
                paused_ns=None if self._quantum_ps is None else _total_ps(line, end_ps) // PS_PER_NS,
            )
            for (source, priority), line in sorted(self._lines.items())
        ]


PAUSE_COLUMNS = ("time_ns", "eth_src", "number", "kind", "pfc_quanta", "pfc_enabled", "pause_quanta")
"""What `Pauses.add` reads."""


def _priority(row: int) -> int | None:
    return None if row == WHOLE_PORT else row


def _total_ps(line: Any, end_ps: int) -> int:
    return paused_total_ps(bool(line.paused), vars(line), end_ps)
