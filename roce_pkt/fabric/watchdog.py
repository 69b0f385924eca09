"""The PFC watchdog of a switch's egress queue, looked at once a poll, as SONiC has it.

Sources: SONiC's pfc_detect_mellanox.lua (all three conditions must hold, 99 % of the real interval
and of the detection time) and pfc_restore.lua (any pause frame, XON included, delays restoration).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.law import law, twin

NOTHING, STORM, RESTORE = range(3)
DROP, FORWARD, ALERT = range(3)
ACTIONS = ("drop", "forward", "alert")
SHARE = 0.99
"""Of an interval that must be paused, and of the detection time that must add up."""

STATE = np.dtype(
    [
        ("stormy", "i8"),
        ("stuck_ps", "i8"),  # of intervals in a row that were paused throughout
        ("quiet_ps", "i8"),  # of intervals in a row without a pause frame
        ("paused_ps", "i8"),  # counter at the last poll
        ("pauses", "i8"),  # counter at the last poll
        ("head", "i8"),  # what stood first in the queue at the last poll
    ],
    align=True,
)
State = twin(STATE)


@law
def poll(p: Any, s: Any, head: int, paused_ps: int, pauses: int, interval_ps: int) -> int:
    """Look at a queue.

    Args:
        p: `detection_ps`, `restoration_ps`.
        s: Record of `STATE`, or its plain twin.
        head: Tells the frame that stands first from any other; -1 for an empty queue.
        paused_ps: Counter: time this class has been paused.
        pauses: Counter: pause frames for this class that came in.
        interval_ps: Real time since the last poll.

    Returns:
        NOTHING, STORM or RESTORE.
    """
    paused = paused_ps - s.paused_ps
    quiet = pauses == s.pauses
    stuck = head >= 0 and head == s.head
    s.paused_ps = paused_ps
    s.pauses = pauses
    s.head = head
    if s.stormy:
        # spec: SONiC pfc_restore.lua: restored once no pause frame came for the restoration time
        s.quiet_ps = s.quiet_ps + interval_ps if quiet else 0
        if s.quiet_ps < p.restoration_ps:
            return NOTHING
        s.stormy = 0
        s.stuck_ps = 0
        return RESTORE
    # spec: SONiC pfc_detect_mellanox.lua: occupied, nothing sent, paused for over 99 % of the interval
    if not stuck or paused <= SHARE * interval_ps:
        s.stuck_ps = 0
        return NOTHING
    s.stuck_ps += interval_ps
    if s.stuck_ps <= SHARE * p.detection_ps:
        return NOTHING
    s.stormy = 1
    s.quiet_ps = 0
    return STORM
