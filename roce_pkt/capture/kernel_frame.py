"""One frame into its row: the compiled twin of `roce_pkt.wire.frame`, held to it by tests.

Places and masks come from the header tables; what happens after which header is written twice, here
and there, and both must say the same of any octets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt import jit
from roce_pkt.capture.columns import (
    HINT_CODES,
    KIND_PAUSE,
    KIND_PFC,
    KIND_ROCEV1,
    KIND_ROCEV2,
    STATUS_CODES,
)
from roce_pkt.capture.kernel_crc import NET_GRH, NET_IPV4, NET_IPV6
from roce_pkt.capture.kernel_fields import SETTERS, copier, getter
from roce_pkt.capture.kernel_layers import (
    CUT,
    DONE,
    ETHERNET,
    ETHERTYPE,
    OK,
    T_IPV4,
    T_IPV6,
    TRANSPORT,
    VXLAN,
    checksum_ok,
    extensions,
    forget,
    gre,
    is_iwarp,
    keep_outside,
    link_layer,
    obey,
)
from roce_pkt.capture.kernel_layers import bit as _bit
from roce_pkt.capture.kernel_layers import hint as _hint
from roce_pkt.capture.kernel_layers import size as _size
from roce_pkt.capture.kernel_tile import TUNNEL_BIT
from roce_pkt.capture.kernel_transport import transport, transport_none
from roce_pkt.wire import frame, ib, mac_control, net

_U = np.uint64
_IP_VERSION, _SHORT, _UDP_LENGTH, _FRAGMENT, _UNBELIEVED, _GRH_NEXT, _DEEP = (
    _U(STATUS_CODES[name])
    for name in (
        "ip-version", "ip-length-short", "udp-length", "fragment",
        "fragment-unbelieved", "grh-nexthdr", "too-deep",
    )
)  # fmt: skip
_H_UDP, _H_GRE, _H_FRAGMENT, _H_MAC = _hint("udp"), _hint("gre"), _hint("fragment"), _hint("mac-control")
_H_TYPE, _H_PROTO, _H_NEXT, _H_IWARP = (
    _hint(name) for name in ("ethertype", "ip-proto", "grh-nexthdr", "iwarp")
)


def _hints(count: int, named: dict[int, str], default: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    table = np.full(count, default, np.uint8)
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
_copy_grh, _copy_pfc, _copy_pause = copier(ib.GRH), copier(mac_control.PFC), copier(mac_control.PAUSE)
_eth_type, _vlan_type = getter(net.ETH, "type"), getter(net.VLAN, "type")
_version, _ihl, _total = getter(net.IPV4, "version"), getter(net.IPV4, "ihl"), getter(net.IPV4, "len")
_mf, _frag, _proto = getter(net.IPV4, "mf"), getter(net.IPV4, "frag"), getter(net.IPV4, "proto")
_version6, _length6 = getter(net.IPV6, "version"), getter(net.IPV6, "len")
_next6 = getter(net.IPV6, "nexthdr")
_dport, _udp_len = getter(net.UDP, "dport"), getter(net.UDP, "len")
_vxlan_flags, _vni = getter(net.VXLAN, "flags"), getter(net.VXLAN, "vni")
_paylen, _grh_next = getter(ib.GRH, "paylen"), getter(ib.GRH, "nexthdr")
_control = getter(mac_control.MAC_CONTROL, "opcode")
_set_tunnel_kind, _set_tunnel_id = SETTERS["tunnel_kind"], SETTERS["tunnel_id"]
_set_kind, _set_hint, _set_hint_value, _set_status = (
    SETTERS[name] for name in ("kind", "hint", "hint_value", "status")
)
_set_headers, _set_vlans, _set_tunnels, _set_l3 = (
    SETTERS[name] for name in ("headers", "vlan_count", "tunnel_count", "l3_offset")
)

_ETH_SIZE, _VLAN_SIZE, _UDP_SIZE, _VXLAN_SIZE = (
    _size(net.ETH),
    _size(net.VLAN),
    _size(net.UDP),
    _size(net.VXLAN),
)
_IPV4_SIZE, _IPV6_SIZE, _GRH_SIZE = _size(net.IPV4), _size(net.IPV6), _size(ib.GRH)
_MAC_SIZE, _PFC_SIZE, _PAUSE_SIZE = (
    _size(h) for h in (mac_control.MAC_CONTROL, mac_control.PFC, mac_control.PAUSE)
)
_ETH, _VLAN, _IPV4, _IPV6, _UDP, _GRH = (
    _bit(h) for h in (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, ib.GRH)
)
_MAC, _PFC, _PAUSE = (_bit(h) for h in (mac_control.MAC_CONTROL, mac_control.PFC, mac_control.PAUSE))

_VLAN_1, _VLAN_2, _VLAN_3 = (_U(t) for t in net.VLAN_TYPES)
_T_ROCEV1, _T_MAC = _U(net.ETHERTYPE_ROCEV1), _U(net.ETHERTYPE_MAC_CONTROL)
_MAX_TUNNELS, _MAX_VLANS = _U(frame.MAX_TUNNELS), _U(frame.MAX_VLAN_TAGS)


@jit.fast_law
def read_frame(
    mem: Any, f: Any, cap: Any, wire: Any, link: Any, udp_port: Any, out: Any, row: Any, checks: Any
) -> Any:
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
    status, hint, value, kind = OK, zero, zero, zero
    headers, written, vlans, tunnels = zero, zero, zero, zero
    network, fragment, checkable = zero, False, True
    stage = ETHERNET
    if link != _U(net.LINK_ETHERNET):
        stage, at, ethertype, end, status, hint, value, headers, l3 = link_layer(
            mem, f, cap, wire, link, out, row
        )
    while stage <= ETHERTYPE:
        if stage == ETHERNET:
            if at + _ETH_SIZE > cap:
                status, stage = CUT, DONE
                break
            _copy_eth(mem, f + at, out, row)
            headers |= _ETH
            ethertype = _eth_type(mem, f + at)
            at += _ETH_SIZE
        stage, stuck = DONE, False
        while ethertype == _VLAN_1 or ethertype == _VLAN_2 or ethertype == _VLAN_3:  # noqa: PLR1714, SIM109
            stuck = bool(vlans >= _MAX_VLANS or at + _VLAN_SIZE > cap)
            if stuck:
                status = _DEEP if vlans >= _MAX_VLANS else CUT
                break
            if vlans == zero:
                _copy_vlan(mem, f + at, out, row)
            elif vlans == _U(1):
                _copy_vlan2(mem, f + at, out, row)
            headers |= _VLAN
            ethertype = _vlan_type(mem, f + at)
            at += _VLAN_SIZE
            vlans += _U(1)
        if stuck:
            break
        start, proto, later, some, cut = at, zero, False, False, False
        fragment, checkable, network = False, True, zero
        if ethertype == T_IPV4:
            if at + _IPV4_SIZE > cap:
                status = CUT
                break
            _copy_ipv4(mem, f + at, out, row)
            headers, l3, network = headers | _IPV4, at, NET_IPV4
            words, total = _ihl(mem, f + at), _total(mem, f + at)
            if _version(mem, f + at) != _U(4) or words < _U(5):
                status = _IP_VERSION
                break
            ip_size = words << _U(2)
            if at + ip_size > cap or total < ip_size:
                status = CUT if at + ip_size > cap else _SHORT
                break
            at += ip_size
            some = ip_size > _IPV4_SIZE
            end, status = obey(start, total, end, status)
            proto, later = _proto(mem, f + start), _frag(mem, f + start) != zero
            fragment = later or _mf(mem, f + start) != zero
            if fragment and not checksum_ok(mem, f + start, ip_size):
                status, fragment, later = _UNBELIEVED, False, False
        elif ethertype == T_IPV6:
            if at + _IPV6_SIZE > cap:
                status = CUT
                break
            _copy_ipv6(mem, f + at, out, row)
            headers, l3, network = headers | _IPV6, at, NET_IPV6
            if _version6(mem, f + at) != _U(6):
                status = _IP_VERSION
                break
            end, status = obey(start, _IPV6_SIZE + _length6(mem, f + at), end, status)
            at += _IPV6_SIZE
            proto = _next6(mem, f + start)
            at, proto, fragment, later, some, cut = extensions(mem, f, at, cap, proto)
            if cut:
                status = CUT
                break
        elif ethertype == _T_ROCEV1:
            if at + _GRH_SIZE > cap:
                status = CUT
                break
            _copy_grh(mem, f + at, out, row)
            headers, l3, network, kind = headers | _GRH, at, NET_GRH, _U(KIND_ROCEV1)
            end, status = obey(start, _GRH_SIZE + _paylen(mem, f + at), end, status)
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
                status = CUT
                break
            headers |= _MAC
            control = _control(mem, f + at)
            at += _MAC_SIZE
            if control == _U(mac_control.OPCODE_PFC):
                if at + _PFC_SIZE > cap:
                    status = CUT
                    break
                _copy_pfc(mem, f + at, out, row)
                headers, kind, hint = headers | _PFC, _U(KIND_PFC), zero
            elif control == _U(mac_control.OPCODE_PAUSE):
                if at + _PAUSE_SIZE > cap:
                    status = CUT
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
                status = CUT
                break
            _copy_udp(mem, f + at, out, row)
            headers |= _UDP
            dport, length, udp_start = _dport(mem, f + at), _udp_len(mem, f + at), at
            at += _UDP_SIZE
            if dport == udp_port:
                kind, hint, stage = _U(KIND_ROCEV2), zero, TRANSPORT
                if fragment:
                    status = _FRAGMENT
                    break
                if udp_start + length != end and status == OK:
                    status = _UDP_LENGTH
                if length >= _UDP_SIZE:
                    end = min(end, udp_start + length)
                break
            if dport != _U(net.PORT_VXLAN):
                hint = _U(PORT_HINT[dport])
                break
            if at + _VXLAN_SIZE > cap:
                status = CUT
                break
            if not _vxlan_flags(mem, f + at) & _U(8):
                break
            hint, tunnel, ident = zero, VXLAN, _vni(mem, f + at)
            at += _VXLAN_SIZE
        elif proto == _U(net.PROTO_GRE):
            hint = _H_GRE
            tunnel, ident, at, following, ethertype, trouble = gre(mem, f, at, cap)
            if trouble != OK:
                status = trouble
            if tunnel == zero:
                break
        else:
            hint = _U(PROTO_HINT[proto])
            value = proto if hint == _H_PROTO else zero
            if proto == _U(net.PROTO_TCP) and is_iwarp(mem, f + at, f + cap):
                hint = _H_IWARP
            break
        if tunnels >= _MAX_TUNNELS:
            status = _DEEP
            break
        if tunnels == zero:
            _set_tunnel_kind(out, row, tunnel)
            _set_tunnel_id(out, row, ident)
            keep_outside(mem, f, l3, headers, out, row)
            written |= TUNNEL_BIT
        forget(mem, f, headers, out, row)
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
