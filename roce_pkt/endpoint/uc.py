"""Responders without acknowledgements: UC drops the message that has a gap, UD takes every packet."""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law


@law
def receive(r: Any, position: int, starts_message: int) -> bool:
    """A UC packet arrives; True when it counts.

    Args:
        r: `expected`, and `refused`: 1 while the rest of a message with a gap is ignored.
        position: In the stream of packets.
        starts_message: 1 for First and Only.
    """
    # spec: IBTA 9.8.2.2.2: after a gap, everything up to the next First or Only is dropped silently
    if position != r.expected:
        r.refused = 1
    r.expected = position + 1
    if starts_message:
        r.refused = 0
    return r.refused == 0
