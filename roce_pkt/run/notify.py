"""The receivers of a capture: CE-marked data in, the notifications a DCQCN receiver would send out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import notification
from roce_pkt.flows.survey import Survey

Send = Callable[[int, int, int], None]
"""Told of each notification: (time_ps, flow, number of the frame that asked for it)."""


def key_of(scope: int, survey: Survey, flow: int) -> tuple[int, ...]:
    """What a flow is paced together with.

    Args:
        scope: Code of `notification.SCOPES`.
        survey: The flows.
        flow: A flow's number.
    """
    src_hi, src_lo, dst_hi, dst_lo, _ = survey.flows.keys[flow]
    port = int(survey.ports[flow])
    match scope:
        case notification.IP_PAIR:
            return src_hi, src_lo, dst_hi, dst_lo
        case notification.DST_IP:
            # the destination of the notification: the data's source; each receiving port paces for itself
            return port, src_hi, src_lo
        case notification.PORT:
            return (port,)
        case _:
            return (flow,)


class NotificationPoint:
    """Every receiver in a capture.

    Args:
        survey: The flows.
        p: Parameters, a `notification.PARAMETERS.twin`.
        to_ps: A frame's time in the capture as its key's first arrival.
        send: Told of each notification.
    """

    def __init__(self, survey: Survey, p: Any, to_ps: Callable[[int], int], send: Send) -> None:
        self._survey, self._p, self._to_ps, self._send = survey, p, to_ps, send
        self._states: dict[tuple[int, ...], Any] = {}
        self._keys: dict[int, tuple[int, ...]] = {}
        self._first_ns: dict[tuple[int, ...], int] = {}
        self._owed: dict[tuple[int, ...], tuple[int, int]] = {}

    def marked(self, flow: int, now_ps: int, frame: int) -> None:
        """A marked data frame arrives; calls are in time order."""
        key = self._keys.get(flow)
        if key is None:
            key = self._keys[flow] = key_of(self._p.scope, self._survey, flow)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = notification.State()
            notification.start(self._p, state, self._first(key, now_ps))
        self._run(key, state, now_ps)
        if notification.on_marked(self._p, state, now_ps):
            self._send(now_ps, flow, frame)
        elif notification.next_timer_ps(self._p, state) != NEVER_PS:
            self._owed[key] = (flow, frame)

    def advance(self, until_ps: int) -> None:
        """Send what is owed up to `until_ps`."""
        for key in list(self._owed):
            self._run(key, self._states[key], until_ps)

    def _run(self, key: tuple[int, ...], state: Any, until_ps: int) -> None:
        due = notification.next_timer_ps(self._p, state)
        if due <= until_ps and due != NEVER_PS and notification.on_timer(self._p, state, due):
            flow, frame = self._owed.pop(key)
            self._send(due, flow, frame)

    def _first(self, key: tuple[int, ...], now_ps: int) -> int:
        """When the first frame of a key arrived, marked or not: where a periodic grid starts."""
        if self._p.mode != notification.PERIODIC:
            return now_ps
        if not self._first_ns:
            for flow in self._survey:
                own = key_of(self._p.scope, self._survey, flow.number)
                self._first_ns[own] = min(flow.first_ns, self._first_ns.get(own, flow.first_ns))
        return min(now_ps, self._to_ps(self._first_ns[key]))
