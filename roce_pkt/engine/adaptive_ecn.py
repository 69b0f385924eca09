"""Marking thresholds that follow the queue: looser where marks cost throughput, tighter where queues stand.

Each port has a scale of its own on K_min and K_max. After every interval: a port that marked and still
was not full raises its scale by a quarter; one that was full while its queue stood above K_min lowers
it by a fifth. The rule is ours; vendors do not publish theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine.overseer import Hands, Seen
from roce_pkt.scenario.schema import Ecn
from roce_pkt.units import PS_PER_S

RAISE, LOWER = 1.25, 0.8
FULL, NOT_FULL = 0.97, 0.92
"""Shares of the link's rate that count as full, and as room left."""


@dataclass(slots=True)
class AdaptiveEcn:
    """Adjusts the thresholds of every switch port.

    Args:
        hands: The run.
        settings: From the scenario.
    """

    hands: Hands
    settings: Ecn
    next_ps: int = field(init=False)
    seen: list[Seen] = field(init=False, default_factory=list)
    scale: NDArray[np.float64] = field(init=False)
    _before: dict[str, NDArray[np.float64]] = field(init=False)
    _rate_bps: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.next_ps = self.settings.adapt_every_ps
        built = self.hands.built
        self.scale = np.ones(len(built.arrays.port))
        self._rate_bps = np.array([end.rate_bps for end in built.topology.ports])
        self._before = self._counters(0)

    def _counters(self, now_ps: int) -> dict[str, NDArray[np.float64]]:
        port = self.hands.built.arrays.port
        standing = port["queued_bytes"] * (now_ps - port["queued_since_ps"]).astype(np.float64)
        return {
            "sent": port["sent_bytes"].astype(np.float64),
            "marked": port["marked"].astype(np.float64),
            "queue": port["queue_byte_ps"] + standing,
        }

    def look(self, now_ps: int) -> None:
        """One interval is over."""
        interval = self.settings.adapt_every_ps
        self.next_ps = now_ps + interval
        now = self._counters(now_ps)
        # statistics may have been restarted in between: then nothing is known of this interval
        passed = {name: now[name] - self._before[name] for name in now}
        self._before = now
        port = self.hands.built.arrays.port
        load = passed["sent"] * 8 * PS_PER_S / interval / self._rate_bps
        stands = passed["queue"] / interval > port["kmin_bytes"]
        known = (passed["marked"] >= 0) & (passed["queue"] >= 0) & (port["host"] == 0)
        raised = known & (passed["marked"] > 0) & (load < NOT_FULL)
        lowered = known & (load > FULL) & stands
        self.scale[raised] *= RAISE
        self.scale[lowered] *= LOWER
        np.clip(self.scale, self.settings.adapt_low, self.settings.adapt_high, out=self.scale)
        most = self.hands.built.w["buffer_bytes"]
        port["kmin_bytes"] = np.minimum(self.settings.kmin_bytes * self.scale, most)
        port["kmax_bytes"] = np.minimum(self.settings.kmax_bytes * self.scale, most)
