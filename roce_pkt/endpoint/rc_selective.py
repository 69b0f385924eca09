"""Selective repeat, as IRN has it: a receiver keeps what comes early, a sender repeats only what is missing.

Bits of positions in the stream of packets lie in rings of `WINDOW`: nothing further ahead is ever sent
or kept. A refusal carries, beside the position expected, the one that arrived. The laws of
`rc_requester` and `rc_responder` go on; these are called where go-back-N would go back.

State `s` is `STATE`; `q` and `r` are those of the requester and the responder.

Sources: Mittal et al., "Revisiting Network Support for RDMA" (IRN), SIGCOMM 2018, sec. 3, as its
artefacts agree on it; the paper's text was not at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.law import NEVER_PS, law, twin
from roce_pkt.endpoint.rc_responder import ACCEPT, DUPLICATE, IGNORE, accept

KEEP = 5
"""What becomes of a request, beside those of `rc_responder`: early, so kept, and refused by its position."""
WORDS, BITS_SHIFT = 32, 5
WINDOW = WORDS << BITS_SHIFT
"""Packets that may be outstanding: the bits of one ring."""
FEW = 3
"""So few packets outstanding that no later one may report a loss: the shorter timer."""

STATE = np.dtype(
    [
        # receiver: positions kept ahead of the expected one, and those of them that end a message
        ("kept", "i8", (WORDS,)),
        ("ends", "i8", (WORDS,)),
        # sender: positions known to have arrived ahead of the oldest not acknowledged
        ("arrived", "i8", (WORDS,)),
        ("arrived_end", "i8"),  # behind the highest of them
        ("again", "i8"),  # next position to look at for sending again
        ("again_end", "i8"),  # those before it that have not arrived are lost
    ],
    align=True,
)
State = twin(STATE)


@law
def has(words: Any, position: int) -> int:
    """The bit of a position."""
    bit: int = words[(position >> BITS_SHIFT) & (WORDS - 1)] >> (position & 31) & 1
    return bit


@law
def put(words: Any, position: int, bit: int) -> None:
    """Set or clear the bit of a position."""
    place = (position >> BITS_SHIFT) & (WORDS - 1)
    mask = 1 << (position & 31)
    words[place] = words[place] | mask if bit else words[place] & ~mask


@law
def judge(r: Any, s: Any, position: int) -> int:
    """Where a request stands: ACCEPT, DUPLICATE, KEEP, or IGNORE (no sender sends so far ahead)."""
    if position == r.expected:
        return ACCEPT
    if position < r.expected:
        return DUPLICATE
    if position >= r.expected + WINDOW:
        return IGNORE
    return DUPLICATE if has(s.kept, position) else KEEP


@law
def keep(s: Any, position: int, ends_message: int) -> None:
    """A request that came early waits for those before it."""
    put(s.kept, position, 1)
    put(s.ends, position, 1 if ends_message else 0)


@law
def deliver(r: Any, s: Any, ends_message: int) -> int:
    """The expected request is executed, and those that waited for it.

    Returns:
        How many.
    """
    accept(r, 1, ends_message)
    count = 1
    while has(s.kept, r.expected):
        put(s.kept, r.expected, 0)
        accept(r, 1, has(s.ends, r.expected))
        count += 1
    return count


@law
def resume(q: Any, s: Any) -> None:
    """Send next the first lost packet that was not sent again yet, else what was never sent."""
    position = max(s.again, q.una)
    end = min(s.again_end, q.high)
    while position < end and has(s.arrived, position):
        position += 1
    s.again = position
    q.snd = position if position < end else q.high
    q.offset = q.snd % q.message_packets


@law
def acknowledged(q: Any, s: Any, before: int) -> None:
    """The oldest position not acknowledged has moved on from `before`."""
    for position in range(before, min(q.una, before + WINDOW)):
        put(s.arrived, position, 0)
    s.arrived_end = max(s.arrived_end, q.una)
    resume(q, s)


@law
def refused(q: Any, s: Any, position: int, reordering: int) -> None:
    """The receiver has `position`, and misses some before it.

    Args:
        q: Requester.
        s: Record of `STATE`.
        position: What arrived.
        reordering: Packets sent later that must have arrived before one counts as lost.
    """
    if position < q.una or position >= q.high:
        return
    put(s.arrived, position, 1)
    s.arrived_end = max(s.arrived_end, position + 1)
    # spec: IRN 2018 sec. 3.1: a packet is lost when one with a higher number was acknowledged selectively
    s.again_end = max(s.again_end, s.arrived_end - reordering)
    resume(q, s)


@law
def sent_again(q: Any, s: Any) -> None:
    """A lost packet has been sent again, once until the timer says that it was lost again."""
    s.again = q.snd
    resume(q, s)


@law
def timed_out(q: Any, s: Any) -> None:
    """Nothing moved: everything outstanding that is not known to have arrived is sent again."""
    s.again = q.una
    s.again_end = q.high
    resume(q, s)


@law
def set_timeout(q: Any, low_ps: int, high_ps: int, now: int) -> None:
    """The retry timer for what is outstanding now."""
    # spec: IRN 2018 sec. 3.1: RTO_low with few packets in flight, else RTO_high
    q.timeout_ps = low_ps if q.high - q.una <= FEW else high_ps
    if q.una < q.high and q.retry_at_ps != NEVER_PS:
        q.retry_at_ps = max(q.progress_ps + q.timeout_ps, now + 1)
