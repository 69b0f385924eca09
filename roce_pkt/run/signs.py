"""What a capture shows of the congestion control behind a flow: notifications, timing probes, or neither.

No notification is no proof of anything: the capture may hold one direction, the receiver may notify
others only, or the NICs may go by round trips instead. Each is called what it is. How other NICs'
timing probes are laid out is not public, so they are told by their behaviour alone: small frames of
no reliable service that go to and fro between two addresses in like numbers, beside their data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from roce_pkt.flows.survey import Survey
from roce_pkt.flows.table import Address, destination_of, source_of

LEAST_PROBES = 8
"""Frames each way below which there is no pattern."""
SMALL_BYTES = 128
"""Mean size of a probe, Ethernet header to ICRC; management datagrams are twice that."""
ALIKE = 0.8
"""Part of the frames one way that must come back."""

Pair = tuple[Address, Address]


class Sign(StrEnum):
    """What there is to see of a flow's congestion control."""

    NOTIFIED = "notified"
    """Its sender is sent CNPs."""
    ONLY_OTHERS = "only others notified"
    """Marked; its receiver sends CNPs, none of them for this flow."""
    NO_SIGN = "no sign of DCQCN"
    """Marked; its receiver's other frames are here and not one CNP to anybody."""
    ONE_WAY = "one direction only"
    """Marked; nothing at all comes back."""
    UNMARKED = "not marked"
    """No mark that would have called for a notification."""


@dataclass(frozen=True, slots=True)
class Probes:
    """What looks like timing probes between two addresses.

    Args:
        frames: One way and the other, the fewer first.
        every_ns: Mean time between two of one way.
    """

    frames: tuple[int, int]
    every_ns: float


def probes(survey: Survey) -> dict[Pair, Probes]:
    """Pairs of addresses, both ways, between which there seem to be probes."""
    sums, found = survey.sums, dict[Pair, list[int]]()
    frames, octets, first, last = (
        sums.column(name).tolist() for name in ("frames", "octets", "first_ns", "last_ns")
    )
    for number in sorted(survey.senders.keys() | survey.odd):
        if frames[number] and octets[number] <= SMALL_BYTES * frames[number]:
            key = survey.flows.keys[number]
            held = found.setdefault((source_of(key), destination_of(key)), [0, first[number], last[number]])
            held[0] += frames[number]
            held[1], held[2] = min(held[1], first[number]), max(held[2], last[number])
    out = {}
    for (here, there), (count, begun, ended) in found.items():
        back = found.get((there, here), [0])[0]
        few, many = sorted((count, back))
        if few >= LEAST_PROBES and few >= ALIKE * many:
            out[here, there] = Probes((few, many), (ended - begun) / max(count - 1, 1))
    return out


def notifiers(survey: Survey) -> set[Address]:
    """Addresses that send notifications, to whomever."""
    counts = np.flatnonzero(survey.cnp_counts)
    return {source_of(survey.cnps.keys[number]) for number in counts.tolist()}


def sign_of(*, expected: int, seen: int, answered: bool, notifies: bool) -> Sign:
    """What a flow shows.

    Args:
        expected: Notifications that its marks call for.
        seen: Notifications for it.
        answered: Frames travel the other way between its addresses.
        notifies: Its receiver sends notifications to somebody.
    """
    if seen:
        return Sign.NOTIFIED
    if not expected:
        return Sign.UNMARKED
    if notifies:
        return Sign.ONLY_OTHERS
    return Sign.NO_SIGN if answered else Sign.ONE_WAY
