"""Rows to octets, compiled: a template for each sender, patched; payload copied; ICRC computed.

Written frames lie side by side, each behind its record header, ready for a pcap or pcapng.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np
from llvmlite import ir

from roce_pkt.capture.kernel_crc import icrc_law
from roce_pkt.jit import borrow, fast_kernel, fast_law, intrinsic, place_of, put8, put16, put32
from roce_pkt.traffic import verbs
from roce_pkt.traffic.rows import RESPONDER

_U = np.uint64
IPV4, IPV6, GRH = 0, 1, 2
PCAP, PCAPNG = 0, 1
RECORD_BYTES = (16, 28)
"""Octets in front of a frame: pcap record header, pcapng enhanced packet block."""
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

HEADER_SET = verbs.HEADER_SET
_ANSWERS_WITH_DATA = np.array([op in verbs.READ_RESPONSE for op in range(256)], np.uint8)
XRCETH, DETH, FETH, RETH, ATOMICETH, AETH, ATOMICACKETH, IMMDT, IETH = (
    verbs.bit_of(n)
    for n in ("xrceth", "deth", "feth", "reth", "atomiceth", "aeth", "atomicacketh", "immdt", "ieth")
)
_icrc_v4, _icrc_v6, _icrc_grh = icrc_law("ipv4"), icrc_law("ipv6"), icrc_law("grh")


@intrinsic
def copy(typingctx, target, at, source, start, size):  # noqa: ARG001
    """Copy octets from one memory to another."""
    from numba import types

    def codegen(context, builder, signature, args):  # noqa: ARG001
        octet = ir.IntType(8)
        to, from_ = place_of(builder, args[0], args[1], octet), place_of(builder, args[2], args[3], octet)
        pointer, int64 = octet.as_pointer(), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, int64, ir.IntType(1)])
        name = "llvm.memcpy.p0.p0.i64"
        call = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(call, [to, from_, args[4], ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(target, types.uint64, source, types.uint64, types.uint64), codegen


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
def put_be64(out, at, value):
    """Store 64 bits big-endian."""
    put32(out, at, swapped32(_U(value) >> _U(32)))
    put32(out, at + _U(4), swapped32(_U(value) & _U(0xFFFFFFFF)))


@fast_law
def extended(out, at, row, t):
    """The headers behind the BTH; returns where they end."""
    headers = HEADER_SET[row.opcode]
    if headers & XRCETH:
        put32(out, at, swapped32(t.srqn))
        at += _U(4)
    if headers & DETH:
        put32(out, at, swapped32(t.qkey))
        put32(out, at + _U(4), swapped32(t.sqpn))
        at += _U(8)
    if headers & FETH:
        put32(out, at, swapped32(np.uint32(1)))
        at += _U(4)
    if headers & RETH:
        put_be64(out, at, row.va)
        put32(out, at + _U(8), swapped32(t.rkey))
        put32(out, at + _U(12), swapped32(row.dmalen))
        at += _U(16)
    if headers & ATOMICETH:
        put_be64(out, at, row.va)
        put32(out, at + _U(8), swapped32(t.rkey))
        put_be64(out, at + _U(12), row.message + 1)
        put_be64(out, at + _U(20), row.message)
        at += _U(28)
    if headers & AETH:
        put32(out, at, swapped32(np.uint32(np.uint32(row.syndrome) << np.uint32(24) | row.msn)))
        at += _U(4)
    if headers & ATOMICACKETH:
        put_be64(out, at, row.message)
        at += _U(8)
    if headers & IMMDT:
        put32(out, at, swapped32(np.uint32(row.message & 0xFFFFFFFF)))
        at += _U(4)
    if headers & IETH:
        put32(out, at, swapped32(t.rkey))
        at += _U(4)
    return at


@fast_law
def network_lengths(out, frame, end, t, ids):
    """Length fields, identification and checksum of the headers below the BTH."""
    l3 = frame + t.l3
    if t.network == IPV4:
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
    elif t.network == IPV6:
        size = np.uint32(end - l3 - _U(40))
        put16(out, l3 + _U(4), swapped16(size))
        put16(out, l3 + _U(44), swapped16(size))
    else:
        put16(out, l3 + _U(4), swapped16(np.uint32(end - l3 - _U(40))))


@fast_law
def one_frame(function, tab, scratch, row, t, templates, which, pattern, ids, out, frame):
    """Write one frame; returns where it ends."""
    copy(out, frame, templates, which * _U(TEMPLATE_BYTES), _U(TEMPLATE_BYTES))
    bth = frame + t.bth
    payload = _U(row.payload)
    pads = (_U(4) - (payload & _U(3))) & _U(3)
    put8(out, bth, row.opcode)
    flags = row.solicited << 7 | t.migreq << 6 | np.uint8(pads) << 4
    put8(out, bth + _U(1), np.uint8(flags))
    put32(out, bth + _U(8), swapped32(np.uint32(np.uint32(row.ackreq) << np.uint32(31) | row.psn)))
    at = extended(out, bth + _U(12), row, t)
    if payload:
        start = _U(row.offset) & _U(PATTERN_MASK)
        if t.chance:
            start = _U(row.offset + row.message * 977) & _U(PATTERN_MASK)
        copy(out, at, pattern, start, payload)
        at += payload
        put32(out, at, np.uint32(0))
        at += pads
    end = at + _U(4)
    network_lengths(out, frame, end, t, ids)
    l3 = frame + t.l3
    if t.network == IPV4:
        value = _icrc_v4(function, tab, out, l3, at, scratch)
    elif t.network == IPV6:
        value = _icrc_v6(function, tab, out, l3, at, scratch)
    else:
        value = _icrc_grh(function, tab, out, l3, at, scratch)
    put32(out, at, np.uint32(value))
    return end


@fast_law
def record_header(out, at, file_format, time_ns, size):
    """What a capture file puts in front of a frame."""
    if file_format == PCAP:
        put32(out, at, np.uint32(time_ns // 1_000_000_000))
        put32(out, at + _U(4), np.uint32(time_ns % 1_000_000_000))
        put32(out, at + _U(8), np.uint32(size))
        put32(out, at + _U(12), np.uint32(size))
        return
    block = _U(32) + (size + _U(3) & ~_U(3))
    put32(out, at, np.uint32(6))  # enhanced packet block
    put32(out, at + _U(4), np.uint32(block))
    put32(out, at + _U(8), np.uint32(0))
    put32(out, at + _U(12), np.uint32(time_ns >> 32))
    put32(out, at + _U(16), np.uint32(time_ns & 0xFFFFFFFF))
    put32(out, at + _U(20), np.uint32(size))
    put32(out, at + _U(24), np.uint32(size))


@fast_kernel
def write(function, tab, scratch, rows, first, count, senders, templates, pattern, ids, file_format, out):
    """Write frames of rows until the rows or the room end.

    Args:
        function: Address of ISA-L's CRC-32, or 0.
        tab: Memory of the slicing table.
        scratch: Memory for masked headers.
        rows: `ROW`s.
        first: First row to write.
        count: Rows there are.
        senders: `TEMPLATE`s, three a half.
        templates: Memory of their octets.
        pattern: Memory of the payload pattern, longer than `PATTERN_BYTES` by the longest payload.
        ids: IPv4 identifications by host.
        file_format: PCAP or PCAPNG.
        out: Memory to write to.

    Returns:
        The first row not written, and the octets written.
    """
    rows, senders, ids = borrow(rows), borrow(senders), borrow(ids)
    at = _U(0)
    n = first
    head = _U(16) if file_format == PCAP else _U(28)
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
        end = one_frame(function, tab, scratch, row, t, templates, which, pattern, ids, out, frame)
        record_header(out, at, file_format, row.time_ps // 1000, end - frame)
        if file_format == PCAPNG:
            put32(out, end, np.uint32(0))
            padded = at + _U(28) + (end - frame + _U(3) & ~_U(3))
            put32(out, padded, np.uint32(padded + _U(4) - at))
            end = padded + _U(4)
        at = end
        n += 1
    return n, at
