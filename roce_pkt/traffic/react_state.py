"""The records of a workload with faults: halves with both their sides, what is under way, what waits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GO, JUDGE, ROWS_FULL, EVENTS_FULL, FLIGHTS_FULL, ANSWERS_FULL, HELD_FULL, SEEN_FULL, SIZES_USED = range(9)
"""Why the loop came back: it is over, octets are to be changed, or there is no room left for more."""
LOOK, SERVE, LATE, ARRIVE, TIMER = range(5)
"""Kinds of events."""
OUT, COPY, LOST, DROPPED = range(4)
"""What a line of the log is about: a frame, a copy of one, one recorded but lost behind, one dropped."""
NOBODY = -1


def _numbers(*names: str) -> np.dtype[Any]:
    return np.dtype([(name, "i8") for name in names])


CONTROL = _numbers(
    "end_ps", "until_ps", "mtu", "delay_ps", "credits", "solicited", "ack_every", "max_rd_atomic",
    "repost_ps", "min_rnr_timer", "acks_duplicates", "naks_behind_rnr", "endless_retries", "ring",
    "most_sent", "room",
    # what happens
    "now", "sent", "ties", "events", "event", "rows", "logs", "stop",
    # a frame between its sender and the place where it is recorded
    "line", "sender", "slot",
    # faults
    "at_impairer", "held_ties", "timed", "queued", "queue_free", "count_packets", "count_messages", "seen",
    "flight_free", "flights", "answer_free", "answers",
)  # fmt: skip
HALF = _numbers(
    # what it is
    "src", "dst", "service", "scripted", "rule_verb", "count", "depth", "first_message", "start_psn", "va",
    "rate", "octet_cost", "packet_cost", "extra", "overhead", "sized", "length",
    # when
    "due_ps", "due_rest", "timer_at",
    # requester: `rc_requester`
    "snd", "una", "high", "limit", "window", "offset", "message_packets", "message_end", "messages",
    "progress_ps", "hold_until_ps", "retry_at_ps", "timeout_ps", "retry_cnt", "retries_left", "rnr_retry",
    "rnr_left", "failed", "repeating",
    # its work requests: posted, the oldest open one, the one that is being sent, those that are no messages
    "works", "oldest", "current", "answered_by_data", "since_ack",
    # responder: `rc_responder`
    "expected", "refused", "msn", "receives", "receives_posted", "receives_due_ps", "answer_head",
    "answer_tail",
)  # fmt: skip
_WORK = ("number", "verb", "length", "start", "end")
WORK = _numbers(*reversed(_WORK))
"""A work request; `number` from 0, `end` behind its last PSN's position. No other record begins like it:
numba would take that one for a kind of this one."""
FLIGHT = _numbers(
    *_WORK, "sent", "sender", "position", "count", "ask", "syndrome", "msn", "data", "first", "octets",
    "opcode", "psn", "intact", "touched", "time_ns", "uses", "next",
)  # fmt: skip
"""A packet on its way, with the work request it belongs to (`number` -1: none)."""
ANSWER = _numbers(*_WORK, "position", "answer_end", "syndrome", "first", "msn", "next")
"""An answer that is owed: an acknowledgement of a position, or the data of some."""
HOST = _numbers("bps", "free_ps", "rest", "first", "last")
EVENT = _numbers("time_ps", "tie", "kind", "of")
HELD = _numbers("due_ns", "tie", "slot", "rule", "copy", "left", "next")
FLOW = _numbers("known", "at", "psn", "begun", "messages", "first", "last")
"""Messages of a flow, and its frames that are held back."""
RULE = _numbers(
    "src", "dst", "qp", "opcode", "psn", "message", "occurrence", "nth", "count", "burst", "chance", "dice",
    "dice_step", "fitted", "hits", "left", "kind", "seen", "time_ns", "distance", "hit",
)  # fmt: skip
LOG = _numbers("event", "time_ps", "sent", "what", "rule", "sender", "opcode", "psn", "touched")


class World(NamedTuple):
    """Every array of a workload with faults.

    Args:
        control: One record.
        half: (halves,).
        host: (hosts,).
        follows: Next in a host's line, by sender (half * 2 + role).
        work: Open work requests, (halves * ring,).
        sizes: Lengths of messages drawn ahead, (halves, some).
        message: Scripted messages.
        nexts: Who waits for them.
        event: A heap.
        flight: (flights,).
        answer: (answers,).
        rule: (rules,).
        flow: (flows,).
        of_sender: Flow, source, destination and destination queue pair of each sender's frames.
        begins: Where the message of each rule that names one begins and ends, (flows, rules, 2).
        seen_key: Table of packets sent, the key plus one; 0 is free.
        seen: How often.
        timed: A heap of frames that leave at a time.
        queued: Frames that leave behind others.
        row: Rows of packets sent, filled.
        log: What became of them, filled.
    """

    control: NDArray[Any]
    half: NDArray[Any]
    host: NDArray[Any]
    follows: NDArray[np.int64]
    work: NDArray[Any]
    sizes: NDArray[np.int64]
    message: NDArray[Any]
    nexts: NDArray[np.int64]
    event: NDArray[Any]
    flight: NDArray[Any]
    answer: NDArray[Any]
    rule: NDArray[Any]
    flow: NDArray[Any]
    of_sender: NDArray[np.int64]
    begins: NDArray[np.int64]
    seen_key: NDArray[np.int64]
    seen: NDArray[np.int64]
    timed: NDArray[Any]
    queued: NDArray[Any]
    row: NDArray[Any]
    log: NDArray[Any]
