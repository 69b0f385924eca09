"""Rewrite what a capture's frames say and keep what makes them valid: lengths, checksums, ICRC.

A checksum or ICRC that was wrong stays exactly as wrong as it was (unless told otherwise), so
rewriting back gives the octets of the original.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.edit.act import followed
from roce_pkt.edit.copy import with_octets, write_like
from roce_pkt.edit.mapping import SUBJECTS, UNTAGGED, V4_MAPPED
from roce_pkt.edit.mapping import Mapping as FieldMap
from roce_pkt.edit.reframe import Family, Part, family_of, reframe
from roce_pkt.errors import InputError
from roce_pkt.wire import ib, icrc, net
from roce_pkt.wire.dissection import Dissection, Layer
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import Header, ipv6_text
from roce_pkt.wire.opcode import CNP

IcrcMode = Literal["auto", "keep", "bad", "fix"]
ICRC_MODES: tuple[IcrcMode, ...] = ("auto", "keep", "bad", "fix")
PayloadMode = Literal["keep", "zero", "random"]
PAYLOAD_MODES: tuple[PayloadMode, ...] = ("keep", "zero", "random")

_NETWORKS: dict[Family, icrc.Network] = {"ipv4": "ipv4", "ipv6": "ipv6", "rocev1": "grh"}
_BY_TARGET = {(id(header), name): subject for subject, s in SUBJECTS.items() for header, name in s.targets}


@dataclass(slots=True)
class Orders:
    """What to rewrite.

    Args:
        maps: By field name of `mapping.SUBJECTS`.
        family: Network header wanted, or None to keep each frame's own.
        icrc: `auto` keeps right ones right and wrong ones as wrong; `keep` leaves the octets; `bad`
            makes all wrong; `fix` makes all right.
        payload: What becomes of payloads.
        seed: Of random payloads.
        drop_other: Leave out frames that are no RoCE and no pause.
    """

    maps: Mapping[str, FieldMap] = field(default_factory=dict)
    family: Family | None = None
    icrc: IcrcMode = "auto"
    payload: PayloadMode = "keep"
    seed: int = 1
    drop_other: bool = False

    def inverse(self) -> Orders:
        """The same orders with every mapping undone.

        Raises:
            InputError: A mapping without a way back.
        """
        back = {name: mapping.inverse(name) for name, mapping in self.maps.items()}
        return replace(self, maps=back)


@dataclass(slots=True)
class Rewritten:
    """What was done: frames read, changed, left as they were, and left out."""

    frames: int = 0
    changed: int = 0
    kept: int = 0
    left_out: int = 0


class Rewriter:
    """Rewrites one frame after the other.

    Args:
        orders: What to do.
        udp_port: UDP destination port that carries RoCEv2.
    """

    def __init__(self, orders: Orders, udp_port: int) -> None:
        self.orders, self.udp_port = orders, udp_port
        self._dice = random.Random(orders.seed)

    def __call__(self, record: Record) -> bytes | None:
        """The frame's new octets, or None when it is left out."""
        octets = bytes(record.octets)
        read = dissect(octets, record.wire_len, record.link_type, self.udp_port)
        if read.kind == "other" and self.orders.drop_other:
            return None
        try:
            return self._frame(octets, read)
        except InputError as error:
            raise InputError(f"frame {record.number}: {error}") from None

    def _frame(self, octets: bytes, read: Dissection) -> bytes:
        bth = read.find(ib.BTH)
        cnp = bth is not None and bth.values["opcode"] == CNP
        pieces, at = [], 0
        for layer, values in zip(read.all_layers(), self._values_of(read, is_cnp=cnp), strict=True):
            pieces += [octets[at : layer.offset], layer.header.pack(values)]
            at = layer.end
        new = b"".join(pieces) + octets[at:]
        if bth is None:
            return self._tagged(new, read)
        new = _ip_sums(octets, self._payload(new, read), read)
        new, grown, same_family = self._transport(new, read)
        # the UDP checksum covers the ICRC, which masks it: last
        return _udp_sums(octets, new, read, grown) if same_family else new

    def chance(self, size: int) -> bytes:
        """The next random payload."""
        return self._dice.randbytes(size)

    # -- header values

    def _values_of(self, read: Dissection, *, is_cnp: bool) -> Iterator[dict[str, int]]:
        for layer in read.all_layers():
            # addresses of other protocols stay: their own checksums would have to follow
            keep = read.bth is None and layer.header in (net.IPV4, net.IPV6, net.UDP)
            yield layer.values if keep else self._values(layer, is_cnp=is_cnp)

    def _values(self, layer: Layer, *, is_cnp: bool) -> dict[str, int]:
        header, values = layer.header, dict(layer.values)
        for name, value in layer.values.items():
            subject = _BY_TARGET.get((id(header), name))
            mapping = self.orders.maps.get(subject) if subject else None
            if mapping is None or subject == "vlan" or (subject == "psn" and is_cnp):
                continue
            values[name] = _address(header, value, mapping) if subject == "ip" else mapping(value)
        if header is ib.GRH:
            dscp, ecn = values["tclass"] >> 2, values["tclass"] & 3
            for subject, shift, part in (("dscp", 2, dscp), ("ecn", 0, ecn)):
                if subject in self.orders.maps:
                    new = self.orders.maps[subject](part)
                    values["tclass"] = values["tclass"] & ~((0x3F if shift else 3) << shift) | new << shift
        return values

    # -- octets

    def _payload(self, new: bytes, read: Dissection) -> bytes:
        """The payload scrubbed, pads left alone."""
        if self.orders.payload == "keep":
            return new
        start = read.payload_offset
        size = min(read.payload_len, max(0, len(new) - start))
        fill = bytes(size) if self.orders.payload == "zero" else self.chance(size)
        return new[:start] + fill + new[start + size :]

    def _transport(self, new: bytes, read: Dissection) -> tuple[bytes, int, bool]:
        """Another network header or VLAN tag if asked, and the ICRC.

        Returns:
            The frame, by how many octets its front has grown, and whether its network header is of its kind.
        """
        front = read.layers[: [layer.header for layer in read.layers].index(ib.BTH)]
        parts: list[Part] = [(layer.header, layer.header.unpack(new, layer.offset)) for layer in front]
        whole = sum(header.size_bytes for header, _ in parts) == (front[-1].end if front else 0)
        family = family_of(parts)
        cover, grown, wanted = read.cover, 0, self.orders.family or family
        if whole and family and parts[0][0] is net.ETH:
            parts = self._vlan(parts)
            parts = reframe(parts, wanted or family, self.udp_port)
            head = b"".join(header.pack(values) for header, values in parts)
            grown = len(head) - front[-1].end
            new = head + new[front[-1].end :]
            if cover is not None:
                links = sum(header.size_bytes for header, _ in parts if header in (net.ETH, net.VLAN))
                cover = icrc.Coverage(
                    _NETWORKS[wanted or family], links, cover.bth_offset + grown, cover.end + grown
                )
        return self._icrc(new, read, cover), grown, not whole or wanted == family

    def _icrc(self, new: bytes, read: Dissection, cover: icrc.Coverage | None) -> bytes:
        found, mode = read.icrc, self.orders.icrc
        if mode == "keep" or cover is None or found is None or found.value is None or found.expected is None:
            return new
        right = icrc.compute(new, cover)
        wrong = int.from_bytes(found.value, "big") ^ int.from_bytes(found.expected, "big")
        difference = {"auto": wrong, "fix": 0, "bad": wrong or 0xFFFF_FFFF}[mode]
        value = (int.from_bytes(right, "big") ^ difference).to_bytes(ib.ICRC_BYTES, "big")
        return new[: cover.end] + value + new[cover.end + ib.ICRC_BYTES :]

    def _vlan(self, parts: list[Part]) -> list[Part]:
        mapping = self.orders.maps.get("vlan")
        if mapping is None:
            return parts
        (eth, link), *rest = parts
        tagged = bool(rest) and rest[0][0] is net.VLAN
        vid = mapping(rest[0][1]["vid"] if tagged else UNTAGGED)
        if tagged and vid == UNTAGGED:
            return [(eth, link | {"type": rest[0][1]["type"]}), *rest[1:]]
        if tagged:
            return [(eth, link), (net.VLAN, rest[0][1] | {"vid": vid}), *rest[1:]]
        if vid == UNTAGGED:
            return parts
        pcp = self.orders.maps["pcp"](0) if "pcp" in self.orders.maps else 0
        tag = {"pcp": pcp, "dei": 0, "vid": vid, "type": link["type"]}
        return [(eth, link | {"type": net.VLAN_TYPES[0]}), (net.VLAN, tag), *rest]

    def _tagged(self, octets: bytes, read: Dissection) -> bytes:
        """A frame without BTH: its VLAN tag only."""
        links = [layer for layer in read.layers if layer.header in (net.ETH, net.VLAN)]
        if not links or links[0].header is not net.ETH or read.tunnels:
            return octets
        parts = self._vlan([(layer.header, layer.header.unpack(octets, layer.offset)) for layer in links])
        return b"".join(header.pack(values) for header, values in parts) + octets[links[-1].end :]


def _address(header: Header, value: int, mapping: FieldMap) -> int:
    if header is not net.IPV4:
        return mapping(value)
    return mapped_address(V4_MAPPED | value, 4, mapping) & 0xFFFF_FFFF


def mapped_address(value: int, version: int, mapping: FieldMap) -> int:
    """The new address of one as a 128-bit number, IPv4 mapped.

    Raises:
        InputError: An IPv4 header cannot hold it.
    """
    new = mapping(value)
    if version == 4 and new >> 32 != 0xFFFF:
        raise InputError(
            f"{ipv6_text(new)} does not fit an IPv4 header; map to an IPv4 address, or give --to ipv6 with "
            "addresses unmapped"
        )
    return new


def _put_sum(octets: bytes, at: int, value: int) -> bytes:
    return octets[:at] + value.to_bytes(2, "big") + octets[at + 2 :]


def _sum_followed(old: bytes, new: bytes, at: int, zero: int) -> int:
    """The checksum at `at` of `new`, as far from the right one as that of `old` was."""
    given = int.from_bytes(old[at : at + 2], "big")
    was, now = (net.internet_checksum(o[:at] + b"\0\0" + o[at + 2 :]) or zero for o in (old, new))
    return now if given == was else followed(given, was - now)


def _ip_sums(old: bytes, new: bytes, read: Dissection) -> bytes:
    """IPv4 header checksums that were right are right again."""
    for layer in read.all_layers():
        if layer.header is net.IPV4:
            end = layer.offset + 4 * layer.values["ihl"]
            value = _sum_followed(old[layer.offset : end], new[layer.offset : end], 10, 0)
            new = _put_sum(new, layer.offset + 10, value)
    return new


def _udp_sums(old: bytes, new: bytes, read: Dissection, grown: int) -> bytes:
    """UDP checksums, where there are any, that were right are right again."""
    layers = list(read.all_layers())
    for ip, udp in pairwise(layers):
        size = udp.values.get("len", 0)
        if udp.header is not net.UDP or not udp.values["chksum"] or ip.header not in (net.IPV4, net.IPV6):
            continue
        if net.UDP.size_bytes <= size <= len(old) - udp.offset:
            was, now = _pseudo(old, ip, udp, 0), _pseudo(new, ip, udp, grown)
            # RFC 768: a sum of zero is sent as all ones
            value = _sum_followed(was, now, len(was) - size + 6, 0xFFFF)
            new = _put_sum(new, udp.offset + grown + 6, value)
    return new


def _pseudo(octets: bytes, ip: Layer, udp: Layer, moved: int) -> bytes:
    """Pseudo-header and datagram that a UDP checksum covers (RFC 768, RFC 8200 8.1)."""
    first, last = (12, 20) if ip.header is net.IPV4 else (8, 40)
    size, at, ip_at = udp.values["len"], udp.offset + moved, ip.offset + moved
    tail = size.to_bytes(4, "big") + net.PROTO_UDP.to_bytes(4, "big")
    return octets[ip_at + first : ip_at + last] + tail + octets[at : at + size]


def rewrite(capture: Capture, path: str | Path, orders: Orders, *, force: bool = False) -> Rewritten:
    """Write a capture again with fields mapped, payloads scrubbed, headers exchanged.

    Args:
        capture: Where frames come from.
        path: Where they go, in the same format.
        orders: What to do.
        force: Replace a file that is there.

    Raises:
        InputError: A frame that cannot be rewritten so, or an output that cannot be written.
    """
    from roce_pkt.edit import bulk

    done = Rewritten()
    if set(orders.maps) <= bulk.FIELDS and bulk.large(capture):
        if bulk.in_place(capture, orders):
            return bulk.rewrite_bulk(capture, path, orders, force=force)
        from roce_pkt.edit.relay import Relay

        write_like(capture, path, Relay(capture, orders, done).runs(), force=force)
        return done
    rewriter = Rewriter(orders, capture.udp_port)

    def changed() -> Iterator[Record]:
        for record in capture.records():
            done.frames += 1
            octets = rewriter(record)
            if octets is None:
                done.left_out += 1
                continue
            same = octets == record.octets
            done.kept += same
            done.changed += not same
            yield record if same else with_octets(record, octets)

    write_like(capture, path, changed(), force=force)
    return done
