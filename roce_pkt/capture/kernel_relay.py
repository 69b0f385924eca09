"""Compiled copying of frames into another layout: a tag more or less, another network header, a new ICRC."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture.kernel_crc import any_icrc
from roce_pkt.capture.kernel_put import copy_octets
from roce_pkt.capture.kernel_run import ANYWHERE

_U = np.uint64
HEAD_BYTES = 64
"""Octets kept for a new network header."""

FOLLOW, FIX, KEEP = range(3)
"""A wrong ICRC stays as wrong as it was; is made right; is left as it is, as is a right one."""

LAYOUT = np.dtype(
    [
        ("source", "u8"),  # address of the frame as it is, fields changed already
        ("original", "u8"),  # address of the frame as it was
        ("target", "u8"),  # place of the new one
        ("size", "u8"),  # octets of the frame as it is
        ("l3", "u8"),  # where its link headers end
        ("bth", "u8"),  # where what follows the network headers begins
        ("scrub", "u8"),  # address of a new payload
        ("payload", "u8"),
        ("payload_len", "u8"),  # 0 keeps the payload
        ("icrc", "u8"),  # place of the ICRC; 0 leaves it as it is
        ("bad", "u4"),  # what is added to the right ICRC of a frame that had a right one
        ("tag", "u4"),  # a tag that is put in, as it stands on the wire; 0 is none
        ("type", "u2"),  # the new EtherType of a new network header
        ("drop", "u1"),  # octets of a tag that is taken out
        ("head", "u1"),  # octets of a new network header; 0 keeps the old one
        ("was", "u1"),  # number of the old network header, for the ICRC
        ("becomes", "u1"),  # number of the new one
        ("same", "u1"),  # answer: the new octets are those that were
        ("right", "u1"),  # its ICRC is right
        ("mode", "u1"),  # FOLLOW, FIX or KEEP
    ],
    align=True,
)
"""How one frame is laid out anew."""


@jit.fast_law
def _swap16(value: Any) -> Any:
    return np.uint16((value >> _U(8)) | ((value & _U(0xFF)) << _U(8)))


@jit.fast_law
def _equal(mem: Any, at: Any, address: Any, size: Any) -> Any:
    """Whether octets are those at an address."""
    k = _U(0)
    while k + _U(8) <= size:
        if jit.le64(mem, at + k) != jit.le64(ANYWHERE, address + k):
            return False
        k += _U(8)
    while k < size:
        if jit.octet(mem, at + k) != jit.octet(ANYWHERE, address + k):
            return False
        k += _U(1)
    return True


@jit.fast_kernel
def relay(out: Any, rows: Any, heads: Any, crc: Any) -> Any:
    """Lay frames out anew.

    Args:
        out: Memory that holds them, LRH_ONES octets and more before the first one.
        rows: `LAYOUT`s.
        heads: Memory of new network headers, `HEAD_BYTES` for each row.
        crc: (`crc_way`, address of `slicing_table`, address of a scratch).
    """
    rows = jit.borrow(rows)
    way, table_at, scratch_at = crc
    macs = _U(12)
    for n in range(rows.size):
        row = rows[n]
        at, source = row.target, row.source
        if row.size <= macs:
            copy_octets(out, at, ANYWHERE, source, row.size)
            row.same = 1
            continue
        copy_octets(out, at, ANYWHERE, source, macs)
        at += macs
        if row.tag:
            jit.put32(out, at, row.tag)
            at += _U(4)
        begin = macs + _U(row.drop)
        copy_octets(out, at, ANYWHERE, source + begin, row.l3 - begin)
        at += row.l3 - begin
        network = at
        if row.head:
            jit.put16(out, at - _U(2), _swap16(_U(row.type)))
            copy_octets(out, at, heads, _U(n) * _U(HEAD_BYTES), _U(row.head))
            at += _U(row.head)
        else:
            copy_octets(out, at, ANYWHERE, source + row.l3, row.bth - row.l3)
            at += row.bth - row.l3
        copy_octets(out, at, ANYWHERE, source + row.bth, row.size - row.bth)
        if row.payload_len:
            copy_octets(out, at + (row.payload - row.bth), ANYWHERE, row.scrub, row.payload_len)
        if row.mode == KEEP and row.icrc:
            copy_octets(out, at + (row.icrc - row.bth), ANYWHERE, row.original + row.icrc, _U(4))
        elif row.icrc:
            end, added = at + (row.icrc - row.bth), row.bad
            if not row.right and row.mode == FOLLOW:
                was = any_icrc(
                    _U(row.was), way, table_at, scratch_at, ANYWHERE, source + row.l3, source + row.icrc
                )
                added = np.uint32(was ^ jit.le32(ANYWHERE, source + row.icrc))
            elif row.mode == FIX:
                added = np.uint32(0)
            value = any_icrc(_U(row.becomes), way, table_at, scratch_at, out, network, end)
            jit.put32(out, end, np.uint32(value ^ added))
        end = at + (row.size - row.bth)
        row.same = end - row.target == row.size and _equal(out, row.target, row.original, row.size)
