"""One direction of requests on a connection, with both of its sides, when frames can be lost.

The laws are those of `endpoint/`; here is what they leave open: which message a position belongs
to, what a lost response means, and the answers that are owed. Positions do not wrap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import NamedTuple

from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import rc_requester as requester
from roce_pkt.endpoint import rc_responder as responder
from roce_pkt.endpoint import uc
from roce_pkt.endpoint.behaviour import Behaviour
from roce_pkt.psn import HALF as WINDOW
from roce_pkt.scenario.schema import NONE, Transport
from roce_pkt.traffic.verbs import MESSAGE, ORDER, READ, SHAPE, UC, UD
from roce_pkt.wire import aeth

NAK_SEQUENCE = aeth.TYPES.index("nak") << 5
RNR_NAK = aeth.TYPES.index("rnr") << 5


class Work(NamedTuple):
    """A work request.

    Args:
        number: In its half, from 0.
        verb: By its number.
        length: Octets.
        start: Position of its first packet.
        end: Position behind its last PSN.
    """

    number: int
    verb: int
    length: int
    start: int
    end: int

    @property
    def shape(self) -> int:
        """How it travels."""
        return int(SHAPE[self.verb])


@dataclass(frozen=True, slots=True)
class Packet:
    """What one side sends.

    Args:
        work: The work request it belongs to; None for a NAK.
        position: Its PSN's position.
        count: Positions it stands for (READ request).
        ask: Asks for an acknowledgement.
        syndrome: AETH syndrome of an answer; None for requests.
        msn: Of an answer.
        data: An answer that is not a bare acknowledgement.
        first: Position of the first response to the READ that this one answers.
    """

    work: Work | None
    position: int
    count: int = 1
    ask: bool = False
    syndrome: int | None = None
    msn: int = 0
    data: bool = False
    first: int = 0


@dataclass(slots=True)
class _Answer:
    """An answer owed: acknowledgement of a position, or the data of some."""

    work: Work | None
    position: int
    end: int
    syndrome: int
    first: int
    msn: int


@dataclass
class Peer:
    """Both sides of one half.

    Args:
        service: By its number in `verbs.SERVICES`.
        transport: Timers and limits.
        behaviour: Whose endpoint.
        credits: Syndrome of a good acknowledgement.
        depth: Work requests posted at one time.
        ack_every: Packets until an acknowledgement is asked for inside a message.
        more: Gives the next work request from its number and first position, or None for now.
        done: Told of each work request whose data has arrived, and when.
    """

    service: int
    transport: Transport
    behaviour: Behaviour
    credits: int
    depth: int
    ack_every: int
    more: Callable[[int, int], Work | None]
    done: Callable[[Work, int], None]
    works: list[Work] = field(default_factory=list)
    answers: deque[_Answer] = field(default_factory=deque)

    def __post_init__(self) -> None:
        t = self.transport
        reliable = self.service not in (UC, UD)
        self.q = SimpleNamespace(
            snd=0, una=0, high=0, limit=0, window=WINDOW if reliable else 1 << 62, offset=0,
            message_packets=1, message_end=1, messages=0, progress_ps=0, hold_until_ps=NEVER_PS,
            retry_at_ps=NEVER_PS, timeout_ps=requester.timeout_ps(t.timeout) if reliable else NEVER_PS,
            retry_cnt=t.retry_cnt, retries_left=t.retry_cnt, rnr_retry=t.rnr_retry, rnr_left=t.rnr_retry,
            failed=0, repeating=0,
        )  # fmt: skip
        posted = t.receive_queue or NONE
        self.r = SimpleNamespace(
            expected=0, refused=0, msn=0, receives=posted, receives_posted=posted, receives_due_ps=NEVER_PS
        )
        self._starts: list[int] = []
        self._since_ack = 0
        self._arrived = 0

    # -- requester

    def work_at(self, position: int) -> Work:
        """The work request that a position belongs to."""
        return self.works[bisect_right(self._starts, position) - 1]

    def _post(self) -> None:
        """Keep work requests posted."""
        while self._open() < self.depth:
            work = self.more(len(self.works), self.q.limit)
            if work is None:
                return
            self.works.append(work)
            self._starts.append(work.start)
            self.q.limit = work.end

    def _open(self) -> int:
        """Work requests that are not settled."""
        if not self.works or self.q.una >= self.q.limit:
            return 0
        return len(self.works) - self.work_at(self.q.una).number

    def ready(self) -> bool:
        """Whether a request could leave now."""
        self._post()
        if not requester.may_send(self.q):
            return False
        work = self.work_at(self.q.snd)
        if work.shape == MESSAGE or self.q.snd > work.start:
            return True
        first = self.work_at(self.q.una).number
        reads = sum(w.shape != MESSAGE for w in self.works[first : work.number])
        return reads < self.transport.max_rd_atomic

    def request(self, now: int) -> Packet:
        """The next request leaves."""
        q = self.q
        work = self.work_at(q.snd)
        position = q.snd
        count = work.end - position if work.shape == READ else 1
        ends = position + count == work.end
        self._since_ack += 1
        ask = self.service not in (UC, UD) and (ends or self._since_ack >= self.ack_every)
        if ask:
            self._since_ack = 0
        requester.sent(q, count, now)
        if self.service in (UC, UD):
            q.una = q.snd
        return Packet(work, position, count, ask)

    def _owed_from(self) -> int | None:
        """The first position whose data has not come back, or None."""
        first = self.work_at(self.q.una).number if self.q.una < self.q.limit else len(self.works)
        for work in self.works[first:]:
            if work.start >= self.q.high:
                return None
            if work.shape != MESSAGE:
                return max(work.start, self.q.una)
        return None

    def _settle(self, end: int, now: int) -> None:
        before = self.q.una
        requester.acknowledged(self.q, end, now)
        if self.q.una > before:
            self.q.repeating = 0

    def _ask_again(self, position: int, now: int) -> None:
        """A response is missing: everything before it has been executed."""
        self._settle(position, now)
        # spec: IBTA 9.7.5.2.8: a gap in responses is an implied NAK: ask again from the first missing
        if not self.q.repeating:
            self.q.repeating = 1
            requester.go_back(self.q, position)

    def answered(self, packet: Packet, now: int) -> None:
        """An answer reaches the requester."""
        q = self.q
        owed = self._owed_from()
        if packet.data:
            if owed is None or packet.position < owed:
                return  # an answer to an earlier transmission
            if packet.position > owed:
                self._ask_again(owed, now)
                return
            self._settle(packet.position + 1, now)
            work = packet.work
            if work is not None and packet.position + 1 >= work.end:
                self.done(work, now)
            return
        refused = (packet.syndrome or 0) >= RNR_NAK
        end = packet.position + (0 if refused else 1)
        if end < q.una or end > q.high:
            return
        if owed is not None and owed < end:
            self._ask_again(owed, now)
            return
        self._settle(end, now)
        if refused and (packet.syndrome or 0) & NAK_SEQUENCE == NAK_SEQUENCE:
            requester.go_back(q, packet.position)
        elif refused:
            wait_us = aeth.RNR_TIMERS_US[aeth.value(packet.syndrome or 0)]
            requester.not_ready(q, packet.position, wait_us * 1_000_000, now)

    def timer(self, now: int) -> None:
        """A timer of the requester may be due."""
        if self.behaviour.never_gives_up_at_7 and self.q.retry_cnt == 7:
            self.q.retries_left = max(self.q.retries_left, 1)
        if requester.on_timer(self.q, now) == requester.TIMER_RETRY:
            self.q.repeating = 0

    @property
    def timer_ps(self) -> int:
        """When `timer` must be called."""
        return requester.next_timer_ps(self.q)

    # -- responder

    def arrive(self, packet: Packet, now: int) -> None:
        """A request reaches the responder."""
        work = packet.work
        if work is None:
            return
        ends = packet.position + packet.count == work.end
        if self.service == UD or (self.service == UC and not self._takes_uc(packet, work)):
            if self.service == UD:
                self.done(work, now)
            return
        if self.service == UC:
            if ends:
                self.done(work, now)
            return
        verdict = responder.judge(self.r, packet.position)
        if verdict == responder.ACCEPT:
            self._accept(packet, work, now, ends=ends)
        elif verdict == responder.DUPLICATE:
            if work.shape != MESSAGE:
                self._owe_data(packet, work)
            elif packet.ask or self.behaviour.acknowledges_every_duplicate:
                self._owe(None, self.r.expected - 1, self.credits)
        elif verdict == responder.REFUSE:
            self._owe(None, self.r.expected, NAK_SEQUENCE)

    def _takes_uc(self, packet: Packet, work: Work) -> bool:
        return bool(uc.receive(self.r, packet.position, int(packet.position == work.start)))

    def _accept(self, packet: Packet, work: Work, now: int, *, ends: bool) -> None:
        r = self.r
        if self._needs_receive(packet, work, ends=ends) and not responder.take_receive(
            r, self.transport.repost_ps, now
        ):
            r.refused = 0 if self.behaviour.naks_behind_rnr else 1
            self._owe(None, packet.position, RNR_NAK | self.transport.min_rnr_timer)
            return
        responder.accept(r, packet.count, int(ends))
        if work.shape != MESSAGE:
            self._owe_data(packet, work)
            return
        if ends:
            self.done(work, now)
        if packet.ask:
            self._owe(work, packet.position, self.credits)

    def _needs_receive(self, packet: Packet, work: Work, *, ends: bool) -> bool:
        verb = ORDER[work.verb]
        if verb.wire == "SEND":
            return packet.position == work.start
        return ends and "IMMEDIATE" in verb.suffix

    def _owe(self, work: Work | None, position: int, syndrome: int) -> None:
        self.answers.append(_Answer(work, position, position, syndrome, position, self.r.msn))

    def _owe_data(self, packet: Packet, work: Work) -> None:
        end = work.end if work.shape == READ else packet.position + 1
        self.answers.append(_Answer(work, packet.position, end, self.credits, packet.position, self.r.msn))

    def answer(self) -> Packet:
        """The next answer leaves."""
        owed = self.answers[0]
        data = owed.end > owed.position
        packet = Packet(
            owed.work, owed.position, syndrome=owed.syndrome, msn=owed.msn, data=data, first=owed.first
        )
        owed.position += 1
        if owed.position >= owed.end:
            self.answers.popleft()
        return packet
