"""The schedule's records: halves, hosts, answers that are owed, and where they lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.law import NEVER_PS as FAR_PS

HALF = np.dtype(
    [
        # what it is
        ("src", "u4"),
        ("dst", "u4"),
        ("service", "u1"),
        ("scripted", "u1"),
        ("rule_verb", "u1"),
        ("arrival", "u1"),
        ("start_psn", "i8"),
        ("start_ps", "i8"),
        ("first_message", "i8"),  # scripted: its messages lie side by side from here
        ("count", "i8"),
        ("sizes", "i8"),  # quantile table
        ("depth", "i8"),
        ("rd_atomic", "i8"),
        ("ack_every", "i8"),
        ("coalesce", "i8"),
        ("hold_ps", "i8"),
        ("rate", "i8"),
        ("octet_cost", "i8"),
        ("packet_cost", "i8"),
        ("extra", "i8"),
        ("burst", "i8"),
        ("gap_ps", "i8"),
        ("on_ps", "i8"),
        ("off_ps", "i8"),
        ("overhead", "i8"),  # captured octets of a frame besides extended headers, payload and pads
        ("va", "u8"),
        ("dice", "u8"),
        # requester
        ("next_message", "i8"),
        ("message", "i8"),
        ("length", "i8"),
        ("packets", "i8"),
        ("packet", "i8"),
        ("position", "i8"),  # of the next packet among all PSNs; never wraps
        ("outstanding", "i8"),
        ("rd_outstanding", "i8"),
        ("since_ack", "i8"),
        ("due_ps", "i8"),
        ("due_rest", "i8"),
        ("burst_left", "i8"),
        ("on_until_ps", "i8"),
        ("verb", "u1"),
        ("queued", "u1"),  # waits for its host's line
        ("answer_queued", "u1"),
        # responder
        ("msn", "u4"),
        ("answer_head", "u4"),
        ("answer_tail", "u4"),
        ("free_head", "u4"),
        ("free_tail", "u4"),
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("line_bps", "i8"),
        ("delay_ps", "i8"),
        ("free_ps", "i8"),
        ("free_rest", "i8"),
        ("first", "i8"),  # who waits for the line; -1 nobody
        ("last", "i8"),
    ],
    align=True,
)

ANSWER = np.dtype(
    [
        ("ready_ps", "i8"),
        ("message", "i8"),
        ("position", "i8"),
        ("length", "i8"),
        ("done", "i8"),
        ("packets", "i8"),
        ("ends", "i8"),  # messages it settles
        ("merged", "i8"),
        ("msn", "u4"),
        ("shape", "u1"),
    ],
    align=True,
)

FREE = np.dtype([("time_ps", "i8"), ("ends", "i8"), ("reads", "i8")], align=True)

CONTROL = np.dtype(
    [
        ("halves", "i8"),
        ("hosts", "i8"),
        ("leaves", "i8"),
        ("ring", "i8"),  # answers a half may owe at one time: more than its depth
        ("mtu", "i8"),
        ("end_ps", "i8"),
        ("solicited", "u1"),
        ("syndrome", "u1"),
    ],
    align=True,
)


class World(NamedTuple):
    """Every array of a schedule.

    Args:
        control: One record.
        half: (halves,).
        host: (hosts,).
        message: Scripted messages, those of one half side by side.
        nexts: Messages by number, those that wait for one message side by side.
        sizes: Quantile tables, (laws, quantiles).
        answer: (halves * ring,).
        free: (halves * ring,).
        follows: Next in a host's line, by sender (half * 2 + role); -1 at the end.
        tree: Winner tree over senders and hosts; times in picoseconds.
    """

    control: NDArray[Any]
    half: NDArray[Any]
    host: NDArray[Any]
    message: NDArray[Any]
    nexts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    answer: NDArray[Any]
    free: NDArray[Any]
    follows: NDArray[np.int64]
    tree: NDArray[np.int64]


def world(
    control: dict[str, int],
    half: NDArray[Any],
    host: NDArray[Any],
    message: NDArray[Any],
    nexts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> World:
    """A schedule before its first packet."""
    halves, hosts = len(half), len(host)
    leaves = 1 << (2 * halves + hosts - 1).bit_length() if halves else 1
    record = np.zeros(1, CONTROL)
    for name, value in control.items():
        record[name] = value
    ring = 2 << (int(half["depth"].max(initial=1)) + 2).bit_length()
    record["halves"], record["hosts"], record["leaves"], record["ring"] = halves, hosts, leaves, ring
    host["first"] = host["last"] = -1
    tree = np.full(2 * leaves, FAR_PS, np.int64)
    made = World(
        record, half, host, message, nexts, sizes, np.zeros(halves * ring, ANSWER),
        np.zeros(halves * ring, FREE), np.full(2 * halves, -1, np.int64), tree,
    )  # fmt: skip
    half["due_ps"] = half["start_ps"]
    half["packet"] = half["packets"] = 0
    tree[leaves : leaves + 2 * halves : 2] = half["start_ps"]
    for place in range(leaves - 1, 0, -1):
        tree[place] = min(tree[2 * place], tree[2 * place + 1])
    return made
