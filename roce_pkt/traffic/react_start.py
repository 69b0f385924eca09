"""From a plan to the records of a workload with faults, before anything happens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.edit.pick import Rule, address_number
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint.behaviour import PROFILES
from roce_pkt.psn import HALF as WINDOW
from roce_pkt.scenario.addresses import host_ip
from roce_pkt.scenario.fault import ANY, KINDS
from roce_pkt.scenario.pace import pace_of
from roce_pkt.scenario.plan import ENDLESS_COUNT, Plan
from roce_pkt.scenario.schema import NONE, VERB_NUMBER
from roce_pkt.traffic import react_state as st
from roce_pkt.traffic import verbs
from roce_pkt.traffic.rows import ROW
from roce_pkt.traffic.start import overhead_bytes
from roce_pkt.units import PS_PER_NS, PS_PER_S

PATIENCE_PS = 20 * PS_PER_S
"""How long after the scenario's end retries may still go on."""
MOST_FRAMES = 5_000_000
ROWS = 1 << 12
_FEW = 256


def world_of(plan: Plan, rules: list[Rule]) -> st.World:
    """The records of a plan and its faults."""
    scenario, halves = plan.scenario, len(plan.halves)
    half = np.zeros(halves, st.HALF)
    for number in range(halves):
        _fill(half[number], _half(plan, number))
    depth = int(half["depth"].max(initial=1))
    ring = 1 << (depth + 2).bit_length()
    fan = int(plan.messages["nexts"].max(initial=0))
    room = 64 + fan + len(rules)
    flows, of_sender = _flows(plan, rules)
    control = np.zeros(1, st.CONTROL)
    transport, behaviour = scenario.host.transport, PROFILES[scenario.host.transport.behaviour]
    _fill(control[0], {
        "end_ps": scenario.duration_ps + PATIENCE_PS, "until_ps": scenario.duration_ps,
        "mtu": scenario.host.mtu_bytes, "delay_ps": scenario.fabric.delay_ps,
        "credits": scenario.frames.credits, "solicited": scenario.frames.solicited,
        "ack_every": scenario.host.ack.every, "max_rd_atomic": transport.max_rd_atomic,
        "repost_ps": transport.repost_ps, "min_rnr_timer": transport.min_rnr_timer,
        "acks_duplicates": behaviour.acknowledges_every_duplicate,
        "naks_behind_rnr": behaviour.naks_behind_rnr, "endless_retries": behaviour.never_gives_up_at_7,
        "ring": ring, "most_sent": MOST_FRAMES, "room": room, "slot": st.NOBODY, "at_impairer": NEVER_PS,
        "count_packets": any(rule.occurrence for rule in rules),
        "count_messages": any(rule.message for rule in rules),
    })  # fmt: skip
    host = np.zeros(scenario.fabric.hosts, st.HOST)
    host["bps"], host["first"], host["last"] = int(scenario.fabric.rate_bps), st.NOBODY, st.NOBODY
    flow = np.zeros(flows, st.FLOW)
    flow["first"] = flow["last"] = st.NOBODY
    few = _FEW + room
    event = np.zeros(few + 8 * halves, st.EVENT)
    # by time, then by number: a heap already
    order = np.argsort(half["due_ps"], kind="stable")
    event["time_ps"][:halves], event["tie"][:halves] = half["due_ps"][order], order + 1
    event["kind"][:halves], event["of"][:halves] = st.LOOK, 2 * order
    control["events"] = control["ties"] = halves
    return st.World(
        control, half, host, np.full(2 * halves, st.NOBODY - 1), np.zeros(halves * ring, st.WORK),
        np.zeros((halves, max(_FEW, 4 * (depth + 2))), np.int64), plan.messages.copy(), plan.nexts,
        event, chained(np.zeros(few, st.FLIGHT)),
        chained(np.zeros(few, st.ANSWER)), _rules(rules, plan), flow, of_sender,
        np.zeros((flows, len(rules), 2), np.int64), np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.int64),
        np.zeros(few, st.HELD), chained(np.zeros(few, st.HELD)), np.zeros(ROWS, ROW),
        np.zeros(2 * ROWS + room, st.LOG),
    )  # fmt: skip


def _fill(record: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        record[name] = value


def chained(pool: NDArray[Any], first: int = 0) -> NDArray[Any]:
    """A pool whose records from `first` on are free, each naming the next one."""
    pool["next"][first:] = np.arange(first + 1, len(pool) + 1)
    return pool


def _half(plan: Plan, number: int) -> dict[str, int]:
    scenario, one = plan.scenario, plan.halves[number]
    src, dst, _, _, psn = plan.ends(one)
    traffic, t = plan.connections[one.connection].traffic, scenario.host.transport
    service = verbs.SERVICES.index(traffic.transport)
    reliable = service not in (verbs.UC, verbs.UD)
    pace = pace_of(traffic, int(scenario.fabric.rate_bps), "traffic.load")
    posted = t.receive_queue or NONE
    return {
        "src": src, "dst": dst, "service": service, "scripted": one.messages is not None,
        "rule_verb": VERB_NUMBER[traffic.verb], "depth": traffic.depth, "start_psn": psn,
        "va": plan.va(number),
        "count": (traffic.count or ENDLESS_COUNT) if one.messages is None else len(one.messages),
        "first_message": one.messages.start if one.messages else 0, "rate": pace.rate,
        "octet_cost": pace.octet_cost, "packet_cost": pace.packet_cost, "extra": pace.extra,
        "overhead": overhead_bytes(scenario), "due_ps": one.start_ps, "timer_at": NEVER_PS,
        "window": WINDOW if reliable else 1 << 62, "message_packets": 1, "message_end": 1,
        "hold_until_ps": NEVER_PS, "retry_at_ps": NEVER_PS,
        "timeout_ps": requester.timeout_ps(t.timeout) if reliable else NEVER_PS,
        "retry_cnt": t.retry_cnt, "retries_left": t.retry_cnt, "rnr_retry": t.rnr_retry,
        "rnr_left": t.rnr_retry, "receives": posted, "receives_posted": posted, "receives_due_ps": NEVER_PS,
        "answer_head": st.NOBODY, "answer_tail": st.NOBODY,
    }  # fmt: skip


def ends_of(plan: Plan, sender: int) -> tuple[int, int, int]:
    """Source host, destination host and destination queue pair of what a sender sends."""
    src, dst, own, peer, _ = plan.ends(plan.halves[sender // 2])
    return (dst, src, own) if sender % 2 else (src, dst, peer)


def _flows(plan: Plan, rules: list[Rule]) -> tuple[int, NDArray[np.int64]]:
    """How many flows there are, and for each sender its flow and what rules look at."""
    names = names_of(rules)
    numbers: dict[tuple[int, int, int], int] = {}
    found = []
    for sender in range(2 * len(plan.halves)):
        ends = ends_of(plan, sender)
        number = numbers.setdefault(ends, len(numbers))
        addresses = (address_number(host_ip(host, plan.scenario.host.ip)) for host in ends[:2])
        found.append([number, *(names.get(address, len(names)) for address in addresses), ends[2]])
    return len(numbers), np.array(found, np.int64).reshape(-1, 4)


def names_of(rules: list[Rule]) -> dict[int, int]:
    """Numbers of the addresses that rules name."""
    named = dict.fromkeys(a for rule in rules for a in (rule.src, rule.dst) if a != ANY)
    return {address: number for number, address in enumerate(named)}


def _rules(rules: list[Rule], plan: Plan) -> NDArray[Any]:
    names, made = names_of(rules), np.zeros(len(rules), st.RULE)
    for record, rule in zip(made, rules, strict=True):
        fault = plan.scenario.fault[rule.number - 1]
        for name in st.RULE.names or ():
            if hasattr(rule, name):
                record[name] = getattr(rule, name) if name not in ("src", "dst") else 0
        _fill(record, {
            "src": names.get(rule.src, ANY), "dst": names.get(rule.dst, ANY), "kind": KINDS.index(fault.do),
            "seen": fault.seen, "time_ns": fault.time_ps // PS_PER_NS, "distance": fault.distance,
        })  # fmt: skip
    return made
