"""Which two directed flows are the halves of one queue pair, and which flow a notification is for.

Data carries the receiver's queue pair number, a notification the sender's. Nothing in either frame
joins the two, but acknowledgements do: they travel to the sender's number with the PSN of a request
that went to the receiver's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roce_pkt.flows.rows import ANSWERS, INTACT, IS_REQUEST, Rows
from roce_pkt.flows.survey import Survey
from roce_pkt.flows.table import FlowTable, Key, destination_of, source_of

ENOUGH_ANSWERS = 1000
"""A flow whose acknowledgements were compared this often needs no more of it."""
MOST_CANDIDATES = 64
"""Requests of one PSN that one acknowledgement is compared with."""
BELIEVE = 0.9
DOUBT = 0.5
"""A pair is believed when nine in ten answers fit it and no other pair gets half of them."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a notification is for.

    Args:
        flow: Number of the flow that is told to slow down, or None.
        candidates: Flows it could be for, when there is no telling.
    """

    flow: int | None
    candidates: tuple[int, ...] = ()


class Evidence:
    """Votes of acknowledgements for pairs of flows.

    Args:
        survey: The flows.
        wanted: Flows that need pairing; frames of others are passed over.
    """

    def __init__(self, survey: Survey, wanted: Iterable[int]) -> None:
        self._survey = survey
        self._votes: dict[int, Counter[int]] = {}
        self._answers: Counter[int] = Counter()
        size = len(survey.flows)
        self._wanted = np.zeros(size, bool)
        self._wanted[list(wanted)] = True
        self._open = self._wanted.copy()
        self._pair, self._reverse = _address_pairs(survey.flows)

    def add(self, rows: Rows) -> None:
        """Compare the acknowledgements of a batch with its requests."""
        known = np.zeros(len(rows), bool)
        data = ~rows.cnp & (rows.flow < len(self._wanted))
        known[data] = self._wanted[rows.flow[data]]
        requests = np.flatnonzero(known & IS_REQUEST[rows.opcode] & rows.having(INTACT))
        known[data] &= self._open[rows.flow[data]]
        answers = np.flatnonzero(known & rows.having(ANSWERS | INTACT))
        if not len(requests) or not len(answers):
            return
        asked = np.unique(
            np.stack([self._pair[rows.flow[requests]] << 24 | rows.psn[requests], rows.flow[requests]]),
            axis=1,
        )
        answered = self._reverse[rows.flow[answers]] << 24 | rows.psn[answers]
        low = np.searchsorted(asked[0], answered, "left")
        high = np.minimum(np.searchsorted(asked[0], answered, "right"), low + MOST_CANDIDATES)
        for answer, first, last in zip(rows.flow[answers].tolist(), low.tolist(), high.tolist(), strict=True):
            if last > first:
                self._answers[answer] += 1
                self._votes.setdefault(answer, Counter()).update(asked[1, first:last].tolist())
        self._open[[flow for flow, count in self._answers.items() if count >= ENOUGH_ANSWERS]] = False

    def partners(self) -> dict[int, int]:
        """Each flow's other half, both ways, where there is no doubt."""
        claims: dict[int, list[int]] = {}
        for answer, votes in self._votes.items():
            (best, most), *others = votes.most_common(2)
            whole = self._answers[answer]
            if most >= BELIEVE * whole and all(count < DOUBT * whole for _, count in others):
                claims.setdefault(best, []).append(answer)
        sure = {flow: claimed[0] for flow, claimed in claims.items() if len(claimed) == 1}
        back: dict[int, list[int]] = {}
        for one, other in [*sure.items(), *((b, a) for a, b in sure.items())]:
            back.setdefault(one, []).append(other)
        return {one: others[0] for one, others in back.items() if len(set(others)) == 1}


def _address_pairs(flows: FlowTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each flow's address pair, and the number of the opposite pair."""
    numbers: dict[tuple[int, ...], int] = {}
    forward, backward = np.zeros((2, len(flows)), np.int64)
    for flow, key in enumerate(flows.keys):
        forward[flow] = numbers.setdefault(key[:4], len(numbers))
        backward[flow] = numbers.setdefault(key[2:4] + key[:2], len(numbers))
    return forward, backward


def ambiguous(survey: Survey) -> set[int]:
    """Flows whose halves matter because notifications between their addresses could be for several."""
    wanted: set[int] = set()
    for key in survey.cnps.keys:
        told, tellers = _sides(survey, key)
        if len(told) > 1 or len(tellers) > 1:
            wanted.update(told, tellers)
    return wanted


def owners(
    survey: Survey, partners: Mapping[int, int], halves: Mapping[Key, Key] | None = None
) -> list[Owner]:
    """Whom each kind of notification (`Survey.cnps`) is for.

    Args:
        survey: The flows.
        partners: Each flow's other half, as far as known.
        halves: What communication management told of them, `Connections.halves()`.
    """
    return owners_of(survey, partners, survey.cnps.keys, halves)


def owners_of(
    survey: Survey, partners: Mapping[int, int], keys: Iterable[Key], halves: Mapping[Key, Key] | None = None
) -> list[Owner]:
    """Which flow's sender each key is addressed to: what a receiver sends back about it.

    Args:
        survey: The flows.
        partners: Each flow's other half, as far as known.
        keys: Addresses and queue pair of what is sent back.
        halves: What communication management told of them, `Connections.halves()`.
    """
    return [_told_by_cm(survey, halves or {}, key) or _owner(survey, partners, key) for key in keys]


def _told_by_cm(survey: Survey, halves: Mapping[Key, Key], key: Key) -> Owner | None:
    """The flow whose other half has the queue pair that a notification names."""
    half = halves.get(key)
    flow = None if half is None else survey.flows.find(half)
    return None if flow is None else Owner(flow)


def _sides(survey: Survey, key: tuple[int, int, int, int, int]) -> tuple[list[int], list[int]]:
    """Flows that a notification's receiver sends, and that its sender sends."""
    flows = survey.flows
    told = flows.between(destination_of(key), source_of(key))
    tellers = flows.between(source_of(key), destination_of(key))
    return list(told), list(tellers)


def _owner(survey: Survey, partners: Mapping[int, int], key: tuple[int, int, int, int, int]) -> Owner:
    told, tellers = _sides(survey, key)
    dqpn = key[4]
    # a datagram names its source queue pair itself
    named = [flow for flow in told if dqpn in survey.senders.get(flow, ())]
    if named:
        return Owner(named[0]) if len(named) == 1 else Owner(None, tuple(named))
    half = survey.flows.find(key)
    if half is not None and half in partners:
        return Owner(partners[half])
    taken = {flow for flow in told if flow in partners}
    candidates = [flow for flow in told if flow not in survey.senders and flow not in taken]
    numbers = {survey.flows.keys[flow][4] for flow in tellers if flow not in survey.senders}
    if len(candidates) == 1 and not taken and numbers <= {dqpn}:
        return Owner(candidates[0])
    return Owner(None, tuple(candidates))
