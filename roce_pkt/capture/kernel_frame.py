"""One frame into its row: the compiled twin of `roce_pkt.wire.frame`, held to it by tests.

Places and masks come from the header tables; what happens after which header is written twice, here
and there, and both must say the same of any octets.
"""

from __future__ import annotations

import numpy as np

from roce_pkt import jit
from roce_pkt.capture import columns
from roce_pkt.capture.columns import HINT_CODES, KIND_PAUSE, KIND_PFC, KIND_ROCEV1, STATUS_CODES, TUNNELS
from roce_pkt.capture.kernel_fields import SETTERS, clearer, copier, getter
from roce_pkt.capture.kernel_transport import CHECKED_BY_NETWORK, transport, transport_none
from roce_pkt.wire import frame, ib, mac_control, net

_U = np.uint64
TUNNEL_BIT = _U(1 << 31)
"""Bit of the returned set that says that tunnel columns were written."""

ETHERNET, ETHERTYPE, TRANSPORT, DONE = _U(0), _U(1), _U(2), _U(3)
NET_IPV4, NET_IPV6, NET_GRH = (CHECKED_BY_NETWORK[name] for name in ("ipv4", "ipv6", "grh"))

_CUT, _IP_VERSION, _SHORT, _LONG, _UDP_LENGTH, _FRAGMENT, _UNBELIEVED, _GRH_NEXT, _LINK, _DEEP = (
    _U(STATUS_CODES[name])
    for name in (
        "cut", "ip-version", "ip-length-short", "ip-length-long", "udp-length", "fragment",
        "fragment-unbelieved", "grh-nexthdr", "link-type", "too-deep",
    )
)  # fmt: skip
_OK = _U(0)
_HINT = {name: _U(code) for name, code in HINT_CODES.items()}
_H_UDP, _H_GRE, _H_FRAGMENT, _H_IB = _HINT["udp"], _HINT["gre"], _HINT["fragment"], _HINT["infiniband"]
_H_MAC, _H_TYPE, _H_PROTO = _HINT["mac-control"], _HINT["ethertype"], _HINT["ip-proto"]
_H_LINK, _H_ERF, _H_NEXT, _H_IWARP = (_HINT[name] for name in ("linktype", "erf", "grh-nexthdr", "iwarp"))
_TUNNEL_CODE = {name: _U(code) for code, name in enumerate(TUNNELS)}
_VXLAN, _GRE, _ERSPAN1, _ERSPAN2, _ERSPAN3 = (
    _TUNNEL_CODE[name] for name in ("vxlan", "gre", "erspan1", "erspan2", "erspan3")
)


def _hints(size: int, named: dict[int, str], default: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    table = np.full(size, default, np.uint8)
    for value, hint in named.items():
        table[value] = HINT_CODES[hint]
    return table


ETHERTYPE_HINT = _hints(1 << 16, {}, HINT_CODES["ethertype"])
ETHERTYPE_HINT[:0x600] = HINT_CODES["802.3"]
for _type, _name in frame.ETHERTYPE_HINTS.items():
    ETHERTYPE_HINT[_type] = HINT_CODES[_name]
PROTO_HINT = _hints(1 << 8, frame.PROTOCOL_HINTS, HINT_CODES["ip-proto"])
PORT_HINT = _hints(1 << 16, net.NEIGHBOUR_PORTS, HINT_CODES["udp"])

_copy_eth, _copy_vlan, _copy_vlan2 = copier(net.ETH), copier(net.VLAN), copier(net.VLAN, 1)
_copy_ipv4, _copy_ipv6, _copy_udp = copier(net.IPV4), copier(net.IPV6), copier(net.UDP)
_copy_grh = copier(ib.GRH)
_copy_lrh, _copy_pfc, _copy_pause = copier(ib.LRH), copier(mac_control.PFC), copier(mac_control.PAUSE)
_clear_eth, _clear_vlan, _clear_vlan2 = clearer(net.ETH), clearer(net.VLAN), clearer(net.VLAN, 1)
_clear_ipv4, _clear_ipv6, _clear_udp = clearer(net.IPV4), clearer(net.IPV6), clearer(net.UDP)

_eth_type, _vlan_type = getter(net.ETH, "type"), getter(net.VLAN, "type")
_sll_type, _sll2_type = getter(net.SLL, "type"), getter(net.SLL2, "type")
_version, _ihl, _total = getter(net.IPV4, "version"), getter(net.IPV4, "ihl"), getter(net.IPV4, "len")
_mf, _frag, _proto = getter(net.IPV4, "mf"), getter(net.IPV4, "frag"), getter(net.IPV4, "proto")
_version6, _length6 = getter(net.IPV6, "version"), getter(net.IPV6, "len")
_next6 = getter(net.IPV6, "nexthdr")
_dport, _udp_len = getter(net.UDP, "dport"), getter(net.UDP, "len")
_vxlan_flags, _vni = getter(net.VXLAN, "flags"), getter(net.VXLAN, "vni")
_gre_flags, _gre_type = getter(net.GRE, "flags"), getter(net.GRE, "type")
_session2, _session3, _flags3 = (
    getter(net.ERSPAN2, "session"), getter(net.ERSPAN3, "session"), getter(net.ERSPAN3, "flags")
)  # fmt: skip
_paylen, _grh_next = getter(ib.GRH, "paylen"), getter(ib.GRH, "nexthdr")
_pktlen, _lnh = getter(ib.LRH, "pktlen"), getter(ib.LRH, "lnh")
_control = getter(mac_control.MAC_CONTROL, "opcode")
_v4_src_lo, _v4_dst_lo = getter(net.IPV4, "src", "lo"), getter(net.IPV4, "dst", "lo")
_v6_src_hi, _v6_src_lo = getter(net.IPV6, "src", "hi"), getter(net.IPV6, "src", "lo")
_v6_dst_hi, _v6_dst_lo = getter(net.IPV6, "dst", "hi"), getter(net.IPV6, "dst", "lo")
_set_outer_src_hi, _set_outer_src_lo = SETTERS["outer_src_hi"], SETTERS["outer_src_lo"]
_set_outer_dst_hi, _set_outer_dst_lo = SETTERS["outer_dst_hi"], SETTERS["outer_dst_lo"]
_set_tunnel_kind, _set_tunnel_id = SETTERS["tunnel_kind"], SETTERS["tunnel_id"]
_set_kind, _set_hint, _set_hint_value, _set_status = (
    SETTERS[n] for n in ("kind", "hint", "hint_value", "status")
)
_set_headers, _set_vlans, _set_tunnels, _set_l3 = (
    SETTERS[n] for n in ("headers", "vlan_count", "tunnel_count", "l3_offset")
)

_SIZE = {h.title: _U(h.size_bytes) for h in (*columns.HEADERS, net.VXLAN, net.GRE, net.ERSPAN2, net.ERSPAN3)}
_ETH_SIZE, _VLAN_SIZE, _UDP_SIZE, _GRH_SIZE = (_SIZE[h.title] for h in (net.ETH, net.VLAN, net.UDP, ib.GRH))
_IPV4_SIZE, _IPV6_SIZE, _LRH_SIZE = _SIZE[net.IPV4.title], _SIZE[net.IPV6.title], _SIZE[ib.LRH.title]
_SLL_SIZE, _SLL2_SIZE, _VXLAN_SIZE, _GRE_SIZE = (
    _SIZE[h.title] for h in (net.SLL, net.SLL2, net.VXLAN, net.GRE)
)
_ERSPAN2_SIZE, _ERSPAN3_SIZE, _MAC_SIZE = (
    _SIZE[h.title] for h in (net.ERSPAN2, net.ERSPAN3, mac_control.MAC_CONTROL)
)
_PFC_SIZE, _PAUSE_SIZE = _SIZE[mac_control.PFC.title], _SIZE[mac_control.PAUSE.title]
_SUBHEADER_SIZE = _U(net.ERSPAN3_SUBHEADER_BYTES)

_B = {h.title: _U(columns.header_bit(h)) for h in columns.HEADERS}
_ETH, _VLAN, _IPV4, _IPV6, _UDP, _GRH = (
    _B[h.title] for h in (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, ib.GRH)
)
_SLL, _SLL2, _LRH = _B[net.SLL.title], _B[net.SLL2.title], _B[ib.LRH.title]
_MAC, _PFC, _PAUSE = (_B[h.title] for h in (mac_control.MAC_CONTROL, mac_control.PFC, mac_control.PAUSE))

_VLAN_1, _VLAN_2, _VLAN_3 = (_U(t) for t in net.VLAN_TYPES)
_T_IPV4, _T_IPV6, _T_ROCEV1 = _U(net.ETHERTYPE_IPV4), _U(net.ETHERTYPE_IPV6), _U(net.ETHERTYPE_ROCEV1)
_T_MAC, _T_TEB, _T_ERSPAN, _T_ERSPAN3 = (
    _U(t) for t in (net.ETHERTYPE_MAC_CONTROL, net.ETHERTYPE_TEB, net.ETHERTYPE_ERSPAN, net.ETHERTYPE_ERSPAN3)
)
_IS_RAW = np.zeros(256, np.bool_)
_IS_RAW[[*net.LINK_RAW, net.LINK_IPV4, net.LINK_IPV6]] = True
_IS_EXTENSION = np.zeros(256, np.bool_)
_IS_EXTENSION[list(net.IPV6_EXTENSIONS)] = True
_MPA = _U(int.from_bytes(b"MPA ID R", "big"))
_MPA_LAST = _U(ord("e"))
_MAX_TUNNELS, _MAX_VLANS = _U(frame.MAX_TUNNELS), _U(frame.MAX_VLAN_TAGS)


@jit.fast_law
def _checksum_ok(mem, at, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    total = _U(0)
    for k in range(size >> _U(1)):
        total += _U(jit.be16(mem, at + (_U(k) << _U(1))))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    total = (total & _U(0xFFFF)) + (total >> _U(16))
    return total == _U(0xFFFF)


@jit.fast_law
def _is_iwarp(mem, at, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """RFC 5044 section 7.1: MPA request and reply frames name themselves, within 80 octets."""
    last = min(stop, at + _U(80))
    while at + _U(9) <= last:
        if jit.be64(mem, at) == _MPA and _U(jit.octet(mem, at + _U(8))) == _MPA_LAST:
            return True
        at += _U(1)
    return False


@jit.fast_law
def _obey(start, total, end, status):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Obey a length field as far as the frame agrees: (end, status)."""
    if start + total > end:
        return end, _LONG
    return start + total, status


@jit.fast_law
def _link(mem, f, cap, wire, link, out, row):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Link layers other than Ethernet: (stage, at, ethertype, end, status, hint, value, headers, l3)."""
    zero = _U(0)
    if link < _U(_IS_RAW.size) and _IS_RAW[link]:
        if cap == zero:
            return DONE, zero, zero, wire, _CUT, zero, zero, zero, zero
        version = _U(jit.octet(mem, f)) >> _U(4)
        ethertype = _T_IPV4 if version == _U(4) else (_T_IPV6 if version == _U(6) else zero)
        return ETHERTYPE, zero, ethertype, wire, _OK, zero, zero, zero, zero
    if link == _U(net.LINK_SLL):
        if _SLL_SIZE > cap:
            return DONE, zero, zero, wire, _CUT, zero, zero, zero, zero
        return ETHERTYPE, _SLL_SIZE, _sll_type(mem, f), wire, _OK, zero, zero, _SLL, zero
    if link == _U(net.LINK_SLL2):
        if _SLL2_SIZE > cap:
            return DONE, zero, zero, wire, _CUT, zero, zero, zero, zero
        return ETHERTYPE, _SLL2_SIZE, _sll2_type(mem, f), wire, _OK, zero, zero, _SLL2, zero
    at = zero
    if link == _U(net.LINK_ERF):
        if _U(16) > cap:
            return DONE, zero, zero, wire, _CUT, zero, zero, zero, zero
        at, count = _U(16), 0
        kind = _U(jit.octet(mem, f + _U(8)))
        more = kind
        while more & _U(0x80) and count < 8:
            if at + _U(8) > cap:
                return DONE, at, zero, wire, _CUT, zero, zero, zero, zero
            more = _U(jit.octet(mem, f + at))
            at += _U(8)
            count += 1
        kind &= _U(0x7F)
        if kind == _U(2):
            if at + _U(2) > cap:
                return DONE, at, zero, wire, _CUT, zero, zero, zero, zero
            return ETHERNET, at + _U(2), zero, wire, _OK, zero, zero, zero, zero
        if kind != _U(21):
            return DONE, at, zero, wire, _OK, _H_ERF, kind, zero, zero
    elif link != _U(net.LINK_INFINIBAND):
        return DONE, zero, zero, wire, _LINK, _H_LINK, link, zero, zero
    if at + _LRH_SIZE > cap:
        return DONE, at, zero, wire, _CUT, _H_IB, zero, zero, zero
    _copy_lrh(mem, f + at, out, row)
    headers, lnh, l3 = _LRH, _lnh(mem, f + at), zero
    end = min(at + (_pktlen(mem, f + at) << _U(2)), wire)
    at += _LRH_SIZE
    if lnh == _U(3):
        if at + _GRH_SIZE > cap:
            return DONE, at, zero, end, _CUT, _H_IB, zero, headers, l3
        _copy_grh(mem, f + at, out, row)
        headers, l3 = headers | _GRH, at
        at += _GRH_SIZE
    stage = TRANSPORT if lnh >= _U(2) else DONE
    return stage, at, zero, end, _OK, _H_IB, zero, headers, l3


@jit.fast_law
def _gre(mem, f, at, cap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """GRE and what follows it: (tunnel, id, at, stage, ethertype, status); tunnel 0 is none."""
    zero = _U(0)
    if at + _GRE_SIZE > cap:
        return zero, zero, at, DONE, zero, _CUT
    flags, kind, ident = _gre_flags(mem, f + at), _gre_type(mem, f + at), zero
    at += _GRE_SIZE
    if flags & _U(7):
        return zero, zero, at, DONE, zero, _OK
    if flags & _U(net.GRE_CHECKSUM | net.GRE_ROUTING):
        if at + _U(4) > cap:
            return zero, zero, at, DONE, zero, _CUT
        at += _U(4)
    if flags & _U(net.GRE_KEY):
        if at + _U(4) > cap:
            return zero, zero, at, DONE, zero, _CUT
        ident = _U(jit.be32(mem, f + at))
        at += _U(4)
    if flags & _U(net.GRE_SEQUENCE):
        if at + _U(4) > cap:
            return zero, zero, at, DONE, zero, _CUT
        at += _U(4)
    if kind == _T_ERSPAN:
        if not flags & _U(net.GRE_SEQUENCE):
            return _ERSPAN1, zero, at, ETHERNET, zero, _OK
        if at + _ERSPAN2_SIZE > cap:
            return zero, zero, at, DONE, zero, _CUT
        return _ERSPAN2, _session2(mem, f + at), at + _ERSPAN2_SIZE, ETHERNET, zero, _OK
    if kind == _T_ERSPAN3:
        if at + _ERSPAN3_SIZE > cap:
            return zero, zero, at, DONE, zero, _CUT
        session, more = _session3(mem, f + at), _flags3(mem, f + at) & _U(1)
        at += _ERSPAN3_SIZE
        if more:
            if at + _SUBHEADER_SIZE > cap:
                return zero, zero, at, DONE, zero, _CUT
            at += _SUBHEADER_SIZE
        return _ERSPAN3, session, at, ETHERNET, zero, _OK
    if kind == _T_TEB:
        return _GRE, ident, at, ETHERNET, zero, _OK
    if kind == _T_IPV4 or kind == _T_IPV6:
        return _GRE, ident, at, ETHERTYPE, kind, _OK
    return zero, zero, at, DONE, zero, _OK


@jit.fast_law
def _extensions(mem, f, at, cap, following):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """IPv6 extension headers: (at, next header, fragment, later fragment, any, cut)."""
    fragment = later = some = False
    for _ in range(16):
        if _IS_EXTENSION[following]:
            size = _U(8)
            if at + size > cap:
                return at, following, fragment, later, some, True
            size += _U(jit.octet(mem, f + at + _U(1))) << _U(3)
            if at + size > cap:
                return at, following, fragment, later, some, True
            following = _U(jit.octet(mem, f + at))
            some = True
            at += size
        elif following == _U(net.IPV6_FRAGMENT):
            if at + _U(8) > cap:
                return at, following, fragment, later, some, True
            later = (_U(jit.be16(mem, f + at + _U(2))) >> _U(3)) > _U(0)
            following = _U(jit.octet(mem, f + at))
            fragment = some = True
            at += _U(8)
        else:
            break
    return at, following, fragment, later, some, False


@jit.fast_law
def _keep_outside(mem, f, l3, headers, out, row):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
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
def _forget(mem, f, headers, out, row):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
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


@jit.fast_law
def read_frame(mem, f, cap, wire, link, udp_port, out, row, checks):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Dissect one frame into row `row` of the block `out`.

    Args:
        mem: Memory that holds the frame.
        f: First octet of the frame.
        cap: Octets captured.
        wire: Octets on the wire.
        link: LINKTYPE number.
        udp_port: UDP destination port that carries RoCEv2.
        out: Memory of the block of columns.
        row: Row to fill.
        checks: (verify, address of the CRC, its table's address, scratch address) for the ICRC.

    Returns:
        Set of the headers whose columns were written, with `TUNNEL_BIT`.
    """
    zero = _U(0)
    wire = max(wire, cap)
    end, at, ethertype, l3 = wire, zero, zero, zero
    status, hint, value, kind = _OK, zero, zero, zero
    headers, written, vlans, tunnels = zero, zero, zero, zero
    network, fragment, checkable = zero, False, True
    stage = ETHERNET
    if link != _U(net.LINK_ETHERNET):
        stage, at, ethertype, end, status, hint, value, headers, l3 = _link(mem, f, cap, wire, link, out, row)
    while stage <= ETHERTYPE:
        if stage == ETHERNET:
            if at + _ETH_SIZE > cap:
                status, stage = _CUT, DONE
                break
            _copy_eth(mem, f + at, out, row)
            headers |= _ETH
            ethertype = _eth_type(mem, f + at)
            at += _ETH_SIZE
        stage = DONE
        while ethertype == _VLAN_1 or ethertype == _VLAN_2 or ethertype == _VLAN_3:
            if vlans >= _MAX_VLANS or at + _VLAN_SIZE > cap:
                status = _DEEP if vlans >= _MAX_VLANS else _CUT
                break
            if vlans == zero:
                _copy_vlan(mem, f + at, out, row)
            elif vlans == _U(1):
                _copy_vlan2(mem, f + at, out, row)
            headers |= _VLAN
            ethertype = _vlan_type(mem, f + at)
            at += _VLAN_SIZE
            vlans += _U(1)
        if status == _CUT or status == _DEEP:
            break
        start, proto, later, some, cut = at, zero, False, False, False
        fragment, checkable, network = False, True, zero
        if ethertype == _T_IPV4:
            if at + _IPV4_SIZE > cap:
                status = _CUT
                break
            _copy_ipv4(mem, f + at, out, row)
            headers, l3, network = headers | _IPV4, at, NET_IPV4
            words, total = _ihl(mem, f + at), _total(mem, f + at)
            if _version(mem, f + at) != _U(4) or words < _U(5):
                status = _IP_VERSION
                break
            size = words << _U(2)
            if at + size > cap or total < size:
                status = _CUT if at + size > cap else _SHORT
                break
            at += size
            some = size > _IPV4_SIZE
            end, status = _obey(start, total, end, status)
            proto, later = _proto(mem, f + start), _frag(mem, f + start) != zero
            fragment = later or _mf(mem, f + start) != zero
            if fragment and not _checksum_ok(mem, f + start, size):
                status, fragment, later = _UNBELIEVED, False, False
        elif ethertype == _T_IPV6:
            if at + _IPV6_SIZE > cap:
                status = _CUT
                break
            _copy_ipv6(mem, f + at, out, row)
            headers, l3, network = headers | _IPV6, at, NET_IPV6
            if _version6(mem, f + at) != _U(6):
                status = _IP_VERSION
                break
            end, status = _obey(start, _IPV6_SIZE + _length6(mem, f + at), end, status)
            at += _IPV6_SIZE
            proto = _next6(mem, f + start)
            at, proto, fragment, later, some, cut = _extensions(mem, f, at, cap, proto)
            if cut:
                status = _CUT
                break
        elif ethertype == _T_ROCEV1:
            if at + _GRH_SIZE > cap:
                status = _CUT
                break
            _copy_grh(mem, f + at, out, row)
            headers, l3, network, kind = headers | _GRH, at, NET_GRH, _U(KIND_ROCEV1)
            end, status = _obey(start, _GRH_SIZE + _paylen(mem, f + at), end, status)
            value = _grh_next(mem, f + at)
            at += _GRH_SIZE
            if value != _U(ib.GRH_NEXT_BTH):
                hint, status = _H_NEXT, _GRH_NEXT
                break
            value, stage = zero, TRANSPORT
            break
        elif ethertype == _T_MAC:
            hint = _H_MAC
            if at + _MAC_SIZE > cap:
                status = _CUT
                break
            headers |= _MAC
            control = _control(mem, f + at)
            at += _MAC_SIZE
            if control == _U(mac_control.OPCODE_PFC):
                if at + _PFC_SIZE > cap:
                    status = _CUT
                    break
                _copy_pfc(mem, f + at, out, row)
                headers, kind, hint = headers | _PFC, _U(KIND_PFC), zero
            elif control == _U(mac_control.OPCODE_PAUSE):
                if at + _PAUSE_SIZE > cap:
                    status = _CUT
                    break
                _copy_pause(mem, f + at, out, row)
                headers, kind, hint = headers | _PAUSE, _U(KIND_PAUSE), zero
            break
        else:
            hint = _U(ETHERTYPE_HINT[ethertype])
            value = ethertype if hint == _H_TYPE else zero
            break
        # -- IP protocol
        checkable = not (some or fragment)
        if later:
            hint = _H_FRAGMENT
            break
        tunnel, ident, following = zero, zero, ETHERNET
        if proto == _U(net.PROTO_UDP):
            hint = _H_UDP
            if at + _UDP_SIZE > cap:
                status = _CUT
                break
            _copy_udp(mem, f + at, out, row)
            headers |= _UDP
            dport, length, udp_start = _dport(mem, f + at), _udp_len(mem, f + at), at
            at += _UDP_SIZE
            if dport == udp_port:
                kind, hint, stage = _U(columns.KIND_ROCEV2), zero, TRANSPORT
                if fragment:
                    status = _FRAGMENT
                    break
                if udp_start + length != end and status == _OK:
                    status = _UDP_LENGTH
                if length >= _UDP_SIZE:
                    end = min(end, udp_start + length)
                break
            if dport != _U(net.PORT_VXLAN):
                hint = _U(PORT_HINT[dport])
                break
            if at + _VXLAN_SIZE > cap:
                status = _CUT
                break
            if not _vxlan_flags(mem, f + at) & _U(8):
                break
            hint, tunnel, ident = zero, _VXLAN, _vni(mem, f + at)
            at += _VXLAN_SIZE
        elif proto == _U(net.PROTO_GRE):
            hint = _H_GRE
            tunnel, ident, at, following, ethertype, trouble = _gre(mem, f, at, cap)
            if trouble != _OK:
                status = trouble
            if tunnel == zero:
                break
        else:
            hint = _U(PROTO_HINT[proto])
            value = proto if hint == _H_PROTO else zero
            if proto == _U(net.PROTO_TCP) and _is_iwarp(mem, f + at, f + cap):
                hint = _H_IWARP
            break
        if tunnels >= _MAX_TUNNELS:
            status = _DEEP
            break
        if tunnels == zero:
            _set_tunnel_kind(out, row, tunnel)
            _set_tunnel_id(out, row, ident)
            _keep_outside(mem, f, l3, headers, out, row)
            written |= TUNNEL_BIT
        _forget(mem, f, headers, out, row)
        written |= headers
        headers, vlans, l3, tunnels, stage = zero, zero, zero, tunnels + _U(1), following
    if stage == TRANSPORT:
        cover = network if checkable else zero
        headers, status = transport(
            mem, f, at, cap, end, l3, cover, fragment, headers, status, out, row, checks
        )
    else:
        transport_none(out, row)
    _set_kind(out, row, kind)
    _set_hint(out, row, hint)
    _set_hint_value(out, row, value)
    _set_status(out, row, status)
    _set_headers(out, row, headers)
    _set_vlans(out, row, vlans)
    _set_tunnels(out, row, tunnels)
    _set_l3(out, row, l3)
    return headers | written
