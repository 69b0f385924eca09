"""Pause frames of a capture: who told whom to stop, when, for how long, and who did not listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import KIND_PAUSE
from roce_pkt.capture.frames import Frames
from roce_pkt.cc.law import NEVER_PS, compile_laws, law, twin
from roce_pkt.fabric.pause import pause, resume
from roce_pkt.run.clock import clock_ps
from roce_pkt.units import PS_PER_NS
from roce_pkt.wire.header import mac_text
from roce_pkt.wire.mac_control import CLASSES, pause_time_ps

Ints = NDArray[np.int64]
WHOLE_PORT = CLASSES
"""Row of 802.3x PAUSE, which knows no classes."""
MANY_PAUSES = 50_000
"""Pause frames for which loading compiled code pays."""

PAUSE_COLUMNS = (
    "time_ns", "eth_src", "interface_id", "number", "kind", "pfc_quanta", "pfc_enabled", "pause_quanta"
)  # fmt: skip
"""What `Pauses.add` reads."""

LINE = np.dtype(
    [
        ("paused", "i8"),
        ("quantum_ps", "i8"),
        ("paused_until_ps", "i8"),
        ("paused_since_ps", "i8"),
        ("paused_ps", "i8"),
        ("logged", "i8"),
        ("row", "i8"),
    ],
    align=True,
)
LineState = twin(LINE)

XOFF, XON, EXPIRE, VIOLATION = range(4)
KINDS = ("pfc.xoff", "pfc.xon", "pfc.expire", "pfc.violation")
LOG_TIME, LOG_WHAT, LOG_FRAME, LOG_QUANTA, LOG_SPAN = range(5)
LOG_COLUMNS = 5


@law
def write(line: Any, log: Any, now: int, what: int, frame: int, quanta: int, span_ps: int) -> None:
    """Note a step; `span_ps` is how long the pause has lasted, -1 when there was none."""
    row = line.logged
    log[row, LOG_TIME] = now
    log[row, LOG_WHAT] = what
    log[row, LOG_FRAME] = frame
    log[row, LOG_QUANTA] = quanta
    log[row, LOG_SPAN] = span_ps
    line.logged = row + 1


@law
def expire(line: Any, log: Any, now: int) -> None:
    """A pause that has run out ends."""
    if line.quantum_ps > 0 and line.paused and line.paused_until_ps <= now:
        until = line.paused_until_ps
        span = until - line.paused_since_ps
        resume(line, line, 1, until)
        write(line, log, until, EXPIRE, 0, 0, span)


@law
def run(line: Any, rows: Any, log: Any) -> None:
    """Let the pause frames of one class happen.

    Args:
        line: Record of `LINE`.
        rows: Time, quanta and frame number of each.
        log: Room for two entries a row.
    """
    while line.row < len(rows):
        now, quanta, frame = int(rows[line.row, 0]), int(rows[line.row, 1]), int(rows[line.row, 2])
        expire(line, log, now)
        span = now - line.paused_since_ps if line.paused else -1
        pause(line, line, 1, quanta, now)
        write(line, log, now, XOFF if quanta > 0 else XON, frame, quanta, span)
        line.row += 1


@cache
def compiled_run() -> Callable[..., None]:
    """`run`, compiled for records; the same text, the same times."""
    from roce_pkt.jit import kernel

    compile_laws()
    return kernel(run)


class Source(NamedTuple):
    """Who sends pauses of a class, and where that was captured."""

    interface: int
    mac: int
    row: int


@dataclass(slots=True)
class Line:
    """One direction and class of a link.

    Args:
        number: In the order of their first frames.
        source: Who tells its partner to stop.
        direction: The same for people.
        state: Record of `LINE`.
        xoff: Frames that paused.
        xon: Frames that resumed.
        violations: Frames sent inside a pause; None: it is not known which frames those would be.
        first_violations: Their numbers, the first ones.
    """

    number: int
    source: Source
    direction: str
    state: Any
    xoff: int = 0
    xon: int = 0
    violations: int | None = None
    first_violations: list[int] = field(default_factory=list)
    _starts: list[Ints] = field(default_factory=list)
    _stops: list[Ints] = field(default_factory=list)
    _frames: list[Ints] = field(default_factory=list)

    @property
    def priority(self) -> int | None:
        """The class, or None for the whole port."""
        return None if self.source.row == WHOLE_PORT else self.source.row

    def take(self, log: Ints) -> None:
        """Remember what the log says of spans."""
        what, span = log[:, LOG_WHAT], log[:, LOG_SPAN]
        self.xoff += int((what == XOFF).sum())
        self.xon += int((what == XON).sum())
        self._starts.append(log[(what == XOFF) & (span < 0), LOG_TIME])
        self._stops.append(log[((what == XON) & (span >= 0)) | (what == EXPIRE), LOG_TIME])
        self._frames.append(log[what != EXPIRE, LOG_TIME])

    def spans(self, end_ps: int) -> tuple[Ints, Ints]:
        """Where each pause starts and stops; one still running stops at `end_ps`."""
        starts = _joined(self._starts)
        stops = _joined(self._stops)
        if len(stops) < len(starts):
            stops = np.append(stops, max(end_ps, int(starts[-1])))
        return starts, stops

    @property
    def frame_times(self) -> Ints:
        """When its pause frames came."""
        return _joined(self._frames)


class PauseLog(NamedTuple):
    """What happened on some lines: each with rows of the log, in time order."""

    parts: list[tuple[Line, Ints]]

    def events(self) -> Iterator[tuple[int, str, Line, int | None, dict[str, object]]]:
        """As events: time, kind, line, frame, state."""
        for line, log in self.parts:
            for time_ps, what, frame, quanta, span in log.tolist():
                state: dict[str, object] = {"quanta": quanta} if what == XOFF else {}
                if what == VIOLATION:
                    state["after_ns"] = span / PS_PER_NS
                elif what != XOFF and span >= 0:
                    state["paused_ns"] = span / PS_PER_NS
                yield time_ps, KINDS[what], line, frame or None, state


class Pauses:
    """The pauses of a capture, batch after batch.

    Args:
        speeds_bps: Speed of each interface's link, None where it is not known.
        names: Names of the interfaces; a direction is named with its interface when there are several.
        origin_ns: The machines' zero.
        compiled: Run compiled; else plain.
    """

    def __init__(
        self, speeds_bps: Sequence[float | None], names: Sequence[str], origin_ns: int, *, compiled: bool
    ) -> None:
        self._speeds, self._names, self._origin_ns = speeds_bps, names, origin_ns
        self._compiled = compiled
        self._run = compiled_run() if compiled else run
        self.lines: dict[Source, Line] = {}

    def speed_bps(self, interface: int) -> float | None:
        """Speed of an interface's link."""
        return self._speeds[interface] if interface < len(self._speeds) else None

    def add(self, frames: Frames | None, until_ps: int) -> PauseLog:
        """Pause frames, and all pauses that run out by `until_ps`."""
        parts: dict[Source, list[Ints]] = {}
        for source, rows in self._rows(frames) if frames is not None and len(frames) else ():
            line = self.lines.get(source)
            if line is None:
                line = self.lines[source] = self._line(source)
            log = np.zeros((2 * len(rows), LOG_COLUMNS), np.int64)
            line.state.row = line.state.logged = 0
            self._run(line.state, rows, log)
            parts[source] = [log[: int(line.state.logged)]]
        for source, line in self.lines.items():
            log = np.zeros((1, LOG_COLUMNS), np.int64)
            line.state.logged = 0
            expire(line.state, log, until_ps)
            if line.state.logged:
                parts.setdefault(source, []).append(log)
        out = []
        for source, logs in parts.items():
            log = np.concatenate(logs)
            self.lines[source].take(log)
            out.append((self.lines[source], log))
        return PauseLog(out)

    def _rows(self, frames: Frames) -> Iterator[tuple[Source, Ints]]:
        """Time, quanta and frame number of the frames of each line."""
        order = np.argsort(frames.time_ns, kind="stable")
        frames = frames[order]
        time_ps = clock_ps(frames.time_ns, self._origin_ns)
        whole = frames.kind == KIND_PAUSE
        ends = np.stack((frames.interface_id.astype(np.uint64), frames.eth_src), axis=1)
        for interface, mac in np.unique(ends, axis=0).tolist():
            own = (frames.interface_id == interface) & (frames.eth_src == mac)
            for row in range(CLASSES + 1):
                # spec: 802.1Qbb: a class whose enable bit is clear is not touched, whatever its time says
                told = own & (whole if row == WHOLE_PORT else ~whole & (frames.pfc_enabled >> row & 1 == 1))
                if told.any():
                    quanta = frames.pause_quanta if row == WHOLE_PORT else frames.pfc_quanta[:, row]
                    columns = (time_ps[told], quanta[told].astype(np.int64), frames.number[told])
                    yield Source(interface, mac, row), np.stack(columns, axis=1)

    def _line(self, source: Source) -> Line:
        speed = self.speed_bps(source.interface)
        state = LineState()
        state.quantum_ps = 0 if speed is None else pause_time_ps(1, speed)
        state.paused_until_ps = NEVER_PS
        direction = mac_text(source.mac)
        if len(self._names) > 1 and source.interface < len(self._names):
            direction += f" on {self._names[source.interface] or f'interface {source.interface}'}"
        if self._compiled:
            record: Any = np.zeros(1, LINE).view(np.recarray)[0]
            for name in LINE.names or ():
                setattr(record, name, getattr(state, name))
            state = record
        return Line(len(self.lines), source, direction, state)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
