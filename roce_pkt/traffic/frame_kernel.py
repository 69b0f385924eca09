"""Rows to octets, compiled: a template for each sender, patched; payload copied; ICRC computed.

Written frames lie side by side, each behind its record header, ready for a pcap or pcapng.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.capture.columns import header_bit
from roce_pkt.capture.kernel_crc import NET_IPV4, NET_IPV6, any_icrc
from roce_pkt.capture.kernel_put import copy_octets, put_record, record_bytes, writer
from roce_pkt.capture.kernel_transport import FOLLOWING
from roce_pkt.jit import borrow, fast_kernel, fast_law, put8, put16, put32
from roce_pkt.traffic import verbs
from roce_pkt.traffic.rows import RESPONDER
from roce_pkt.wire import ib

_U = np.uint64
SLACK_BYTES = 256
"""Room kept behind the last frame: templates and payloads are copied in whole words."""
TEMPLATE_BYTES = 96
"""Octets up to the end of the BTH, rounded up."""
TEMPLATES = 3
"""For each half: the requester's packets, the responder's answers with data, its acknowledgements."""
PATTERN_BYTES = 1 << 16
PATTERN_MASK = PATTERN_BYTES - 1

TEMPLATE = np.dtype(
    [
        ("l3", "u8"),  # first octet of the network header
        ("bth", "u8"),
        ("rkey", "u4"),
        ("qkey", "u4"),
        ("sqpn", "u4"),
        ("srqn", "u4"),
        ("ip_sum", "u4"),  # IPv4 header words added up, without length and identification
        ("sender", "u4"),  # whose identifications count
        ("network", "u1"),
        ("migreq", "u1"),
        ("chance", "u1"),  # payload by chance: another place in the pattern for each message
        ("count_id", "u1"),
    ],
    align=True,
)

_ANSWERS_WITH_DATA = np.array([op in verbs.READ_RESPONSE for op in range(256)], np.uint8)
_XRCETH, _DETH, _FETH, _RETH, _ATOMICETH, _AETH, _ATOMICACKETH, _IMMDT, _IETH = (
    _U(header_bit(h))
    for h in (ib.XRCETH, ib.DETH, ib.FETH, ib.RETH, ib.ATOMICETH, ib.AETH, ib.ATOMICACKETH, ib.IMMDT, ib.IETH)
)
_BTH_SIZE = _U(ib.BTH.size_bytes)
_put_xrceth, _put_deth, _put_feth = (
    writer(ib.XRCETH, "srqn"), writer(ib.DETH, "qkey", "sqpn"), writer(ib.FETH, "sel", "plt")
)  # fmt: skip
_put_reth = writer(ib.RETH, "va", "rkey", "dmalen")
_put_atomiceth = writer(ib.ATOMICETH, "va", "rkey", "swap", "compare")
_put_aeth, _put_atomicacketh = writer(ib.AETH, "syndrome", "msn"), writer(ib.ATOMICACKETH, "orig")
_put_immdt, _put_ieth = writer(ib.IMMDT, "data"), writer(ib.IETH, "rkey")


@fast_law
def swapped16(value):
    """16 bits with their octets exchanged."""
    value = _U(value)
    return np.uint16((value & _U(0xFF)) << _U(8) | (value >> _U(8)) & _U(0xFF))


@fast_law
def swapped32(value):
    """32 bits with their octets reversed."""
    value = _U(value)
    return np.uint32(
        (value & _U(0xFF)) << _U(24)
        | (value & _U(0xFF00)) << _U(8)
        | (value >> _U(8)) & _U(0xFF00)
        | (value >> _U(24)) & _U(0xFF)
    )


@fast_law
def extended(out, at, row, t):
    """The headers behind the BTH; returns where they end."""
    headers, none = _U(FOLLOWING[row.opcode]), _U(0)
    message = _U(row.message)
    if headers & _XRCETH:
        at = _put_xrceth(out, at, out, none, (_U(t.srqn),))
    if headers & _DETH:
        at = _put_deth(out, at, out, none, (_U(t.qkey), _U(t.sqpn)))
    if headers & _FETH:
        at = _put_feth(out, at, out, none, (none, _U(1)))
    if headers & _RETH:
        at = _put_reth(out, at, out, none, (_U(row.va), _U(t.rkey), _U(row.dmalen)))
    if headers & _ATOMICETH:
        at = _put_atomiceth(out, at, out, none, (_U(row.va), _U(t.rkey), message + _U(1), message))
    if headers & _AETH:
        at = _put_aeth(out, at, out, none, (_U(row.syndrome), _U(row.msn)))
    if headers & _ATOMICACKETH:
        at = _put_atomicacketh(out, at, out, none, (message,))
    if headers & _IMMDT:
        at = _put_immdt(out, at, out, none, (message,))
    if headers & _IETH:
        at = _put_ieth(out, at, out, none, (_U(t.rkey),))
    return at


@fast_law
def network_lengths(out, frame, end, t, ids):
    """Length fields, identification and checksum of the headers below the BTH."""
    l3 = frame + t.l3
    if _U(t.network) == NET_IPV4:
        total = np.uint32(end - l3)
        ident = np.uint32(0)
        if t.count_id:
            ident = ids[t.sender] & np.uint32(0xFFFF)
            ids[t.sender] += np.uint32(1)
        put16(out, l3 + _U(2), swapped16(total))
        put16(out, l3 + _U(4), swapped16(ident))
        put16(out, l3 + _U(24), swapped16(total - np.uint32(20)))
        total_sum = np.uint32(t.ip_sum + total + ident)
        total_sum = np.uint32((total_sum & np.uint32(0xFFFF)) + (total_sum >> np.uint32(16)))
        total_sum = np.uint32((total_sum & np.uint32(0xFFFF)) + (total_sum >> np.uint32(16)))
        put16(out, l3 + _U(10), swapped16(np.uint32(total_sum ^ np.uint32(0xFFFF))))
    elif _U(t.network) == NET_IPV6:
        size = np.uint32(end - l3 - _U(40))
        put16(out, l3 + _U(4), swapped16(size))
        put16(out, l3 + _U(44), swapped16(size))
    else:
        put16(out, l3 + _U(4), swapped16(np.uint32(end - l3 - _U(40))))


@fast_law
def one_frame(crc, row, t, templates, which, pattern, ids, out, frame):
    """Write one frame; returns where it ends."""
    way, table_at, scratch_at = crc
    copy_octets(out, frame, templates, which * _U(TEMPLATE_BYTES), _U(TEMPLATE_BYTES))
    bth = frame + t.bth
    payload = _U(row.payload)
    pads = (_U(4) - (payload & _U(3))) & _U(3)
    put8(out, bth, row.opcode)
    flags = row.solicited << 7 | t.migreq << 6 | np.uint8(pads) << 4
    put8(out, bth + _U(1), np.uint8(flags))
    put32(out, bth + _U(8), swapped32(np.uint32(np.uint32(row.ackreq) << np.uint32(31) | row.psn)))
    at = extended(out, bth + _BTH_SIZE, row, t)
    if payload:
        start = _U(row.offset) & _U(PATTERN_MASK)
        if t.chance:
            start = _U(row.offset + row.message * 977) & _U(PATTERN_MASK)
        copy_octets(out, at, pattern, start, payload)
        at += payload
        put32(out, at, np.uint32(0))
        at += pads
    end = at + _U(4)
    network_lengths(out, frame, end, t, ids)
    l3 = frame + t.l3
    value = any_icrc(_U(t.network), way, table_at, scratch_at, out, l3, at)
    put32(out, at, np.uint32(value))
    return end


@fast_kernel
def write(crc, rows, first, count, senders, templates, pattern, ids, file_format, out):
    """Write frames of rows until the rows or the room end.

    Args:
        crc: How it is computed: (`crc_way`, address of `slicing_table`, address of a scratch).
        rows: `ROW`s.
        first: First row to write.
        count: Rows there are.
        senders: `TEMPLATE`s, three a half.
        templates: Memory of their octets.
        pattern: Memory of the payload pattern, longer than `PATTERN_BYTES` by the longest payload.
        ids: IPv4 identifications by host.
        file_format: `PCAP` or `PCAPNG` of `capture.kernel_put`.
        out: Memory to write to.

    Returns:
        The first row not written, and the octets written.
    """
    rows, senders, ids = borrow(rows), borrow(senders), borrow(ids)
    at = _U(0)
    n = first
    head = record_bytes(_U(file_format))
    while n < count:
        row = rows[n]
        most = head + _U(TEMPLATE_BYTES) + _U(64) + _U(row.payload) + _U(SLACK_BYTES)
        if at + most > out[1]:
            break
        which = _U(row.half) * _U(TEMPLATES)
        if row.role == RESPONDER:
            which += _U(1) if _ANSWERS_WITH_DATA[row.opcode] else _U(2)
        t = senders[which]
        frame = at + head
        end = one_frame(crc, row, t, templates, which, pattern, ids, out, frame)
        at = put_record(out, at, end, _U(file_format), row.time_ps // 1000, _U(0))
        n += 1
    return n, at
