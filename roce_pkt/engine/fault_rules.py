"""A scenario's faults as the engine's table of rules, and what it must know of frames to apply them."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.edit import act
from roce_pkt.edit.pick import Rule, address_number
from roce_pkt.engine import fault_records, records
from roce_pkt.engine.fault_records import MOST_RULES, WHATS
from roce_pkt.engine.opcodes import opcode_of
from roce_pkt.engine.records import SERVICES
from roce_pkt.engine.workload import SHAPES
from roce_pkt.errors import ScenarioError
from roce_pkt.scenario.addresses import host_ip
from roce_pkt.scenario.fault import ANY, KINDS, Fault
from roce_pkt.scenario.schema import VERBS, Scenario
from roce_pkt.wire import build, ib
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import BY_NAME, OPCODES

HITS, SLOTS = 1 << 20, 1 << 20
KINDS_SHIFT, PLACES_SHIFT = 4, 2
UNCHECKED_BITS = 1024
NOBODY = -2


@dataclass(slots=True)
class FaultRules:
    """Tables of a run; of one record each when there are no faults.

    Args:
        rule: One record a fault.
        hit: Faults done.
        seen: How often packets were sent.
        opcode: By manner, kind, FIRST and LAST.
        headers: Extended headers of each opcode, as a set.
        unchecked: 1 for bits of a frame that no check covers.
        hosts: Hosts that rules may be done at.
    """

    rule: NDArray[Any]
    hit: NDArray[Any]
    seen: NDArray[Any]
    opcode: NDArray[np.uint32]
    headers: NDArray[np.uint32]
    unchecked: NDArray[np.uint32]
    hosts: NDArray[np.bool_]


def lay_out(scenario: Scenario) -> FaultRules:
    """Make the tables.

    Raises:
        ScenarioError: More rules than the engine holds.
        InputError: A rule that cannot be read.
    """
    faults = scenario.fault
    if len(faults) > MOST_RULES:
        raise ScenarioError(
            f"{scenario.name}: fault", f"{len(faults)} faults; simulate takes {MOST_RULES} at most"
        )
    for number, fault in enumerate(faults, 1):
        act.check(fault, f"{scenario.name}: fault {number}")
    some = bool(faults)
    occurs = any(fault.occurrence for fault in faults)
    made = FaultRules(
        np.zeros(len(faults), fault_records.RULE),
        np.zeros(HITS if some else 1, fault_records.HIT),
        np.zeros(SLOTS if occurs else 1, fault_records.SEEN),
        _opcodes() if some else np.zeros(1, np.uint32),
        np.array([_headers(n) for n in range(256)] if some else [0], np.uint32),
        _unchecked(scenario) if some else np.zeros(1, np.uint32),
        np.zeros(scenario.fabric.hosts, np.bool_),
    )
    hosts = {address_number(host_ip(n, scenario.host.ip)): n for n in range(scenario.fabric.hosts)}
    for number, fault in enumerate(faults, 1):
        row = made.rule[number - 1]
        rule = Rule(number, fault, scenario.seed)
        for name in fault_records.RULE.names or ():
            if hasattr(rule, name):
                row[name] = getattr(rule, name) if name not in ("src", "dst") else ANY
        for name, address in (("src", rule.src), ("dst", rule.dst)):
            row[name] = ANY if address == ANY else hosts.get(address, NOBODY)
        row["do"], row["what"], row["bit"] = KINDS.index(fault.do), WHATS.index(fault.what), fault.bit
        row["harmless"], row["headers"] = _field(scenario, fault)
        row["distance"], row["time_ps"] = fault.distance, fault.time_ps
        row["kept_bytes"], row["seen"] = fault.bytes, fault.seen
        made.hosts |= np.arange(scenario.fabric.hosts) == row["src"] if row["src"] != ANY else True
    return made


def _opcodes() -> NDArray[np.uint32]:
    table = np.zeros(len(SERVICES) * len(VERBS) << KINDS_SHIFT + PLACES_SHIFT, np.uint32)
    for place in range(len(table)):
        manner, kind = place >> KINDS_SHIFT + PLACES_SHIFT, place >> PLACES_SHIFT & 15
        service, verb = SERVICES[manner // len(VERBS)], VERBS[manner % len(VERBS)]
        if verb in SHAPES and kind <= records.CNP:
            data = verb if SHAPES[verb] in (records.SEND, records.WRITE) else "send"
            name = data if kind == records.DATA else verb
            with suppress(KeyError):  # UD has no FIRST, UC no INVALIDATE
                table[place] = opcode_of(kind, place & 3, name, service)
    return table


def _headers(opcode: int) -> int:
    found = OPCODES.get(opcode)
    return sum(1 << ib.EXTENDED.index(header) for header in found.headers) if found else 0


def _sample(scenario: Scenario) -> bytes:
    """A frame with the layers that all frames of the run have."""
    ends = [host_ip(n, scenario.host.ip) for n in range(2)]
    path = build.Path(src=ends[0], dst=ends[1], vid=scenario.host.vlan or None)
    return build.roce_frame(path, BY_NAME["RC_SEND_MIDDLE"].value, {"bth": {"dqpn": 1}}, bytes(64))


def _unchecked(scenario: Scenario) -> NDArray[np.uint32]:
    """Bits that may change without the receiver noticing; none lies behind the BTH."""
    frame = _sample(scenario)
    bits = (len(frame) - 64 - ib.ICRC_BYTES) * 8
    found = np.zeros(UNCHECKED_BITS, np.uint32)
    found[:bits] = [act.intact(frame, act.flipped(frame, bit)) for bit in range(bits)]
    return found


def _field(scenario: Scenario, fault: Fault) -> tuple[int, int]:
    """Whether a corrupt field is harmless (1), damages (0) or is in no frame (-1); its extended header."""
    if fault.do != "corrupt" or fault.what != "field":
        return 0, 0
    name = fault.field.partition(".")[0]
    extended = next((n for n, header in enumerate(ib.EXTENDED) if header.name == name), None)
    if extended is not None:
        return 0, 1 << extended
    frame = _sample(scenario)
    changed = act.corrupted(frame, dissect(frame), fault, random.Random(scenario.seed))
    if changed is None:
        return -1, 0
    return int(act.intact(frame, changed[0])), 0
