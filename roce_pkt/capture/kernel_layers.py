"""Compiled reading of what is less common around RoCE: cooked captures, ERF, GRE, extension headers."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture.columns import HINT_CODES, STATUS_CODES, TUNNELS, header_bit
from roce_pkt.capture.kernel_fields import SETTERS, clearer, copier, getter
from roce_pkt.wire import ib, net
from roce_pkt.wire.header import Header

_U = np.uint64
OK, CUT, LONG = (_U(STATUS_CODES[name]) for name in ("ok", "cut", "ip-length-long"))
_LINK = _U(STATUS_CODES["link-type"])
ETHERNET, ETHERTYPE, TRANSPORT, DONE = _U(0), _U(1), _U(2), _U(3)
"""What is read next."""


def hint(name: str) -> np.uint64:
    """The code of a hint."""
    return _U(HINT_CODES[name])


def size(header: Header) -> np.uint64:
    """The size of a header."""
    return _U(header.size_bytes)


def bit(header: Header) -> np.uint64:
    """The bit of a header in the `headers` column."""
    return _U(header_bit(header))


_H_IB, _H_LINK, _H_ERF = hint("infiniband"), hint("linktype"), hint("erf")
VXLAN, _GRE, _ERSPAN1, _ERSPAN2, _ERSPAN3 = (
    _U(TUNNELS.index(name)) for name in ("vxlan", "gre", "erspan1", "erspan2", "erspan3")
)
T_IPV4, T_IPV6 = _U(net.ETHERTYPE_IPV4), _U(net.ETHERTYPE_IPV6)
_T_TEB, _T_ERSPAN, _T_ERSPAN3 = _U(net.ETHERTYPE_TEB), _U(net.ETHERTYPE_ERSPAN), _U(net.ETHERTYPE_ERSPAN3)
_LRH_SIZE, _GRH_SIZE, _SLL_SIZE, _SLL2_SIZE = size(ib.LRH), size(ib.GRH), size(net.SLL), size(net.SLL2)
_GRE_SIZE, _ERSPAN2_SIZE, _ERSPAN3_SIZE = size(net.GRE), size(net.ERSPAN2), size(net.ERSPAN3)
_SUBHEADER_SIZE = _U(net.ERSPAN3_SUBHEADER_BYTES)
_LRH, _GRH, _SLL, _SLL2 = bit(ib.LRH), bit(ib.GRH), bit(net.SLL), bit(net.SLL2)
_ETH, _VLAN, _IPV4, _IPV6, _UDP = (bit(h) for h in (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP))

_copy_lrh, _copy_grh = copier(ib.LRH), copier(ib.GRH)
_clear_eth, _clear_vlan, _clear_vlan2 = clearer(net.ETH), clearer(net.VLAN), clearer(net.VLAN, 1)
_clear_ipv4, _clear_ipv6, _clear_udp = clearer(net.IPV4), clearer(net.IPV6), clearer(net.UDP)
_sll_type, _sll2_type = getter(net.SLL, "type"), getter(net.SLL2, "type")
_pktlen, _lnh = getter(ib.LRH, "pktlen"), getter(ib.LRH, "lnh")
_gre_flags, _gre_type = getter(net.GRE, "flags"), getter(net.GRE, "type")
_session2, _session3 = getter(net.ERSPAN2, "session"), getter(net.ERSPAN3, "session")
_flags3 = getter(net.ERSPAN3, "flags")
_v4_src_lo, _v4_dst_lo = getter(net.IPV4, "src", "lo"), getter(net.IPV4, "dst", "lo")
_v6_src_hi, _v6_src_lo = getter(net.IPV6, "src", "hi"), getter(net.IPV6, "src", "lo")
_v6_dst_hi, _v6_dst_lo = getter(net.IPV6, "dst", "hi"), getter(net.IPV6, "dst", "lo")
_set_outer_src_hi, _set_outer_src_lo = SETTERS["outer_src_hi"], SETTERS["outer_src_lo"]
_set_outer_dst_hi, _set_outer_dst_lo = SETTERS["outer_dst_hi"], SETTERS["outer_dst_lo"]

_IS_RAW = np.zeros(256, np.bool_)
_IS_RAW[[*net.LINK_RAW, net.LINK_IPV4, net.LINK_IPV6]] = True
_IS_EXTENSION = np.zeros(256, np.bool_)
_IS_EXTENSION[list(net.IPV6_EXTENSIONS)] = True
_MPA = _U(int.from_bytes(b"MPA ID R", "big"))
_MPA_LAST = _U(ord("e"))


@jit.fast_law
def checksum_ok(mem: Any, at: Any, octets: Any) -> Any:
    """True when an IPv4 header's ones' complement sum is right."""
    total = _U(0)
    for k in range(octets >> _U(1)):
        total += _U(jit.be16(mem, at + (_U(k) << _U(1))))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    return total == _U(0xFFFF)


@jit.fast_law
def is_iwarp(mem: Any, at: Any, stop: Any) -> Any:
    """RFC 5044 section 7.1: MPA request and reply frames name themselves, within 80 octets."""
    last = min(stop, at + _U(80))
    while at + _U(9) <= last:
        if jit.be64(mem, at) == _MPA and _U(jit.octet(mem, at + _U(8))) == _MPA_LAST:
            return True
        at += _U(1)
    return False


@jit.fast_law
def obey(start: Any, total: Any, end: Any, status: Any) -> Any:
    """Obey a length field as far as the frame agrees: (end, status)."""
    if start + total > end:
        return end, LONG
    return start + total, status


@jit.fast_law
def link_layer(mem: Any, f: Any, cap: Any, wire: Any, link: Any, out: Any, row: Any) -> Any:
    """Link layers other than Ethernet: (stage, at, ethertype, end, status, hint, value, headers, l3)."""
    zero = _U(0)
    if link < _U(_IS_RAW.size) and _IS_RAW[link]:
        if cap == zero:
            return DONE, zero, zero, wire, CUT, zero, zero, zero, zero
        version = _U(jit.octet(mem, f)) >> _U(4)
        ethertype = T_IPV4 if version == _U(4) else (T_IPV6 if version == _U(6) else zero)
        return ETHERTYPE, zero, ethertype, wire, OK, zero, zero, zero, zero
    if link == _U(net.LINK_SLL):
        if cap < _SLL_SIZE:
            return DONE, zero, zero, wire, CUT, zero, zero, zero, zero
        return ETHERTYPE, _SLL_SIZE, _sll_type(mem, f), wire, OK, zero, zero, _SLL, zero
    if link == _U(net.LINK_SLL2):
        if cap < _SLL2_SIZE:
            return DONE, zero, zero, wire, CUT, zero, zero, zero, zero
        return ETHERTYPE, _SLL2_SIZE, _sll2_type(mem, f), wire, OK, zero, zero, _SLL2, zero
    at = zero
    if link == _U(net.LINK_ERF):
        if _U(16) > cap:
            return DONE, zero, zero, wire, CUT, zero, zero, zero, zero
        at, count = _U(16), 0
        kind = _U(jit.octet(mem, f + _U(8)))
        more = kind
        while more & _U(0x80) and count < 8:
            if at + _U(8) > cap:
                return DONE, at, zero, wire, CUT, zero, zero, zero, zero
            more = _U(jit.octet(mem, f + at))
            at += _U(8)
            count += 1
        kind &= _U(0x7F)
        if kind == _U(2):
            if at + _U(2) > cap:
                return DONE, at, zero, wire, CUT, zero, zero, zero, zero
            return ETHERNET, at + _U(2), zero, wire, OK, zero, zero, zero, zero
        if kind != _U(21):
            return DONE, at, zero, wire, OK, _H_ERF, kind, zero, zero
    elif link != _U(net.LINK_INFINIBAND):
        return DONE, zero, zero, wire, _LINK, _H_LINK, link, zero, zero
    if at + _LRH_SIZE > cap:
        return DONE, at, zero, wire, CUT, _H_IB, zero, zero, zero
    _copy_lrh(mem, f + at, out, row)
    headers, lnh, l3 = _LRH, _lnh(mem, f + at), zero
    end = min(at + (_pktlen(mem, f + at) << _U(2)), wire)
    at += _LRH_SIZE
    if lnh == _U(3):
        if at + _GRH_SIZE > cap:
            return DONE, at, zero, end, CUT, _H_IB, zero, headers, l3
        _copy_grh(mem, f + at, out, row)
        headers, l3 = headers | _GRH, at
        at += _GRH_SIZE
    stage = TRANSPORT if lnh >= _U(2) else DONE
    return stage, at, zero, end, OK, _H_IB, zero, headers, l3


@jit.fast_law
def gre(mem: Any, f: Any, at: Any, cap: Any) -> Any:
    """GRE and what follows it: (tunnel, id, at, stage, ethertype, status); tunnel 0 is none."""
    zero = _U(0)
    if at + _GRE_SIZE > cap:
        return zero, zero, at, DONE, zero, CUT
    flags, kind, ident = _gre_flags(mem, f + at), _gre_type(mem, f + at), zero
    at += _GRE_SIZE
    if flags & _U(7):
        return zero, zero, at, DONE, zero, OK
    if flags & _U(net.GRE_CHECKSUM | net.GRE_ROUTING):
        if at + _U(4) > cap:
            return zero, zero, at, DONE, zero, CUT
        at += _U(4)
    if flags & _U(net.GRE_KEY):
        if at + _U(4) > cap:
            return zero, zero, at, DONE, zero, CUT
        ident = _U(jit.be32(mem, f + at))
        at += _U(4)
    if flags & _U(net.GRE_SEQUENCE):
        if at + _U(4) > cap:
            return zero, zero, at, DONE, zero, CUT
        at += _U(4)
    if kind == _T_ERSPAN:
        if not flags & _U(net.GRE_SEQUENCE):
            return _ERSPAN1, zero, at, ETHERNET, zero, OK
        if at + _ERSPAN2_SIZE > cap:
            return zero, zero, at, DONE, zero, CUT
        return _ERSPAN2, _session2(mem, f + at), at + _ERSPAN2_SIZE, ETHERNET, zero, OK
    if kind == _T_ERSPAN3:
        if at + _ERSPAN3_SIZE > cap:
            return zero, zero, at, DONE, zero, CUT
        session, more = _session3(mem, f + at), _flags3(mem, f + at) & _U(1)
        at += _ERSPAN3_SIZE
        if more:
            if at + _SUBHEADER_SIZE > cap:
                return zero, zero, at, DONE, zero, CUT
            at += _SUBHEADER_SIZE
        return _ERSPAN3, session, at, ETHERNET, zero, OK
    if kind == _T_TEB:
        return _GRE, ident, at, ETHERNET, zero, OK
    inner_ip = kind == T_IPV4 or kind == T_IPV6  # noqa: PLR1714 - numba's `in` is a loop
    if inner_ip:
        return _GRE, ident, at, ETHERTYPE, kind, OK
    return zero, zero, at, DONE, zero, OK


@jit.fast_law
def extensions(mem: Any, f: Any, at: Any, cap: Any, following: Any) -> Any:
    """IPv6 extension headers: (at, next header, fragment, later fragment, any, cut)."""
    fragment = later = some = False
    for _ in range(16):
        if _IS_EXTENSION[following]:
            step = _U(8)
            if at + step > cap:
                return at, following, fragment, later, some, True
            step += _U(jit.octet(mem, f + at + _U(1))) << _U(3)
            if at + step > cap:
                return at, following, fragment, later, some, True
            following = _U(jit.octet(mem, f + at))
            some = True
            at += step
        elif following == _U(net.IPV6_FRAGMENT):
            if at + _U(8) > cap:
                return at, following, fragment, later, some, True
            later = bool(_U(jit.be16(mem, f + at + _U(2))) >> _U(3))
            following = _U(jit.octet(mem, f + at))
            fragment = some = True
            at += _U(8)
        else:
            break
    return at, following, fragment, later, some, False


@jit.fast_law
def keep_outside(mem: Any, f: Any, l3: Any, headers: Any, out: Any, row: Any) -> Any:
    """Put the addresses of the outermost network header into the tunnel columns."""
    if headers & _IPV4:
        _set_outer_src_hi(out, row, _U(0))
        _set_outer_src_lo(out, row, _v4_src_lo(mem, f + l3))
        _set_outer_dst_hi(out, row, _U(0))
        _set_outer_dst_lo(out, row, _v4_dst_lo(mem, f + l3))
    else:
        _set_outer_src_hi(out, row, _v6_src_hi(mem, f + l3))
        _set_outer_src_lo(out, row, _v6_src_lo(mem, f + l3))
        _set_outer_dst_hi(out, row, _v6_dst_hi(mem, f + l3))
        _set_outer_dst_lo(out, row, _v6_dst_lo(mem, f + l3))


@jit.fast_law
def forget(mem: Any, f: Any, headers: Any, out: Any, row: Any) -> Any:
    """Zero the columns of outer headers: the inner ones write them again, or they stay empty."""
    if headers & _ETH:
        _clear_eth(mem, f, out, row)
    if headers & _VLAN:
        _clear_vlan(mem, f, out, row)
        _clear_vlan2(mem, f, out, row)
    if headers & _IPV4:
        _clear_ipv4(mem, f, out, row)
    if headers & _IPV6:
        _clear_ipv6(mem, f, out, row)
    if headers & _UDP:
        _clear_udp(mem, f, out, row)
