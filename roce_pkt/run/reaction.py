"""One sender's reaction point, driven by what a capture shows: notifications in, rate changes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc import dcqcn
from roce_pkt.run import clockwork as cw

Emit = Callable[[int, str, int, int | None, dict[str, object]], None]
"""Told of each event: (time_ps, kind, flow, frame number, the sender's state after it)."""

KINDS = ((dcqcn.CUT, "rp.cut"), (dcqcn.ALPHA, "rp.alpha"), (dcqcn.INCREASE, "rp.increase"))
_NOTHING: NDArray[np.int64] = np.empty(0, np.int64)


class Workshop:
    """What all senders of a run share: parameters, the log, and which form of the clockwork runs.

    Args:
        record: A record of `dcqcn.PARAMETERS`.
        span_ps: First and last time of the rates' histories.
        emit: Told of each event, or None.
        compiled: Run compiled; else plain.
    """

    def __init__(self, record: Any, span_ps: tuple[int, int], emit: Emit | None, *, compiled: bool) -> None:
        self.compiled, self.emit = compiled, emit
        self.p = record if compiled else dcqcn.PARAMETERS.twin(record)
        self.plain_p = dcqcn.PARAMETERS.twin(record)
        self.span_ps = span_ps
        self.advance = cw.compiled_advance() if compiled else cw.advance
        rows = cw.LOG_ROWS if emit else 0
        self.log_i, self.log_f = np.zeros((rows, 5), np.int64), np.zeros((rows, 3))


class ReactionPoint:
    """The sender of one flow.

    Args:
        flow: The flow's number.
        shop: What all senders share.
    """

    def __init__(self, flow: int, shop: Workshop) -> None:
        self.flow, self._shop = flow, shop
        state, clock = dcqcn.State(), cw.Clock()
        first, last = shop.span_ps
        dcqcn.start(shop.plain_p, state, first)
        clock.now_ps = clock.first_ps = first
        clock.span_ps = max(last - first, 1)
        clock.telling = shop.emit is not None
        clock.held_bps = clock.rate_min_bps = state.rate_bps
        self.s: Any = _record(state, dcqcn.STATE) if shop.compiled else state
        self.c: Any = _record(clock, cw.CLOCK) if shop.compiled else clock
        history = [state.rate_bps] * cw.BUCKETS
        self._history: Any = np.array(history) if shop.compiled else history
        self._cnps: list[tuple[int, int]] = []
        self._sent_ps, self._sent = _NOTHING, _NOTHING

    def notify(self, time_ps: int, frame: int) -> None:
        """A notification will arrive at `time_ps`, not before any announced earlier."""
        self._cnps.append((time_ps, frame))

    def send(self, times_ps: NDArray[np.int64], octets: NDArray[np.int64]) -> None:
        """What the flow sends up to the next `advance`, in time order."""
        self._sent_ps, self._sent = times_ps, np.cumsum(octets)
        self.c.sent_at = 0

    def advance(self, until_ps: int) -> None:
        """Let all that is due up to `until_ps` happen."""
        shop, c = self._shop, self.c
        cnps = np.array(self._cnps, np.int64).reshape(-1, 2)
        c.cnp_at = c.steps = 0
        cnp_ps, cnp_frame = cnps[:, 0].copy(), cnps[:, 1].copy()
        while not shop.advance(
            shop.p, self.s, c, until_ps, cnp_ps, cnp_frame, self._sent_ps, self._sent, self._history,
            shop.log_i, shop.log_f,
        ):  # fmt: skip
            self._tell()
        self._tell()
        del self._cnps[: int(c.cnp_at)]
        self._sent_ps = self._sent = _NOTHING
        c.sent_at = 0

    def finish(self, end_ps: int) -> None:
        """The capture ends: deliver what is still on its way, and complete the history."""
        last = self._cnps[-1][0] if self._cnps else end_ps
        self.advance(max(end_ps, last))
        state, clock = self._plain(self.s, dcqcn.State), self._plain(self.c, cw.Clock)
        dcqcn.on_timer(self._shop.plain_p, state, clock.now_ps)
        cw.remember(state, clock, self._history, self._shop.span_ps[1])
        self.s, self.c = state, clock

    def _plain(self, thing: Any, kind: type) -> Any:
        return kind(thing) if self._shop.compiled else thing

    def _tell(self) -> None:
        """Turn the log into events."""
        shop, emit = self._shop, self._shop.emit
        logged = int(self.c.logged)
        if emit is None or not logged:
            return
        whole, parts = shop.log_i[:logged].tolist(), shop.log_f[:logged].tolist()
        for (time_ps, what, frame, stage, phase), (rate, target, alpha) in zip(whole, parts, strict=True):
            state: dict[str, object] = {
                "rate_bps": rate,
                "target_bps": target,
                "alpha": alpha,
                "stage": stage,
                "phase": dcqcn.PHASES[phase],
            }
            for bit, kind in KINDS:
                if what & bit:
                    emit(time_ps, kind, self.flow, frame or None, state)
        self.c.logged = 0

    # -- what came of it

    @property
    def rate_bps(self) -> float:
        """The rate now."""
        return float(self.s.rate_bps)

    @property
    def alpha(self) -> float:
        """Alpha now."""
        return float(self.s.alpha)

    @property
    def rate_min_bps(self) -> float:
        """The lowest rate so far."""
        return float(self.c.rate_min_bps)

    @property
    def cuts(self) -> int:
        """Cuts so far."""
        return int(self.c.cuts)

    @property
    def skipped_ps(self) -> int:
        """Silence that was not followed timer by timer."""
        return int(self.c.skipped_ps)

    @property
    def history(self) -> list[float]:
        """Lowest rate of each of `BUCKETS` equal parts of the span."""
        return [float(rate) for rate in self._history]


def _record(values: Any, layout: np.dtype[Any]) -> Any:
    """A record with the values of a twin, its fields attributes in Python as in compiled code."""
    record: Any = np.zeros(1, layout).view(np.recarray)[0]
    for name in layout.names or ():
        setattr(record, name, getattr(values, name))
    return record
