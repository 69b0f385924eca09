"""From a scenario's plan to lists of messages, for queue pairs whose messages are not all the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.engine import list_records, records
from roce_pkt.engine.frame_sizes import FCS_BYTES, FrameSizes
from roce_pkt.engine.list_records import REQUESTS, RESPONDS
from roce_pkt.engine.records import DATA, READ_REQUEST, SERVICES
from roce_pkt.engine.workload import SHAPES
from roce_pkt.psn import HALF as PSN_HALF
from roce_pkt.scenario import dice
from roce_pkt.scenario.arrivals import MOST_MESSAGES, STREAMS, Arrivals
from roce_pkt.scenario.pace import pace_of
from roce_pkt.scenario.plan import RULED, Plan
from roce_pkt.scenario.schema import NONE, VERBS, Scenario, Traffic
from roce_pkt.scenario.sizes import quantiles

STREAM = 3 << 20
"""First stream of chance for lists of messages."""
FAR_END = 1 << 60
ATOMIC_BYTES = 8


@dataclass(slots=True)
class Works:
    """Every list.

    Args:
        work: One record a list.
        message: Their messages side by side, one more behind those of each list.
        wait: Beside the first of them: those of scripts.
        next: Who waits.
        manner: How verbs travel, by `manner_of`.
        of_flow: List of each flow, -1 for none.
    """

    work: NDArray[Any]
    message: NDArray[Any]
    wait: NDArray[Any]
    next: NDArray[np.uint32]
    manner: NDArray[Any]
    of_flow: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def positions(self, number: int) -> tuple[int, NDArray[np.int64]]:
        """Index of a list's first message, and where each of its messages starts."""
        first, end = int(self.work[number]["first"]), int(self.work[number]["end"])
        return first, self.message["start"][first:end]


def manner_of(service: str, verb: str) -> int:
    """Row of the table of manners."""
    return SERVICES.index(service) * len(VERBS) + VERBS.index(verb)


def _manners(sizes: FrameSizes) -> NDArray[Any]:
    table = np.zeros(len(SERVICES) * len(VERBS), list_records.MANNER)
    kinds = {records.READ: READ_REQUEST, records.ATOMIC: records.ATOMIC_REQUEST}
    for service in SERVICES:
        for verb, shape in SHAPES.items():
            row = table[manner_of(service, verb)]
            row["verb"], row["sends"] = shape, kinds.get(shape, DATA)
            if row["sends"] == DATA:
                row["first_bytes"], row["last_bytes"], _ = sizes.around(verb, service)
    return table


def is_plain(traffic: Traffic) -> bool:
    """Whether messages are all of one length and follow each other: that needs no list."""
    return traffic.sizes == "fixed" and not traffic.load and traffic.arrival in ("constant", "poisson")


def lay_out(
    scenario: Scenario, plan: Plan, sizes: FrameSizes, half: NDArray[Any], ends: tuple[Any, Any]
) -> Works:
    """Make the lists, and let the halves begin with their first message.

    Args:
        scenario: What is simulated.
        plan: Its connections; flow n is its half n.
        sizes: Of frames.
        half: Records of all halves; those of lists are changed.
        ends: Index of the requesting and of the responding half of each flow.
    """
    ruled = plan.half["count"] == RULED
    drawn = [number for number, traffic in enumerate(scenario.traffic) if not is_plain(traffic)]
    listed = np.flatnonzero(~ruled).tolist()
    scripted = len(listed)
    listed += np.flatnonzero(ruled & np.isin(plan.traffic_of_half, drawn)).tolist()
    made = Works(
        np.zeros(max(len(listed), 1), list_records.WORK),
        np.zeros(1, list_records.MESSAGE),
        np.zeros(1, list_records.WAIT),
        np.zeros(1, np.uint32),
        _manners(sizes),
        np.full(len(plan.half), -1, np.int64),
    )
    made.of_flow[listed] = np.arange(len(listed))
    parts: list[NDArray[Any]] = []
    place = np.zeros(len(plan.messages), np.int64)  # of scripted messages among all
    first = 0
    for number, flow in enumerate(listed):
        if number < scripted:
            mine = plan.halves[flow].messages or range(0)
            place[mine.start : mine.stop] = first + np.arange(len(mine))
            part = _scripted(plan, flow)
        else:
            part = _drawn(scenario, plan, flow, sizes, MOST_MESSAGES - first)
        _positions(part, made.manner, scenario.host.mtu_bytes)
        work = made.work[number]
        work["first"], work["end"] = first, first + len(part) - 1
        work["waits"] = number < scripted
        parts.append(part)
        first += len(part)
    if parts:
        made.message = np.concatenate(parts)
    if scripted:
        _waits(plan, made, place, scripted)
    for number, flow in enumerate(listed):
        traffic = plan.connections[plan.halves[flow].connection].traffic
        _begin(scenario, traffic, made, number, half, (int(ends[0][flow]), int(ends[1][flow])), sizes)
    return made


def _scripted(plan: Plan, flow: int) -> NDArray[Any]:
    mine = plan.halves[flow].messages or range(0)
    source = plan.messages[mine.start : mine.stop]
    part = np.zeros(len(mine) + 1, list_records.MESSAGE)
    part["length"][:-1], part["ready_ps"][:-1] = source["length"], source["ready_ps"]
    service = plan.connections[plan.halves[flow].connection].traffic.transport
    part["manner"][:-1] = manner_of(service, VERBS[0]) + source["verb"]
    return part


def _drawn(scenario: Scenario, plan: Plan, flow: int, sizes: FrameSizes, room: int) -> NDArray[Any]:
    one = plan.halves[flow]
    traffic = plan.connections[one.connection].traffic
    most = scenario.host.mtu_bytes if traffic.transport == "ud" else 1 << 31
    table = quantiles(traffic, most)
    if SHAPES[traffic.verb] == records.ATOMIC:
        table = np.full_like(table, ATOMIC_BYTES)
    pace = pace_of(traffic, int(scenario.fabric.rate_bps), f"{scenario.name}: traffic.load")
    arrivals = Arrivals(
        traffic, table, pace, scenario.fabric.rate_bps,
        partial(_octets, traffic, scenario.host.mtu_bytes, sizes),
        lambda stream, count: dice.throws(scenario.seed, STREAM + flow * STREAMS + stream, count),
    )  # fmt: skip
    length, due = arrivals.draw(one.start_ps, scenario.duration_ps, room)
    part = np.zeros(len(length) + 1, list_records.MESSAGE)
    part["length"][:-1], part["ready_ps"][:-1] = length, due
    part["manner"] = manner_of(traffic.transport, traffic.verb)
    return part


def _octets(
    traffic: Traffic, mtu: int, sizes: FrameSizes, length: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Packets and captured octets of messages."""
    packets = np.maximum(-(-length // mtu), 1)
    padded = (length + 3) & ~3
    first, last, only = sizes.around(traffic.verb, traffic.transport)
    around = np.where(packets > 1, first + last, only)
    frames = np.maximum(packets * sizes.base + padded + around, packets * sizes.min)
    return packets, frames - packets * FCS_BYTES


def _positions(part: NDArray[Any], manner: NDArray[Any], mtu: int) -> None:
    """Where each message starts: an ATOMIC takes one position, the others one for each MTU."""
    packets = np.maximum(-(-part["length"].astype(np.int64) // mtu), 1)
    packets[manner["sends"][part["manner"]] == records.ATOMIC_REQUEST] = 1
    part["start"][1:] = np.cumsum(packets[:-1])
    part["done_ps"] = -1


def _waits(plan: Plan, made: Works, place: NDArray[np.int64], scripted: int) -> None:
    """Who waits for whom, by what the waiter's host can know."""
    count = int(made.work[scripted - 1]["end"]) + 1
    made.wait = np.zeros(count, list_records.WAIT)
    source = plan.messages
    made.wait["needs"][place], made.wait["delay_ps"][place] = source["needs"], source["delay_ps"]
    made.wait["work"][place] = made.of_flow[source["half"]]
    data = made.manner["sends"][made.message["manner"]] == DATA
    hosts = plan.all_ends()[:2].T.tolist()
    nexts: list[int] = []
    for n, m in enumerate(source):
        first = int(m["first_next"])
        waiting = plan.nexts[first : first + int(m["nexts"])].tolist()
        receiver = hosts[int(m["half"])][1]
        sees = [k for k in waiting if data[place[n]] and hosts[int(source[k]["half"])][0] == receiver]
        learns = [k for k in waiting if k not in sees]
        row = made.wait[place[n]]
        row["first_next"], row["arrivals"], row["completions"] = len(nexts), len(sees), len(learns)
        nexts += [int(place[k]) for k in (*sees, *learns)]
    if nexts:
        made.next = np.array(nexts, np.uint32)


def _begin(
    scenario: Scenario,
    traffic: Traffic,
    made: Works,
    number: int,
    half: NDArray[Any],
    ends: tuple[int, int],
    sizes: FrameSizes,
) -> None:
    """The halves of a list, before its first packet."""
    transport = scenario.host.transport
    work, (q, r) = made.work[number], ends
    first, end = int(work["first"]), int(work["end"])
    work["posted"] = work["open"] = work["current"] = work["answering"] = work["arriving"] = first
    work["depth"], work["reads_most"] = traffic.depth, transport.max_rd_atomic
    work["requester"], work["due_ps"], work["owed_ps"] = q, NEVER_PS, NEVER_PS
    half["work"][[q, r]] = number
    half["listed"][q], half["listed"][r] = REQUESTS, RESPONDS
    half["message_end"][[q, r]] = FAR_END
    half["limit"][q], half["idle"][q] = 0, 1
    if traffic.transport == "rc":
        window = transport.window_bytes
        half["window"][q] = PSN_HALF if window == NONE else max(window // scenario.host.mtu_bytes, 1)
    if first == end:
        return
    manners = made.manner[made.message["manner"][first:end]]
    half["verb"][r] = manners["verb"][0]
    if (manners["sends"] != DATA).any():
        half["sends"][r], half["window"][r] = records.READ_RESPONSE, FAR_END
        half["timeout_ps"][r] = NEVER_PS
        half["first_bytes"][r], half["last_bytes"][r] = sizes.around("read", "rc").pair(2)
    if bool(work["waits"]) and int(made.wait[first]["needs"]):
        return
    # the first message is posted by its time; what follows it is posted as it goes
    m, how = made.message[first], manners[0]
    start = max(int(m["ready_ps"]), int(half["avail_ps"][q]))
    m["ready_ps"] = start
    half["avail_ps"][q], half["idle"][q] = start, 0
    work["posted"], work["reads"] = first + 1, how["sends"] != DATA
    limit = int(made.message[first + 1]["start"])
    half["limit"][q] = half["message_packets"][q] = limit
    half["last_payload"][q] = int(m["length"]) - (limit - 1) * scenario.host.mtu_bytes
    for name in ("sends", "first_bytes", "last_bytes"):
        half[name][q] = how[name]
