"""A plan as the schedule's records, before the first packet."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.pace import pace_of
from roce_pkt.scenario.plan import ENDLESS_COUNT, Half, Plan
from roce_pkt.scenario.schema import ARRIVALS, ENDLESS, VERB_NUMBER, Scenario, Traffic
from roce_pkt.scenario.sizes import QUANTILES, quantiles
from roce_pkt.traffic import state, verbs
from roce_pkt.wire import ib, net


def world_of(plan: Plan) -> state.World:
    """The schedule before its first packet."""
    scenario = plan.scenario
    half = np.zeros(len(plan.halves), state.HALF)
    tables: dict[int, int] = {}
    laws: list[NDArray[np.int64]] = []
    for n, one in enumerate(plan.halves):
        traffic = plan.connections[one.connection].traffic
        if id(traffic) not in tables:
            tables[id(traffic)] = len(laws)
            most = scenario.host.mtu_bytes if traffic.transport == "ud" else 1 << 31
            laws.append(quantiles(traffic, most))
        half[n] = _record(plan, n, one, traffic, tables[id(traffic)], half[n].copy())
    host = np.zeros(scenario.fabric.hosts, state.HOST)
    host["line_bps"], host["delay_ps"] = int(scenario.fabric.rate_bps), scenario.fabric.delay_ps
    look = scenario.frames
    control = {
        "mtu": scenario.host.mtu_bytes,
        "end_ps": scenario.duration_ps,
        "solicited": look.solicited,
        "syndrome": look.credits,
    }
    sizes = np.array(laws, np.int64) if laws else np.zeros((1, QUANTILES), np.int64)
    return state.world(control, half, host, plan.messages.copy(), plan.nexts, sizes)


def _record(plan: Plan, number: int, one: Half, traffic: Traffic, law: int, record: Any) -> Any:
    src, dst, _, _, psn = plan.ends(one)
    scenario = plan.scenario
    pace = pace_of(traffic, int(scenario.fabric.rate_bps), "traffic.load")
    dice = random.Random(f"{scenario.seed}/half/{number}")
    count = ENDLESS_COUNT if traffic.count == ENDLESS else traffic.count
    values = {
        "src": src, "dst": dst, "service": verbs.SERVICES.index(traffic.transport),
        "scripted": one.messages is not None, "rule_verb": VERB_NUMBER[traffic.verb],
        "arrival": ARRIVALS.index(traffic.arrival), "start_psn": psn, "start_ps": one.start_ps,
        "first_message": one.messages.start if one.messages else 0,
        "count": count if one.messages is None else len(one.messages),
        "sizes": law, "depth": traffic.depth, "rd_atomic": scenario.host.transport.max_rd_atomic,
        "ack_every": scenario.host.ack.every, "coalesce": scenario.host.ack.coalesce,
        "hold_ps": scenario.host.ack.hold_ps, "rate": pace.rate, "octet_cost": pace.octet_cost,
        "packet_cost": pace.packet_cost, "extra": pace.extra, "burst": traffic.burst,
        "burst_left": traffic.burst, "gap_ps": traffic.gap_ps, "on_ps": traffic.on_ps,
        "off_ps": traffic.off_ps, "on_until_ps": one.start_ps + traffic.on_ps,
        "overhead": overhead_bytes(scenario), "va": plan.va(number),
        "dice": dice.getrandbits(64) | 1,
    }  # fmt: skip
    for name, value in values.items():
        record[name] = value
    return record


def overhead_bytes(scenario: Scenario) -> int:
    """Captured octets of a frame besides extended headers, payload and pads."""
    link = net.ETH.size_bytes + (net.VLAN.size_bytes if scenario.host.vlan else 0)
    if scenario.frames.version == "v1":
        network = ib.GRH.size_bytes
    else:
        ip = net.IPV4 if scenario.host.ip == "ipv4" else net.IPV6
        network = ip.size_bytes + net.UDP.size_bytes
    return link + network + ib.BTH.size_bytes + ib.ICRC_BYTES
