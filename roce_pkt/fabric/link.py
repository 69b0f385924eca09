"""A link: how long a frame takes on it."""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law

FRACTION_BITS = 20
CUT_THROUGH_BYTES = 84
"""A cut-through switch decides after preamble and 64 octets, when headers are in."""
PREAMBLE_AND_GAP_BYTES = 20


@law
def serialisation_ps(port: Any, size: int, quantum_ps: int) -> int:
    """Time of `size` octets on a port's wire, cut to a multiple of `quantum_ps`.

    Args:
        port: `ps_per_byte` as a fixed-point number of `FRACTION_BITS`; remembers the last answer
            in `known_size` and `known_ps`, since nearly all frames of a port have one size.
        size: Octets on the wire, preamble and gap included.
        quantum_ps: 1 for an exact link.
    """
    if size != port.known_size:
        exact = (size * port.ps_per_byte) >> FRACTION_BITS
        port.known_size = size
        port.known_ps = exact - exact % quantum_ps
    return port.known_ps


def ps_per_byte(rate_bps: float) -> int:
    """A rate as picoseconds per octet, fixed point."""
    return round(8e12 / rate_bps * (1 << FRACTION_BITS))


def quantum_ps(rate_bps: float) -> int:
    """Length of a pause quantum, 512 bit times."""
    return round(512e12 / rate_bps)
