"""BTH, the headers its opcode asks for, payload, pads and ICRC, into a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from roce_pkt import jit
from roce_pkt.capture.columns import STATUS_CODES, header_bit
from roce_pkt.capture.kernel_crc import any_icrc
from roce_pkt.capture.kernel_fields import SETTERS, copier, emit_move, getter
from roce_pkt.wire import ib
from roce_pkt.wire.opcode import OPCODES

_U = np.uint64
_CUT = _U(STATUS_CODES["cut"])
_BTH_SIZE, _BTH = _U(ib.BTH.size_bytes), _U(header_bit(ib.BTH))
_ICRC_SIZE = _U(ib.ICRC_BYTES)
_UNKNOWN_OK = np.uint8(255)  # -1 in a signed octet

for _op in OPCODES.values():
    if _op.headers != tuple(h for h in ib.EXTENDED if h in _op.headers):
        raise AssertionError(
            f"{_op.name}: the compiled walk reads extended headers in the order of ib.EXTENDED"
        )

FOLLOWING = np.array(
    [sum(header_bit(h) for h in OPCODES[code].headers) if code in OPCODES else 0 for code in range(256)],
    np.uint32,
)
"""Bits of the headers that follow each opcode's BTH."""
HAS_PADS = np.array([code in OPCODES and OPCODES[code].payload for code in range(256)], np.bool_)

_opcode, _padcount = getter(ib.BTH, "opcode"), getter(ib.BTH, "padcount")
_copy_bth = copier(ib.BTH)
_set_bth, _set_payload, _set_payload_len, _set_trailer, _set_icrc, _set_icrc_ok = (
    SETTERS[name]
    for name in ("bth_offset", "payload_offset", "payload_len", "trailer_len", "icrc", "icrc_ok")
)


@jit.intrinsic
def _extended(typingctx: Any, mem: Any, f: Any, at: Any, stop: Any, wanted: Any, out: Any, row: Any) -> Any:  # noqa: ARG001
    """Copy every wanted header that fits before `stop`: (place after them, headers copied)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        octets, frame_at, start, limit, bits, block, line = args
        int64 = ir.IntType(64)
        place = cgutils.alloca_once_value(builder, start)
        seen = cgutils.alloca_once_value(builder, int64(0))
        fits = cgutils.alloca_once_value(builder, ir.IntType(1)(1))
        for header in ib.EXTENDED:
            bit = int64(header_bit(header))
            asked = builder.icmp_unsigned("!=", builder.and_(bits, bit), int64(0))
            with builder.if_then(builder.and_(asked, builder.load(fits))):
                here = builder.load(place)
                after = builder.add(here, int64(header.size_bytes))
                with builder.if_else(builder.icmp_unsigned("<=", after, limit)) as (inside, beyond):
                    with inside:
                        emit_move(builder, header, 0, (octets, builder.add(frame_at, here), block, line))
                        builder.store(after, place)
                        builder.store(builder.or_(builder.load(seen), bit), seen)
                    with beyond:
                        builder.store(ir.IntType(1)(0), fits)
        values = [builder.load(place), builder.load(seen)]
        return context.make_tuple(builder, signature.return_type, values)

    u64 = types.uint64
    return types.UniTuple(u64, 2)(mem, u64, u64, u64, u64, out, u64), codegen


@jit.fast_law
def transport_none(out: Any, row: Any) -> Any:
    """The columns of a frame without a BTH."""
    zero = _U(0)
    _set_bth(out, row, zero)
    _set_payload(out, row, zero)
    _set_payload_len(out, row, zero)
    _set_trailer(out, row, zero)
    _set_icrc(out, row, zero)
    _set_icrc_ok(out, row, _UNKNOWN_OK)


@jit.fast_law
def _icrc(mem: Any, f: Any, l3: Any, at_icrc: Any, cover: Any, checks: Any) -> Any:
    """1 right, 0 wrong, 255 cannot be told."""
    verify, way, table, scratch_at = checks
    if verify == _U(0) or cover == _U(0):
        return _UNKNOWN_OK
    end = f + at_icrc
    crc = any_icrc(cover, way, table, scratch_at, mem, f + l3, end)
    # spec: IBTA Vol 1 7.8.1 as every implementation does it: the CRC goes out least significant octet first
    return np.uint8(1) if crc == jit.le32(mem, end) else np.uint8(0)


@jit.fast_law
def transport(
    mem: Any,
    f: Any,
    at: Any,
    cap: Any,
    end: Any,
    l3: Any,
    cover: Any,
    fragment: Any,
    headers: Any,
    status: Any,
    out: Any,
    row: Any,
    checks: Any,
) -> Any:
    """Everything from the BTH on; see `roce_pkt.wire.frame`, `transport`.

    Args:
        mem: Memory that holds the frame.
        f: First octet of the frame.
        at: Place of the BTH in the frame.
        cap: Octets captured.
        end: First octet beyond what the length fields speak for.
        l3: Place of the network header.
        cover: Number of the network header when the ICRC's coverage is defined, else 0.
        fragment: True for the first fragment of a packet, which ends without ICRC.
        headers: Headers seen before.
        status: Status so far.
        out: Memory of the block of columns.
        row: Row to fill.
        checks: As for `read_frame`.

    Returns:
        Headers seen, status.
    """
    zero = _U(0)
    tail = zero if fragment else _ICRC_SIZE
    limit = end - tail if end > tail else zero
    value, right = np.uint32(0), _UNKNOWN_OK
    if not fragment and end >= at + _BTH_SIZE + tail and end <= cap:
        value = jit.be32(mem, f + limit)
        right = _icrc(mem, f, l3, limit, cover, checks)
    _set_icrc(out, row, value)
    _set_icrc_ok(out, row, right)
    stop = min(limit, cap)
    if at + _BTH_SIZE > stop:
        _set_bth(out, row, zero)
        _set_payload(out, row, zero)
        _set_payload_len(out, row, zero)
        _set_trailer(out, row, zero)
        return headers, _CUT
    _copy_bth(mem, f + at, out, row)
    _set_bth(out, row, at)
    opcode, pads = _opcode(mem, f + at), _padcount(mem, f + at)
    wanted = _U(FOLLOWING[opcode])
    at, seen = _extended(mem, f, at + _BTH_SIZE, stop, wanted, out, row)
    left = limit - at if limit > at else zero
    if fragment or not HAS_PADS[opcode]:
        pads = zero
    _set_payload(out, row, at)
    _set_payload_len(out, row, left - min(pads, left))
    _set_trailer(out, row, cap - end if cap > end else zero)
    return headers | _BTH | seen, status if seen == wanted else _CUT
