"""Pauses of a simulation as lanes of a picture, with what the watchdog and the deadlock watch did there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import rows
from roce_pkt.report.page import Bands, Curve, Marks, Panel, Symbol
from roce_pkt.run.bins import Axis
from roce_pkt.units import PS_PER_S

if TYPE_CHECKING:
    from roce_pkt.run.simulation_names import Names

MOST_SPANS = 200_000
"""Pauses kept of all lanes together."""
MOST_LANES = 12
MANY = 150
"""A lane with more pauses than this has a curve too: how much of the time it was paused."""
DEEDS: dict[int, tuple[str, Symbol]] = {
    rows.WD_STORM: ("watchdog: storm", "cross"),
    rows.WD_RESTORE: ("watchdog: restored", "ring"),
    rows.DEADLOCK: ("deadlock", "cross"),
}
Lane = tuple[str, int]


class Pauses:
    """Collects when ports were paused, by class."""

    def __init__(self) -> None:
        self._open: dict[Lane, int] = {}
        self._spans: dict[Lane, list[tuple[int, int]]] = {}
        self._deeds: dict[tuple[Lane, int], list[int]] = {}
        self._count = 0

    def rows(self, found: NDArray[Any], names: Names) -> None:
        """A block of event rows."""
        kinds = (rows.PFC_PAUSED, rows.PFC_RESUMED, rows.PFC_EXPIRE, *DEEDS)
        chosen = found[np.isin(found["kind"], kinds)][["time_ps", "kind", "port", "number"]]
        for time_ps, kind, port, number in chosen.tolist():
            # a deadlock's row names the port that stopped its peer, and the peer is what is paused
            place = names.built.topology.ports[port].peer if kind == rows.DEADLOCK else port
            lane = names.ports[place], number
            if kind == rows.PFC_PAUSED:
                self._open.setdefault(lane, time_ps)
            elif kind in DEEDS:
                self._deeds.setdefault((lane, kind), []).append(time_ps)
            elif lane in self._open:
                self._close(lane, time_ps)

    def _close(self, lane: Lane, stop_ps: int) -> None:
        start_ps = self._open.pop(lane)
        self._count += 1
        if self._count <= MOST_SPANS:
            self._spans.setdefault(lane, []).append((start_ps, stop_ps))

    def panels(self, axis: Axis) -> list[Panel]:
        """Lanes, and curves where lanes are crowded, over a time axis."""
        for lane in list(self._open):
            self._close(lane, axis.end_ps)
        spans = {lane: np.array(found, np.int64) for lane, found in self._spans.items()}
        marked = {lane for lane, _ in self._deeds}
        order = sorted(spans, key=lambda lane: (lane not in marked, -_total(spans[lane]), lane))
        shown = sorted({*order[:MOST_LANES], *marked}, key=_natural)
        note = "ports that were told to stop"
        if len(order) > MOST_LANES:
            note += f"; the {MOST_LANES} longest of {len(order)}"
        if self._count > MOST_SPANS:
            note += f"; the first {MOST_SPANS:,} of {self._count:,} pauses"
        lanes, share = Panel("Pauses", "", note), Panel("Time paused", "%", "of the ports paused most")
        for lane in shown:
            name = f"{lane[0]} class {lane[1]}"
            if lane in spans:
                edges = spans[lane] / PS_PER_S
                lanes.bands.append(Bands("paused", name, edges[:, 0], edges[:, 1], shade=True))
            for kind, (what, symbol) in DEEDS.items():
                times = np.array(self._deeds.get((lane, kind), []), np.int64)
                if len(times):
                    lanes.marks.append(Marks(what, None, times / PS_PER_S, name, symbol))
        for lane in [one for one in order if len(spans[one]) > MANY][:6]:
            share.curves.append(Curve(f"{lane[0]} class {lane[1]}", None, *_share(spans[lane], axis), "step"))
        return [lanes, share]


def _natural(lane: Lane) -> list[tuple[str, int]]:
    """Sorts host2 before host10."""
    return [(text, int(part or 0)) for text, part in re.findall(r"(\D+)(\d*)", f"{lane[0]} {lane[1]}")]


def _total(spans: NDArray[np.int64]) -> int:
    return int((spans[:, 1] - spans[:, 0]).sum())


def _share(spans: NDArray[np.int64], axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much of each part of the time axis lies in spans, in percent."""
    edges = np.append(axis.edges_ps, axis.end_ps)
    at = np.searchsorted(spans[:, 0], edges, "right")
    before = np.concatenate(([0.0], np.cumsum(spans[:, 1] - spans[:, 0], dtype=np.float64)))[at]
    beyond = np.where(at > 0, np.maximum(spans[np.maximum(at - 1, 0), 1] - edges, 0.0), 0.0)
    share = np.diff(before - beyond) / np.diff(edges) * 100
    return axis.edges_s, np.asarray(share, np.float64)
