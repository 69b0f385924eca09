"""Compiled writing: rows of columns to frames, with lengths, pads, checksums and ICRC, and their records."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from roce_pkt import jit
from roce_pkt.capture import pcapng
from roce_pkt.capture.columns import COLUMNS, KIND_PAUSE, KIND_PFC, KIND_ROCEV1, header_bit
from roce_pkt.capture.kernel_crc import icrc_law
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, PLACES
from roce_pkt.capture.kernel_transport import FOLLOWING, HAS_PADS
from roce_pkt.wire import ib, mac_control, net
from roce_pkt.wire.header import Header

_U = np.uint64
_LOW64 = (1 << 64) - 1
FULL, DONE = _U(0), _U(1)
PCAP, PCAPNG = _U(0), _U(1)

_SOURCES = {
    (id(header), field): [c for c in COLUMNS if (header, field) in c.sources]
    for column in COLUMNS
    for header, field in column.sources
}


def _value(builder: Any, header: Header, field: str, half: str, index: int, cols: Any, row: Any) -> Any:
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


def _bits(header: Header) -> list[tuple[str, str, int, int]]:
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


def _word(builder: Any, fields: Any, values: dict[tuple[str, str], Any], first: int, end: int) -> Any:
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
    """A law (out, place, columns, row, given values as a tuple) that writes a header.

    Args:
        header: The header's table.
        given: Fields whose values the caller computes; the others come from columns or are defaults.
        index: Which of several headers of the kind.
    """
    fields = _bits(header)

    @jit.intrinsic
    def write(typingctx: Any, out: Any, at: Any, cols: Any, row: Any, computed: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            target, place, block, line, known = args
            values = {}
            for name, half, _, _ in fields:
                if name in given:
                    values[name, half] = builder.extract_value(known, given.index(name))
                else:
                    values[name, half] = _value(builder, header, name, half, index, block, line)
            first, end = 0, 8 * header.size_bytes
            while first < end:
                width = next(w for w in (64, 32, 16, 8) if w <= end - first)
                word = ir.IntType(width)
                value = _word(builder, fields, values, first, first + width)
                value = builder.trunc(value, word) if width < 64 else value
                if width > 8:
                    value = builder.call(builder.module.declare_intrinsic("llvm.bswap", [word]), [value])
                where = builder.add(place, ir.IntType(64)(first // 8))
                builder.store(value, jit.place_of(builder, target, where, word)).align = 1
                first += width
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(out, u64, cols, u64, computed), codegen

    size = header.size_bytes

    def checked(out: Any, at: Any, cols: Any, row: Any, computed: Any) -> Any:
        jit.guard(out, at, size)
        write(out, at, cols, row, computed)

    return jit.fast_law(checked) if jit.CHECKED else write


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


_NOTHING = (_U(0),)
_write_eth, _write_vlan, _write_vlan2 = (
    writer(net.ETH, "type"), writer(net.VLAN, "type"), writer(net.VLAN, "type", index=1)
)  # fmt: skip
_write_ipv4 = writer(net.IPV4, "version", "ihl", "len", "proto", "chksum", "frag", "mf")
_write_ipv6 = writer(net.IPV6, "version", "len", "nexthdr")
_write_udp = writer(net.UDP, "len", "dport")
_write_grh = writer(ib.GRH, "paylen", "nexthdr")
_write_bth = writer(ib.BTH, "padcount")
_write_control = writer(mac_control.MAC_CONTROL, "opcode")
_write_pfc, _write_pause = writer(mac_control.PFC), writer(mac_control.PAUSE)
_icrc_ipv4, _icrc_ipv6, _icrc_grh = icrc_law("ipv4"), icrc_law("ipv6"), icrc_law("grh")
_IPV4_CHKSUM = _U(net.IPV4.places["chksum"].offset)
_ETH, _VLAN, _IPV4, _IPV6, _UDP, _GRH, _BTH = (
    _U(h.size_bytes) for h in (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, ib.GRH, ib.BTH)
)
_CONTROL, _MIN_FRAME = _U(mac_control.MAC_CONTROL.size_bytes), _U(mac_control.MIN_FRAME_BYTES)
_PCAP_HEADER, _EPB_HEADER = _U(16), _U(8 + pcapng.PACKET_FIELDS)

EXTENDED_BYTES = np.array(
    [
        sum(h.size_bytes for h in ib.EXTENDED if int(bits) & header_bit(h))
        for bits in FOLLOWING
    ],
    np.uint16,
)  # fmt: skip
"""Octets between each opcode's BTH and its payload."""


@jit.intrinsic
def _write_extended(typingctx: Any, out: Any, at: Any, wanted: Any, cols: Any, row: Any) -> Any:  # noqa: ARG001
    """Write every wanted header; returns the place after them."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, start, bits, block, line = args
        int64 = ir.IntType(64)
        place = cgutils.alloca_once_value(builder, start)
        for header in ib.EXTENDED:
            asked = builder.icmp_unsigned("!=", builder.and_(bits, int64(header_bit(header))), int64(0))
            with builder.if_then(asked):
                fields = _bits(header)
                values = {(n, h): _value(builder, header, n, h, 0, block, line) for n, h, _, _ in fields}
                for first in range(0, 8 * header.size_bytes, 32):
                    word = ir.IntType(32)
                    value = builder.trunc(_word(builder, fields, values, first, first + 32), word)
                    value = builder.call(builder.module.declare_intrinsic("llvm.bswap", [word]), [value])
                    where = builder.add(builder.load(place), int64(first // 8))
                    builder.store(value, jit.place_of(builder, target, where, word)).align = 1
                builder.store(builder.add(builder.load(place), int64(header.size_bytes)), place)
        del context, signature
        return builder.load(place)

    u64 = types.uint64
    return u64(out, u64, u64, cols, u64), codegen


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


_kind, _vlans, _version, _opcode, _length, _time, _interface, _dport = (
    column_reader(name)
    for name in (
        "kind",
        "vlan_count",
        "ip_version",
        "opcode",
        "payload_len",
        "time_ns",
        "interface_id",
        "dport",
    )
)


@jit.fast_law
def _ip_checksum(out: Any, at: Any) -> Any:
    total = _U(0)
    for k in range(10):
        total += _U(jit.be16(out, at + (_U(k) << _U(1))))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    value = total ^ _U(0xFFFF)
    jit.put16(out, at + _IPV4_CHKSUM, np.uint16((value >> _U(8)) | ((value & _U(0xFF)) << _U(8))))


@jit.fast_law
def _frame(out: Any, at: Any, cols: Any, row: Any, payload: Any, start: Any, checks: Any) -> Any:
    """Write one frame; returns the place after it."""
    kind, vlans = _kind(cols, row), _vlans(cols, row)
    version = _version(cols, row)
    pause = kind == _U(KIND_PFC) or kind == _U(KIND_PAUSE)
    if pause:
        inner = _U(net.ETHERTYPE_MAC_CONTROL)
    elif kind == _U(KIND_ROCEV1):
        inner = _U(net.ETHERTYPE_ROCEV1)
    else:
        inner = _U(net.ETHERTYPE_IPV6) if version == _U(6) else _U(net.ETHERTYPE_IPV4)
    first = at
    outer = _U(net.VLAN_TYPES[0])
    if vlans > _U(1):
        outer = _U(net.VLAN_TYPES[1])
    _write_eth(out, at, cols, row, (inner if vlans == _U(0) else outer,))
    at += _ETH
    if vlans > _U(0):
        _write_vlan(out, at, cols, row, (inner if vlans == _U(1) else _U(net.VLAN_TYPES[0]),))
        at += _VLAN
    if vlans > _U(1):
        _write_vlan2(out, at, cols, row, (inner,))
        at += _VLAN
    if pause:
        end = max(at + _CONTROL, first + _MIN_FRAME)
        for k in range(at, first + _MIN_FRAME):
            jit.put8(out, _U(k), np.uint8(0))
        if kind == _U(KIND_PFC):
            _write_control(out, at, cols, row, (_U(mac_control.OPCODE_PFC),))
            _write_pfc(out, at + _CONTROL, cols, row, _NOTHING)
        else:
            _write_control(out, at, cols, row, (_U(mac_control.OPCODE_PAUSE),))
            _write_pause(out, at + _CONTROL, cols, row, _NOTHING)
        return end
    opcode, size = _opcode(cols, row), _length(cols, row)
    pads = (_U(0) - size) & _U(3) if HAS_PADS[opcode] else _U(0)
    inside = _BTH + _U(EXTENDED_BYTES[opcode]) + size + pads + _U(ib.ICRC_BYTES)
    network = at
    if kind == _U(KIND_ROCEV1):
        _write_grh(out, at, cols, row, (inside, _U(ib.GRH_NEXT_BTH)))
        at += _GRH
    else:
        udp = _UDP + inside
        if version == _U(6):
            _write_ipv6(out, at, cols, row, (_U(6), udp, _U(net.PROTO_UDP)))
            at += _IPV6
        else:
            known = (_U(4), _U(5), _IPV4 + udp, _U(net.PROTO_UDP), _U(0), _U(0), _U(0))
            _write_ipv4(out, at, cols, row, known)
            _ip_checksum(out, at)
            at += _IPV4
        dport = _dport(cols, row)
        _write_udp(out, at, cols, row, (udp, dport if dport > _U(0) else _U(net.PORT_ROCEV2)))
        at += _UDP
    _write_bth(out, at, cols, row, (pads,))
    at = _write_extended(out, at + _BTH, _U(FOLLOWING[opcode]), cols, row)
    copy_octets(out, at, payload, start, size)
    at += size
    for _ in range(pads):
        jit.put8(out, at, np.uint8(0))
        at += _U(1)
    _, function, table, scratch_at = checks
    tab, scratch = (table, _U(16 * 256 * 4)), (scratch_at, _U(128))
    if kind == _U(KIND_ROCEV1):
        crc = _icrc_grh(function, tab, out, network, at, scratch)
    elif version == _U(6):
        crc = _icrc_ipv6(function, tab, out, network, at, scratch)
    else:
        crc = _icrc_ipv4(function, tab, out, network, at, scratch)
    jit.put32(out, at, crc)
    return at + _U(ib.ICRC_BYTES)


@jit.fast_kernel
def build(
    out: Any, cols_at: Any, row: Any, rows: Any, payload: Any, starts: Any, form: Any, checks: Any
) -> Any:
    """Write the rows of a block as records of a capture.

    Args:
        out: Memory for the records.
        cols_at: Address of the block of columns.
        row: First row to write.
        rows: Row to stop at.
        payload: Memory the payloads are in.
        starts: Memory of one 64-bit start in `payload` for each row.
        form: `PCAP` (nanosecond, little-endian) or `PCAPNG`.
        checks: As for `read_frame`.

    Returns:
        Octets written, next row (less than `rows` when the memory is full).
    """
    cols, at = (cols_at, _U(BLOCK_BYTES)), _U(0)
    while row < rows:
        size, start = _length(cols, row), jit.le64(starts, row << _U(3))
        # 192: record header, every header a frame can have, pads, ICRC, block trailer
        if out[1] - at < size + _U(192) or start > payload[1] or size > payload[1] - start:
            break
        time_ns = _time(cols, row)
        if form == PCAP:
            f = at + _PCAP_HEADER
            end = _frame(out, f, cols, row, payload, start, checks)
            jit.put32(out, at, np.uint32(time_ns // _U(1_000_000_000)))
            jit.put32(out, at + _U(4), np.uint32(time_ns % _U(1_000_000_000)))
            jit.put32(out, at + _U(8), np.uint32(end - f))
            jit.put32(out, at + _U(12), np.uint32(end - f))
            at = end
        else:
            f = at + _EPB_HEADER
            end = _frame(out, f, cols, row, payload, start, checks)
            octets = end - f
            while end & _U(3) != f & _U(3):
                jit.put8(out, end, np.uint8(0))
                end += _U(1)
            whole = np.uint32(end + _U(4) - at)
            jit.put32(out, at, np.uint32(pcapng.ENHANCED_PACKET))
            jit.put32(out, at + _U(4), whole)
            jit.put32(out, at + _U(8), np.uint32(_interface(cols, row)))
            jit.put32(out, at + _U(12), np.uint32(time_ns >> _U(32)))
            jit.put32(out, at + _U(16), np.uint32(time_ns & _U(0xFFFF_FFFF)))
            jit.put32(out, at + _U(20), np.uint32(octets))
            jit.put32(out, at + _U(24), np.uint32(octets))
            jit.put32(out, end, whole)
            at = end + _U(4)
        row += _U(1)
    return at, row
