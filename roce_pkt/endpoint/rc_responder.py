"""Responder of a queue pair: accept, refuse or repeat; READ and ATOMIC from bounded resources.

State `r`: `expected` position of the next new packet, `refused` 1 after a NAK until the packet it
names arrives, `msn` messages completed, `receives` work requests left for SEND (negative: never
short), `receives_due_ps`. Sender of READ responses: the fields of `rc_requester`, and `since_ack`,
`AFRESH` when the next response is the first to a READ that asks for the rest of a message.
"""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law

ACCEPT, DUPLICATE, REFUSE, IGNORE, NOT_READY = 0, 1, 2, 3, 4
"""What becomes of a request."""
AFRESH = 0x8000
"""More than any number of packets between acknowledgements, which READ responses do not ask for."""


@law
def judge(r: Any, position: int) -> int:
    """Where a request stands in the sequence.

    Returns:
        ACCEPT, DUPLICATE, REFUSE (answer with a NAK) or IGNORE (a NAK is already out).
    """
    if position == r.expected:
        return ACCEPT
    # spec: IBTA 9.7.4.1.2: a PSN before the expected one is a duplicate
    if position < r.expected:
        return DUPLICATE
    # spec: IBTA 9.7.5.2.8: one NAK for a sequence error, until the expected packet arrives
    if r.refused:
        return IGNORE
    r.refused = 1
    return REFUSE


@law
def accept(r: Any, packets: int, ends_message: int) -> None:
    """The expected request is executed."""
    r.expected += packets
    r.refused = 0
    if ends_message:
        # spec: IBTA 9.7.7.1: the MSN counts completed messages
        r.msn = (r.msn + 1) & 0xFFFFFF


@law
def take_receive(r: Any, repost_ps: int, now: int) -> bool:
    """A SEND begins: use a posted receive; False when there is none (answer RNR NAK).

    A used one is posted again `repost_ps` later; posting is serial, one at a time.
    """
    if r.receives < 0:
        return True
    while r.receives_due_ps <= now and r.receives < r.receives_posted:
        r.receives += 1
        r.receives_due_ps += repost_ps
    if r.receives == 0:
        return False
    if r.receives == r.receives_posted:
        r.receives_due_ps = now + repost_ps
    r.receives -= 1
    return True


@law
def read(r: Any, position: int, packets: int) -> None:
    """A READ request, new or repeated, is answered from `position` on.

    Responses form one stream: a repeated request sends it back to `position`, unless it will pass
    there anyway. A READ that asks for the rest of a message repeats the same octets.
    """
    # spec: IBTA 9.7.5.1.9, 9.7.4.4.1: a duplicate READ is executed again
    if position < r.snd:
        r.snd = position
        r.offset = position % r.message_packets
        # spec: IBTA 9.7.5.1.9: it is a READ request like others: the first response to it is a FIRST, or an
        # ONLY. Soft-RoCE as a responder goes on with MIDDLE or LAST instead, as a requester it takes either.
        r.since_ack = AFRESH if r.offset != 0 else 0
    r.limit = max(r.limit, position + packets)


@law
def owed(r: Any) -> int:
    """READ positions asked for and not answered; bounds what a peer may ask for."""
    return r.limit - r.snd
