"""Chance, from one seed: a stream of 32-bit numbers for each port.

A stream is a Weyl sequence (its step is the stream's own odd number) through MurmurHash3's 32-bit
finaliser. Written so that plain Python and compiled 64-bit arithmetic give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import law

MASK32 = 0xFFFFFFFF
SPAN = 1 << 32


@law
def mixed(value: int) -> int:
    """32 bits from 32 bits, every input bit reaching every output bit."""
    value ^= value >> 16
    value = (value * 0x85EBCA6B) & 0xFFFFFFFF
    value ^= value >> 13
    value = (value * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ (value >> 16)


@law
def throw(stream: Any) -> int:
    """The stream's next number, 0 to 2^32 - 1."""
    stream.dice = (stream.dice + stream.dice_step) & 0xFFFFFFFF
    return mixed(stream.dice)


def stream_of(seed: int, number: int) -> tuple[int, int]:
    """Start and step of stream `number` under `seed`."""
    start = mixed(mixed((seed ^ (seed >> 32)) & MASK32) ^ mixed(number & MASK32))
    step = mixed(start ^ 0x9E3779B9) | 1
    return start, step


def throws(seed: int, number: int, count: int) -> NDArray[np.float64]:
    """The first numbers of stream `number` under `seed`, from 0 (inclusive) to 1."""
    start, step = stream_of(seed, number)
    places = np.uint64(start) + np.uint64(step) * np.arange(1, count + 1, dtype=np.uint64)
    found: NDArray[Any] = mixed(places & np.uint64(MASK32))  # type: ignore[arg-type,assignment]
    return found / SPAN
