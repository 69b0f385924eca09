"""Events as sentences on the frames they belong to: what Wireshark shows beside a packet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from roce_pkt.edit.annotate import Notes
from roce_pkt.events import Event, FlowKey
from roce_pkt.units import format_rate, format_time_ns

MOST_MARKS = 256
"""Marks of one flow remembered until a notification for one of them is due."""


@dataclass(slots=True)
class _Sender:
    """What has been said of a sender so far: its rate, its last notification, the times of its marks."""

    rate: float | None = None
    cnps: int = 0
    told_by: tuple[int, int] | None = None
    marks: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Writer:
    """Writes notes from events, which must come in time order.

    Args:
        notes: Where they go.
        line_rate: Line rate in the unit of the events' rates.
        fractions: Rates are fractions of line.
    """

    notes: Notes
    line_rate: float
    fractions: bool
    _senders: dict[FlowKey, _Sender] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Say what an event means for its frame."""
        rule = _RULES.get(event.kind)
        if rule is not None:
            rule(self, event)

    def _say(self, frame: int | None, text: str) -> None:
        if frame:
            self.notes.add(frame, text)

    def _sender(self, event: Event) -> _Sender:
        assert event.flow is not None  # noqa: S101 - every event about a sender names its flow
        return self._senders.setdefault(event.flow, _Sender())

    def _rate(self, rate: float) -> str:
        return f"{rate:.4g} of line" if self.fractions else format_rate(rate)

    def mark(self, event: Event) -> None:
        """A frame carries CE."""
        marks = self._sender(event).marks
        marks[event.frame or 0] = event.time_ns
        if len(marks) > MOST_MARKS:
            del marks[next(iter(marks))]
        self._say(event.frame, "CE mark")

    def notification(self, event: Event) -> None:
        """A receiver owes a notification, or one was captured."""
        state, sender = event.state, self._sender(event)
        if state["source"] == "expected":
            wait_ns = event.time_ns - sender.marks.get(event.frame or 0, event.time_ns)
            self._say(event.frame, f"CNP due in {format_time_ns(wait_ns)}" if wait_ns > 0 else "CNP due now")
            return
        sender.cnps += 1
        sender.told_by = (event.frame or 0, event.time_ns)
        span = format_time_ns(float(str(state["after_ns"])))
        verdict = {
            "on-time": f"on time ({span})",
            "late": f"late ({span} after it was due)",
            "early": f"early ({span} after the one before)",
            "unexpected": "no mark asked for it",
            "after-nak": f"no mark asked for it, {span} after a NAK",
            "wrong-qp": "for a queue pair that was not marked",
        }[str(state["verdict"])]
        self._say(event.frame, f"CNP {sender.cnps} for {_receiver(event)}: {verdict}")

    def missing(self, event: Event) -> None:
        """One that was owed never came."""
        self._say(event.frame, "the CNP it called for never came")

    def unmatched(self, event: Event) -> None:
        """A notification without a flow."""
        candidates = event.state["candidates"]
        many = len(candidates) if isinstance(candidates, list) else 0
        self._say(event.frame, f"CNP for no flow that can be named, {many} candidates")

    def cut(self, event: Event) -> None:
        """A sender slows down: said on the notification that made it."""
        sender, state = self._sender(event), event.state
        rate, alpha = float(str(state["rate_bps"])), float(str(state["alpha"]))
        before = self.line_rate if sender.rate is None else sender.rate
        sender.rate = rate
        frame, when = event.frame, ""
        if frame is None and sender.told_by is not None:
            frame, told_ns = sender.told_by
            when = f" {format_time_ns(event.time_ns - told_ns)} later" if event.time_ns > told_ns else ""
        old, new = self._rate(before), self._rate(rate)
        unit = new.partition(" ")[2]
        self._say(frame, f"rate {old.removesuffix(f' {unit}')} -> {new}{when}, alpha {alpha:.3f}")

    def increase(self, event: Event) -> None:
        """A sender speeds up: remembered, not said."""
        self._sender(event).rate = float(str(event.state["rate_bps"]))

    def pause(self, event: Event) -> None:
        """A class stops or goes on."""
        state = event.state
        who = "port" if state["priority"] is None else f"class {state['priority']}"
        if event.kind == "pfc.xoff":
            self._say(event.frame, f"XOFF of {who} by {event.port}, {state['quanta']} quanta")
        elif "paused_ns" in state:
            self._say(
                event.frame,
                f"XON of {who} by {event.port} after {format_time_ns(float(str(state['paused_ns'])))}",
            )
        else:
            self._say(event.frame, f"XON of {who} by {event.port}, which was not paused")

    def violation(self, event: Event) -> None:
        """A frame inside a pause."""
        state = event.state
        who = "the port" if state["priority"] is None else f"class {state['priority']}"
        self._say(
            event.frame, f"sent {format_time_ns(float(str(state['after_ns'])))} inside a pause of {who}"
        )


def _receiver(event: Event) -> str:
    """The data's receiver, as a flow is best told apart by."""
    flow = event.flow
    return "" if flow is None else f"{flow.dst} QP 0x{flow.dqpn:x}"


_RULES: dict[str, Callable[[Writer, Event], None]] = {
    "cp.mark": Writer.mark,
    "np.cnp": Writer.notification,
    "np.missing": Writer.missing,
    "cnp_unmatched": Writer.unmatched,
    "rp.cut": Writer.cut,
    "rp.increase": Writer.increase,
    "pfc.xoff": Writer.pause,
    "pfc.xon": Writer.pause,
    "pfc.violation": Writer.violation,
}
