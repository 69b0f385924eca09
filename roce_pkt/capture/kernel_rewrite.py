"""Compiled rewriting in place: header fields change, checksums and ICRC follow, payloads are not read.

A CRC is linear: what a change of some octets does to it is the CRC of the change alone, moved past the
octets behind it. So the ICRC of a frame is repaired from its old value, and one that was wrong stays
wrong by the same amount.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from roce_pkt import jit
from roce_pkt.capture.columns import COLUMNS, Column, header_bit
from roce_pkt.capture.kernel_crc import crc32
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, PLACES
from roce_pkt.capture.kernel_put import column_reader, copy_octets
from roce_pkt.capture.kernel_transport import FOLLOWING, HAS_PADS
from roce_pkt.kernel_cache import CHECKED
from roce_pkt.wire import ib, icrc, net
from roce_pkt.wire.header import Header

_U = np.uint64
_POLYNOMIAL = 0xEDB8_8320
_REGION = 192
"""Octets from the network header to the payload, at most; longer ones are not repaired."""
_ZEROS = _U(512)
SCRATCH_BYTES = 2 * _REGION + int(_ZEROS)
_MOVES = 1 << 14

_LAYERS = (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, ib.GRH, ib.BTH, *ib.EXTENDED)
_FIXED = {
    "eth_type", "ip_version", "ip_len", "ip_proto", "ip_chksum", "mf", "frag", "df", "dport", "udp_len",
    "udp_chksum", "paylen", "nexthdr", "opcode", "padcount",
}  # fmt: skip
REWRITABLE: tuple[Column, ...] = tuple(
    c for c in COLUMNS if c.name not in _FIXED and any(h in _LAYERS for h, _ in c.sources)
)
"""Columns that may be rewritten; those that say how a frame is laid out may not."""
BIT_OF = {column.name: 1 << n for n, column in enumerate(REWRITABLE)}


@cache
def moves() -> np.ndarray[Any, np.dtype[np.uint32]]:
    """X to the power of 8n modulo the CRC's polynomial, bit-reflected: moves a CRC past n octets."""
    table, value = np.empty(_MOVES, np.uint32), 0x8000_0000
    for n in range(_MOVES):
        table[n] = value
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return table


def _emit_patch(builder: Any, header: Header, index: int, args: Any) -> None:
    """LLVM code that puts the wanted columns into a header."""
    octets, place, changed, block, line = args
    int64 = ir.IntType(64)
    for column in REWRITABLE:
        for source, field in column.sources:
            if source is not header or column.index != index:
                continue
            where = header.places[field]
            first, size, mask = where.offset, where.size, where.mask
            if size == 16:
                first, size, mask = first + (8 if column.part == "lo" else 0), 8, (1 << 64) - 1
            elif column.part == "hi":
                continue  # the upper half of a mapped IPv4 address is not on the wire
            width = next(w for w in (1, 2, 4, 8) if w >= size)
            start = min(first, header.size_bytes - width)
            shift = where.shift + 8 * (start + width - first - size)
            wanted = builder.icmp_unsigned("!=", builder.and_(changed, int64(BIT_OF[column.name])), int64(0))
            with builder.if_then(wanted):
                bits = int(column.dtype[1]) * 8
                row = builder.add(int64(PLACES[column.name]), builder.mul(line, int64(column.row_bytes)))
                value = jit.load_word(
                    builder, jit.place_of(builder, block, row, ir.IntType(bits)), swap=False
                )
                value = builder.zext(value, int64) if bits < 64 else value
                value = builder.shl(builder.and_(value, int64(mask)), int64(shift))
                word = ir.IntType(8 * width)
                target = jit.place_of(builder, octets, builder.add(place, int64(start)), word)
                old = jit.load_word(builder, target, swap=True)
                old = builder.zext(old, int64) if width < 8 else old
                kept = builder.and_(old, int64(~(mask << shift) & (1 << 64) - 1))
                new = builder.or_(kept, value)
                new = builder.trunc(new, word) if width < 8 else new
                if width > 1:
                    new = builder.call(builder.module.declare_intrinsic("llvm.bswap", [word]), [new])
                builder.store(new, target).align = 1


def _patcher(header: Header, index: int = 0) -> Any:
    """A law (octets, place of the header, changed columns, columns, row)."""
    size = header.size_bytes

    @jit.intrinsic
    def patch(typingctx: Any, mem: Any, at: Any, changed: Any, cols: Any, row: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            _emit_patch(builder, header, index, args)
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(mem, u64, u64, cols, u64), codegen

    def checked(mem: Any, at: Any, changed: Any, cols: Any, row: Any) -> Any:
        jit.guard(mem, at, size)
        patch(mem, at, changed, cols, row)

    return jit.fast_law(checked) if CHECKED else patch


@jit.intrinsic
def _patch_extended(typingctx: Any, mem: Any, at: Any, there: Any, new: Any, cols: Any, row: Any) -> Any:
    """Patch the extended headers of `there`, which lie one after the other from `at` on."""
    del typingctx, at, there, new, row

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        octets, start, bits, wanted, block, line = args
        int64 = ir.IntType(64)
        place = cgutils.alloca_once_value(builder, start)
        for header in ib.EXTENDED:
            seen = builder.icmp_unsigned("!=", builder.and_(bits, int64(header_bit(header))), int64(0))
            with builder.if_then(seen):
                here = builder.load(place)
                _emit_patch(builder, header, 0, (octets, here, wanted, block, line))
                builder.store(builder.add(here, int64(header.size_bytes)), place)
        return context.get_dummy_value()

    u64 = types.uint64
    return types.void(mem, u64, u64, u64, cols, u64), codegen


def _delta(network: icrc.Network) -> Any:
    """A law (old octets, octets, place, change): change = (old ^ new) where the ICRC looks."""
    mask = icrc.Coverage(network, 0, 0, 0).mask

    @jit.intrinsic
    def difference(typingctx: Any, old: Any, mem: Any, at: Any, change: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            for start in range(0, len(mask), 4):
                word, where = ir.IntType(32), ir.IntType(64)(start)
                one = jit.load_word(builder, jit.place_of(builder, args[0], where, word), swap=False)
                place = builder.add(args[2], where)
                two = jit.load_word(builder, jit.place_of(builder, args[1], place, word), swap=False)
                keep = word(~int.from_bytes(mask[start : start + 4], "little") & 0xFFFF_FFFF)
                value = builder.and_(builder.xor(one, two), keep)
                builder.store(value, jit.place_of(builder, args[3], where, word)).align = 1
            return context.get_dummy_value()

        return types.void(old, mem, types.uint64, change), codegen

    return difference, _U(len(mask))


_delta_ipv4, _covered_ipv4 = _delta("ipv4")
_delta_ipv6, _covered_ipv6 = _delta("ipv6")
_delta_grh, _covered_grh = _delta("grh")
_patch_eth, _patch_vlan, _patch_vlan2 = _patcher(net.ETH), _patcher(net.VLAN), _patcher(net.VLAN, 1)
_patch_ipv4, _patch_ipv6, _patch_udp = _patcher(net.IPV4), _patcher(net.IPV6), _patcher(net.UDP)
_patch_grh, _patch_bth = _patcher(ib.GRH), _patcher(ib.BTH)
_ETH, _VLAN, _IPV4, _IPV6, _UDP, _GRH, _BTH = (
    _U(header_bit(h)) for h in (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, ib.GRH, ib.BTH)
)
_ETH_SIZE, _VLAN_SIZE, _UDP_SIZE, _BTH_SIZE = (_U(h.size_bytes) for h in (net.ETH, net.VLAN, net.UDP, ib.BTH))
_IPV4_CHKSUM, _UDP_CHKSUM = _U(net.IPV4.places["chksum"].offset), _U(net.UDP.places["chksum"].offset)
_IPV4_SRC, _IPV6_SRC = _U(net.IPV4.places["src"].offset), _U(net.IPV6.places["src"].offset)
_ALL_EXTENDED = _U(sum(header_bit(h) for h in ib.EXTENDED))
META = (
    "offset", "cap_len", "headers", "vlan_count", "l3_offset", "bth_offset", "payload_offset",
    "payload_len", "padcount", "opcode", "icrc", "icrc_ok",
)  # fmt: skip
"""Columns that say where things lie in a frame."""
_offset, _cap, _headers, _vlans, _l3, _bth, _payload, _payload_len, _pads, _opcode, _icrc, _icrc_ok = (
    column_reader(name) for name in META
)


@jit.fast_law
def _times(a: Any, b: Any) -> Any:
    """Product of two polynomials modulo the CRC's, bit-reflected, all in 64-bit registers."""
    product = _U(0)
    for _ in range(32):
        product ^= b & (_U(0) - (a >> _U(31) & _U(1)))
        a <<= _U(1)
        b = (b >> _U(1)) ^ (_U(_POLYNOMIAL) & (_U(0) - (b & _U(1))))
    return product


@jit.fast_law
def _fold(total: Any) -> Any:
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    return (total & _U(0xFFFF)) + (total >> _U(16))


@jit.fast_law
def _sum_change(old: Any, first: Any, mem: Any, at: Any, size: Any) -> Any:
    """Ones' complement sum of what replaced 16-bit words: new minus old (RFC 1624)."""
    total, k = _U(0), _U(0)
    while k + _U(2) <= size:
        total += _U(jit.be16(mem, at + k)) + (_U(jit.be16(old, first + k)) ^ _U(0xFFFF))
        k += _U(2)
    return total


@jit.fast_law
def _follow(mem: Any, at: Any, change: Any, never_zero: Any) -> Any:
    """Let a checksum follow a change of the octets it covers; a wrong one stays wrong."""
    value = _fold((_U(jit.be16(mem, at)) ^ _U(0xFFFF)) + change) ^ _U(0xFFFF)
    if never_zero and value == _U(0):
        value = _U(0xFFFF)
    jit.put16(mem, at, np.uint16((value >> _U(8)) | ((value & _U(0xFF)) << _U(8))))


@jit.fast_law
def _udp_follow(
    old: Any, mem: Any, start: Any, udp: Any, headers: Any, at: Any, end_of_headers: Any, repaired: Any
) -> Any:
    """A UDP checksum covers the addresses, everything from the UDP header on, and the ICRC itself."""
    addresses, size = (_IPV4_SRC, _U(8)) if headers & _IPV4 else (_IPV6_SRC, _U(32))
    total = _sum_change(old, addresses, mem, start + addresses, size)
    total += _sum_change(old, udp - start, mem, udp, _UDP_CHKSUM)
    body = udp + _UDP_SIZE
    total += _sum_change(old, body - start, mem, body, end_of_headers - body)
    if repaired != _U(0):
        new = _U(jit.be32(mem, at))
        before = _U(jit.le32(mem, at)) ^ repaired
        swapped = (
            (before & _U(0xFF)) << _U(24) | (before & _U(0xFF00)) << _U(8)
            | (before >> _U(8) & _U(0xFF00)) | before >> _U(24)
        )  # fmt: skip
        total += (new >> _U(16)) + (new & _U(0xFFFF))
        total += ((swapped >> _U(16)) ^ _U(0xFFFF)) + ((swapped & _U(0xFFFF)) ^ _U(0xFFFF))
    _follow(mem, udp + _UDP_CHKSUM, total, True)


@jit.fast_kernel
def rewrite(
    mem: Any, base: Any, cols_at: Any, rows: Any, changed: Any, scratch_at: Any, moved: Any, crc: Any
) -> Any:
    """Rewrite fields of frames in place.

    Args:
        mem: Memory with the frames.
        base: File offset of its first octet.
        cols_at: Address of a block of columns: where things lie, and the new values.
        rows: Frames.
        changed: Set of the columns to write, by `BIT_OF`.
        scratch_at: Address of `SCRATCH_BYTES`.
        moved: Address of `moves`.
        crc: (address of the CRC, address of its table).

    Returns:
        Frames whose ICRC was right and was repaired, was wrong and stays so, could not be repaired.
    """
    cols, region = (cols_at, _U(BLOCK_BYTES)), _U(_REGION)
    old, change = (scratch_at, region), (scratch_at + region, region + _ZEROS)
    table, tab = (moved, _U(4 * _MOVES)), (crc[1], _U(16 * 256 * 4))
    right = wrong = beyond = 0
    longest = region
    for r in range(rows):
        row = _U(r)
        f, headers, l3, bth = _offset(cols, row) - base, _headers(cols, row), _l3(cols, row), _bth(cols, row)
        end_of_headers = f + _payload(cols, row)
        if f > mem[1] or _cap(cols, row) > mem[1] - f:
            beyond += 1
            continue
        if headers & _ETH and _vlans(cols, row) <= _U(2):
            link = f + (l3 - _vlans(cols, row) * _VLAN_SIZE - _ETH_SIZE if l3 else _U(0))
            _patch_eth(mem, link, changed, cols, row)
            if headers & _VLAN and l3:
                _patch_vlan(mem, link + _ETH_SIZE, changed, cols, row)
                if _vlans(cols, row) > _U(1):
                    _patch_vlan2(mem, link + _ETH_SIZE + _VLAN_SIZE, changed, cols, row)
        if not headers & _BTH:
            continue
        start, size = f + l3, end_of_headers - (f + l3)
        if not headers & (_IPV4 | _IPV6 | _GRH) or size > region:
            beyond += 1
            continue
        if start > mem[1] or size > mem[1] - start:
            beyond += 1
            continue
        copy_octets(old, _U(0), mem, start, size)
        udp = f + bth - _UDP_SIZE
        if headers & _IPV4:
            _patch_ipv4(mem, start, changed, cols, row)
            _follow(
                mem, start + _IPV4_CHKSUM,
                _sum_change(old, _U(0), mem, start, _IPV4_CHKSUM)
                + _sum_change(old, _IPV4_SRC, mem, start + _IPV4_SRC, _U(8)),
                False,
            )  # fmt: skip
        elif headers & _IPV6:
            _patch_ipv6(mem, start, changed, cols, row)
        else:
            _patch_grh(mem, start, changed, cols, row)
        if headers & _UDP:
            _patch_udp(mem, udp, changed, cols, row)
        _patch_bth(mem, f + bth, changed, cols, row)
        _patch_extended(mem, f + bth + _BTH_SIZE, headers & _ALL_EXTENDED, changed, cols, row)
        # -- the ICRC
        at = end_of_headers + _payload_len(cols, row)
        if HAS_PADS[_opcode(cols, row)]:
            at += _pads(cols, row)
        behind = at - end_of_headers
        known = _icrc_ok(cols, row) != _U(255) and (headers & _ALL_EXTENDED) == _U(
            FOLLOWING[_opcode(cols, row)]
        )
        repaired = _U(0)
        if (
            known
            and behind < _U(_MOVES)
            and at + _U(4) <= f + _cap(cols, row)
            and jit.be32(mem, at) == _icrc(cols, row)
        ):
            if headers & _IPV4:
                _delta_ipv4(old, mem, start, change)
                covered = _covered_ipv4
            elif headers & _IPV6:
                _delta_ipv6(old, mem, start, change)
                covered = _covered_ipv6
            else:
                _delta_grh(old, mem, start, change)
                covered = _covered_grh
            k = covered
            while k < size:
                jit.put32(change, k, jit.le32(old, k) ^ jit.le32(mem, start + k))
                k += _U(4)
            # a short way past the payload is walked over zeros, a long one is one multiplication
            walked = behind if behind <= _ZEROS and crc[0] != _U(0) else _U(0)
            if size < longest:
                for k in range(size, longest):
                    jit.put8(change, _U(k), np.uint8(0))
            longest = size
            repaired = _U(
                np.uint32(~crc32(crc[0], tab, change, _U(0), size + walked, np.uint32(0xFFFF_FFFF)))
            )
            if walked < behind:
                repaired = _times(repaired, _U(jit.le32(table, behind << _U(2))))
            before = jit.le32(mem, at)
            jit.put32(mem, at, np.uint32(_U(before) ^ repaired))
            if _icrc_ok(cols, row) == _U(1):
                right += 1
            else:
                wrong += 1
        else:
            beyond += 1
        if headers & _UDP and jit.be16(mem, udp + _UDP_CHKSUM) != np.uint16(0):
            _udp_follow(old, mem, start, udp, headers, at, end_of_headers, repaired)
    return right, wrong, beyond
