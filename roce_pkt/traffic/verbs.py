"""From a verb and a service to the opcodes of its packets, as tables for compiled code.

Everything here is derived from the opcode table; `0xFF` stands for a packet that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.schema import VERBS
from roce_pkt.wire.opcode import BY_NAME, OPCODES, Position

NO_OPCODE = 0xFF
SERVICES = ("rc", "uc", "ud", "xrc")
RC, UC, UD, XRC = range(len(SERVICES))
POSITIONS: tuple[Position, ...] = ("first", "middle", "last", "only")
FIRST, MIDDLE, LAST, ONLY = range(len(POSITIONS))

MESSAGE, READ, ATOMIC, SINGLE = range(4)
"""Shapes of a verb: cut to the path MTU; a READ; an ATOMIC; one packet answered as an empty READ."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb.

    Args:
        name: As scenarios write it.
        shape: How it travels.
        wire: Its name in opcodes.
        suffix: What the last packet's opcode says besides.
    """

    name: str
    shape: int
    wire: str
    suffix: str = ""


_ROWS = (
    Verb("send", MESSAGE, "SEND"),
    Verb("send_imm", MESSAGE, "SEND", "_WITH_IMMEDIATE"),
    Verb("send_inv", MESSAGE, "SEND", "_WITH_INVALIDATE"),
    Verb("write", MESSAGE, "RDMA_WRITE"),
    Verb("write_imm", MESSAGE, "RDMA_WRITE", "_WITH_IMMEDIATE"),
    Verb("read", READ, "RDMA_READ_REQUEST"),
    Verb("atomic", ATOMIC, "FETCH_ADD"),
    Verb("cmp_swp", ATOMIC, "COMPARE_SWAP"),
    Verb("fetch_add", ATOMIC, "FETCH_ADD"),
    Verb("flush", SINGLE, "FLUSH"),
    Verb("atomic_write", SINGLE, "ATOMIC_WRITE"),
)
TABLE = {verb.name: verb for verb in _ROWS}
ORDER = tuple(TABLE[name] for name in VERBS)
"""Verbs by their number."""


def _request(service: str, verb: Verb, position: Position) -> int:
    base = f"{service.upper()}_{verb.wire}"
    if verb.shape != MESSAGE:
        name = base if position == "only" else ""
    else:
        name = f"{base}_{position.upper()}" + (verb.suffix if position in ("last", "only") else "")
    return BY_NAME[name].value if name in BY_NAME else NO_OPCODE


def _answer(service: str, name: str) -> int:
    found = BY_NAME.get(f"{service.upper()}_{name}")
    return found.value if found else NO_OPCODE


REQUEST: NDArray[np.uint8] = np.array(
    [[[_request(s, v, p) for p in POSITIONS] for v in ORDER] for s in SERVICES], np.uint8
)
"""Opcode of a request: (service, verb, position)."""
READ_RESPONSE: NDArray[np.uint8] = np.array(
    [[_answer(s, f"RDMA_READ_RESPONSE_{p.upper()}") for p in POSITIONS] for s in SERVICES], np.uint8
)
ACKNOWLEDGE: NDArray[np.uint8] = np.array([_answer(s, "ACKNOWLEDGE") for s in SERVICES], np.uint8)
ATOMIC_ACKNOWLEDGE: NDArray[np.uint8] = np.array(
    [_answer(s, "ATOMIC_ACKNOWLEDGE") for s in SERVICES], np.uint8
)
SHAPE: NDArray[np.uint8] = np.array([v.shape for v in ORDER], np.uint8)
"""Shape of each verb."""

HEADER_BYTES: NDArray[np.int64] = np.array(
    [sum(h.size_bytes for h in OPCODES[n].headers) if n in OPCODES else 0 for n in range(256)], np.int64
)
"""Octets of the extended headers of each opcode."""

CARRIES: NDArray[np.uint8] = np.array([n in OPCODES and OPCODES[n].payload for n in range(256)], np.uint8)
"""1 for opcodes that may carry payload."""
