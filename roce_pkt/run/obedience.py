"""Who was told to stop by a pause, and which of its frames came after it should have stopped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.model import Interface
from roce_pkt.flows.rows import UNTAGGED, Rows
from roce_pkt.flows.size import LINK_OVERHEAD_BYTES
from roce_pkt.flows.survey import Survey
from roce_pkt.run import pauses
from roce_pkt.run.checks import TRUST_DSCP, TRUST_PCP
from roce_pkt.run.clock import clock_ps
from roce_pkt.run.pauses import Line, Pauses
from roce_pkt.run.setup import Setup
from roce_pkt.wire.mac_control import pause_time_ps

Ints = NDArray[np.int64]
MOST_KEPT = 100
"""Violations whose frame numbers are kept for findings."""

# spec: 802.3 31B.3.7: quanta a MAC may take until it obeys, by speed, as SONiC's buffer table has it
RESPONSE_QUANTA = {10e9: 67, 25e9: 80, 40e9: 118, 50e9: 147, 100e9: 394, 200e9: 453, 400e9: 905, 800e9: 905}


def response_ps(speed_bps: float, given_ps: int = 0) -> int:
    """How long a sender may take to obey.

    Args:
        speed_bps: Speed of the link.
        given_ps: Time that was asked for; 0: by the speed.
    """
    if given_ps:
        return given_ps
    known = [speed for speed in RESPONSE_QUANTA if speed <= speed_bps] or [min(RESPONSE_QUANTA)]
    return int(RESPONSE_QUANTA[max(known)] * pause_time_ps(1, speed_bps))


class Obedience:
    """Looks for frames inside pauses.

    Args:
        survey: Which stations there are on each interface.
        setup: The response allowed, and what a frame's class is read from.
        machine: The pauses.
        interfaces: The capture's interfaces.
        origin_ns: The machines' zero.
    """

    def __init__(
        self, survey: Survey, setup: Setup, machine: Pauses, interfaces: list[Interface], origin_ns: int
    ) -> None:
        self._survey, self._setup, self._machine = survey, setup, machine
        self._interfaces, self._origin_ns = interfaces, origin_ns
        self._stopped: dict[tuple[int, int], tuple[str, int] | None] = {}

    def stopped(self, interface: int, mac: int) -> tuple[str, int] | None:
        """Which frames a pause sent by `mac` stops: those to it, or those from its only partner.

        Returns:
            Column and MAC address of the frames, or None: there is no telling.
        """
        where = (interface, mac)
        if where not in self._stopped:
            self._stopped[where] = self._find(interface, mac)
        return self._stopped[where]

    def _find(self, interface: int, mac: int) -> tuple[str, int] | None:
        links = self._survey.links
        here = links[:, 2] == interface
        ends = links[here, :2]
        if (ends == mac).any():
            return "eth_dst", mac
        # a switch port: its partner is the one station that takes part in everything on this link
        partners = [end for end in np.unique(ends).tolist() if (ends == end).any(axis=1).all()]
        sends = self._survey.sums.column("data_frames")[: len(links)][here] > 0
        if len(partners) > 1:
            partners = [end for end in partners if ((ends[:, 1] == end) & sends).any()]
        return ("eth_src", partners[0]) if len(partners) == 1 else None

    def look(self, rows: Rows) -> list[tuple[Line, Ints]]:
        """Violations among some frames, as rows of the pauses' log.

        Args:
            rows: Frames in time order; the pauses up to the last of them are known.
        """
        out: list[tuple[Line, Ints]] = []
        if not len(rows):
            return out
        time_ps = clock_ps(rows.time_ns, self._origin_ns)
        for line in self._machine.lines.values():
            speed = self._machine.speed_bps(line.source.interface)
            stopped = self.stopped(line.source.interface, line.source.mac)
            if speed is None or stopped is None:
                continue
            line.violations = line.violations or 0
            found = self._inside(line, rows, time_ps, speed, stopped)
            if len(found):
                line.violations += len(found)
                numbers = found[:, pauses.LOG_FRAME].tolist()
                line.first_violations += numbers[: MOST_KEPT - len(line.first_violations)]
                out.append((line, found))
        return out

    def _inside(
        self, line: Line, rows: Rows, time_ps: Ints, speed_bps: float, stopped: tuple[str, int]
    ) -> Ints:
        allowed = response_ps(speed_bps, self._setup.pfc.response_ps)
        starts, stops = line.spans(int(time_ps[-1]) + 1)
        low = np.searchsorted(time_ps, starts + allowed, "right")
        high = np.maximum(np.searchsorted(time_ps, stops, "left"), low)
        counts = high - low
        which = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        since = np.repeat(starts, counts)
        column, mac = stopped
        inside = rows[which]
        told = (getattr(inside, column) == mac) & (inside.interface == line.source.interface)
        if line.priority is not None:
            told &= self.class_of(inside) == line.priority
        # spec: 802.1Qbb 36.1.3: a frame that has begun is finished; stamps may be of its last octet
        octets = inside.octets.astype(np.int64) + LINK_OVERHEAD_BYTES
        after = time_ps[which] - since
        told &= after - (octets * 8e12 / speed_bps).astype(np.int64) > allowed
        out = np.zeros((int(told.sum()), pauses.LOG_COLUMNS), np.int64)
        out[:, pauses.LOG_TIME], out[:, pauses.LOG_WHAT] = time_ps[which][told], pauses.VIOLATION
        out[:, pauses.LOG_FRAME], out[:, pauses.LOG_SPAN] = inside.number[told], after[told]
        return out

    def class_of(self, rows: Rows) -> NDArray[np.uint8]:
        """The priority class of each frame."""
        by_dscp = (rows.dscp >> 3).astype(np.uint8)
        trust = self._setup.pfc.trust
        if trust == TRUST_DSCP:
            return by_dscp
        untagged = np.zeros_like(by_dscp) if trust == TRUST_PCP else by_dscp
        return np.where(rows.pcp == UNTAGGED, untagged, rows.pcp)
