"""Everything the engine remembers, as arrays of records; and their names inside compiled code.

Numbers of nodes, ports, halves and packets are 32-bit; 0 is "none" for packets. A `cell` is
port * 8 + class. A half is one end of a queue pair: it requests, responds, or both.
"""

from __future__ import annotations

import numpy as np

from roce_pkt.cc.feedback import MAX_HOPS
from roce_pkt.engine.layout import in_lines
from roce_pkt.engine.units import BY_ADDRESS

SHIFT = 16
"""An event's key is time << SHIFT | source, so that the smallest key is the earliest event."""
SOURCE_MASK = (1 << SHIFT) - 1
FAR_PS = 1 << 46
"""No event is later: 70 s of simulated time in 63 bits beside the source."""
IDLE_KEY = FAR_PS << SHIFT
BLOCK_SHIFT = 4
BLOCK = 1 << BLOCK_SHIFT
"""Nodes that share a bound on their earliest event."""
CLASSES = 8

DATA, READ_REQUEST, READ_RESPONSE, ATOMIC_REQUEST, ATOMIC_RESPONSE = 0, 1, 2, 3, 4
ACK, NAK, RNR_NAK, CNP, PAUSE, DAMAGED = 5, 6, 7, 8, 9, 10
KINDS = (
    "data", "read_request", "read_response", "atomic_request", "atomic_response",
    "ack", "nak", "rnr_nak", "cnp", "pause", "damaged",
)  # fmt: skip

FIRST, LAST, ACK_REQUEST, AGAIN, ECHO, STRUCK, PASSED = 1, 2, 4, 8, 16, 32, 64
"""Flags of a packet: place in its message, AckReq, sent before; of an ACK: BECN, the packet was marked;
a fault was done to it, its faults are decided."""

SEND, WRITE, READ, ATOMIC = range(4)
SERVICES = ("rc", "uc", "ud")
RC, UC, UD = range(3)

WORLD = np.dtype(
    [
        # how far the run is
        ("now_ps", "i8"),
        ("free", "u4"),  # head of the list of free packets
        ("fresh", "u4"),  # first packet never used
        ("stop", "u4"),  # a reason to return to Python, below
        ("lookahead_ps", "i8"),
        ("next_sample_ps", "i8"),
        ("sample_every_ps", "i8"),
        ("samples", "u4"),
        ("rows", "u4"),  # event rows written
        ("frames", "u4"),  # frame rows written
        ("trace", "u4"),  # 1: write event rows
        ("events", "i8"),
        ("data_sent", "i8"),
        ("frames_sent", "i8"),
        ("ended_ps", "i8"),
        # where the arrays are, and how long
        ("node_array", "u8"),
        ("port_array", "u8"),
        ("line_array", "u8"),
        ("group_array", "u8"),
        ("half_array", "u8"),
        ("rp_array", "u8"),
        ("watch_array", "u8"),
        ("packet_array", "u8"),
        ("tree_array", "u8"),
        ("turns_array", "u8"),
        ("top_array", "u8"),
        ("route_array", "u8"),
        ("path_array", "u8"),
        ("histogram_array", "u8"),
        ("row_array", "u8"),
        ("frame_array", "u8"),
        ("queues_array", "u8"),
        ("rates_array", "u8"),
        ("cc_array", "u8"),
        ("np_array", "u8"),
        ("ack_array", "u8"),
        ("flowlet_array", "u8"),
        ("before_array", "u8"),
        ("telemetry_array", "u8"),
        ("work_array", "u8"),
        ("message_array", "u8"),
        ("wait_array", "u8"),
        ("next_array", "u8"),
        ("manner_array", "u8"),
        ("rule_array", "u8"),
        ("hit_array", "u8"),
        ("seen_array", "u8"),
        ("opcode_array", "u8"),
        ("headers_array", "u8"),
        ("unchecked_array", "u8"),
        ("rp_bytes", "u8"),  # of one state of the law
        *((name, "u8") for name in BY_ADDRESS),  # where machine code is that not every run needs
        # the law that is called by address; 0 where it has no such function
        ("on_ack", "u8"),
        ("on_cnp", "u8"),
        ("on_timer", "u8"),
        ("failed_call", "u4"),  # which of them failed
        ("failed_ps", "i8"),
        ("nodes", "u4"),
        ("blocks", "u4"),  # of nodes
        ("ports", "u4"),
        ("halves", "u4"),
        ("packets", "u4"),
        ("routes", "u4"),
        ("paths", "u4"),
        ("row_limit", "u4"),
        ("frame_limit", "u4"),
        ("sample_limit", "u4"),
        # what the scenario sets for all
        ("buffer_bytes", "i8"),
        ("ecn", "u1"),
        ("mark_at_dequeue", "u1"),
        ("pause_mode", "u1"),
        ("reacts", "u1"),  # 1: DCQCN
        ("called", "u1"),  # 1: a law by address, 2: a user's own
        ("repaces", "u1"),  # a new rate also moves the packet that waits
        ("notifies", "u1"),  # 0: marks are not answered by notification packets
        ("routing", "u1"),  # among equal ways: by flow, flowlet, or packet
        ("flowlet_gap_ps", "i8"),
        ("echoes", "u1"),  # 1: they come back in acknowledgements
        ("telemetry_words", "u4"),  # for each packet: when sent, hops, then a word a hop
        ("int_scale", "i8"),
        ("ack_class", "u1"),
        ("cnp_class", "u1"),
        ("cnp_on_nack", "u1"),
        ("ack_every", "u4"),
        ("mtu_bytes", "u4"),
        ("min_bytes", "u4"),  # a shorter frame is padded to this
        ("gap_bytes", "u4"),  # preamble and gap behind each frame
        ("ack_bytes", "u4"),
        ("cnp_bytes", "u4"),
        ("read_request_bytes", "u4"),
        ("atomic_request_bytes", "u4"),
        ("atomic_response_bytes", "u4"),
        ("pause_bytes", "u4"),
        ("quanta", "u4"),
        ("resume_bytes", "i8"),
        ("response_ps", "i8"),
        ("quantum_ps", "i8"),
        ("rnr_wait_ps", "i8"),
        ("rnr_code", "u4"),
        ("repost_ps", "i8"),
        ("read_resources", "i8"),
        ("selective_array", "u8"),
        ("selective", "u1"),  # 1: selective repeat, not go-back-N
        ("reordering", "i8"),
        ("rto_low_ps", "i8"),
        ("rto_high_ps", "i8"),
        ("rules", "u4"),  # faults
        ("hits", "u4"),  # faults done, the first is 1
        ("hit_limit", "u4"),
        ("seen_slots", "u4"),
        ("seen_used", "u4"),
    ],
    align=True,
)
"""The one record `w` that every function of the engine takes."""

GO, POOL_EMPTY, ROWS_FULL, FRAMES_FULL, SAMPLES_FULL, LAW_FAILED, FAULTS_FULL = range(7)
BUILT_IN, OWN = 1, 2
"""`called`: whose law is called by address."""

NO_PAUSE, PFC, PAUSE_8023 = 0, 1, 2
PER_FLOW, PER_FLOWLET, PER_PACKET = range(3)
ROUTINGS = ("ecmp", "flowlet", "per-packet")
FLOWLET_MASK = 0xFFF
"""A switch remembers this many flowlets, less one."""
FLOWLET = np.dtype([("last_ps", "i8"), ("turn", "i8")], align=True)

NODE = np.dtype(
    [
        ("shared_used_bytes", "i8"),
        ("shared_total_bytes", "i8"),
        ("base", "u4"),  # of its tree
        ("leaves", "u4"),
        ("timers", "u4"),  # host: base of the tree of its queue pairs' timers
        ("halves", "u4"),  # host: leaves of it
        ("ports", "u4"),
        ("first_port", "u4"),
        ("first_half", "u4"),
        ("route", "u4"),  # of its routing table, one entry a host
        ("flowlets", "u4"),  # first of its flowlet entries
        ("salt", "u4"),  # of its ECMP hash
        ("host", "u1"),
    ],
    align=True,
)

PORT = in_lines(
    [
        ("free_ps", "i8"),  # when the frame being sent ends
        ("known_ps", "i8"),
        ("known_size", "i8"),
        ("ps_per_byte", "i8"),
        ("delay_ps", "i8"),
        ("limit_ps_per_byte", "i8"),  # of a rate-limited host
        ("node", "u4"),
        ("peer", "u4"),
        ("turn_root", "u4"),  # host: root of the tree of queue pairs, when they send in one class
        ("base", "u4"),
        ("arrival_leaf", "u4"),
        ("send_leaf", "u4"),
        ("pause_leaf", "u4"),
        ("arriving", "u4"),  # head and tail of what is on the wire towards this port
        ("arriving_last", "u4"),
        ("control", "u4"),  # pause frames to send, before anything else
        ("control_last", "u4"),
        ("obeying", "u4"),  # pause frames received that take effect later
        ("obeying_last", "u4"),
        ("backlog", "u1"),  # classes with frames queued
        ("paused", "u1"),
        ("speed", "u1"),  # its rate as the code in telemetry
        ("paced", "u1"),  # host: classes that queue pairs send in
        ("several", "u1"),  # host: more than one such class
        ("weighted", "u1"),  # classes under deficit round robin
        ("turn", "u1"),
        ("turn_open", "u1"),
        ("host", "u1"),
        ("cut_through", "u1"),  # towards a switch that forwards at the header
        ("xoff", "u1"),  # classes this port has stopped at its peer
        ("tap", "u1"),
        ("dice", "i8"),
        ("dice_step", "i8"),
        ("pause_due_ps", "i8"),
        ("quantum_ps", "i8"),
        ("refresh_ps", "i8"),
        ("sent_bytes", "i8"),
        ("kmin_bytes", "i8"),
        ("kmax_bytes", "i8"),
        ("pmax", "f8"),
        ("ignores", "u1"),  # classes whose pauses the watchdog has made it ignore
        ("discards", "u1"),  # classes whose frames it drops instead; host: not 0 when faults may be done
        ("held", "u4"),  # host: frames that faults hold back
        # statistics
        ("queued_bytes", "i8"),
        ("queued_since_ps", "i8"),
        ("queue_max_bytes", "i8"),
        ("queue_byte_ps", "f8"),
        ("marked", "i8"),
        ("xoffs", "i8"),
        ("xons", "i8"),
        ("drops", "i8"),
    ]
)

LINE = in_lines(
    [
        ("first", "u4"),
        ("last", "u4"),
        ("queued_bytes", "i8"),
        ("deficit_bytes", "i8"),
        ("quantum_bytes", "i8"),
        ("paused_until_ps", "i8"),
        ("paused_since_ps", "i8"),
        ("paused_ps", "i8"),
        ("pauses", "u4"),  # pause frames for this class that came in
        ("tree", "u4"),  # host: queue pairs of this class by the time they may send
    ]
)

GROUP = in_lines(
    [
        ("used_bytes", "i8"),
        ("reserve_bytes", "i8"),
        ("headroom_bytes", "i8"),
        ("headroom_used_bytes", "i8"),
        ("alpha", "f8"),
        ("refresh_due_ps", "i8"),
        ("lossless", "u1"),
    ]
)

HALF = in_lines(
    [
        # sending, every packet: two cache lines
        ("snd", "i8"),
        ("una", "i8"),
        ("limit", "i8"),
        ("window", "i8"),
        ("high", "i8"),
        ("hold_until_ps", "i8"),
        ("retry_at_ps", "i8"),
        ("avail_ps", "i8"),
        ("offset", "u4"),
        ("message_packets", "u4"),
        ("cell", "u4"),
        ("port", "u4"),
        ("tree_leaf", "u4"),
        ("peer", "u4"),
        ("hash", "u4"),
        ("again", "u4"),
        ("limit_bps", "f8"),
        ("sent", "i8"),
        ("dst", "u2"),
        ("head_bytes", "u2"),  # octets around the payload of any packet of this half
        ("first_bytes", "u2"),  # more on the first packet of a message
        ("last_bytes", "u2"),  # more on the last
        ("last_payload", "u2"),
        ("since_ack", "u2"),
        ("paced_bytes", "u2"),  # of the packet the pacer last let go
        ("failed", "u1"),
        ("idle", "u1"),  # its leaf among the class's queue pairs says "nothing to send"
        ("sends", "u1"),  # kind of packet this half sends when paced
        ("class_", "u1"),
        ("rnr_left", "u1"),
        ("listed", "u1"),  # its messages differ: it requests, or answers, those of a list
        ("work", "u4"),  # which
        # receiving, every packet: a third line
        ("expected", "i8"),
        ("received_bytes", "i8"),
        ("msn", "u4"),
        ("np", "u4"),
        ("ce", "u4"),
        ("cnps", "u4"),
        ("verb", "u1"),
        ("service", "u1"),
        ("refused", "u1"),
        ("np_timed", "u1"),
        ("repeating", "u1"),  # READ requester: asked again, later responses are ignored
        ("retry_cnt", "u1"),
        ("retries_left", "u1"),
        ("rnr_retry", "u1"),
        ("progress_ps", "i8"),
        ("message_end", "i8"),
        # the rest
        ("window_most", "i8"),  # what a law's window stays below
        ("messages", "i8"),
        ("timeout_ps", "i8"),
        ("timer_ps", "i8"),  # what its leaf is armed for
        ("timer_leaf", "u4"),
        ("naks", "u4"),
        ("timeouts", "u4"),
        ("receives", "i8"),
        ("receives_posted", "i8"),
        ("receives_due_ps", "i8"),
        ("ended_ps", "i8"),
        ("cnps_taken", "u4"),  # notifications that reached this half as a sender
        ("cnps_lost", "u4"),
        ("cnp_delay_ps", "i8"),  # of all together
        ("cnp_delay_max_ps", "i8"),
        ("damaged", "u4"),  # frames that arrived with a wrong ICRC
        ("qpn", "u4"),
        ("start_psn", "u4"),
        ("manner", "u1"),
    ]
)

PACKET = in_lines(
    [
        ("time_ps", "i8"),  # on a wire: when the packet behind it arrives; a pause: when it is obeyed
        ("psn", "i8"),  # position in its queue pair's stream; never wraps
        ("next", "u4"),
        ("half", "u4"),  # that will receive it
        ("hash", "u4"),
        ("group", "u4"),  # cell of the port it came in by
        ("count", "u4"),  # READ request: packets asked for; pause: quanta; answers: MSN
        ("dst", "u2"),
        ("size", "u2"),
        ("payload", "u2"),
        ("kind", "u1"),
        ("class_", "u1"),
        ("ecn", "u1"),
        ("flags", "u1"),
        ("hit", "u4"),  # last fault done to it, when STRUCK
    ]
)

ROUTE = np.dtype([("first", "u4"), ("count", "u4")], align=True)
"""The port itself when there is one way, else the first of `count` places in the array of paths."""

EVENT_ROW = np.dtype(
    [
        ("time_ps", "i8"),
        ("kind", "u4"),
        ("half", "u4"),
        ("port", "u4"),
        ("number", "i8"),
        ("phase", "i8"),
        ("rate_bps", "f8"),
        ("target_bps", "f8"),
        ("alpha", "f8"),
    ],
    align=True,
)
FRAME_ROW = np.dtype(
    [
        ("at_ps", "i8"),
        ("psn", "i8"),
        ("port", "u4"),
        ("half", "u4"),
        ("count", "u4"),
        ("size", "u2"),
        ("payload", "u2"),
        ("sent", "u1"),  # 1: left by this port, 0: came in
        ("kind", "u1"),
        ("class_", "u1"),
        ("ecn", "u1"),
        ("flags", "u1"),
        ("hit", "u4"),  # last fault done to it, or 0
        ("telemetry", "u8", (1 + MAX_HOPS,)),  # hops, then a word for each; only where the law has them
    ],
    align=True,
)

RATE_SAMPLE = np.dtype(
    [("rate_bps", "f8"), ("target_bps", "f8"), ("alpha", "f8"), ("received_bytes", "i8")], align=True
)
SHORTEST_WIRE_BYTES = 60
"""No frame is shorter on the wire: part of the look-ahead."""

BINS = 1024
"""Bins of a port's queue histogram."""

MARGIN_ROWS = 256
"""A buffer counts as full this many rows early: more than one event ever writes."""


def blocks_of(nodes: int) -> int:
    """Blocks that hold so many nodes."""
    return -(-nodes // BLOCK)
