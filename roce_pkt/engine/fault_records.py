"""What the engine remembers of faults: rules, what they have done, and how often packets were sent."""

from __future__ import annotations

import numpy as np

from roce_pkt.scenario.fault import KINDS

DROP, CE, CORRUPT, DUPLICATE, REORDER, DELAY, TRUNCATE, REPLAY = range(len(KINDS))
BIT, FIELD, PAYLOAD = range(3)
WHATS = ("bit", "field", "payload")
MOST_RULES = 62
"""Rules of a scenario: those that hit a frame are the bits of one number."""

RULE = np.dtype(
    [
        # choosers, as `edit.choose` has them; addresses are numbers of hosts
        *((name, "i8") for name in ("src", "dst", "qp", "opcode", "psn", "message", "occurrence")),
        *((name, "i8") for name in ("nth", "count", "chance", "burst", "fitted", "hits", "left")),
        ("dice", "i8"),
        ("dice_step", "i8"),
        # what is done
        ("do", "i8"),
        ("what", "i8"),
        ("bit", "i8"),
        ("harmless", "i8"),  # corrupt field: 1 when no check covers it
        ("headers", "i8"),  # corrupt field: extended header it is in, as a set; 0 for those below
        ("distance", "i8"),
        ("time_ps", "i8"),
        ("kept_bytes", "i8"),
        ("seen", "i8"),
    ],
    align=True,
)

HIT = np.dtype(
    [
        ("time_ps", "i8"),
        ("psn", "i8"),  # position
        ("bit", "i8"),  # corrupt: which; -1 for others
        ("half", "u4"),  # that would receive the frame
        ("before", "u4"),  # fault done to the same frame before, or 0
        ("count", "u4"),
        ("size", "u4"),  # octets of the frame before, FCS included
        ("rule", "u2"),  # from 0
        ("opcode", "u2"),
        ("kind", "u1"),  # of the frame, before it was damaged
    ],
    align=True,
)

SEEN = np.dtype([("key", "i8"), ("times", "i8")], align=True)
