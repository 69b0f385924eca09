"""A workload with faults: both sides of every queue pair react to what is lost, late, twice or damaged.

Plain event by event, for captures of thousands of frames; without faults the compiled schedule makes
the same packets in the same order. A frame is recorded where faults have been done to it: between
its sender and its receiver.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from roce_pkt.capture.kernel_put import RECORD_BYTES
from roce_pkt.capture.model import LINK_ETHERNET, Record
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.edit import act
from roce_pkt.edit.impair import LOST, Impairer
from roce_pkt.endpoint.behaviour import PROFILES
from roce_pkt.scenario.pace import L1_BYTES, Pace, pace_of
from roce_pkt.scenario.plan import ENDLESS_COUNT, Half, Plan
from roce_pkt.scenario.schema import VERB_NUMBER
from roce_pkt.scenario.sizes import QUANTILES, quantiles
from roce_pkt.traffic.framing import Framer
from roce_pkt.traffic.packet_row import packet_row
from roce_pkt.traffic.peer import Packet, Peer, Work
from roce_pkt.traffic.rows import REQUESTER, RESPONDER
from roce_pkt.traffic.verbs import MESSAGE, ORDER, READ, SERVICES
from roce_pkt.units import PS_PER_NS, PS_PER_S
from roce_pkt.wire import net

PATIENCE_PS = 20 * PS_PER_S
"""How long after the scenario's end retries may still go on."""
MOST_FRAMES = 5_000_000


class Seen(NamedTuple):
    """A frame as it is recorded.

    Args:
        time_ps: When.
        octets: As faults left them.
        hosts: Sender and receiver.
    """

    time_ps: int
    octets: bytes
    hosts: tuple[int, int]


@dataclass(slots=True)
class _Line:
    """A host's line: when it is free, exactly, and who waits for it."""

    bps: int
    free_ps: int = 0
    rest: int = 0
    waiting: deque[int] = field(default_factory=deque)

    def occupy(self, octets: int, now: int) -> int:
        """A frame leaves at `now`; when its last bit is out."""
        if now > self.free_ps:
            self.rest = 0
        cost = (octets + L1_BYTES) * 8 * PS_PER_S + self.rest
        self.free_ps, self.rest = now + cost // self.bps, cost % self.bps
        return self.free_ps


@dataclass(slots=True)
class _Flight:
    """A frame on its way, as it was sent."""

    number: int
    sender: int
    packet: Packet
    octets: bytes


@dataclass(slots=True)
class _Side:
    """A half with its peer, its pace and its place in the plan."""

    half: Half
    peer: Peer
    pace: Pace
    src: int
    dst: int
    psn: int
    due_ps: int
    due_rest: int = 0
    timer_at: int = NEVER_PS
    needs: list[int] = field(default_factory=list)
    ready_ps: list[int] = field(default_factory=list)


class Reaction:
    """The machine.

    Args:
        plan: What is to be sent.

    Attributes:
        impairer: Does the faults; its `truth` fills with lines, its `done` counts.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan, scenario = plan, plan.scenario
        self.impairer = Impairer(scenario.fault, scenario.seed, net.PORT_ROCEV2)
        self._framer = Framer(plan)
        self._lines = [_Line(int(scenario.fabric.rate_bps)) for _ in range(scenario.fabric.hosts)]
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._ties = 0
        self._now = 0
        self._flights: dict[int, _Flight] = {}
        self._queued: set[int] = set()
        self._seen: list[Seen] = []
        self._sent = 0
        self._at_impairer = NEVER_PS
        self._sides = [self._side(n, half) for n, half in enumerate(plan.halves)]
        for number, side in enumerate(self._sides):
            self._at(side.due_ps, self._looker(2 * number + REQUESTER))

    def run(self) -> Iterator[Seen]:
        """Frames in the order in which they are recorded."""
        end = self._plan.scenario.duration_ps + PATIENCE_PS
        while self._events and self._events[0][0] <= end and self._sent < MOST_FRAMES:
            self._now, _, happen = heapq.heappop(self._events)
            happen(self._now)
            yield from self._seen
            self._seen.clear()
        for record in self.impairer.end():
            self._leave(record)
        yield from self._seen

    # -- making sides

    def _side(self, number: int, half: Half) -> _Side:
        scenario = self._plan.scenario
        src, dst, _, _, psn = self._plan.ends(half)
        traffic = self._plan.connections[half.connection].traffic
        dice = random.Random(f"{scenario.seed}/works/{number}")
        sizes = quantiles(traffic, scenario.host.mtu_bytes if traffic.transport == "ud" else 1 << 31).tolist()

        def length() -> int:
            return sizes[0] if sizes[0] == sizes[-1] else sizes[dice.randrange(QUANTILES)]

        def more(n: int, start: int) -> Work | None:
            if half.messages is not None:
                if n >= len(half.messages) or self._waits(number, n):
                    return None
                m = self._plan.messages[half.messages.start + n]
                return self._work(n, int(m["verb"]), int(m["length"]), start)
            if n >= (traffic.count or ENDLESS_COUNT) or self._now >= scenario.duration_ps:
                return None
            return self._work(n, VERB_NUMBER[traffic.verb], length(), start)

        peer = Peer(
            SERVICES.index(traffic.transport), scenario.host.transport,
            PROFILES[scenario.host.transport.behaviour], scenario.frames.credits, traffic.depth,
            scenario.host.ack.every, more, lambda work, now: self._done(number, work, now),
        )  # fmt: skip
        pace = pace_of(traffic, int(scenario.fabric.rate_bps), "traffic.load")
        side = _Side(half, peer, pace, src, dst, psn, half.start_ps)
        if half.messages is not None:
            mine = self._plan.messages[half.messages.start : half.messages.stop]
            side.needs, side.ready_ps = mine["needs"].tolist(), mine["ready_ps"].tolist()
        return side

    def _work(self, number: int, verb: int, length: int, start: int) -> Work:
        mtu = self._plan.scenario.host.mtu_bytes
        cut = ORDER[verb].shape in (MESSAGE, READ)
        return Work(number, verb, length, start, start + (max(1, -(-length // mtu)) if cut else 1))

    def _waits(self, number: int, n: int) -> bool:
        side = self._sides[number]
        if side.needs[n]:
            return True
        if side.ready_ps[n] > self._now:
            self._at(side.ready_ps[n], self._looker(2 * number + REQUESTER))
            return True
        return False

    def _done(self, number: int, work: Work, now: int) -> None:
        """A scripted message has arrived: those that wait for it may start."""
        half = self._sides[number].half
        if half.messages is None:
            return
        m = self._plan.messages[half.messages.start + work.number]
        first = int(m["first_next"])
        for place in self._plan.nexts[first : first + int(m["nexts"])].tolist():
            n = self._plan.messages[place]
            other = self._sides[int(n["half"])]
            k = place - other.half.messages.start if other.half.messages else 0
            other.needs[k] -= 1
            other.ready_ps[k] = max(other.ready_ps[k], now + int(n["delay_ps"]))
            if not other.needs[k]:
                self._at(other.ready_ps[k], self._looker(2 * int(n["half"]) + REQUESTER))

    # -- events

    def _at(self, time_ps: int, happen: Callable[[int], None]) -> None:
        self._ties += 1
        heapq.heappush(self._events, (time_ps, self._ties, happen))

    def _looker(self, sender: int) -> Callable[[int], None]:
        return lambda now: self._look(sender, now)

    def _look(self, sender: int, now: int) -> None:
        """Join the queue of the host's line when there is something to send."""
        side = self._sides[sender // 2]
        if sender in self._queued:
            return
        if sender % 2 == REQUESTER:
            if not side.peer.ready():
                return
            if side.due_ps > now:
                self._at(side.due_ps, self._looker(sender))
                return
        elif not side.peer.answers:
            return
        line = self._lines[side.src if sender % 2 == REQUESTER else side.dst]
        self._queued.add(sender)
        line.waiting.append(sender)
        if len(line.waiting) == 1:
            self._at(max(now, line.free_ps), lambda at: self._serve(line, at))

    def _serve(self, line: _Line, now: int) -> None:
        """The line is free: the first that waits sends one packet."""
        sender = line.waiting.popleft()
        self._queued.discard(sender)
        side = self._sides[sender // 2]
        able = side.peer.ready() if sender % 2 == REQUESTER else bool(side.peer.answers)
        if able:
            packet = side.peer.request(now) if sender % 2 == REQUESTER else side.peer.answer()
            self._send(line, sender, side, packet, now)
        if line.waiting:
            self._at(max(now, line.free_ps), lambda at: self._serve(line, at))
        self._look(sender, now)
        self._arm(sender // 2, side)

    def _send(self, line: _Line, sender: int, side: _Side, packet: Packet, now: int) -> None:
        row = packet_row(self._plan, sender, side.psn, side.peer.service, packet)
        row["time_ps"] = now
        ((_, written),) = self._framer.write(row)
        octets = bytes(written[RECORD_BYTES[0] :])
        line.occupy(len(octets), now)
        if sender % 2 == REQUESTER and side.pace.rate:
            pace = side.pace
            cost = pace.octet_cost * (len(octets) + pace.extra) + pace.packet_cost + side.due_rest
            base = max(side.due_ps, now - 16 * (cost // pace.rate))
            side.due_ps, side.due_rest = base + cost // pace.rate, cost % pace.rate
        self._sent += 1
        self._flights[self._sent] = _Flight(self._sent, sender, packet, octets)
        size = len(octets)
        record = Record(self._sent, now // PS_PER_NS, 0, LINK_ETHERNET, size, size, octets)
        for leaving in self.impairer.take(record):
            self._leave(leaving, now)
        self._wake_impairer()

    def _wake_impairer(self) -> None:
        """Frames held back by time leave when it is over, whether or not others come."""
        due_ns = self.impairer.due_ns
        if due_ns is not None and due_ns * PS_PER_NS < self._at_impairer:
            self._at_impairer = due_ns * PS_PER_NS
            self._at(self._at_impairer, self._late)

    def _late(self, now: int) -> None:
        self._at_impairer = NEVER_PS
        for record in self.impairer.late(now // PS_PER_NS):
            self._leave(record, now)
        self._wake_impairer()

    def _leave(self, record: Record, now: int | None = None) -> None:
        """A frame passes the place where it is recorded, and goes on to its receiver."""
        flight = self._flights[record.number]
        side = self._sides[flight.sender // 2]
        there = flight.sender % 2 == REQUESTER
        hosts = (side.src, side.dst) if there else (side.dst, side.src)
        octets = bytes(record.octets)
        at = record.time_ns * PS_PER_NS if now is None else now
        self._seen.append(Seen(at, octets, hosts))
        if now is None or LOST in record.comments or not act.intact(flight.octets, octets):
            return
        bits = (len(octets) + L1_BYTES) * 8 * PS_PER_S
        arrival = now + bits // self._lines[hosts[0]].bps + self._plan.scenario.fabric.delay_ps
        self._at(arrival, lambda when: self._arrive(flight, when))

    def _arrive(self, flight: _Flight, now: int) -> None:
        number = flight.sender // 2
        side = self._sides[number]
        if flight.sender % 2 == REQUESTER:
            side.peer.arrive(flight.packet, now)
            self._look(2 * number + RESPONDER, now)
        else:
            side.peer.answered(flight.packet, now)
            self._look(2 * number + REQUESTER, now)
        self._arm(number, side)

    def _arm(self, number: int, side: _Side) -> None:
        at = side.peer.timer_ps
        if at < side.timer_at:
            side.timer_at = at
            self._at(at, lambda now: self._timer(number, now))

    def _timer(self, number: int, now: int) -> None:
        side = self._sides[number]
        side.timer_at = NEVER_PS
        if side.peer.timer_ps <= now:
            side.peer.timer(now)
            self._look(2 * number + REQUESTER, now)
        self._arm(number, side)
