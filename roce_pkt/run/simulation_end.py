"""How long there was something to see in a simulation: when its messages were done, how often to look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine.session import Session
from roce_pkt.engine.world import Built
from roce_pkt.scenario.schema import ENDLESS, Scenario
from roce_pkt.units import PS_PER_NS, PS_PER_S

PERIODS_PS = tuple(ns * PS_PER_NS for ns in (20, 50, 100, 200, 500, 1000))
"""Sampling periods to choose from."""
LOOKS, MOST_LOOKS = 500, 200_000
"""Samples that a run shall have, at the least time it can take; and samples that it may have in all."""


def done_ps(built: Built) -> int | None:
    """When the last message of a run was complete; None while one is under way, or follows for ever.

    Args:
        built: The run's arrays.
    """
    pairs = built.pairs
    ended = built.arrays.half["ended_ps"][pairs.requester]
    if not (ended >= 0).all():
        work = pairs.works.work[np.maximum(pairs.works.of_flow, 0)]
        nothing = (pairs.works.of_flow >= 0) & (work["first"] == work["end"])
        if not ((ended >= 0) | nothing).all():
            return None
    return max(int(ended.max(initial=0)), 0)


def measured_ps(session: Session) -> int:
    """How long statistics have been counting: from the scenario's `measure_from`, once that is past."""
    warm = session.scenario.measure_from_ps
    return session.now_ps - warm if session.now_ps >= warm else session.now_ps


def busy_ps(session: Session) -> int:
    """How long of that there were messages under way."""
    done = done_ps(session.built)
    idle = 0 if done is None else max(session.now_ps - done, 0)
    return max(measured_ps(session) - idle, 0)


def sampling_ps(scenario: Scenario, built: Built) -> int:
    """A sampling period for pictures: a microsecond, less where the messages may be done soon.

    Args:
        scenario: What is run.
        built: Its arrays, before the run.
    """
    least = min(_least_ps(scenario, built), scenario.duration_ps)
    period = max(least // LOOKS, scenario.duration_ps // MOST_LOOKS)
    return max((one for one in PERIODS_PS if one <= period), default=PERIODS_PS[0])


def _least_ps(scenario: Scenario, built: Built) -> int:
    """What the hosts' links need at least for the messages of the scenario."""
    pairs, tables = built.pairs, scenario.traffic
    flow, works = pairs.flow, pairs.works
    lists = works.of_flow >= 0
    if any(tables[number].count == ENDLESS for number in np.unique(flow["traffic"][~lists]).tolist()):
        return scenario.duration_ps
    whole = np.array([traffic.count * traffic.message_bytes for traffic in tables], np.float64)
    length = whole[flow["traffic"]]
    latest = int(flow["start_ps"].max(initial=0))
    for index in np.flatnonzero(lists).tolist():
        first, end = (int(works.work[works.of_flow[index]][name]) for name in ("first", "end"))
        messages: NDArray[np.void] = works.message[first:end]
        length[index] = messages["length"].sum(dtype=np.int64)
        latest = max(latest, int(messages["ready_ps"].max(initial=0)))
    octets = np.array([np.bincount(flow[end], length, built.topology.hosts) for end in ("src", "dst")])
    return max(latest, int(octets.max() * 8 / scenario.fabric.rate_bps * PS_PER_S))
