"""Packet sequence numbers: 24-bit serial arithmetic.

Source: IBTA Vol 1, 9.7.2 (PSN is 24 bits and wraps); the order test is the sign of the difference
taken modulo 2^24, as in the Linux kernel's `psn_compare`.
"""

from __future__ import annotations

BITS = 24
MODULUS = 1 << BITS
MASK = MODULUS - 1
HALF = MODULUS >> 1


def add(psn: int, count: int) -> int:
    """The PSN `count` packets after (or, negative, before) `psn`."""
    return (psn + count) & MASK


def distance(later: int, earlier: int) -> int:
    """Signed distance from `earlier` to `later`, in -2^23 .. 2^23 - 1."""
    return ((later - earlier + HALF) & MASK) - HALF


def before(a: int, b: int) -> bool:
    """True when `a` precedes `b`."""
    return distance(a, b) < 0
