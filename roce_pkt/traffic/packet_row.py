"""A packet of a `Peer` as the row its frame is made from."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.scenario.plan import Plan
from roce_pkt.traffic.peer import Packet, Work
from roce_pkt.traffic.rows import REQUESTER, ROW
from roce_pkt.traffic.verbs import (
    ACKNOWLEDGE,
    ATOMIC,
    ATOMIC_ACKNOWLEDGE,
    CARRIES,
    FIRST,
    LAST,
    MESSAGE,
    MIDDLE,
    ONLY,
    ORDER,
    READ,
    READ_RESPONSE,
    REQUEST,
)


def packet_row(plan: Plan, sender: int, first_psn: int, service: int, packet: Packet) -> Any:
    """One row, without its time.

    Args:
        plan: Whose packet.
        sender: Half times two, plus the role.
        first_psn: PSN of position 0.
        service: By its number.
        packet: What is sent.
    """
    rows = np.zeros(1, ROW)
    row = rows[0]
    row["half"], row["role"] = sender // 2, sender % 2
    row["psn"] = first_psn + packet.position & 0xFFFFFF
    if sender % 2 == REQUESTER and packet.work is not None:
        _request(row, plan, service, packet, packet.work)
    else:
        _answer(row, plan, service, packet)
    return rows


def _request(row: Any, plan: Plan, service: int, packet: Packet, work: Work) -> None:
    scenario = plan.scenario
    index = packet.position - work.start
    offset = index * scenario.host.mtu_bytes
    verb = ORDER[work.verb]
    place = ONLY if verb.shape != MESSAGE else _place(index, work.end - work.start)
    row["opcode"] = opcode = int(REQUEST[service, work.verb, place])
    row["message"], row["offset"] = work.number, offset
    if verb.shape == MESSAGE:
        row["payload"] = min(scenario.host.mtu_bytes, work.length - offset)
    elif CARRIES[opcode]:
        row["payload"] = work.length
    again = offset if verb.shape == READ else 0  # a READ asks for what is missing, from where it lies
    row["va"] = plan.va(int(row["half"])) + again
    row["dmalen"] = work.length - again
    row["ackreq"] = packet.ask
    solicits = verb.wire == "SEND" or "IMM" in verb.suffix
    row["solicited"] = scenario.frames.solicited and place in (LAST, ONLY) and solicits


def _answer(row: Any, plan: Plan, service: int, packet: Packet) -> None:
    work = packet.work
    row["syndrome"], row["msn"] = packet.syndrome, packet.msn
    if not packet.data or work is None:
        row["opcode"] = ACKNOWLEDGE[service]
        return
    row["message"] = work.number
    if work.shape == ATOMIC:
        row["opcode"] = ATOMIC_ACKNOWLEDGE[service]
        return
    place = _place(packet.position - packet.first, work.end - packet.first)
    row["opcode"] = READ_RESPONSE[service, place]
    if work.shape == READ:
        mtu = plan.scenario.host.mtu_bytes
        row["offset"] = offset = (packet.position - work.start) * mtu
        row["payload"] = min(mtu, work.length - offset)


def _place(index: int, count: int) -> int:
    if count == 1:
        return ONLY
    return FIRST if index == 0 else LAST if index + 1 == count else MIDDLE
