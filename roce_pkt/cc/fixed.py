"""The null algorithm: a flow always sends at line rate. Copy this file to start your own.

Every algorithm has these names: a parameter table, a state record, and the laws below; `on_ack(p, s,
ack, now)` too when it acts on acknowledgements (`feedback`). A law reads `p`, writes `s`, is told the
time and nothing else, and answers what happened as bits (0: nothing).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.feedback import HEAD, NO_WINDOW, begin
from roce_pkt.cc.law import NEVER_PS, law, twin
from roce_pkt.cc.parameters import ParameterTable

PARAMETERS = ParameterTable()
STATE = np.dtype(HEAD, align=True)
State = twin(STATE)


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - the null law needs no time
    """A flow begins."""
    begin(s, p.line_rate_bps, NO_WINDOW)


@law
def on_cnp(p: Any, s: Any, now: int) -> int:  # noqa: ARG001
    """A notification for this flow arrives at the sender."""
    return 0


@law
def on_bytes(p: Any, s: Any, octets: int, now: int) -> int:  # noqa: ARG001
    """The flow sent `octets` (Ethernet header to ICRC)."""
    return 0


@law
def next_timer_ps(p: Any, s: Any) -> int:  # noqa: ARG001
    """When `on_timer` must be called next, or `NEVER_PS`."""
    return NEVER_PS


@law
def on_timer(p: Any, s: Any, now: int) -> int:  # noqa: ARG001
    """Time is `now`."""
    return 0
