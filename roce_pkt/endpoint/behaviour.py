"""Where endpoints differ from the specification, each difference a named switch.

The machines of this room follow the specification; a driver asks these switches where a known
implementation does something else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How an implementation behaves where it has a choice, or takes one.

    Args:
        acknowledges_every_duplicate: A duplicate packet of a SEND or WRITE is answered with an ACK of
            the newest PSN even when it does not ask for one. The specification (IBTA 9.7.5.1.3) answers
            those that ask.
        naks_behind_rnr: A packet that follows one refused with RNR NAK is out of sequence and raises one
            NAK of that same PSN. The specification (IBTA 9.7.5.2.8) ignores it.
        never_gives_up_at_7: A retry count of 7 means without end, as it does for RNR retries. The
            specification (IBTA 11.6.2) means seven.
    """

    acknowledges_every_duplicate: bool = False
    naks_behind_rnr: bool = False
    never_gives_up_at_7: bool = False


SPEC = Behaviour()
RXE = Behaviour(acknowledges_every_duplicate=True, naks_behind_rnr=True, never_gives_up_at_7=True)
"""Linux Soft-RoCE. Source: rxe_resp.c (`duplicate_request`, `check_psn`), rxe_comp.c (`retry_cnt`)."""
PROFILES = {"spec": SPEC, "rxe": RXE}
"""Behaviours by name."""
