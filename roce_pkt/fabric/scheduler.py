"""Which class of a port sends next: strict priority first, then deficit round robin.

Source: Shreedhar and Varghese 1996 for deficit round robin.
"""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law


@law
def highest(mask: int) -> int:
    """Number of the highest bit of an 8-bit mask that is not zero."""
    number = 0
    if mask & 0xF0:
        number = 4
        mask >>= 4
    if mask & 0xC:
        number += 2
        mask >>= 2
    return number + (mask >> 1)


@law
def next_in_turn(mask: int, after: int) -> int:
    """The class of `mask` that comes after `after` in rising order, going round."""
    for step in range(1, 9):
        number = (after + step) & 7
        if mask >> number & 1:
            return number
    return after


@law
def turn(port: Any, line: Any) -> None:
    """A class's turn begins: its deficit grows by its quantum."""
    port.turn_open = 1
    line.deficit_bytes += line.quantum_bytes


@law
def pays(line: Any, size: int) -> bool:
    """Whether the class can pay for its next frame; then it does."""
    if line.deficit_bytes < size:
        return False
    line.deficit_bytes -= size
    return True
