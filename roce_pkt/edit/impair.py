"""Do faults to a capture: frames in, frames out, and a truth file that lists every fault done."""

from __future__ import annotations

import heapq
import json
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from roce_pkt.capture.frames import address_text
from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.edit import act
from roce_pkt.edit.copy import write_like
from roce_pkt.edit.pick import Facts, Flow, Picker, Rule, facts_of
from roce_pkt.errors import InputError
from roce_pkt.files import whole_file
from roce_pkt.scenario.fault import Fault
from roce_pkt.units import PS_PER_NS
from roce_pkt.wire.dissection import Dissection
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import name_of

if TYPE_CHECKING:
    from roce_pkt.capture.run import Run

MOST_HELD = 1 << 20
"""Frames that wait for their place at one time."""


@dataclass(slots=True)
class Impaired:
    """What was done: frames in and out, and faults by kind."""

    frames_in: int = 0
    frames_out: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class Entry(NamedTuple):
    """A line of the truth file that may still wait for its frame's number in the output."""

    rule: Rule
    frame: int
    facts: Facts
    detail: act.Detail

    def line(self, output_frame: int | None) -> bytes:
        """The line, for a frame with that number in the output, or for none."""
        do, rule, frame = json.dumps(self.rule.fault.do), self.rule.number, self.frame
        out = "null" if output_frame is None else output_frame
        detail = "".join(f", {json.dumps(name)}: {json.dumps(value)}" for name, value in self.detail.items())
        return (
            f'{{"do": {do}, "rule": {rule}, "frame": {frame}, "output_frame": {out}, '
            f'{_named(self.facts.flow, self.facts.opcode)}, "psn": {self.facts.psn}{detail}}}\n'
        ).encode()


@lru_cache(1 << 12)
def _named(flow: Flow, opcode: int) -> str:
    source, destination, qp = flow
    document = {
        "src": address_text(source >> 64, source & (1 << 64) - 1),
        "dst": address_text(destination >> 64, destination & (1 << 64) - 1),
        "dqpn": qp,
        "opcode": name_of(opcode),
    }
    return json.dumps(document)[1:-1]


LOST = "lost behind this point"
"""Comment on a frame that is recorded but does not arrive."""

_Leaving = tuple[Record, list[Entry]]
_Waiting = tuple[Record, list[Entry], Fault]


@dataclass(slots=True)
class _Held:
    """A frame that waits for others of its flow to pass."""

    record: Record
    entries: list[Entry]
    left: int


def changed(
    record: Record, rule: Rule, place: act.Place | None, udp_port: int
) -> tuple[Record, act.Detail] | None:
    """A frame with other octets, or None when the fault does not apply to it.

    Args:
        record: The frame.
        rule: One whose fault changes octets.
        place: Where the frame's parts lie, if that is known.
        udp_port: UDP destination port that carries RoCEv2.
    """
    octets, fault = bytes(record.octets), rule.fault
    if fault.do == "truncate":
        size = fault.bytes
        if size >= len(octets):
            return None
        return record._replace(octets=octets[:size], cap_len=size, wire_len=size), {"octets": size}
    if place is None or (fault.do == "corrupt" and fault.what == "field"):
        read = dissect(octets, record.wire_len, record.link_type, udp_port)
        place = act.place_of(read)
    if fault.do == "ce":
        new = act.marked(octets, place)
    elif fault.what == "field":
        new = act.corrupted(octets, read, fault, rule.random)
    else:
        new = act.bit_flipped(octets, place, fault, rule.random)
    return None if new is None else (record._replace(octets=new[0]), new[1])


class Impairer:
    """The machine: a record in, records out, in the order and at the times the faults say.

    Args:
        faults: In order.
        seed: Of every chance.
        udp_port: UDP destination port that carries RoCEv2.

    Attributes:
        done: Counts.
        truth: Lines for the truth file that are complete; the caller takes them out.
    """

    def __init__(self, faults: Sequence[Fault], seed: int, udp_port: int) -> None:
        for number, fault in enumerate(faults, 1):
            act.check(fault, f"fault {number}")
        self.picker = Picker(faults, seed)
        self.done = Impaired()
        self.truth: list[bytes] = []
        self._udp_port = udp_port
        self._timed: list[tuple[int, int, Record, list[Entry]]] = []
        self._queued: dict[Flow, deque[_Held]] = {}
        self._held = self._ties = 0

    def take(self, record: Record) -> Iterator[Record]:
        """The records that leave when this one comes."""
        facts = facts_of(self._dissected(record))
        return self.see(record, facts, self.picker.look(facts) if facts else [])

    def see(self, record: Record, facts: Facts | None, rules: list[Rule]) -> Iterator[Record]:
        """The same, for a frame that has been read already and is hit by `rules`."""
        self.done.frames_in += 1
        yield from self.late(record.time_ns)
        if facts is None:
            yield self._out(record, [])
            return
        leaving, waiting = self._judge(record, facts, rules) if rules else ([(record, [])], [])
        for one, entries in leaving:
            yield self._out(one, entries)
        if leaving:
            yield from self._pass(facts.flow, record.time_ns)
        for one, entries, fault in waiting:
            self._wait(one, entries, fault, facts.flow)

    def passed(self, count: int) -> None:
        """Frames that nothing happened to have gone by, in and out."""
        self.done.frames_in += count
        self.done.frames_out += count

    def waiting(self) -> dict[Flow, int]:
        """Flows of which frames wait for others to go by, and how many more until the next one leaves."""
        return {flow: min(held.left for held in queue) for flow, queue in self._queued.items() if queue}

    def went_by(self, flow: Flow, count: int) -> None:
        """So many frames of a flow have gone by, too few for one that waits to leave."""
        for held in self._queued[flow]:
            held.left -= count

    @property
    def due_ns(self) -> int | None:
        """When the next waiting frame leaves by itself, or None."""
        return self._timed[0][0] if self._timed else None

    def late(self, now_ns: int) -> Iterator[Record]:
        """What leaves by itself up to a time, when no frame comes."""
        while self._timed and self._timed[0][0] <= now_ns:
            yield self._release()

    def end(self) -> Iterator[Record]:
        """What still waits when no more frames come."""
        last = 0
        while self._timed:
            last = self._timed[0][0]
            yield self._release()
        rest = [held for queue in self._queued.values() for held in queue]
        for held in sorted(rest, key=lambda held: held.record.number):
            yield self._out(held.record._replace(time_ns=max(last, held.record.time_ns)), held.entries)
        self._queued.clear()

    def _judge(
        self, record: Record, facts: Facts, rules: list[Rule]
    ) -> tuple[list[_Leaving], list[_Waiting]]:
        """Apply rules to a frame, in their order: what leaves now, and what leaves later."""
        entries: list[Entry] = []
        place: Rule | None = None
        where = facts.place
        copies: list[Rule] = []
        for rule in rules:
            match rule.fault.do:
                case "drop":
                    entries.append(Entry(rule, record.number, facts, {}))
                    if rule.fault.seen:
                        return [(record._replace(comments=(*record.comments, LOST)), entries)], []
                    self._tell(entries, None)
                    return [], []
                case "reorder" | "delay":
                    place = place or rule
                case "duplicate" | "replay":
                    copies.append(rule)
                case _:
                    new = changed(record, rule, where, self._udp_port)
                    if new is not None:
                        where = None
                        record, detail = new
                        entries.append(Entry(rule, record.number, facts, detail))
        leaving: list[_Leaving] = []
        waiting: list[_Waiting] = []
        if place is None:
            leaving.append((record, entries))
        else:
            waiting.append((record, [*entries, Entry(place, record.number, facts, {})], place.fault))
        for rule in copies:
            entry = [Entry(rule, record.number, facts, {})]
            if rule.fault.do == "duplicate" and not rule.fault.time_ps:
                leaving.append((record, entry))
            else:
                waiting.append((record, entry, rule.fault))
        return leaving, waiting

    def _dissected(self, record: Record) -> Dissection:
        return dissect(record.octets, record.wire_len, record.link_type, self._udp_port)

    def _wait(self, record: Record, entries: list[Entry], fault: Fault, flow: Flow) -> None:
        self._held += 1
        if self._held > MOST_HELD:
            raise InputError(
                f"frame {record.number}: more than {MOST_HELD} frames would wait for their place; "
                "choose fewer frames, or a shorter time or distance"
            )
        record = record._replace(octets=bytes(record.octets))
        if fault.do in ("delay", "duplicate"):
            due = record.time_ns + fault.time_ps // PS_PER_NS
            self._ties += 1
            heapq.heappush(self._timed, (due, self._ties, record._replace(time_ns=due), entries))
        else:
            self._queued.setdefault(flow, deque()).append(_Held(record, entries, fault.distance))

    def _pass(self, flow: Flow, time_ns: int) -> Iterator[Record]:
        """A frame of the flow has gone by; those that waited for it leave behind it."""
        queue = self._queued.get(flow)
        if not queue:
            return
        for held in queue:
            held.left -= 1
        for held in [held for held in queue if held.left <= 0]:
            queue.remove(held)
            self._held -= 1
            yield self._out(held.record._replace(time_ns=time_ns), held.entries)

    def _release(self) -> Record:
        _, _, record, entries = heapq.heappop(self._timed)
        self._held -= 1
        return self._out(record, entries)

    def _out(self, record: Record, entries: list[Entry]) -> Record:
        self.done.frames_out += 1
        self._tell(entries, self.done.frames_out)
        return record

    def _tell(self, entries: list[Entry], output_frame: int | None) -> None:
        for entry in entries:
            self.done.faults[entry.rule.fault.do] += 1
            self.truth.append(entry.line(output_frame))


def truth_path(path: str | Path) -> Path:
    """Where the truth about a capture lies: beside it."""
    return Path(f"{path}.truth.jsonl")


def impair(
    capture: Capture, path: str | Path, faults: Sequence[Fault], *, seed: int = 1, force: bool = False
) -> Impaired:
    """Write a capture again with faults done to it, and the truth beside it.

    Only octets, order and times change: nobody reacts to what is lost.

    Args:
        capture: Where frames come from.
        path: Where they go, in the same format; `truth_path(path)` gets one JSON line for each fault.
        faults: In order.
        seed: Of every chance.
        force: Replace files that are there.

    Raises:
        InputError: A fault that cannot be done, or an output that cannot be written.
    """
    from roce_pkt.edit.impair_bulk import Batches

    machine = Impairer(faults, seed, capture.udp_port)
    with whole_file(truth_path(path), force=force) as truth:

        def frames() -> Iterator[Run | Record]:
            for item in Batches(capture, machine).runs():
                yield item
                truth.writelines(machine.truth)
                machine.truth.clear()

        write_like(capture, path, frames(), force=force)
        truth.writelines(machine.truth)
    return machine.done
