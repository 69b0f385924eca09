"""A sender's law stepped from what an engine logged: arrivals of notifications, octets sent, exact times.

The way a capture goes, but from picoseconds instead of stamps: the same clockwork, no ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import records
from roce_pkt.engine.session import Session
from roce_pkt.run.reaction import NO_SENDER, Senders, Sent, Steps

FCS_BYTES = 4
SENT_BY_LAW = (records.DATA, records.READ_REQUEST, records.READ_RESPONSE, records.ATOMIC_REQUEST)
"""Kinds of packets that a sender's law paces and counts."""


def follow(session: Session, frames: NDArray[Any], *, compiled: bool = False) -> Steps:
    """What the senders of a DCQCN run do, by the run's own frame log.

    Args:
        session: The run, as far as it has gone.
        frames: Rows of `records.FRAME_ROW` at the senders' ports; senders of other ports are left out.
        compiled: Run compiled; else plain, bit for bit the same.

    Returns:
        Steps of each half, numbered as in the session.
    """
    peer = session.built.pairs.half["peer"].astype(np.int64)
    told = frames[(frames["kind"] == records.CNP) & (frames["sent"] == 0)]
    sent = frames[np.isin(frames["kind"], SENT_BY_LAW) & (frames["sent"] == 1)]
    senders = Senders(
        session.built.law.parameters[0], (0, session.now_ps), len(peer), telling=True, compiled=compiled
    )
    # a packet names the half it is for
    senders.notify(told["half"].astype(np.int64), told["at_ps"].astype(np.int64), np.arange(len(told)) + 1)
    whose = senders.number[peer[sent["half"]]]
    sent, whose = sent[whose != NO_SENDER], whose[whose != NO_SENDER]
    order = np.argsort(whose, kind="stable")
    sent = sent[order]
    octets = sent["size"].astype(np.int64) - FCS_BYTES
    left = Sent.of(whose[order], sent["at_ps"].astype(np.int64), octets, np.zeros_like(octets), len(senders))
    return senders.advance(session.now_ps, left)
