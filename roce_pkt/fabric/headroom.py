"""How much buffer must be kept for what still arrives after XOFF.

Sources: IEEE 802.1Qbb annex on buffer requirements (frame in progress at both ends, the pause frame
itself, the cable there and back, the peer's response time); 802.3 31B.3.7 for the response.
"""

from __future__ import annotations

import math

from roce_pkt.fabric.pause import QUANTUM_BITS

PAUSE_FRAME_BYTES = 84
RESPONSE_QUANTA = {
    10e9: 67, 25e9: 80, 40e9: 118, 50e9: 147, 100e9: 394, 200e9: 453, 400e9: 905, 800e9: 905,
}  # fmt: skip
"""Pause quanta a port may take to obey, by speed in bit/s (802.3 31B.3.7 as tabled by SONiC)."""


def response_ps(rate_bps: float) -> int:
    """Time from a pause frame's arrival to its effect, by the next listed speed."""
    speed = next((s for s in RESPONSE_QUANTA if s >= rate_bps), 800e9)
    return round(RESPONSE_QUANTA[speed] * QUANTUM_BITS / speed * 1e12)


def headroom_bytes(rate_bps: float, delay_ps: int, frame_bytes: int, response: int) -> int:
    """Octets that can arrive after XOFF is decided.

    Args:
        rate_bps: Of the link.
        delay_ps: One way.
        frame_bytes: Largest frame, wire gap included.
        response: Picoseconds the peer may take to obey.
    """
    waiting_ps = 2 * delay_ps + response
    return math.ceil(waiting_ps * rate_bps / 8e12) + PAUSE_FRAME_BYTES + 2 * frame_bytes
