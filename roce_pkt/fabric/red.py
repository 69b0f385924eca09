"""Congestion point: mark by queue length (RED without averaging).

Sources: DCQCN 2015 sec. 3.1; NVIDIA "Understanding DC-QCN" (everything is marked above kmax).
"""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law
from roce_pkt.scenario.dice import throw

NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
"""The ECN field, RFC 3168 section 5."""


@law
def marks(p: Any, stream: Any, queue_bytes: int) -> bool:
    """Whether a frame that meets `queue_bytes` in its class is marked.

    Args:
        p: `kmin_bytes`, `kmax_bytes`, `pmax`.
        stream: The port's stream of chance; used only between the thresholds.
        queue_bytes: Octets queued in the frame's class.
    """
    if queue_bytes <= p.kmin_bytes:
        return False
    # spec: DCQCN 2015 sec. 3.1: p = 1 above kmax
    if queue_bytes > p.kmax_bytes:
        return True
    # spec: DCQCN 2015 sec. 3.1: p = pmax (q - kmin) / (kmax - kmin)
    share = p.pmax * (queue_bytes - p.kmin_bytes)
    return throw(stream) * (p.kmax_bytes - p.kmin_bytes) < share * 4294967296.0
