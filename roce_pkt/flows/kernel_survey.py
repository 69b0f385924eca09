"""The first pass over a batch, compiled: flows found, frames reduced and counted in one walk.

What `survey.py` does with numpy, for captures of millions; a test holds both to the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.capture.columns import KIND_ROCEV1, KIND_ROCEV2, STATUS_CODES, header_bit
from roce_pkt.flows import rows as reduced
from roce_pkt.flows import size
from roce_pkt.flows.rows import IS_ACK, IS_ANSWER, IS_DATA, IS_DATAGRAM
from roce_pkt.flows.survey import Sums
from roce_pkt.flows.table import EMPTY
from roce_pkt.jit import borrow, fast_kernel, fast_law
from roce_pkt.wire import ib
from roce_pkt.wire.opcode import CNP

FLOWS, CNPS, DATAGRAMS, ROWS = range(4)
"""Counters a walk keeps."""
_FRAMES, _DATA, _OCTETS, _WIRE, _LAST_OCTETS, _FIRST, _LAST, _ECN = (
    Sums.AT[name]
    for name in (
        "frames",
        "data_frames",
        "octets",
        "wire_octets",
        "last_octets",
        "first_ns",
        "last_ns",
        "ecn0",
    )
)
_OPCODE_ACK, _OPCODE_ANSWER, _OPCODE_DATAGRAM = 1, 2, 4
OPCODE_BITS = (
    IS_ACK * _OPCODE_ACK
    + IS_ANSWER * _OPCODE_ANSWER
    + IS_DATAGRAM * _OPCODE_DATAGRAM
    + IS_DATA * reduced.DATA
).astype(np.uint8)
_BTH = header_bit(ib.BTH)
_V1, _V2, _OK, _CUT = KIND_ROCEV1, KIND_ROCEV2, STATUS_CODES["ok"], STATUS_CODES["cut"]
_CE, _INTACT, _ANSWERS, _NAK, _DATA_BIT, _NOTIFIES = (
    reduced.CE, reduced.INTACT, reduced.ANSWERS, reduced.NAK, reduced.DATA, reduced.NOTIFIES
)  # fmt: skip
_NAK_TYPE, _SEQUENCE, _UNTAGGED, _ECN_CE = (
    reduced.NAK_TYPE, reduced.NAK_SEQUENCE_ERROR, reduced.UNTAGGED, reduced.ECN_CE
)  # fmt: skip
_ETH, _VLAN, _IPV6, _GRH, _LEAST, _OVERHEAD = (
    size.ETHERNET_BYTES, size.VLAN_BYTES, size.IPV6_BYTES, size.GRH_BYTES, size.MIN_FRAME_BYTES,
    size.LINK_OVERHEAD_BYTES,
)  # fmt: skip

INPUTS = (
    "number", "time_ns", "kind", "status", "headers", "opcode", "psn", "dqpn", "syndrome", "ecn", "icrc_ok",
    "eth_src", "eth_dst", "ip_version", "ip_len", "paylen", "vlan_count", "pcp", "dscp", "interface_id",
    "wire_len", "src_hi", "src_lo", "dst_hi", "dst_lo",
)  # fmt: skip
"""Columns the walk reads, in its order."""


@fast_law
def find(slots: Any, keys: Any, count: int, a: Any, b: Any, c: Any, d: Any, e: Any) -> int:
    """The number of a key; `count` when it is new, its slot and row then taken."""
    mixed = (a ^ (b * np.uint64(0x9E3779B97F4A7C15))) ^ (c * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed ^ (d * np.uint64(0x165667B19E3779F9))) + e * np.uint64(0x27D4EB2F165667C5)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mask = np.uint64(len(slots) - 1)
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while True:
        number = slots[at]
        if number == EMPTY:
            slots[at] = count
            keys[count, 0], keys[count, 1], keys[count, 2], keys[count, 3], keys[count, 4] = a, b, c, d, e
            return count
        if (
            keys[number, 1] == b and keys[number, 3] == d and keys[number, 4] == e
            and keys[number, 0] == a and keys[number, 2] == c
        ):  # fmt: skip
            return int(number)
        at = (at + np.uint64(1)) & mask


@fast_kernel
def index(slots: Any, keys: Any, start: int, stop: int) -> None:
    """Put keys that are in their rows already into the slots."""
    for row in range(start, stop):
        find(slots, keys, row, keys[row, 0], keys[row, 1], keys[row, 2], keys[row, 3], keys[row, 4])


LOW, HIGH, BACKWARDS, FIRST_BACKWARDS, WRONG, FIRST_WRONG = range(6)
GLANCED = 6
"""What a glance finds: times, frames earlier than the one before, wrong ICRCs; rows of the first."""


@fast_kernel
def glance(time_ns: Any, kind: Any, icrc_ok: Any, latest_ns: int, kinds: Any, found: Any) -> None:
    """Look at every frame of a batch, RoCE or not.

    Args:
        time_ns: Of each; there is at least one.
        kind: Of each.
        icrc_ok: Of each.
        latest_ns: Time of the frame before the first.
        kinds: Frames of each kind, added to.
        found: Filled: `GLANCED` numbers.
    """
    low, high, before = time_ns[0], time_ns[0], latest_ns
    backwards, first_backwards, wrong, first_wrong = 0, -1, 0, -1
    for row in range(len(time_ns)):
        now = time_ns[row]
        low, high = min(low, now), max(high, now)
        if now < before:
            backwards += 1
            if first_backwards < 0:
                first_backwards = row
        before = now
        kinds[kind[row]] += 1
        if icrc_ok[row] == 0:
            wrong += 1
            if first_wrong < 0:
                first_wrong = row
    found[LOW], found[HIGH], found[BACKWARDS], found[FIRST_BACKWARDS] = low, high, backwards, first_backwards
    found[WRONG], found[FIRST_WRONG] = wrong, first_wrong


@fast_kernel
def walk(start: int, columns: Any, out: Any, tables: Any, sums: Any, links: Any, counts: Any) -> int:
    """Reduce the frames of a batch from `start` on.

    Args:
        start: First row.
        columns: Arrays of `INPUTS`.
        out: Arrays of `Rows`, as long as the columns.
        tables: Slots and keys of the flows, then of the notifications.
        sums: `Sums.table`; as many rows as the flows' keys.
        links: Destination MAC, source MAC and interface of each flow's first frame.
        counts: Flows, notifications by key, datagrams, rows so far.

    Returns:
        The row at which a table is full, or the end.
    """
    (
        number, time_ns, kind, status, headers, opcode, psn, dqpn, syndrome, ecn, icrc_ok,
        eth_src, eth_dst, ip_version, ip_len, paylen, vlan_count, pcp, dscp, interface,
        wire_len, src_hi, src_lo, dst_hi, dst_lo,
    ) = columns  # fmt: skip
    o_number, o_time, o_flow, o_octets, o_psn, o_opcode, o_flags, o_src, o_dst, o_if, o_dscp, o_pcp = out
    flow_slots, flow_keys, cnp_slots, cnp_keys, cnp_counts, bits = tables
    flow_slots, flow_keys, sums = borrow(flow_slots), borrow(flow_keys), borrow(sums)
    cnp_slots, cnp_keys = borrow(cnp_slots), borrow(cnp_keys)
    made, flows, cnps, datagrams = counts[ROWS], counts[FLOWS], counts[CNPS], counts[DATAGRAMS]
    row = start
    while row < len(number):
        if (kind[row] != _V1 and kind[row] != _V2) or headers[row] & np.uint32(_BTH) == 0:
            row += 1
            continue
        if flows + 1 >= len(flow_keys) or cnps + 1 >= len(cnp_keys):
            break
        code = opcode[row]
        known = bits[code]
        octets = np.int64(ip_len[row])
        if ip_version[row] == 6:
            octets += _IPV6
        if kind[row] == _V1:
            octets = np.int64(paylen[row]) + _GRH
        octets += _ETH + _VLAN * np.int64(vlan_count[row])
        if status[row] != _OK and status[row] != _CUT:
            octets = np.int64(wire_len[row])
        octets = max(octets, np.int64(_LEAST))
        marked = ecn[row] == _ECN_CE and kind[row] == _V2
        flags = known & np.uint8(_DATA_BIT)
        if marked:
            flags |= np.uint8(_CE)
        if icrc_ok[row] != 0:
            flags |= np.uint8(_INTACT)
        refused = known & _OPCODE_ACK != 0 and syndrome[row] >> 5 & 3 == _NAK_TYPE
        if known & _OPCODE_ANSWER != 0 and not refused:
            flags |= np.uint8(_ANSWERS)
        if refused and syndrome[row] == _SEQUENCE:
            flags |= np.uint8(_NAK)
        a, b, c, d = src_hi[row], src_lo[row], dst_hi[row], dst_lo[row]
        e = np.uint64(dqpn[row])
        if code == CNP:
            flags |= np.uint8(_NOTIFIES)
            flow = find(cnp_slots, cnp_keys, cnps, a, b, c, d, e)
            cnps = max(cnps, flow + 1)
            cnp_counts[flow] += 1
        else:
            flow = find(flow_slots, flow_keys, flows, a, b, c, d, e)
            if flow == flows:
                flows += 1
                links[flow, 0], links[flow, 1] = eth_dst[row], eth_src[row]
                links[flow, 2] = interface[row]
            sums[flow, _FRAMES] += 1
            sums[flow, _DATA] += known & _DATA_BIT != 0
            sums[flow, _OCTETS] += np.int64(wire_len[row])
            sums[flow, _WIRE] += octets + _OVERHEAD
            sums[flow, _LAST_OCTETS] = octets + _OVERHEAD
            sums[flow, _FIRST] = min(sums[flow, _FIRST], time_ns[row])
            sums[flow, _LAST] = max(sums[flow, _LAST], time_ns[row])
            if kind[row] == _V2:
                sums[flow, _ECN + np.int64(ecn[row])] += 1
            datagrams += known & _OPCODE_DATAGRAM != 0
        o_number[made], o_time[made], o_flow[made], o_octets[made] = number[row], time_ns[row], flow, octets
        o_psn[made], o_opcode[made], o_flags[made] = psn[row], code, flags
        o_src[made], o_dst[made], o_if[made] = eth_src[row], eth_dst[row], interface[row]
        o_dscp[made] = dscp[row]
        o_pcp[made] = pcp[row] if vlan_count[row] > 0 else _UNTAGGED
        made += 1
        row += 1
    counts[ROWS], counts[FLOWS], counts[CNPS], counts[DATAGRAMS] = made, flows, cnps, datagrams
    return row
