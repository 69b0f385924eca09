"""Queue pairs of a scenario, laid out as halves: those of one host side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import notification
from roce_pkt.endpoint.rc_requester import timeout_ps
from roce_pkt.engine import records, works
from roce_pkt.engine.frame_sizes import FrameSizes
from roce_pkt.engine.layout import in_line
from roce_pkt.engine.records import FAR_PS, SERVICES
from roce_pkt.engine.workload import SHAPES
from roce_pkt.fabric import ecmp
from roce_pkt.psn import HALF as PSN_HALF
from roce_pkt.scenario.flows import FLOW, Flow, as_flows
from roce_pkt.scenario.plan import plan
from roce_pkt.scenario.schema import ENDLESS, NONE, SAME, Scenario, Traffic
from roce_pkt.wire.entropy import sport_from_qpns

ENDLESS_PACKETS = 1 << 60


def class_of(scenario: Scenario, dscp: int) -> int:
    """The class a frame with this code point travels in."""
    qos = scenario.switch.qos
    priority = qos.dscp_to_priority.get(dscp, 0)
    if qos.trust == "pcp" and not scenario.host.vlan:
        priority = 0  # an untagged frame has no PCP to trust
    return qos.priority_to_class.get(priority, priority)


def dscp_of(scenario: Scenario, traffic: Traffic) -> int:
    """Code point of a traffic table's data."""
    return scenario.host.dscp if traffic.dscp == SAME else traffic.dscp


@dataclass(slots=True)
class QueuePairs:
    """Both halves of every queue pair.

    Args:
        scenario: Where they come from.
        flow: Rows of `scenario.flows.FLOW`, one a queue pair, in the scenario's order.
        requester: Half that requests, (flows,).
        responder: Half that responds, (flows,).
        host_of_half: (halves,), rising.
        flow_of_half: Index into `flows`, (halves,).
        qpn: Queue pair number of each half, (halves,).
        start_psn: Of the stream each half sends, (halves,).
        sport: UDP source port each half sends from, (halves,).
        half: The engine's records.
        works: Lists of messages, for flows whose messages are not all the same.
    """

    scenario: Scenario
    flow: NDArray[Any]
    requester: NDArray[np.int64]
    responder: NDArray[np.int64]
    host_of_half: NDArray[np.int64]
    flow_of_half: NDArray[np.int64]
    qpn: NDArray[np.int64]
    start_psn: NDArray[np.int64]
    sport: NDArray[np.int64]
    half: NDArray[Any]
    works: works.Works

    @property
    def flows(self) -> Sequence[Flow]:
        """Flows as objects."""
        return as_flows(self.scenario, self.flow)

    def first_send_ps(self, hosts: int) -> NDArray[np.int64]:
        """When the first queue pair of each host may send, (hosts,)."""
        first = np.full(hosts, FAR_PS, np.int64)
        ready = self.half["idle"] == 0
        np.minimum.at(first, self.host_of_half[ready], self.half["avail_ps"][ready])
        return first

    def watches(self, parameters: NDArray[Any]) -> NDArray[Any]:
        """Notification points, one for each key of the scope; sets each half's `np`."""
        scope, mode = int(parameters[0]["scope"]), int(parameters[0]["mode"])
        here, there = self.host_of_half, self.half["dst"].astype(np.int64)
        keys = {
            notification.QP: np.arange(len(here)),
            notification.IP_PAIR: here << 16 | there,
            notification.DST_IP: here << 16 | there,  # a host has one address: the peer is the key
            notification.PORT: here,
        }[scope]
        found, numbers = np.unique(keys, return_inverse=True)
        self.half["np"] = numbers
        self.half["np_timed"] = mode != notification.GATE
        watch = np.zeros(len(found), notification.STATE)
        watch["due_ps"] = NEVER_PS
        return watch


def lay_out(scenario: Scenario, sizes: FrameSizes) -> QueuePairs:
    """Make the halves of every flow.

    A connection over which both hosts post requests has two flows: two pairs of halves with the same
    queue pair numbers, each with a reaction point of its own.
    """
    whole = plan(scenario)
    count = len(whole.half)
    tables = whole.traffic_of_half
    src, dst, own, peer, psn = whole.all_ends()
    flow = np.zeros(count, FLOW)
    flow["src"], flow["dst"], flow["start_ps"], flow["traffic"] = src, dst, whole.half["start_ps"], tables
    hosts = np.concatenate((src, dst))
    order = np.argsort(hosts, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    requester, responder = place[:count], place[count:]
    host_of_half = hosts[order]
    qpn, psns = np.concatenate((own, peer))[order], np.concatenate((psn, psn))[order]
    half = in_line(2 * count, records.HALF)
    half["peer"][requester], half["peer"][responder] = responder, requester
    half["dst"][requester], half["dst"][responder] = dst, src
    sport = sport_from_qpns(qpn, qpn[half["peer"]])
    half["hash"] = ecmp.flow_hashes(host_of_half, half["dst"].astype(np.int64), sport, scenario.seed)
    half["qpn"], half["start_psn"] = qpn, psns
    _common(scenario, half, sizes)
    for number, traffic in enumerate(scenario.traffic):
        mine = np.flatnonzero(tables == number)
        starts = flow["start_ps"][mine]
        _work(scenario, half, requester[mine], responder[mine], traffic, starts, sizes)
    lists = works.lay_out(scenario, whole, sizes, half, (requester, responder))
    return QueuePairs(
        scenario, flow, requester, responder, host_of_half, order % count, qpn, psns, sport, half, lists
    )


def _common(scenario: Scenario, half: NDArray[Any], sizes: FrameSizes) -> None:
    transport = scenario.host.transport
    for name in ("retry_at_ps", "hold_until_ps", "timer_ps"):
        half[name] = NEVER_PS
    half["timeout_ps"] = timeout_ps(transport.timeout)
    half["retry_cnt"] = half["retries_left"] = transport.retry_cnt
    half["rnr_retry"] = half["rnr_left"] = transport.rnr_retry
    half["head_bytes"] = sizes.base
    half["idle"] = 1
    half["ended_ps"] = -1
    posted = transport.receive_queue
    half["receives"] = half["receives_posted"] = posted or -1
    half["receives_due_ps"] = NEVER_PS
    half["message_packets"] = 1
    half["window"] = PSN_HALF
    half["limit_bps"] = np.inf


def _work(
    scenario: Scenario,
    half: NDArray[Any],
    requester: NDArray[np.int64],
    responder: NDArray[np.int64],
    traffic: Any,
    starts: NDArray[np.int64],
    sizes: FrameSizes,
) -> None:
    """What the halves of one traffic table do."""
    mtu = scenario.host.mtu_bytes
    packets = -(-traffic.message_bytes // mtu)
    both = np.concatenate((requester, responder))
    verb = SHAPES[traffic.verb]
    half["verb"][both] = verb
    half["manner"][both] = works.manner_of(traffic.transport, traffic.verb)
    half["service"][both] = SERVICES.index(traffic.transport)
    half["message_packets"][both] = half["message_end"][both] = packets
    half["last_payload"][both] = traffic.message_bytes - (packets - 1) * mtu
    first, last = sizes.around(traffic.verb, traffic.transport).pair(packets)
    half["first_bytes"][both], half["last_bytes"][both] = first, last
    half["limit"][requester] = ENDLESS_PACKETS if traffic.count == ENDLESS else traffic.count * packets
    half["avail_ps"][requester] = starts
    half["idle"][requester] = 0
    half["sends"][both] = records.DATA
    half["class_"][both] = class_of(scenario, dscp_of(scenario, traffic))
    window = scenario.host.transport.window_bytes
    if window != NONE:
        half["window"][requester] = max(window // mtu, 1)
    if verb in (records.READ, records.ATOMIC):
        half["window"][requester] = scenario.host.transport.max_rd_atomic * packets
        half["sends"][requester] = records.READ_REQUEST if verb == records.READ else records.ATOMIC_REQUEST
        half["sends"][responder] = records.READ_RESPONSE
        half["window"][responder] = ENDLESS_PACKETS
        half["timeout_ps"][responder] = NEVER_PS  # lost responses are the requester's to ask for again
    if traffic.transport != "rc":
        half["window"][requester] = ENDLESS_PACKETS
        half["timeout_ps"][requester] = NEVER_PS
    if verb == records.ATOMIC:
        half["first_bytes"][both] = half["last_bytes"][both] = 0
    if traffic.rate_bps != NONE:
        half["limit_bps"][both] = traffic.rate_bps
