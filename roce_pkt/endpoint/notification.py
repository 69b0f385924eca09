"""DCQCN's notification point: when a receiver answers CE marks with congestion notification packets.

One state for each key of the chosen scope. Run a due timer before a mark of the same instant.

Sources: Zhu et al., SIGCOMM 2015, sec. 3.1 (as published artefacts agree on it); the ns3-rdma and
htsim simulators for the variants; Lumina's checker for the scopes real NICs pace by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.law import NEVER_PS, law, twin
from roce_pkt.cc.parameters import Alias, Parameter, ParameterTable

GATE, TRAILING, PERIODIC = range(3)
MODES = ("gate", "trailing", "periodic")
QP, IP_PAIR, DST_IP, PORT = range(4)
SCOPES = ("qp", "ip_pair", "dst_ip", "port")

PARAMETERS = ParameterTable(
    Parameter(
        "interval", "ps", "50us", "N: least time between two notifications of one key; 0 answers every mark.",
        "SIGCOMM'15 final set, as several independent artefacts agree; paper text not at hand",
        high=10**15,
        aliases=(Alias("us", (
            "N", "min_time_between_cnps", "np_min_time_between_cnps", "DcQcnMinTimeBetweenCnps",
            "cnp_delay_timer",
        )),),
    ),
    Parameter(
        "mode", "switch", "gate",
        "gate: at once if the interval has passed, or never; trailing: or at its end; periodic: on a grid.",
        "SIGCOMM'15 as most implementations have it; htsim is trailing, ns3-rdma periodic",
        choices=MODES,
    ),
    Parameter(
        "scope", "switch", "qp",
        "What is paced: each flow, each pair of addresses, each sender address of a port, or the whole port.",
        "SIGCOMM'15 is per queue pair; NICs that pace by the others are known from Lumina's checker",
        choices=SCOPES,
    ),
)  # fmt: skip

STATE = np.dtype(
    [
        ("first_ps", "i8"),  # the key's first frame, where a periodic grid starts
        ("quiet_until_ps", "i8"),  # no notification before
        ("due_ps", "i8"),  # one is owed then, or NEVER_PS
    ],
    align=True,
)
State = twin(STATE)

CNP = 1
"""A law's answer: send a notification now."""


@law
def start(p: Any, s: Any, now: int) -> None:  # noqa: ARG001 - as every law's start
    """The key's first frame arrives."""
    s.first_ps = now
    s.quiet_until_ps = now
    s.due_ps = NEVER_PS


@law
def on_marked(p: Any, s: Any, now: int) -> int:
    """A CE-marked data frame arrives.

    Args:
        p: Record of `PARAMETERS`.
        s: Record of `STATE`, or its plain twin.
        now: Picoseconds.

    Returns:
        `CNP` to send one now, else 0.
    """
    if p.mode == PERIODIC and p.interval_ps > 0:
        # spec: ns3-rdma: a check every N from the flow's first frame tells of marks seen since the last
        if s.due_ps == NEVER_PS:
            s.due_ps = s.first_ps + ((now - s.first_ps) // p.interval_ps + 1) * p.interval_ps
        return 0
    # spec: DCQCN 2015 sec. 3.1: a CNP at once if none was sent for the flow in the last N
    if now >= s.quiet_until_ps:
        s.quiet_until_ps = now + p.interval_ps
        return CNP
    # spec: htsim: a mark inside the window is told at its end
    if p.mode == TRAILING:
        s.due_ps = s.quiet_until_ps
    return 0


@law
def next_timer_ps(p: Any, s: Any) -> int:  # noqa: ARG001 - as every law's next_timer_ps
    """When `on_timer` must be called next, or `NEVER_PS`."""
    due: int = s.due_ps
    return due


@law
def on_timer(p: Any, s: Any, now: int) -> int:
    """Time is `now`; returns `CNP` to send one, else 0."""
    if s.due_ps > now:
        return 0
    s.due_ps = NEVER_PS
    s.quiet_until_ps = now + p.interval_ps
    return CNP
