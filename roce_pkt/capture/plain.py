"""Columns filled one frame at a time from the plain dissection: for small captures, and as the witness."""

from __future__ import annotations

from typing import Any

from roce_pkt.capture.columns import (
    COLUMNS,
    KINDS,
    TUNNELS,
    header_bit,
    hint_code,
    status_code,
)
from roce_pkt.capture.frames import Frames, Segment, empty_columns
from roce_pkt.capture.model import Record
from roce_pkt.wire import ib, net
from roce_pkt.wire.dissection import Dissection, Layer
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import Header

_LOW64 = (1 << 64) - 1
_V4_MAPPED = 0xFFFF << 32

_FIELDS: dict[int, list[tuple[str, str, str, int]]] = {}
for _column in COLUMNS:
    if _column.width == 1:
        for _header, _field in _column.sources:
            _FIELDS.setdefault(id(_header), []).append((_column.name, _field, _column.part, _column.index))
_QUANTA = [(header, field) for c in COLUMNS if c.width > 1 for header, field in c.sources]
_IP = (net.IPV4, net.IPV6)


def _part(header: Header, value: int, part: str) -> int:
    """A half of an address; IPv4 as ::ffff:a.b.c.d."""
    if header is net.IPV4:
        return 0 if part == "hi" else _V4_MAPPED | value
    return value >> 64 if part == "hi" else value & _LOW64


def fill(records: list[Record], udp_port: int, segments: list[Segment]) -> Frames:
    """Dissect records into columns.

    Args:
        records: Frames in order.
        udp_port: UDP destination port that carries RoCEv2.
        segments: Octets the offsets point into.
    """
    columns = empty_columns(len(records))
    for i, record in enumerate(records):
        row: dict[str, Any] = {
            "number": record.number,
            "time_ns": record.time_ns,
            "offset": record.offset,
            "wire_len": record.wire_len,
            "cap_len": record.cap_len,
            "interface_id": record.interface_id & 0xFFFF,
            "link_type": record.link_type & 0xFFFF,
        }
        found = dissect(record.octets, record.wire_len, record.link_type, udp_port)
        _row(found, row)
        for name, value in row.items():
            columns[name][i] = value
        for layer in found.layers:
            if _QUANTA and layer.header is _QUANTA[0][0]:
                columns["pfc_quanta"][i] = [layer.values[field] for _, field in _QUANTA]
    return Frames(columns, segments, "plain")


def _row(found: Dissection, row: dict[str, Any]) -> None:
    row["kind"] = KINDS.index(found.kind)
    row["hint"], row["hint_value"] = hint_code(found.hint)
    row["status"] = status_code(found.status)
    headers = vlans = 0
    for layer in found.layers:
        header = layer.header
        headers |= header_bit(header)
        index = vlans if header is net.VLAN else 0
        vlans += header is net.VLAN
        for column, field, part, which in _FIELDS.get(id(header), ()):
            if which == index:
                value = layer.values[field]
                row[column] = _part(header, value, part) if part else value
        if header in _IP or header is ib.GRH:
            row["l3_offset"] = layer.offset
    row["headers"], row["vlan_count"] = headers, vlans
    _tunnel(found, row)
    bth = found.find(ib.BTH)
    if bth is not None:
        row["bth_offset"] = bth.offset
        row["payload_offset"], row["payload_len"] = found.payload_offset, found.payload_len
        row["trailer_len"] = found.trailer_len
    row["icrc_ok"] = -1
    if found.icrc is not None:
        row["icrc"] = int.from_bytes(found.icrc.value or b"", "big")
        row["icrc_ok"] = -1 if found.icrc.ok is None else int(found.icrc.ok)


def _tunnel(found: Dissection, row: dict[str, Any]) -> None:
    row["tunnel_count"] = len(found.tunnels)
    if not found.tunnels:
        return
    outer = found.tunnels[0]
    row["tunnel_kind"], row["tunnel_id"] = TUNNELS.index(outer.kind), outer.ident
    ip: Layer | None = next((layer for layer in outer.layers if layer.header in _IP), None)
    if ip is not None:
        for name in ("src", "dst"):
            for half in ("hi", "lo"):
                row[f"outer_{name}_{half}"] = _part(ip.header, ip.values[name], half)
