"""One row for each packet that is sent: what the schedule decides and the frame is made from."""

from __future__ import annotations

import numpy as np

REQUESTER, RESPONDER = 0, 1
"""Who sends: the half's own side, or the side it talks to."""

ROW = np.dtype(
    [
        ("time_ps", "i8"),  # when its first bit leaves
        ("message", "i8"),  # number of the message in its half, from 0
        ("offset", "i8"),  # of the payload in the message
        ("va", "u8"),
        ("half", "u4"),
        ("psn", "u4"),
        ("dmalen", "u4"),
        ("msn", "u4"),
        ("payload", "u2"),
        ("opcode", "u1"),
        ("role", "u1"),
        ("ackreq", "u1"),
        ("solicited", "u1"),
        ("syndrome", "u1"),
        ("ecn", "u1"),  # 1: this frame is marked CE whatever its flow says
    ],
    align=True,
)
