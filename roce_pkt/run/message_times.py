"""How long messages took, from posting to completion, and how much longer than over idle paths."""

from __future__ import annotations

from collections.abc import Iterator
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
from roce_pkt.scenario.schema import NONE, Traffic
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

    def where(self, chosen: NDArray[np.bool_] | slice) -> _Taken:
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
        parts = [_single(session), *_listed(session)]
        told = np.concatenate(parts)
        told = told[np.argsort(told["flow"], kind="stable")]
        self._flow = told["flow"]
        idle = IdleTimes(session).of(told)
        self._all = _Taken(told["length"], told["done_ps"] - told["ready_ps"], idle)

    def of_flow(self, flow: int) -> MessageTimes | None:
        """Of one queue pair's messages; None when none is told apart, or complete."""
        first, end = np.searchsorted(self._flow, (flow, flow + 1))
        return self._all.where(slice(first, end)).times() if first < end else None

    def as_json(self) -> dict[str, Any] | None:
        """Of all, and by length."""
        everything = self._all
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


TOLD = np.dtype([("flow", "i8"), ("length", "i8"), ("ready_ps", "i8"), ("done_ps", "i8"), ("reads", "?")])
"""A message that is complete."""


def _single(session: Session) -> NDArray[Any]:
    """Those of queue pairs that have one message each."""
    built, tables = session.built, session.scenario.traffic
    flow, ended = built.pairs.flow, built.arrays.half["ended_ps"][built.pairs.requester]
    one = np.array([traffic.count == 1 for traffic in tables])[flow["traffic"]]
    told = one & (built.pairs.works.of_flow < 0) & (ended >= 0)
    number = np.flatnonzero(told & (flow["start_ps"] >= session.scenario.measure_from_ps))
    made, flow = np.zeros(len(number), TOLD), flow[number]
    made["flow"], made["ready_ps"], made["done_ps"] = number, flow["start_ps"], ended[number]
    made["length"] = np.array([traffic.message_bytes for traffic in tables])[flow["traffic"]]
    made["reads"] = np.array([traffic.verb == "read" for traffic in tables])[flow["traffic"]]
    return made


def _listed(session: Session) -> Iterator[NDArray[Any]]:
    """Those of lists."""
    works, warm = session.built.pairs.works, session.scenario.measure_from_ps
    for flow in np.flatnonzero(works.of_flow >= 0).tolist():
        work = works.work[int(works.of_flow[flow])]
        part = works.message[int(work["first"]) : int(work["end"])]
        part = part[(part["done_ps"] >= 0) & (part["ready_ps"] >= warm)]
        made = np.zeros(len(part), TOLD)
        made["flow"] = flow
        for name in ("length", "ready_ps", "done_ps"):
            made[name] = part[name]
        made["reads"] = works.manner["sends"][part["manner"]] != records.DATA
        yield made


class IdleTimes:
    """What messages would have taken with nobody else in the fabric.

    Args:
        session: The run.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._net = session, session.built.topology
        self._sizes = FrameSizes(session.scenario, session.built.law.header_bytes)

    def of(self, told: NDArray[Any]) -> NDArray[np.float64]:
        """Times of messages (rows of `TOLD`), not a number where nothing acknowledges them, (n,)."""
        flow = self._session.built.pairs.flow[told["flow"]]
        likes = self._likes(flow)
        found = np.full(len(told), np.nan)
        for number, traffic in enumerate(self._session.scenario.traffic):
            if traffic.transport != "rc" or traffic.verb in ("atomic", "cmp_swp", "fetch_add"):
                continue
            mine = flow["traffic"] == number
            for way in np.unique(likes[mine]).tolist():
                some = mine & (likes == way)
                src, dst = (int(flow[name][np.argmax(some)]) for name in ("src", "dst"))
                found[some] = self._message_ps(traffic, src, dst, told[some])
        return found

    def _likes(self, flow: NDArray[Any]) -> NDArray[np.int64]:
        """A number for each flow, the same where the links there and back have the same rates and delays."""
        net, ends = self._net, self._net.ports[: self._net.hosts]
        uplinks = [(end.rate_bps, end.delay_ps) for end in ends]
        home = np.array([net.ports[end.peer].node for end in ends])
        kind = np.array([list(dict.fromkeys(uplinks)).index(link) for link in uplinks])
        place = home * (kind.max() + 1) + kind  # hosts at one switch with equal links are alike
        _, one, number = np.unique(
            place[flow["src"]] * (place.max() + 1) + place[flow["dst"]],
            return_index=True,
            return_inverse=True,
        )
        numbers: dict[Any, int] = {}
        likes = [
            numbers.setdefault(self._links(src, dst), len(numbers))
            for src, dst in flow[["src", "dst"]][one].tolist()
        ]
        return np.array(likes, np.int64)[number]

    def _links(self, src: int, dst: int) -> tuple[tuple[float, int], ...]:
        ways = (*self._net.path(src, dst), *self._net.path(dst, src))
        return tuple((end.rate_bps, end.delay_ps) for end in ways)

    def _message_ps(self, traffic: Traffic, src: int, dst: int, told: NDArray[Any]) -> NDArray[np.float64]:
        scenario, sizes, length = self._session.scenario, self._sizes, told["length"]
        there, back = self._net.path(src, dst), self._net.path(dst, src)
        mtu, cut = scenario.host.mtu_bytes, scenario.switch.forwarding == "cut-through"
        packets = np.maximum(-(-length // mtu), 1)
        around = sizes.around(traffic.verb, "rc")
        payload = length - (packets - 1) * mtu
        more = np.where(packets == 1, around.only, around.last)
        last = np.maximum(sizes.base + ((payload + 3) & ~3) + more, sizes.min) + sizes.gap
        limits = [r for r in (traffic.rate_bps, scenario.host.rate_limit_bps) if r != NONE]
        message_ps = partial(idle_path.message_ps, sender_bps=min([np.inf, *limits]), cut_through=cut)
        full = sizes.full_frame + sizes.gap
        ack = idle_path.frame_ps(back, sizes.ack + sizes.gap, cut_through=cut)
        ask = idle_path.frame_ps(there, sizes.read_request + sizes.gap, cut_through=cut)
        out = message_ps(there, packets, full, last) + ack
        found: NDArray[np.float64] = np.where(told["reads"], message_ps(back, packets, full, last) + ask, out)
        return found
