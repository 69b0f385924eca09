"""Compiled writing: rows of columns to frames, with lengths, pads, checksums and ICRC, and their records."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from roce_pkt import jit
from roce_pkt.capture.columns import KIND_PAUSE, KIND_PFC, KIND_ROCEV1, header_bit
from roce_pkt.capture.kernel_crc import NET_GRH, NET_IPV4, NET_IPV6, any_icrc
from roce_pkt.capture.kernel_fields import BLOCK_BYTES
from roce_pkt.capture.kernel_put import (
    column_reader,
    copy_octets,
    field_value,
    header_bits,
    header_word,
    put_record,
    record_bytes,
    writer,
)
from roce_pkt.capture.kernel_transport import FOLLOWING, HAS_PADS
from roce_pkt.wire import ib, mac_control, net

_U = np.uint64
FULL, DONE = _U(0), _U(1)

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
_IPV4_CHKSUM = _U(net.IPV4.places["chksum"].offset)
_ETH, _VLAN, _IPV4, _IPV6, _UDP, _GRH, _BTH = (
    _U(h.size_bytes) for h in (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, ib.GRH, ib.BTH)
)
_CONTROL, _MIN_FRAME = _U(mac_control.MAC_CONTROL.size_bytes), _U(mac_control.MIN_FRAME_BYTES)

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
                fields = header_bits(header)
                values = {(n, h): field_value(builder, header, n, h, 0, block, line) for n, h, _, _ in fields}
                for first in range(0, 8 * header.size_bytes, 32):
                    word = ir.IntType(32)
                    value = builder.trunc(header_word(builder, fields, values, first, first + 32), word)
                    value = builder.call(builder.module.declare_intrinsic("llvm.bswap", [word]), [value])
                    where = builder.add(builder.load(place), int64(first // 8))
                    builder.store(value, jit.place_of(builder, target, where, word)).align = 1
                builder.store(builder.add(builder.load(place), int64(header.size_bytes)), place)
        del context, signature
        return builder.load(place)

    u64 = types.uint64
    return u64(out, u64, u64, cols, u64), codegen


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
    _, way, table, scratch_at = checks
    covered = NET_GRH
    if kind != _U(KIND_ROCEV1):
        covered = NET_IPV6 if version == _U(6) else NET_IPV4
    jit.put32(out, at, any_icrc(covered, way, table, scratch_at, out, network, at))
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
        end = _frame(out, at + record_bytes(form), cols, row, payload, start, checks)
        at = put_record(out, at, end, form, _time(cols, row), _interface(cols, row))
        row += _U(1)
    return at, row
