"""Names of what a run leaves behind beside its counters: kinds of events, bins of queue histograms."""

from __future__ import annotations

EVENTS = (
    "rp.cut", "rp.increase", "rp.alpha", "np.cnp", "cp.mark", "pfc.xoff", "pfc.xon", "pfc.expire",
    "rc.nak", "rc.rnr", "rc.retransmit", "rc.timeout", "rc.failed", "rc.done", "drop", "pfc.paused",
    "pfc.resumed", "wd.storm", "wd.restore", "deadlock", "cnp.arrived",
)  # fmt: skip
"""Stable names of event kinds, by number."""
(
    RP_CUT, RP_INCREASE, RP_ALPHA, NP_CNP, CP_MARK, PFC_XOFF, PFC_XON, PFC_EXPIRE, RC_NAK, RC_RNR,
    RC_RETRANSMIT, RC_TIMEOUT, RC_FAILED, RC_DONE, DROP, PFC_PAUSED, PFC_RESUMED,
    WD_STORM, WD_RESTORE, DEADLOCK, CNP_ARRIVED,
) = range(len(EVENTS))  # fmt: skip

NO_HALF = 0xFFFFFFFF
FINE = 32
"""Bins of an octave of queue lengths, and the last length that has a bin of its own is twice that."""


def floor_of(number: int) -> int:
    """Smallest queue length of a bin."""
    octave = max(number // FINE - 1, 0)
    return (number - octave * FINE) << octave
