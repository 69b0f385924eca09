"""Which frames a fault is done to: a small machine that is told of every frame, in order.

It holds what choosers need to remember (how often a packet was seen, which message of its flow it
belongs to, how often a rule fitted) and one stream of chance for each rule, so that rules do not
disturb each other.
"""

from __future__ import annotations

import ipaddress
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt import psn as serial
from roce_pkt.capture.frames import Frames
from roce_pkt.edit.act import Place, place_of
from roce_pkt.edit.choose import CERTAIN, FIELDS, chooses, fits, hit_by
from roce_pkt.edit.count import Messages, Transmissions
from roce_pkt.errors import InputError
from roce_pkt.scenario import dice
from roce_pkt.scenario.fault import ANY, Fault
from roce_pkt.wire import ib, net
from roce_pkt.wire.dissection import Dissection
from roce_pkt.wire.opcode import OPCODES, Opcode, parse_opcode

Address = int
Flow = tuple[Address, Address, int]
"""Source and destination as 128-bit numbers (IPv4 mapped), destination queue pair."""
MOST_PACKETS = 1 << 22
"""Packets whose occurrences are remembered; older ones are forgotten."""
MOST_STARTS = 1 << 16
"""Messages of a flow whose beginning is remembered, for packets that are sent again."""
STREAM = 4 << 20
"""First stream of chance for faults."""
SPACES = {"read_response": 1, "atomic_ack": 1, "ack": 2}
"""Packets of one flow that share a PSN without being the same packet again."""
_MAPPED = 0xFFFF << 32
_REMEMBERED = ("dice", "fitted", "hits", "left")


def _of_opcodes(value: Callable[[Opcode], int]) -> NDArray[np.int64]:
    return np.array([value(OPCODES[n]) if n in OPCODES else 0 for n in range(256)], np.int64)


SPACE = _of_opcodes(lambda op: SPACES.get(op.operation, 0))
REQUEST = _of_opcodes(lambda op: op.request) > 0
STARTS = _of_opcodes(lambda op: op.starts_message) > 0


class Facts(NamedTuple):
    """What choosers look at.

    Args:
        flow: Source, destination and destination queue pair.
        opcode: BTH opcode.
        psn: BTH PSN.
        place: Where the frame's parts lie.
    """

    flow: Flow
    opcode: int
    psn: int
    place: Place | None = None


class _Messages:
    """Where the messages of a flow begin, as positions that do not wrap."""

    def __init__(self, first_psn: int) -> None:
        self._at, self._psn = 0, first_psn
        self._starts = [0]
        self._forgotten = 0

    def number(self, psn: int, *, starts: bool) -> int:
        """The message, from 1, that the request with this PSN belongs to."""
        position = self._at + serial.distance(psn, self._psn)
        if starts and position > self._starts[-1]:
            self._starts.append(position)
            self._at, self._psn = position, psn
            if len(self._starts) > MOST_STARTS:
                self._forgotten += MOST_STARTS // 4
                del self._starts[: MOST_STARTS // 4]
        return self._forgotten + bisect_right(self._starts, position)


def address_number(text: str) -> Address:
    """An address as a 128-bit number, IPv4 mapped.

    Raises:
        InputError: No address.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InputError(f"{text!r} is no IPv4 or IPv6 address") from None
    return int(address) if address.version == 6 else _MAPPED | int(address)


def facts_of(read: Dissection) -> Facts | None:
    """What choosers look at in a dissected frame; None for a frame that is no RoCE."""
    bth = read.bth
    if bth is None:
        return None
    source = destination = 0
    for header, names, mapped in (
        (net.IPV4, ("src", "dst"), _MAPPED),
        (net.IPV6, ("src", "dst"), 0),
        (ib.GRH, ("sgid", "dgid"), 0),
    ):
        layer = read.find(header)
        if layer is not None:
            source, destination = (mapped | layer.values[name] for name in names)
    return Facts((source, destination, bth["dqpn"]), bth["opcode"], bth["psn"], place_of(read))


class Rule:
    """One fault with what it remembers.

    Args:
        number: 1-based place in the list of faults.
        fault: The table it comes from.
        seed: Seed of the run.

    Raises:
        InputError: An address or opcode that cannot be read.
    """

    def __init__(self, number: int, fault: Fault, seed: int) -> None:
        self.number, self.fault = number, fault
        self.random = random.Random(f"{seed}/{number}")
        self.src = address_number(fault.src) if fault.src else ANY
        self.dst = address_number(fault.dst) if fault.dst else ANY
        self.opcode = parse_opcode(fault.opcode) if fault.opcode else ANY
        self.qp, self.psn, self.message = fault.qp, fault.psn, fault.message
        self.occurrence, self.nth = fault.occurrence, fault.nth
        self.count, self.burst = fault.count, fault.burst
        self.chance = round(fault.probability * CERTAIN)
        self.dice, self.dice_step = dice.stream_of(seed, STREAM + number)
        self.fitted = self.hits = self.left = 0

    def fits(self, facts: Facts, message: int, occurrence: int) -> bool:
        """Whether all choosers that look at the frame alone agree."""
        source, destination, qp = facts.flow
        return fits(self, source, destination, qp, facts.opcode, facts.psn, message, occurrence)

    def chooses(self) -> bool:
        """Whether a fitting frame is hit, by order, chance and burst."""
        return chooses(self)


class Picker:
    """Tells for each frame which faults are done to it.

    Args:
        faults: In order; a frame may be hit by several.
        seed: Of every chance.
    """

    def __init__(self, faults: Sequence[Fault], seed: int = 1) -> None:
        self.rules = [Rule(number, fault, seed) for number, fault in enumerate(faults, 1)]
        self._seen: Counter[tuple[Flow, int, int]] = Counter()
        self._messages: dict[Flow, _Messages] = {}
        self._transmissions, self._begun = Transmissions(MOST_PACKETS), Messages(MOST_STARTS)
        self._count_packets = any(fault.occurrence for fault in faults)
        self._count_messages = any(fault.message for fault in faults)

    def look(self, facts: Facts) -> list[Rule]:
        """Be told of the next frame; the rules that hit it."""
        occurrence = self._occurrence(facts) if self._count_packets else 0
        message = self._message(facts) if self._count_messages else 0
        return [rule for rule in self.rules if rule.fits(facts, message, occurrence) and rule.chooses()]

    def look_at_all(
        self, frames: Frames, roce: NDArray[np.int64], flow: Callable[[], NDArray[np.int64]]
    ) -> dict[int, list[Rule]]:
        """Be told of a batch of frames, in order; the rules that hit each of its rows that is hit.

        Args:
            frames: The batch.
            roce: Its rows that are RoCE.
            flow: Gives the flow number of each of them.
        """
        opcode, psn = frames.opcode[roce], frames.psn[roce].astype(np.int64)
        occurrence = message = np.zeros(len(roce), np.int64)
        if self._count_packets:
            occurrence = self._transmissions.number(flow() << 26 | SPACE[opcode] << 24 | psn)
        if self._count_messages:
            requests, message = REQUEST[opcode], message.copy()
            message[requests] = self._begun.number(flow()[requests], psn[requests], STARTS[opcode[requests]])
        named = {address for rule in self.rules for address in (rule.src, rule.dst)} - {ANY}
        names = {address: n for n, address in enumerate(named)}
        ends = (_named(frames, roce, end, names) for end in ("src", "dst"))
        facts = (*ends, frames.dqpn[roce], opcode, psn, message, occurrence)
        hits = np.zeros((len(self.rules), len(roce)), bool)
        choose_all(self.rules, names, np.array(facts, np.int64), hits, compiled=frames.kernel == "compiled")
        return {
            int(roce[n]): [self.rules[k] for k in np.flatnonzero(hits[:, n]).tolist()]
            for n in np.flatnonzero(hits.any(axis=0)).tolist()
        }

    def _occurrence(self, facts: Facts) -> int:
        op = OPCODES.get(facts.opcode)
        key = (facts.flow, facts.psn, SPACES.get(op.operation, 0) if op else 0)
        if len(self._seen) >= MOST_PACKETS:
            for old in list(self._seen)[: MOST_PACKETS // 4]:
                del self._seen[old]
        self._seen[key] += 1
        return self._seen[key]

    def _message(self, facts: Facts) -> int:
        op = OPCODES.get(facts.opcode)
        if op is None or not op.request:
            return 0
        flow = self._messages.get(facts.flow)
        if flow is None:
            flow = self._messages[facts.flow] = _Messages(facts.psn)
        return flow.number(facts.psn, starts=op.starts_message)


def _named(frames: Frames, roce: NDArray[np.int64], end: str, names: dict[Address, int]) -> NDArray[np.int64]:
    """Addresses that rules name by their number, all others as one that no rule names."""
    high, low = frames.column(f"{end}_hi")[roce], frames.column(f"{end}_lo")[roce]
    numbers = np.full(len(roce), len(names))
    for address, number in names.items():
        numbers[(high == address >> 64) & (low == address & (1 << 64) - 1)] = number
    return numbers


def choose_all(
    rules: Sequence[Rule], names: dict[Address, int], facts: NDArray[np.int64], hits: NDArray[np.bool_], *,
    compiled: bool,
) -> None:  # fmt: skip
    """Fill `hits` by `choose.hit_by`, and let the rules remember what they did.

    Args:
        rules: The rules.
        names: Numbers of the addresses they name.
        facts: What `fits` looks at.
        hits: For each rule a row.
        compiled: There are many frames.
    """
    values = [{name: getattr(rule, name) for name in FIELDS} for rule in rules]
    for rule in values:
        rule |= {end: names.get(rule[end], ANY) for end in ("src", "dst")}
    if compiled:
        from roce_pkt.edit import kernel_pick

        records: Any = np.zeros(len(rules), kernel_pick.RULE)
        for record, rule in zip(records, values, strict=True):
            for name, value in rule.items():
                record[name] = value
        kernel_pick.hit_by(records, facts, hits)
        after = [{name: int(record[name]) for name in _REMEMBERED} for record in records]
    else:
        plain = [SimpleNamespace(**rule) for rule in values]
        hit_by(plain, facts.tolist(), hits)
        after = [{name: getattr(rule, name) for name in _REMEMBERED} for rule in plain]
    for one, remembered in zip(rules, after, strict=True):
        for name, value in remembered.items():
            setattr(one, name, value)
