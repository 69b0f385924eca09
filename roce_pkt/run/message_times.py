"""How long messages took, from posting to completion, and how much longer than over idle paths."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import records
from roce_pkt.engine.frame_sizes import FrameSizes
from roce_pkt.engine.session import Session
from roce_pkt.fabric import idle_path
from roce_pkt.scenario.schema import NONE
from roce_pkt.units import PS_PER_NS

SIZE_STEPS = (10_000, 100_000, 1_000_000)
"""Messages are told apart by length in octets at these."""


@dataclass(frozen=True, slots=True)
class MessageTimes:
    """Completion times of some messages.

    Args:
        count: Messages complete.
        mean_ns: Mean time.
        p50_ns: Median.
        p99_ns: Not exceeded by 99 %.
        max_ns: Longest.
        slowdown_mean: Mean of time over the time on an idle path; None where nothing is acknowledged.
        slowdown_p50: Its median.
        slowdown_p99: Not exceeded by 99 %.
    """

    count: int
    mean_ns: float
    p50_ns: int
    p99_ns: int
    max_ns: int
    slowdown_mean: float | None
    slowdown_p50: float | None
    slowdown_p99: float | None


@dataclass(frozen=True, slots=True)
class _Taken:
    """Messages that are complete: lengths, times, times on an idle path (not a number: unknown)."""

    length: NDArray[np.int64]
    took_ps: NDArray[np.int64]
    idle_ps: NDArray[np.float64]

    def where(self, chosen: NDArray[np.bool_]) -> _Taken:
        return _Taken(self.length[chosen], self.took_ps[chosen], self.idle_ps[chosen])

    def times(self) -> MessageTimes | None:
        count = len(self.took_ps)
        if not count:
            return None
        took = np.sort(self.took_ps) // PS_PER_NS
        slow = self.took_ps / self.idle_ps
        slow = np.sort(slow[np.isfinite(slow)])
        half, most = (int(np.ceil(share * count)) - 1 for share in (0.5, 0.99))
        known = len(slow) == count
        return MessageTimes(
            count,
            round(float(took.mean()), 1),
            int(took[half]),
            int(took[most]),
            int(took[-1]),
            round(float(slow.mean()), 4) if known else None,
            round(float(slow[half]), 4) if known else None,
            round(float(slow[most]), 4) if known else None,
        )


class Messages:
    """Completion times of a run, where messages are told apart: lists, and queue pairs with one message.

    Args:
        session: The run.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sizes = FrameSizes(session.scenario, session.built.law.header_bytes)
        self._paths: dict[tuple[int, int], Any] = {}
        self._by_flow = [self._taken(flow) for flow in range(len(session.built.pairs.flows))]

    def of_flow(self, flow: int) -> MessageTimes | None:
        """Of one queue pair's messages; None when none is told apart, or complete."""
        return self._by_flow[flow].times()

    def as_json(self) -> dict[str, Any] | None:
        """Of all, and by length."""
        everything = _Taken(
            *(
                np.concatenate([getattr(one, name) for one in self._by_flow])
                for name in ("length", "took_ps", "idle_ps")
            )
        )
        times = everything.times()
        if times is None:
            return None
        parts = []
        for low, high in pairwise((0, *SIZE_STEPS, None)):
            here = everything.length > (low or 0)
            some = everything.where(here if high is None else here & (everything.length <= high)).times()
            if some is not None:
                parts.append({"above_bytes": low, "to_bytes": high} | asdict(some))
        return asdict(times) | {"by_length": parts}

    def _taken(self, flow: int) -> _Taken:
        built, warm = self._session.built, self._session.scenario.measure_from_ps
        pairs = built.pairs
        work = int(pairs.works.of_flow[flow])
        one = pairs.flows[flow]
        if work >= 0:
            first, end = int(pairs.works.work[work]["first"]), int(pairs.works.work[work]["end"])
            part = pairs.works.message[first:end]
            part = part[(part["done_ps"] >= 0) & (part["ready_ps"] >= warm)]
            reads = pairs.works.manner["sends"][part["manner"]] != records.DATA
            length, ready, done = part["length"].astype(np.int64), part["ready_ps"], part["done_ps"]
        else:
            ended = int(built.arrays.half[pairs.requester[flow]]["ended_ps"])
            told = one.traffic.count == 1 and ended >= 0 and one.start_ps >= warm
            length = np.array([one.traffic.message_bytes] if told else [], np.int64)
            ready = np.full(len(length), one.start_ps, np.int64)
            done = np.full(len(length), ended, np.int64)
            reads = np.full(len(length), one.traffic.verb == "read")
        idle = self._idle_ps(flow, length, reads) if len(length) else np.zeros(0)
        return _Taken(length, done - ready, idle)

    def _idle_ps(self, flow: int, length: NDArray[np.int64], reads: NDArray[np.bool_]) -> NDArray[np.float64]:
        scenario, one = self._session.scenario, self._session.built.pairs.flows[flow]
        if one.traffic.transport != "rc" or one.traffic.verb in ("atomic", "cmp_swp", "fetch_add"):
            return np.full(len(length), np.nan)
        there, back = self._path(one.src, one.dst), self._path(one.dst, one.src)
        sizes, mtu = self._sizes, scenario.host.mtu_bytes
        cut = scenario.switch.forwarding == "cut-through"
        packets = np.maximum(-(-length // mtu), 1)
        around = sizes.around(one.traffic.verb, "rc")
        payload = length - (packets - 1) * mtu
        more = np.where(packets == 1, around.only, around.last)
        last = np.maximum(sizes.base + ((payload + 3) & ~3) + more, sizes.min) + sizes.gap
        limits = [r for r in (one.traffic.rate_bps, scenario.host.rate_limit_bps) if r != NONE]
        message_ps = partial(idle_path.message_ps, sender_bps=min([np.inf, *limits]), cut_through=cut)
        full = sizes.full_frame + sizes.gap
        ack = idle_path.frame_ps(back, sizes.ack + sizes.gap, cut_through=cut)
        ask = idle_path.frame_ps(there, sizes.read_request + sizes.gap, cut_through=cut)
        out = message_ps(there, packets, full, last) + ack
        return np.where(reads, message_ps(back, packets, full, last) + ask, out)

    def _path(self, src: int, dst: int) -> Any:
        if (src, dst) not in self._paths:
            self._paths[src, dst] = self._session.built.topology.path(src, dst)
        return self._paths[src, dst]
