"""Requester of a queue pair: what to send next, what an answer settles, when to send again.

Positions in the stream of packets are whole numbers that do not wrap; on the wire they are the
start PSN plus that number, modulo 2^24 (`roce_pkt.psn`). The same laws serve the requester of SEND,
WRITE, READ and ATOMIC, and the responder that sends READ responses, which is paced like one.

State `q`: `snd` next position, `una` oldest not acknowledged, `high` first never sent, `limit` end
of the work posted, `window` most that may be outstanding, `offset` position of `snd` in its
message, `message_packets`, `message_end` end of the oldest open message, `messages`,
`progress_ps`, `timeout_ps`, `retry_at_ps`, `hold_until_ps`, `retries_left`, `rnr_left`, `failed`.
"""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import NEVER_PS, law

ENDLESS_RNR = 7
"""rnr_retry of 7: without end. Source: IBTA Vol 1 11.6.2 (rnr_retry_count)."""


def timeout_ps(code: int) -> int:
    """The retry timer of a 5-bit code.

    Args:
        code: Local ACK timeout; 0 means never.
    """
    # spec: IBTA 9.9.2.1.1 (local ACK timeout): 4.096 us x 2^code
    return 4_096_000 << code if code else NEVER_PS


@law
def may_send(q: Any) -> bool:
    """Whether a packet could leave now, pacing aside."""
    return q.snd < q.limit and q.snd - q.una < q.window and q.failed == 0 and q.hold_until_ps == NEVER_PS


@law
def sent(q: Any, packets: int, now: int) -> bool:
    """A packet of `packets` positions leaves (more than one for a READ request).

    Returns:
        True when it had been sent before.
    """
    again = q.snd < q.high
    if q.retry_at_ps == NEVER_PS and q.timeout_ps != NEVER_PS:
        q.progress_ps = now
        q.retry_at_ps = now + q.timeout_ps
    q.snd += packets
    q.offset += packets
    if q.offset >= q.message_packets:
        q.offset = 0
    q.high = max(q.high, q.snd)
    return again


@law
def acknowledged(q: Any, end: int, now: int) -> int:
    """Everything before position `end` has arrived.

    Returns:
        How many messages that completes.
    """
    if end <= q.una:
        return 0
    # spec: IBTA 9.7.5.1.2: an acknowledgement covers every packet before it
    q.una = end
    q.progress_ps = now
    q.retries_left = q.retry_cnt
    q.rnr_left = q.rnr_retry
    if q.snd < end:
        q.snd = end  # a late answer to an earlier transmission: no need to send those again
        q.offset = end % q.message_packets
    completed = 0
    while q.message_end <= end:
        q.message_end += q.message_packets
        completed += 1
    if completed:
        q.messages += completed
    return completed


@law
def go_back(q: Any, position: int) -> None:
    """Send again from `position`."""
    # spec: IBTA 9.7.5.2.8: a PSN sequence error makes the requester resend from the PSN it names
    q.snd = max(position, q.una)
    q.offset = q.snd % q.message_packets


@law
def not_ready(q: Any, position: int, wait_ps: int, now: int) -> None:
    """The receiver had no buffer: wait, then send again from `position`."""
    # spec: IBTA 9.7.5.2.8: RNR NAK: wait at least the time given, retry rnr_retry times, 7 = without end
    if q.rnr_left == 0:
        q.failed = 1
        return
    if q.rnr_retry != ENDLESS_RNR:
        q.rnr_left -= 1
    go_back(q, position)
    q.hold_until_ps = now + wait_ps


TIMER_NOTHING, TIMER_RESUMED, TIMER_RETRY, TIMER_FAILED = 0, 1, 2, 3


@law
def on_timer(q: Any, now: int) -> int:
    """A wait may be over.

    Returns:
        What happened: nothing, the end of a not-ready wait, a retry, or failure.
    """
    happened = TIMER_NOTHING
    if q.hold_until_ps <= now:
        q.hold_until_ps = NEVER_PS
        q.progress_ps = now
        happened = TIMER_RESUMED
    if q.retry_at_ps <= now:
        due = q.progress_ps + q.timeout_ps
        if q.una >= q.high:
            q.retry_at_ps = NEVER_PS
        elif due > now or q.hold_until_ps != NEVER_PS:
            q.retry_at_ps = max(due, now + 1)
        elif q.retries_left == 0:
            q.failed = 1
            q.retry_at_ps = NEVER_PS
            happened = TIMER_FAILED
        else:
            # spec: IBTA 9.7.6.1.2: on expiry the oldest unacknowledged request is sent again
            q.retries_left -= 1
            q.progress_ps = now
            q.retry_at_ps = now + q.timeout_ps
            go_back(q, q.una)
            happened = TIMER_RETRY
    return happened


@law
def next_timer_ps(q: Any) -> int:
    """When `on_timer` must be called."""
    return min(q.retry_at_ps, q.hold_until_ps)
