"""A workload with faults: both sides of every queue pair react to what is lost, late, twice or damaged.

A frame is recorded where faults have been done to it: between its sender and its receiver. The compiled
loop decides what is sent and what becomes of it; octets are made here, many frames at a time, and
changed here, where a rule says so.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.kernel_put import RECORD_BYTES
from roce_pkt.capture.model import LINK_ETHERNET, Record
from roce_pkt.capture.run import Run, octets_at
from roce_pkt.edit import act
from roce_pkt.edit.impair import MOST_HELD, Entry, changed
from roce_pkt.edit.pick import Facts, Picker, address_number
from roce_pkt.errors import InputError
from roce_pkt.scenario.addresses import host_ip
from roce_pkt.scenario.plan import Plan
from roce_pkt.scenario.sizes import QUANTILES, quantiles
from roce_pkt.traffic import react_loop, verbs
from roce_pkt.traffic import react_state as st
from roce_pkt.traffic.framing import Framer
from roce_pkt.traffic.react_start import chained, ends_of, world_of
from roce_pkt.units import PS_PER_NS
from roce_pkt.wire import net

_GROWN = {
    st.EVENTS_FULL: ("event",), st.FLIGHTS_FULL: ("flight",), st.ANSWERS_FULL: ("answer",),
    st.HELD_FULL: ("timed", "queued"),
}  # fmt: skip
_FREE = {"flight": "flight_free", "answer": "answer_free", "queued": "queue_free"}
_FOREVER = 1 << 62


class Reaction:
    """The machine.

    Args:
        plan: What is to be sent.
        after_ps: Added to all times of frames: what connecting takes.

    Attributes:
        truth: Lines about faults done, in order.
        faults: How many of each kind.
        last_ps: When the last frame was recorded.
    """

    def __init__(self, plan: Plan, after_ps: int = 0) -> None:
        self._plan, self._after_ps, scenario = plan, after_ps, plan.scenario
        for number, fault in enumerate(scenario.fault, 1):
            act.check(fault, f"fault {number}")
        self._rules = Picker(scenario.fault, scenario.seed).rules
        self._world = world_of(plan, self._rules)
        self._framer = Framer(plan)
        self._sizes = [self._draw(number) for number in range(len(plan.halves))]
        self._draw_sizes()
        self.truth: list[bytes] = []
        self.faults: Counter[str] = Counter()
        self.last_ps = self._out = 0
        self._first = 1
        self._address, self._size = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self._held: tuple[Any, ...] = ()
        self._changed: dict[int, tuple[bytes, list[tuple[int, act.Detail]]]] = {}
        self._kept: dict[int, bytes] = {}
        hosts = [host_ip(host, scenario.host.ip) for host in range(scenario.fabric.hosts)]
        numbers = [address_number(text) for text in hosts]
        ends = [ends_of(plan, sender) for sender in range(2 * len(plan.halves))]
        self._flows = [(numbers[src], numbers[dst], qp) for src, dst, qp in ends]
        self._ends = np.array(ends, np.int64).reshape(-1, 3)[:, :2]

    def runs(self, most: int = 0, taps: set[int] | None = None) -> Iterator[Run]:
        """Frames in the order in which they are recorded.

        Args:
            most: Frames at most; 0 for no limit.
            taps: Hosts at which frames are recorded; None for all.

        Raises:
            InputError: More frames would wait for their place than there is memory for.
        """
        run: Any = react_loop.run
        left, why = most or _FOREVER, st.ROWS_FULL
        while why != st.GO and left:
            why = int(run(self._world))
            control = self._world.control[0]
            if why == st.JUDGE:
                self._frame()
                self._change()
            elif why in (st.ROWS_FULL, st.GO):
                self._frame()
                log = self._world.log[: int(control["logs"])]
                made = self._recorded(log, left, taps)
                left -= len(made)
                control["logs"] = 0
                self._forget()
                yield made
            else:
                self._grow(why)
        if left:
            yield self._recorded(self._waiting(), left, taps)

    # -- room

    def _grow(self, why: int) -> None:
        world, control = self._world, self._world.control[0]
        if why == st.SIZES_USED:
            self._draw_sizes()
            control["stop"] = st.GO
        elif why == st.SEEN_FULL:
            keys, counts = (np.zeros(4 * len(world.seen), np.int64) for _ in range(2))
            tell_again: Any = react_loop.tell_again
            tell_again(world.seen_key, world.seen, keys, counts)
            self._world = world._replace(seen_key=keys, seen=counts)
        else:
            held = int(control["timed"] + control["queued"])
            if why == st.HELD_FULL and held >= MOST_HELD:
                raise InputError(
                    f"frame {control['sent']}: more than {MOST_HELD} frames would wait for their place; "
                    "choose fewer frames, or a shorter time or distance"
                )
            for name in _GROWN[why]:
                old = getattr(world, name)
                new = np.concatenate((old, np.zeros(len(old), old.dtype)))
                if name in _FREE:
                    chained(new, len(old))
                    new["next"][-1] = control[_FREE[name]]
                    control[_FREE[name]] = len(old)
                self._world = self._world._replace(**{name: new})
        room = 2 * int(control["room"] + control["timed"] + control["queued"])
        if len(self._world.log) < 2 * room:
            log = np.zeros(4 * room, st.LOG)
            log[: len(self._world.log)] = self._world.log
            self._world = self._world._replace(log=log)

    def _draw(self, number: int) -> tuple[list[int], random.Random]:
        """Sizes of a half's messages, and the dice that choose among them."""
        scenario, half = self._plan.scenario, self._plan.halves[number]
        traffic = self._plan.connections[half.connection].traffic
        most = scenario.host.mtu_bytes if traffic.transport == "ud" else 1 << 31
        return quantiles(traffic, most).tolist(), random.Random(f"{scenario.seed}/works/{number}")

    def _draw_sizes(self) -> None:
        """Draw lengths of messages ahead, as many as there is room for."""
        sizes = self._world.sizes
        for number, (table, dice) in enumerate(self._sizes):
            half = self._world.half[number]
            half["length"] = table[0]
            if table[0] != table[-1]:
                end = int(half["works"]) + sizes.shape[1]
                for n in range(int(half["sized"]), end):
                    sizes[number, n % sizes.shape[1]] = table[dice.randrange(QUANTILES)]
                half["sized"] = end

    # -- octets

    def _frame(self) -> None:
        """Make the frames of the rows that there are."""
        control = self._world.control[0]
        rows = self._world.row[: int(control["rows"])]
        if not len(rows):
            return
        octets: Any = np.concatenate(
            [np.frombuffer(piece, np.uint8).copy() for _, piece in self._framer.write(rows)]
        )
        overhead = self._world.half["overhead"][rows["half"]]
        sizes = overhead + verbs.HEADER_BYTES[rows["opcode"]] + ((rows["payload"].astype(np.int64) + 3) & ~3)
        head = RECORD_BYTES[0]
        ends = np.cumsum(sizes + head)
        self._address = np.concatenate((self._address, (octets.ctypes.data + ends - sizes).astype(np.uint64)))
        self._size = np.concatenate((self._size, sizes.astype(np.uint64)))
        self._held = (*self._held, octets)
        control["rows"] = 0

    def _octets(self, sent: int) -> bytes:
        if sent in self._changed:
            return self._changed[sent][0]
        if sent in self._kept:
            return self._kept[sent]
        place = sent - self._first
        return octets_at(int(self._address[place]), int(self._size[place]))

    def _change(self) -> None:
        """Change the octets of the frame that the loop stopped at, as the rules that hit it say."""
        control = self._world.control[0]
        flight = self._world.flight[int(control["slot"])]
        sent, octets = int(flight["sent"]), self._octets(int(flight["sent"]))
        record = Record(sent, int(flight["time_ns"]), 0, LINK_ETHERNET, len(octets), len(octets), octets)
        done: list[tuple[int, act.Detail]] = []
        for number, rule in enumerate(self._rules):
            if not self._world.rule["hit"][number]:
                continue
            if rule.fault.do == "drop":
                break
            if rule.fault.do in ("ce", "corrupt", "truncate"):
                new = changed(record, rule, None, net.PORT_ROCEV2)
                if new is not None:
                    record = new[0]
                    done.append((number, new[1]))
        if done:
            came = bytes(record.octets)
            self._changed[sent] = came, done
            flight["touched"], flight["intact"] = 1, act.intact(octets, came)

    def _holds(self) -> list[NDArray[Any]]:
        """Frames that wait, those for a time in the order in which they leave, and those for others."""
        world, control = self._world, self._world.control[0]
        timed = world.timed[: int(control["timed"])]
        queued = []
        for flow in world.flow:
            place = int(flow["first"])
            while place != st.NOBODY:
                queued.append(place)
                place = int(world.queued[place]["next"])
        return [timed[np.lexsort((timed["tie"], timed["due_ns"]))], world.queued[queued]]

    def _forget(self) -> None:
        """Let go of octets, but for those of frames that wait."""
        slots = np.concatenate([held["slot"] for held in self._holds()])
        sent = self._world.flight["sent"][slots].tolist()
        self._kept = {number: self._octets(number) for number in sent if number not in self._changed}
        self._changed = {number: self._changed[number] for number in sent if number in self._changed}
        self._first = int(self._world.control[0]["sent"]) + 1
        self._address, self._size, self._held = np.zeros(0, np.uint64), np.zeros(0, np.uint64), ()

    # -- what is recorded

    def _waiting(self) -> NDArray[Any]:
        """A log of what still waits when nothing happens any more."""
        timed, queued = self._holds()
        flights = self._world.flight
        queued = queued[np.lexsort((queued["tie"], flights["sent"][queued["slot"]]))]
        last = int(timed["due_ns"][-1]) if len(timed) else 0
        held = np.concatenate((timed, queued))
        mine = flights[held["slot"]]
        log = np.zeros(len(held), st.LOG)
        for name in ("sent", "sender", "opcode", "psn", "touched"):
            log[name] = mine[name]
        log["rule"], log["what"], log["event"] = (
            held["rule"],
            np.where(held["copy"], st.COPY, st.OUT),
            _FOREVER,
        )
        times = np.concatenate((timed["due_ns"], np.maximum(last, flights["time_ns"][queued["slot"]])))
        log["time_ps"] = times * PS_PER_NS
        return log

    def _recorded(self, log: NDArray[Any], most: int, taps: set[int] | None) -> Run:
        """The frames of a log, up to the event that brings the last one wanted; tells of its faults."""
        out = log["what"] != st.DROPPED
        seen = out if taps is None else out & np.isin(self._ends[log["sender"]], list(taps)).any(axis=1)
        places = np.flatnonzero(seen)
        if len(places) >= most:
            places = places[:most]
            # what the same event did besides is told, too
            log = log[: int(np.searchsorted(log["event"], log["event"][places[-1]], "right"))]
            out = out[: len(log)]
        numbers = self._out + np.cumsum(out)
        self._out += int(out.sum())
        told = np.flatnonzero((log["rule"] >= 0) | (log["touched"] > 0))
        for place in told.tolist():
            self._tell(log[place], int(numbers[place]) if out[place] else None)
        return self._run(log[places])

    def _tell(self, line: Any, output_frame: int | None) -> None:
        sent, what = int(line["sent"]), int(line["what"])
        entries = [] if what == st.COPY or not line["touched"] else list(self._changed[sent][1])
        if line["rule"] >= 0:
            entries.append((int(line["rule"]), {}))
        facts = Facts(self._flows[int(line["sender"])], int(line["opcode"]), int(line["psn"]))
        for number, detail in entries:
            rule = self._rules[number]
            self.faults[rule.fault.do] += 1
            self.truth.append(Entry(rule, sent, facts, detail).line(output_frame))

    def _run(self, log: NDArray[Any]) -> Run:
        count = len(log)
        place = log["sent"] - self._first
        odd = np.flatnonzero((place < 0) | (log["touched"] > 0))
        place = np.where(place < 0, 0, place)
        usual = len(self._address) > 0
        address = self._address[place] if usual else np.zeros(count, np.uint64)
        size = self._size[place] if usual else np.zeros(count, np.uint64)
        times = (log["time_ps"] + self._after_ps) // PS_PER_NS
        if count:
            self.last_ps = int(log["time_ps"][-1]) + self._after_ps
        run = Run(
            log["sent"].copy(), times, np.zeros(count, np.uint16), np.full(count, LINK_ETHERNET, np.uint16),
            size.astype(np.int64), address, size, self._held, {},
        )  # fmt: skip
        rows = odd.tolist()
        octets = [self._octets(int(log["sent"][row])) for row in rows]
        run.put(rows, [
            Record(0, int(times[row]), 0, LINK_ETHERNET, len(o), len(o), o)
            for row, o in zip(rows, octets, strict=True)
        ])  # fmt: skip
        return run
