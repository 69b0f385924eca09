"""Compiled walks over the records of a window, each frame dissected where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture import pcapng
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, ROWS, SETTERS
from roce_pkt.capture.kernel_frame import read_frame
from roce_pkt.capture.kernel_search import maybe_header
from roce_pkt.capture.kernel_tile import TILE, begin_tile
from roce_pkt.capture.model import MIN_LENGTH_LIMIT

_U = np.uint64
FULL, OTHER, REACHED = _U(0), _U(1), _U(2)
"""Why a walk stopped: the block of columns is full, a record that the plain walk must judge, or `stop`."""

_ROWS = _U(ROWS)
_AHEAD, _LINE, _SHORT, _RECORDS_AHEAD = _U(4096), _U(64), _U(768), _U(5)
_NS = _U(1_000_000_000)
CLOCK_WORDS = 7
"""Words of an interface in the clock table: link type, mode, factor, offset in ns, interface, and the least
and the largest stamp whose nanoseconds fit."""
MULTIPLY, DIVIDE, SHIFT = _U(0), _U(1), _U(2)
_CLOCK_BYTES = _U(8 * CLOCK_WORDS)
_CHAIN = 8
_DAY_S = _U(86_400)
_PACKET_BLOCK, _FIELDS = _U(pcapng.ENHANCED_PACKET), _U(pcapng.PACKET_FIELDS)

_set_number, _set_time, _set_offset, _set_wire, _set_cap, _set_interface, _set_link = (
    SETTERS[name]
    for name in ("number", "time_ns", "offset", "wire_len", "cap_len", "interface_id", "link_type")
)


@jit.fast_law
def _word(mem: Any, at: Any, big: Any) -> Any:
    """32 bits in the order of the capture."""
    return _U(jit.be32(mem, at)) if big else _U(jit.le32(mem, at))


@jit.fast_law
def _record(
    mem: Any,
    out: Any,
    dirty: Any,
    used: Any,
    row: Any,
    number: Any,
    time_ns: Any,
    offset: Any,
    f: Any,
    cap: Any,
    wire: Any,
    link: Any,
    interface: Any,
    udp_port: Any,
    checks: Any,
) -> Any:
    if row & (TILE - _U(1)) == _U(0):
        begin_tile(out, row, dirty, used)
    _set_number(out, row, number)
    _set_time(out, row, time_ns)
    _set_offset(out, row, offset)
    _set_wire(out, row, wire)
    _set_cap(out, row, cap)
    _set_interface(out, row, interface)
    _set_link(out, row, link)
    return read_frame(mem, f, cap, wire, link, udp_port, out, row, checks)


@jit.fast_law
def _look_ahead(mem: Any, pos: Any, following: Any, checks: Any) -> Any:
    """Ask for octets that will be read soon: all of them, or only the headers when records are long."""
    size = following - pos
    if size <= _SHORT or checks[0] != _U(0):
        at = pos + _AHEAD
        while at < following + _AHEAD:
            jit.prefetch(mem, at)
            at += _LINE
    else:
        # the next ones are probably as long as this one
        at = following + _RECORDS_AHEAD * size
        jit.prefetch(mem, at)
        jit.prefetch(mem, at + _LINE)


@jit.fast_kernel
def one_record(
    mem: Any,
    block: Any,
    row: Any,
    number: Any,
    time_ns: Any,
    offset: Any,
    f: Any,
    cap: Any,
    wire: Any,
    link: Any,
    interface: Any,
    udp_port: Any,
    checks: Any,
) -> Any:
    """Dissect one frame that the plain walk found; see `walk_pcap` for the arguments."""
    out = (block[0], _U(BLOCK_BYTES))
    return _record(
        mem, out, block[1], _U(0), row, number, time_ns, offset, f, cap, wire, link, interface,
        udp_port, checks,
    )  # fmt: skip


@jit.fast_kernel
def walk_pcap(
    mem: Any,
    pos: Any,
    stop: Any,
    base: Any,
    number: Any,
    block: Any,
    row: Any,
    shape: Any,
    udp_port: Any,
    checks: Any,
) -> Any:
    """Dissect classic pcap records.

    Args:
        mem: Memory of the window.
        pos: First record in it.
        stop: Place at which to stop; the end of the window, or where another walk began.
        base: File offset of the window.
        number: Number of the first frame.
        block: (address of the block of columns, headers whose columns there are not clean).
        row: First row to fill.
        shape: (big-endian, record header size, nanoseconds in a tick, length limit, link type and, from
            bit 16 on, interface).
        udp_port: UDP destination port that carries RoCEv2.
        checks: (verify, address of the CRC, its table's address, scratch address).

    Returns:
        Place, next row, why it stopped, set of the headers whose columns were written.
    """
    big, step, tick, limit, link = shape
    interface, link = link >> _U(16), link & _U(0xFFFF)
    out, dirty, end, written = (block[0], _U(BLOCK_BYTES)), block[1], mem[1], _U(0)
    number -= row
    while pos < stop:
        if pos + step > end:
            return pos, row, OTHER, written
        cap = _word(mem, pos + _U(8), big)
        f = pos + step
        following = f + cap
        if cap > limit or following > end:
            return pos, row, OTHER, written
        _look_ahead(mem, pos, following, checks)
        seconds, fraction = _word(mem, pos, big), _word(mem, pos + _U(4), big)
        wire = _word(mem, pos + _U(12), big)
        if (seconds | fraction | cap | wire) == _U(0) or maybe_header(seconds, fraction):
            return pos, row, OTHER, written
        if row >= _ROWS:
            return pos, row, FULL, written
        time_ns = seconds * _NS + fraction * tick
        written |= _record(
            mem, out, dirty, written, row, number + row, time_ns, base + f, f, cap, wire, link, interface,
            udp_port, checks,
        )  # fmt: skip
        row += _U(1)
        pos = following
    return pos, row, REACHED, written


@jit.fast_law
def to_ns(ticks: Any, mode: Any, factor: Any, offset_ns: Any) -> Any:
    """Nanoseconds of a stamp, as `Resolution.to_ns`, in 64 bits that wrap."""
    if mode == MULTIPLY:
        return ticks * factor + offset_ns
    if mode == DIVIDE:
        return ticks // factor + offset_ns
    # 2^-factor seconds: the fraction times 10^9 needs more than 64 bits, so it is done in two halves
    whole, part = _U(0), ticks
    if factor < _U(64):
        whole = ticks >> factor if factor > _U(0) else ticks
        part = ticks & ((_U(1) << factor) - _U(1))
    if factor < _U(32):
        return whole * _NS + ((part * _NS) >> factor) + offset_ns
    high = (part >> _U(32)) * _NS + (((part & _U(0xFFFF_FFFF)) * _NS) >> _U(32))
    shift = factor - _U(32)
    return whole * _NS + (high >> shift if shift < _U(64) else _U(0)) + offset_ns


@jit.fast_kernel
def walk_pcapng(
    mem: Any,
    pos: Any,
    stop: Any,
    base: Any,
    number: Any,
    block: Any,
    row: Any,
    shape: Any,
    udp_port: Any,
    checks: Any,
) -> Any:
    """Dissect enhanced packet blocks; any other block, or a strange one, is left to the plain walk.

    Arguments as for `walk_pcap`, but `shape` is (big-endian, address of the clock table, interfaces
    in it, length limit, 0).
    """
    big, clocks_at, interfaces, limit, _ = shape
    out, dirty, end, written = (block[0], _U(BLOCK_BYTES)), block[1], mem[1], _U(0)
    clocks = (clocks_at, interfaces * _CLOCK_BYTES)
    number -= row
    while pos < stop:
        if pos + _U(8) + _FIELDS > end:
            return pos, row, OTHER, written
        kind, size = _word(mem, pos, big), _word(mem, pos + _U(4), big)
        cap = _word(mem, pos + _U(20), big)
        following = pos + size
        if kind != _PACKET_BLOCK or size & _U(3) or size > limit or following > end:
            return pos, row, OTHER, written
        if size < cap + _U(12) + _FIELDS or _word(mem, following - _U(4), big) != size:
            return pos, row, OTHER, written
        which = _word(mem, pos + _U(8), big)
        if which >= interfaces:
            return pos, row, OTHER, written
        _look_ahead(mem, pos, following, checks)
        if row >= _ROWS:
            return pos, row, FULL, written
        clock = which * _CLOCK_BYTES
        ticks = (_word(mem, pos + _U(12), big) << _U(32)) | _word(mem, pos + _U(16), big)
        if ticks < jit.le64(clocks, clock + _U(40)) or ticks > jit.le64(clocks, clock + _U(48)):
            return pos, row, OTHER, written
        time_ns = to_ns(
            ticks,
            jit.le64(clocks, clock + _U(8)),
            jit.le64(clocks, clock + _U(16)),
            jit.le64(clocks, clock + _U(24)),
        )
        link, interface = jit.le64(clocks, clock), jit.le64(clocks, clock + _U(32))
        wire, f = _word(mem, pos + _U(24), big), pos + _U(8) + _FIELDS
        written |= _record(
            mem, out, dirty, written, row, number + row, time_ns, base + f, f, cap, wire, link, interface,
            udp_port, checks,
        )  # fmt: skip
        row += _U(1)
        pos = following
    return pos, row, REACHED, written


@jit.fast_law
def _pcap_chain(mem: Any, at: Any, end: Any, shape: Any, near_s: Any) -> Any:
    big, step, tick, limit, _ = shape
    for _link in range(_CHAIN):
        if at + step > end:
            return False
        seconds, fraction = _word(mem, at, big), _word(mem, at + _U(4), big)
        cap, wire = _word(mem, at + _U(8), big), _word(mem, at + _U(12), big)
        if cap == _U(0) or cap > limit or cap > wire or wire > _U(MIN_LENGTH_LIMIT):
            return False
        if fraction * tick >= _NS or max(seconds, near_s) - min(seconds, near_s) > _DAY_S:
            return False
        at += step + cap
    return True


@jit.fast_kernel
def guess_pcap(mem: Any, pos: Any, end: Any, shape: Any, near: Any) -> Any:
    """First place from `pos` on where a chain of records seems to start, else `end`.

    A guess: whoever uses it must see a walk from before arrive at exactly that place.

    Args:
        mem: Memory of the window.
        pos: Where to begin.
        end: Where to give up.
        shape: As for `walk_pcap`.
        near: Place of a good record, for its time.
    """
    near_s = _word(mem, near, shape[0])
    while pos < end:
        if _pcap_chain(mem, pos, mem[1], shape, near_s):
            return pos
        pos += _U(1)
    return end


@jit.fast_law
def _pcapng_chain(mem: Any, at: Any, end: Any, big: Any, limit: Any) -> Any:
    for _link in range(_CHAIN):
        if at + _U(12) > end or _word(mem, at, big) != _PACKET_BLOCK:
            return False
        size = _word(mem, at + _U(4), big)
        if size < _U(12) + _FIELDS or size & _U(3) or size > limit or at + size > end:
            return False
        if _word(mem, at + size - _U(4), big) != size:
            return False
        at += size
    return True


@jit.fast_kernel
def guess_pcapng(mem: Any, pos: Any, end: Any, shape: Any, near: Any) -> Any:
    """As `guess_pcap`, for enhanced packet blocks, which keep a distance of four octets from `near`."""
    pos += (near - pos) & _U(3)
    while pos < end:
        if _pcapng_chain(mem, pos, mem[1], shape[0], shape[3]):
            return pos
        pos += _U(4)
    return end
