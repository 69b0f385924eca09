"""What the engine remembers of queue pairs whose messages are not all the same: lists of messages."""

from __future__ import annotations

import numpy as np

PLAIN, REQUESTS, RESPONDS = range(3)
"""`listed`: one length over and over; or the requester, the responder of a list."""

WORK = np.dtype(
    [
        ("first", "u4"),  # of its messages
        ("end", "u4"),  # behind its last; one more record there holds the position behind all
        ("posted", "u4"),  # next to post
        ("open", "u4"),  # oldest that is not complete
        ("current", "u4"),  # of the requester's `snd`
        ("answering", "u4"),  # of the responder's `snd`
        ("arriving", "u4"),  # next whose end the responder expects
        ("depth", "u4"),
        ("reads", "u4"),  # READs and ATOMICs posted and not complete
        ("reads_most", "u4"),
        ("requester", "u4"),
        ("waits", "u1"),  # 1: messages wait for others
        ("owed", "u1"),  # 1: an acknowledgement is held back behind READ responses
        ("due_ps", "i8"),  # when the next message may be posted, if only time is missing
        ("owed_ps", "i8"),  # when what is held back may leave
    ],
    align=True,
)
"""The messages of one requester, when they are not all the same."""

MESSAGE = np.dtype(
    [
        ("start", "i8"),  # position of its first packet
        ("ready_ps", "i8"),  # when it may be posted (negative: when there is room), then when it was
        ("done_ps", "i8"),  # when it was complete for its requester; negative before
        ("length", "u4"),
        ("manner", "u1"),  # row of the table of manners
    ],
    align=True,
)

WAIT = np.dtype(
    [
        ("work", "u4"),
        ("needs", "u4"),  # messages that must be done before it
        ("first_next", "u4"),  # of those that wait for it: first the ones that see it arrive,
        ("arrivals", "u4"),
        ("completions", "u4"),  # then the ones that learn that it is complete
        ("delay_ps", "i8"),  # from the last that it waits for to its posting
    ],
    align=True,
)
"""What a scripted message waits for and who waits for it; beside the first records of MESSAGE."""

MANNER = np.dtype(
    [
        ("sends", "u1"),  # kind of its packets
        ("verb", "u1"),
        ("first_bytes", "u2"),
        ("last_bytes", "u2"),
    ],
    align=True,
)
"""How a verb travels over a service."""
