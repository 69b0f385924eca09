"""The watchdog of every switch, and the broken adapter it is there for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roce_pkt.engine import rows
from roce_pkt.engine.overseer import Hands, Seen, never
from roce_pkt.engine.records import CLASSES
from roce_pkt.fabric import watchdog
from roce_pkt.fabric.pause import paused_total_ps
from roce_pkt.fabric.watchdog import ACTIONS, ALERT, DROP, STORM
from roce_pkt.scenario.schema import Storm, Watchdog
from roce_pkt.units import format_time_ns


@dataclass(slots=True)
class Watcher:
    """Polls the lossless queues of all switch ports.

    Args:
        hands: The run.
        settings: From the scenario.
    """

    hands: Hands
    settings: Watchdog
    next_ps: int = field(init=False)
    seen: list[Seen] = field(init=False, default_factory=list)
    _states: list[Any] = field(init=False)
    _last_ps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.next_ps = self.settings.poll_ps
        self._states = [watchdog.State() for _ in self.hands.cells]

    def look(self, now_ps: int) -> None:
        """One poll."""
        arrays = self.hands.built.arrays
        for (port, class_), state in zip(self.hands.cells, self._states, strict=True):
            p, line = arrays.port[port], arrays.line[port * CLASSES + class_]
            first = int(line["first"])
            # a place in the pool is used again, so the position in the stream stands beside it
            head = first << 40 | int(arrays.packet[first]["psn"]) & (1 << 40) - 1 if first else -1
            paused = paused_total_ps(bool(int(p["paused"]) >> class_ & 1), line, now_ps)
            if state.stormy and self._action != ALERT:
                paused = state.paused_ps
            happened = watchdog.poll(
                self.settings, state, head, paused, int(line["pauses"]), now_ps - self._last_ps
            )
            if happened:
                self._act(port, class_, happened, now_ps)
        self._last_ps = now_ps
        self.next_ps = now_ps + self.settings.poll_ps

    @property
    def _action(self) -> int:
        return ACTIONS.index(self.settings.action)

    def _act(self, port: int, class_: int, happened: int, now_ps: int) -> None:
        p = self.hands.built.arrays.port[port]
        storm = happened == STORM
        self.hands.note(rows.WD_STORM if storm else rows.WD_RESTORE, port, class_, now_ps)
        where = f"{self.hands.name(port)} priority {class_}"
        if not storm:
            p["ignores"] &= 0xFF ^ 1 << class_
            p["discards"] &= 0xFF ^ 1 << class_
            return
        what = {"drop": "its frames are dropped", "forward": "pauses are ignored", "alert": "nothing is done"}
        text = (
            f"{where} was paused for {format_time_ns(self.settings.detection_ps // 1000)} and sent nothing;"
            f" from {format_time_ns(now_ps // 1000)} on {what[self.settings.action]}"
        )
        self.seen.append(Seen("pfc-storm", "warning", now_ps, text))
        if self._action == ALERT:
            return
        p["ignores"] |= 1 << class_
        if self._action == DROP:
            p["discards"] |= 1 << class_
        self.hands.end_pause(port, class_, now_ps)


@dataclass(slots=True)
class BrokenAdapter:
    """Hosts that send XOFF without end for a while, whatever they receive.

    Args:
        hands: The run.
        settings: From the scenario.
    """

    hands: Hands
    settings: Storm
    next_ps: int = field(init=False)
    seen: list[Seen] = field(init=False, default_factory=list)
    _begun: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.next_ps = self.settings.start_ps

    def look(self, now_ps: int) -> None:
        """Begin, or end."""
        arrays, class_ = self.hands.built.arrays, self.settings.priority
        for host in self.settings.hosts:
            port = int(arrays.node[host]["first_port"])
            if self._begun:
                arrays.port[port]["xoff"] &= 0xFF ^ 1 << class_
                continue
            arrays.port[port]["xoff"] |= 1 << class_
            # the loop repeats the XOFF of a class that a port has stopped; the first is due now
            arrays.group[port * CLASSES + class_]["refresh_due_ps"] = now_ps
            self.hands.wake(port, now_ps)
        self.next_ps = never() if self._begun else now_ps + self.settings.duration_ps
        self._begun = True
