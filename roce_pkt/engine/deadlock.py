"""Deadlock: switches that have stopped each other in a circle, found while it forms.

A node of the wait-for graph is an ingress group that has told its neighbour to stop. It waits for
another one if frames counted in it stand in an egress queue that the other one has stopped. A circle
in which no queue moves between two looks cannot dissolve by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from roce_pkt.engine import rows
from roce_pkt.engine.overseer import Hands, Seen
from roce_pkt.engine.records import CLASSES
from roce_pkt.units import PS_PER_US

LOOK_EVERY_PS = 100 * PS_PER_US


@dataclass(slots=True)
class Wait:
    """One edge: a group waits for another, through a queue.

    Args:
        after: Cell of the group it waits for.
        head: Packet and position that stood first in the queue.
        halves: Receivers of the frames that wait.
    """

    after: int
    head: tuple[int, int]
    halves: set[int]


@dataclass(slots=True)
class DeadlockWatch:
    """Looks for circles.

    Args:
        hands: The run.
    """

    hands: Hands
    next_ps: int = field(init=False, default=LOOK_EVERY_PS)
    seen: list[Seen] = field(init=False, default_factory=list)
    _suspect: dict[frozenset[int], tuple[int, list[tuple[int, int]]]] = field(
        init=False, default_factory=dict
    )
    _told: set[frozenset[int]] = field(init=False, default_factory=set)

    def look(self, now_ps: int) -> None:
        """Find circles; one whose queues have not moved since the last look is told."""
        self.next_ps = now_ps + LOOK_EVERY_PS
        circle = find_circle(self._waits()) if self._stopped() > 1 else []
        if not circle:
            self._suspect.clear()
            return
        key = frozenset(cell for cell, _ in circle)
        heads = sorted(wait.head for _, wait in circle)
        since, before = self._suspect.get(key, (now_ps, None))
        if before != heads:
            self._suspect = {key: (now_ps, heads)}
        elif key not in self._told:
            self._told.add(key)
            self._tell(circle, since)

    def _stopped(self) -> int:
        """Switch ports that have stopped a neighbour."""
        port = self.hands.built.arrays.port
        return int(((port["xoff"] != 0) & (port["host"] == 0)).sum())

    def _waits(self) -> dict[int, list[Wait]]:
        """The wait-for graph, by cell."""
        arrays = self.hands.built.arrays
        graph: dict[int, list[Wait]] = {}
        for out, class_ in self.hands.cells:
            p = arrays.port[out]
            if not int(p["paused"]) >> class_ & 1:
                continue
            there = int(p["peer"])
            if arrays.port[there]["host"]:
                continue
            edges: dict[int, Wait] = {}
            for x, psn, group, half in self._frames(out * CLASSES + class_):
                if int(arrays.port[group // CLASSES]["xoff"]) >> class_ & 1:
                    wait = edges.setdefault(group, Wait(there * CLASSES + class_, (x, psn), set()))
                    wait.halves.add(half)
            for group, wait in edges.items():
                first = int(arrays.line[out * CLASSES + class_]["first"])
                wait.head = (first, int(arrays.packet[first]["psn"]))
                graph.setdefault(group, []).append(wait)
        return graph

    def _frames(self, cell: int) -> Iterator[tuple[int, int, int, int]]:
        """(packet, position, ingress cell, receiving half) of the frames in a queue."""
        packet = self.hands.built.arrays.packet
        x = int(self.hands.built.arrays.line[cell]["first"])
        while x:
            f = packet[x]
            yield x, int(f["psn"]), int(f["group"]), int(f["half"])
            x = int(f["next"])

    def _tell(self, circle: list[tuple[int, Wait]], since_ps: int) -> None:
        names = [self.hands.name(cell // CLASSES) for cell, _ in circle]
        halves = sorted(set().union(*(wait.halves for _, wait in circle)))
        self.hands.note(rows.DEADLOCK, circle[0][0] // CLASSES, circle[0][0] % CLASSES, since_ps)
        text = f"{len(circle)} ports have stopped each other in a circle: {' > '.join([*names, names[0]])}"
        self.seen.append(Seen("deadlock", "error", since_ps, text, tuple(halves)))


def find_circle(graph: dict[int, list[Wait]]) -> list[tuple[int, Wait]]:
    """A circle of a wait-for graph as (cell, its wait), or an empty list.

    Args:
        graph: Cell -> what it waits for.
    """
    finished: set[int] = set()
    for start in sorted(graph):
        if start in finished:
            continue
        trail: list[tuple[int, Wait]] = []
        place: dict[int, int] = {start: 0}
        stack = [iter(sorted(graph[start], key=lambda wait: wait.after))]
        cells = [start]
        while stack:
            wait = next(stack[-1], None)
            if wait is None:
                stack.pop()
                finished.add(cells[-1])
                place.pop(cells.pop())
                if trail:
                    trail.pop()
                continue
            if wait.after in place:
                return [*trail[place[wait.after] :], (cells[-1], wait)]
            if wait.after in graph and wait.after not in finished:
                trail.append((cells[-1], wait))
                place[wait.after] = len(cells)
                cells.append(wait.after)
                stack.append(iter(sorted(graph[wait.after], key=lambda one: one.after)))
    return []
