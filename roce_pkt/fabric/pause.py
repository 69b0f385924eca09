"""The paused side of PFC and 802.3x: which classes may not send, and until when.

Sources: IEEE 802.1Qbb 36.1.3 and 802.3 annex 31B, 31D: a frame replaces the running time of the
classes it enables, zero ends a pause at once, a frame already being sent finishes.
"""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import NEVER_PS, law

QUANTUM_BITS = 512
ALL_CLASSES = 0xFF


@law
def pause(port: Any, line: Any, bit: int, quanta: int, now: int) -> None:
    """A pause frame takes effect on one class.

    Args:
        port: The port that sends: `paused` (bit mask), `quantum_ps`.
        line: Its class: `paused_until_ps`, `paused_since_ps`, `paused_ps`.
        bit: The class's bit in the mask.
        quanta: Time, 0 to resume.
        now: Picoseconds.
    """
    if quanta == 0:
        resume(port, line, bit, now)
        return
    # spec: 802.3 31B.3.3: the new value replaces the running one
    line.paused_until_ps = now + quanta * port.quantum_ps
    if port.paused & bit == 0:
        port.paused |= bit
        line.paused_since_ps = now


@law
def resume(port: Any, line: Any, bit: int, now: int) -> None:
    """A class may send again: told so, or its time is over."""
    line.paused_until_ps = NEVER_PS
    if port.paused & bit != 0:
        port.paused &= ~bit
        line.paused_ps += now - line.paused_since_ps


def paused_total_ps(paused: bool, line: Any, now: int) -> int:
    """Time a class has been paused up to `now`, a pause still running included."""
    return int(line["paused_ps"]) + (now - int(line["paused_since_ps"]) if paused else 0)
