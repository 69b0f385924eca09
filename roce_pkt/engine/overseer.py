"""What looks at a run from outside at fixed times: a broken adapter's storm, the watchdog, deadlock.

They act between two stretches of the compiled loop, on its arrays, so they cost nothing while it
runs; and because a run does not depend on how it is cut into stretches, looking changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from roce_pkt.engine import records, rows
from roce_pkt.engine.records import BLOCK, CLASSES, FAR_PS, SHIFT
from roce_pkt.errors import Severity


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that must be told.

    Args:
        rule: Name of the finding.
        severity: Of it.
        time_ps: When it was first so.
        text: For people, names of ports in it.
        halves: Queue pair halves whose frames are concerned.
    """

    rule: str
    severity: Severity
    time_ps: int
    text: str
    halves: tuple[int, ...] = ()


class Overseer(Protocol):
    """Looks at a run at times of its own choosing."""

    next_ps: int
    seen: list[Seen]

    def look(self, now_ps: int) -> None:
        """It is `next_ps`: look, act, and say when to look next."""
        ...


@dataclass(slots=True)
class Hands:
    """What an overseer may do to a run.

    Args:
        built: The run's arrays.
    """

    built: Any
    cells: list[tuple[int, int]] = field(init=False)
    """(port, class) of the lossless classes of every switch port."""

    def __post_init__(self) -> None:
        group, port = self.built.arrays.group, self.built.arrays.port
        self.cells = [
            (int(cell) // CLASSES, int(cell) % CLASSES)
            for cell in group["lossless"].nonzero()[0]
            if not port[int(cell) // CLASSES]["host"]
        ]

    def name(self, port: int) -> str:
        """What a port is called."""
        name: str = self.built.topology.port_name(port)
        return name

    def wake(self, port: int, now_ps: int) -> None:
        """Let the loop look at a port's pause timers at once."""
        arrays = self.built.arrays
        p = arrays.port[port]
        node = arrays.node[p["node"]]
        p["pause_due_ps"] = now_ps
        tree, base = arrays.tree, int(node["base"])
        place = int(p["pause_leaf"])
        tree[base + place] = now_ps << SHIFT | place
        while place > 1:
            place >>= 1
            tree[base + place] = min(tree[base + 2 * place], tree[base + 2 * place + 1])
        top, bound = arrays.top, int(self.built.w["blocks"]) * BLOCK + int(p["node"]) // BLOCK
        top[p["node"]] = tree[base + 1]
        top[bound] = min(top[bound], tree[base + 1])

    def end_pause(self, port: int, class_: int, now_ps: int) -> None:
        """A class may send again from now on."""
        self.built.arrays.line[port * CLASSES + class_]["paused_until_ps"] = now_ps
        self.wake(port, now_ps)

    def note(self, kind: int, port: int, number: int, now_ps: int) -> None:
        """Write an event row."""
        w = self.built.w
        if not w["trace"]:
            return
        row = self.built.arrays.row[int(w["rows"])]
        row["time_ps"], row["kind"], row["half"], row["port"] = now_ps, kind, rows.NO_HALF, port
        row["number"] = number
        w["rows"] += 1
        if int(w["rows"]) + records.MARGIN_ROWS > int(w["row_limit"]):
            w["stop"] = records.ROWS_FULL


def never() -> int:
    """A time that never comes."""
    return FAR_PS
