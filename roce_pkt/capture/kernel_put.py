"""What every writer of frames needs: header writers from the tables, copied octets, records, ICRCs."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from roce_pkt import jit
from roce_pkt.capture import pcap, pcapng
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.kernel_fields import PLACES
from roce_pkt.kernel_cache import CHECKED
from roce_pkt.wire import net
from roce_pkt.wire.header import Header

_U = np.uint64
_LOW64 = (1 << 64) - 1
_NS = _U(1_000_000_000)
PCAP, PCAPNG = _U(0), _U(1)
RECORD_BYTES = (pcap.RECORD_HEADER_BYTES, 8 + pcapng.PACKET_FIELDS)
"""Octets in front of a frame: nanosecond pcap record header, pcapng enhanced packet block."""
_PCAP_BYTES, _PCAPNG_BYTES = (_U(size) for size in RECORD_BYTES)

_SOURCES = {
    (id(header), field): [c for c in COLUMNS if (header, field) in c.sources]
    for column in COLUMNS
    for header, field in column.sources
}


def field_value(builder: Any, header: Header, field: str, half: str, index: int, cols: Any, row: Any) -> Any:
    """LLVM value of a field, or of a 64-bit half of it, from its column; its default without one."""
    int64 = ir.IntType(64)
    for column in _SOURCES.get((id(header), field), ()):
        if column.index == index and (column.part == half or (header is net.IPV4 and column.part == "lo")):
            size = int(column.dtype[1])
            element = [f for _, f in column.sources].index(field) if column.width > 1 else 0
            start = PLACES[column.name] + element * size
            offset = builder.add(int64(start), builder.mul(row, int64(column.row_bytes)))
            word = ir.IntType(8 * size)
            value = jit.load_word(builder, jit.place_of(builder, cols, offset, word), swap=False)
            return builder.zext(value, int64) if size < 8 else value
    default = header.field(field).default
    return int64(default >> 64 if half == "hi" else default & _LOW64)


def header_bits(header: Header) -> list[tuple[str, str, int, int]]:
    """Fields as (name, half, first bit, end bit), none wider than 64 bits."""
    out, at = [], 0
    for field in header.fields:
        if field.bits > 64:
            out += [
                (field.name, "hi", at, at + field.bits - 64),
                (field.name, "lo", at + field.bits - 64, at + field.bits),
            ]
        else:
            out.append((field.name, "", at, at + field.bits))
        at += field.bits
    return out


def header_word(builder: Any, fields: Any, values: dict[tuple[str, str], Any], first: int, end: int) -> Any:
    """The bits `first` to `end` of a header as one number."""
    int64 = ir.IntType(64)
    word = int64(0)
    for name, half, start, stop in fields:
        if stop <= first or start >= end:
            continue
        value = builder.and_(values[name, half], int64((1 << (stop - start)) - 1))
        if stop <= end:
            # bits above the word's own are shifted out, or cut when the word is stored
            value = builder.shl(value, int64(end - stop)) if end > stop else value
        else:
            value = builder.lshr(value, int64(stop - end))
        word = builder.or_(word, value)
    return word


def writer(header: Header, *given: str, index: int = 0) -> Any:
    """A law (out, place, columns, row, given values as a tuple) that writes a header; returns its end.

    Args:
        header: The header's table.
        given: Fields whose values the caller computes; the others come from columns or are defaults.
        index: Which of several headers of the kind.
    """
    fields = header_bits(header)

    @jit.intrinsic
    def write(typingctx: Any, out: Any, at: Any, cols: Any, row: Any, computed: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            target, place, block, line, known = args
            values = {}
            for name, half, _, _ in fields:
                if name in given:
                    values[name, half] = builder.extract_value(known, given.index(name))
                else:
                    values[name, half] = field_value(builder, header, name, half, index, block, line)
            first, end = 0, 8 * header.size_bytes
            while first < end:
                width = next(w for w in (64, 32, 16, 8) if w <= end - first)
                word = ir.IntType(width)
                value = header_word(builder, fields, values, first, first + width)
                value = builder.trunc(value, word) if width < 64 else value
                if width > 8:
                    value = builder.call(builder.module.declare_intrinsic("llvm.bswap", [word]), [value])
                where = builder.add(place, ir.IntType(64)(first // 8))
                builder.store(value, jit.place_of(builder, target, where, word)).align = 1
                first += width
            return builder.add(place, ir.IntType(64)(header.size_bytes))

        u64 = types.uint64
        return u64(out, u64, cols, u64, computed), codegen

    size = header.size_bytes

    def checked(out: Any, at: Any, cols: Any, row: Any, computed: Any) -> Any:
        jit.guard(out, at, size)
        return write(out, at, cols, row, computed)

    return jit.fast_law(checked) if CHECKED else write


@jit.intrinsic
def copy_octets(typingctx: Any, out: Any, at: Any, mem: Any, start: Any, size: Any) -> Any:  # noqa: ARG001
    """Copy octets from one memory to another."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        octet = ir.IntType(8)
        target = jit.place_of(builder, args[0], args[1], octet)
        source = jit.place_of(builder, args[2], args[3], octet)
        cgutils.raw_memcpy(builder, target, source, args[4], 1)
        return context.get_dummy_value()

    u64 = types.uint64
    return types.void(out, u64, mem, u64, u64), codegen


def column_reader(name: str) -> Any:
    """A law (columns, row) that reads a column, as 64 bits."""
    column = next(c for c in COLUMNS if c.name == name)
    size, start = int(column.dtype[1]), PLACES[name]

    @jit.intrinsic
    def read(typingctx: Any, cols: Any, row: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            int64, word = ir.IntType(64), ir.IntType(8 * size)
            offset = builder.add(int64(start), builder.mul(args[1], int64(size)))
            value = jit.load_word(builder, jit.place_of(builder, args[0], offset, word), swap=False)
            return builder.zext(value, int64) if size < 8 else value

        return types.uint64(cols, types.uint64), codegen

    return read


@jit.fast_law
def record_bytes(form: Any) -> Any:
    """Octets in front of a frame."""
    return _PCAP_BYTES if form == PCAP else _PCAPNG_BYTES


@jit.fast_law
def put_record(out: Any, at: Any, end: Any, form: Any, time_ns: Any, interface: Any) -> Any:
    """Write what a capture puts around a frame.

    Args:
        out: Memory with the frame.
        at: Where its record begins, `record_bytes` before the frame.
        end: Where the frame ends; 8 octets more may be written.
        form: `PCAP` (nanosecond, little-endian) or `PCAPNG`.
        time_ns: Nanoseconds since 1970.
        interface: Interface of a pcapng.

    Returns:
        Where the next record begins.
    """
    time_ns = _U(time_ns)
    if form == PCAP:
        size = np.uint32(end - at - _PCAP_BYTES)
        jit.put32(out, at, np.uint32(time_ns // _NS))
        jit.put32(out, at + _U(4), np.uint32(time_ns % _NS))
        jit.put32(out, at + _U(8), size)
        jit.put32(out, at + _U(12), size)
        return end
    octets = end - at - _PCAPNG_BYTES
    jit.put32(out, end, np.uint32(0))
    end += (_U(0) - octets) & _U(3)
    whole = np.uint32(end + _U(4) - at)
    jit.put32(out, at, np.uint32(pcapng.ENHANCED_PACKET))
    jit.put32(out, at + _U(4), whole)
    jit.put32(out, at + _U(8), np.uint32(interface))
    jit.put32(out, at + _U(12), np.uint32(time_ns >> _U(32)))
    jit.put32(out, at + _U(16), np.uint32(time_ns & _U(0xFFFF_FFFF)))
    jit.put32(out, at + _U(20), np.uint32(octets))
    jit.put32(out, at + _U(24), np.uint32(octets))
    jit.put32(out, end, whole)
    return end + _U(4)
