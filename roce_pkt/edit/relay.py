"""Rewriting millions of frames whose layout changes: tags, network headers, payloads, ICRCs.

Fields are mapped in a copy of the octets as `bulk` maps them in place; then a compiled pass lays each
frame out anew. What it does not reach (tunnels, cut frames, options) is rewritten plainly, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import header_bit
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.kernel_crc import NETWORKS, SCRATCH_BYTES, crc_way, slicing_table
from roce_pkt.capture.kernel_relay import FIX, FOLLOW, HEAD_BYTES, KEEP, LAYOUT, relay
from roce_pkt.capture.kernel_transport import FOLLOWING, HAS_PADS
from roce_pkt.capture.model import LINK_ETHERNET, Record
from roce_pkt.capture.reader import Capture
from roce_pkt.capture.rewrite import Rewriter as ColumnWriter
from roce_pkt.capture.run import Run, memory_at, octets_at
from roce_pkt.edit import bulk, reframe
from roce_pkt.edit.mapping import UNTAGGED
from roce_pkt.edit.rewrite import Orders, Rewriter, Rewritten
from roce_pkt.errors import InputError
from roce_pkt.jit import memory
from roce_pkt.wire import entropy, ib, net
from roce_pkt.wire.header import Header

_U = np.uint64
_MACS_BYTES = 12
_CHUNK_BYTES = 8 << 20
_LEAD_BYTES = 64
"""Octets before the first frame: an ICRC takes those before its network header for an LRH."""
_FAMILY_NETWORK = {"ipv4": NETWORKS["ipv4"], "ipv6": NETWORKS["ipv6"], "rocev1": NETWORKS["grh"]}
_NETWORK_BYTES = np.array([0, net.IPV4.size_bytes + net.UDP.size_bytes,
                           net.IPV6.size_bytes + net.UDP.size_bytes, ib.GRH.size_bytes])  # fmt: skip
_MODES = {"auto": FOLLOW, "bad": FOLLOW, "fix": FIX, "keep": KEEP}
_EXTENDED = np.uint32(sum(header_bit(h) for h in ib.EXTENDED))
Values = dict[str, NDArray[Any]]


def reaches(orders: Orders) -> bool:
    """Whether every field of the orders is a column."""
    return set(orders.maps) <= bulk.FIELDS


class Relay:
    """Rewrites batch after batch.

    Args:
        capture: Where they come from.
        orders: What to do.
        done: Counts.
    """

    def __init__(self, capture: Capture, orders: Orders, done: Rewritten) -> None:
        self._capture, self._orders, self._done = capture, orders, done
        self._plain, self._columns = Rewriter(orders, capture.udp_port), ColumnWriter()
        self._scratch, self._table = np.zeros(SCRATCH_BYTES, np.uint8), slicing_table()
        self._out: NDArray[np.uint8] = np.empty(0, np.uint8)

    def runs(self) -> Iterator[Run | Record]:
        """The capture's frames, rewritten."""
        pcapng = self._capture.format == "pcapng"
        for frames in self._capture.batches():
            for part in _parts(frames):
                run = self._part(part, Run.of(part, pcapng=pcapng))
                if len(run):
                    yield from run.pieces()

    def _part(self, frames: Frames, run: Run) -> Run:
        self._done.frames += len(frames)
        if self._orders.drop_other:
            keep = np.flatnonzero(frames.kind != 0)
            self._done.left_out += len(frames) - len(keep)
            frames, run = frames[keep], run[keep]
        if not len(frames):
            return run
        try:
            layout, heads, plainly = self._layout(frames, run)
        except InputError:
            # the plain way names the frame
            for row in range(len(frames)):
                self._plain(run.record(row))
            raise
        return self._laid_out(run, layout, heads, plainly)

    def _laid_out(
        self, run: Run, layout: NDArray[Any], heads: NDArray[np.uint8], plainly: dict[int, bytes]
    ) -> Run:
        sizes = (
            layout["size"].astype(np.int64)
            - layout["drop"]
            + np.where(layout["tag"] > 0, net.VLAN.size_bytes, 0)
        )
        was = layout["bth"].astype(np.int64) - layout["l3"].astype(np.int64)
        sizes += np.where(layout["head"] > 0, layout["head"] - was, 0)
        for row, octets in plainly.items():
            sizes[row] = len(octets)
        layout["target"] = _LEAD_BYTES + np.cumsum(sizes) - sizes
        room = _LEAD_BYTES + int(sizes.sum())
        if self._out.size < room:
            self._out = np.zeros(room, np.uint8)
        easy = np.ones(len(run), bool)
        easy[list(plainly)] = False
        rows, heads = (layout[easy], heads[easy]) if plainly else (layout, heads)
        crc = tuple(_U(v) for v in (crc_way(), self._table.ctypes.data, self._scratch.ctypes.data))
        relay(memory(self._out), rows, memory(heads), crc)
        same = np.zeros(len(run), bool)
        same[easy] = rows["same"] > 0
        for row, octets in plainly.items():
            at = int(layout["target"][row])
            self._out[at : at + len(octets)] = np.frombuffer(octets, np.uint8)
            same[row] = octets == octets_at(int(run.address[row]), int(run.size[row]))
        self._done.kept += int(same.sum())
        self._done.changed += int((~same).sum())
        # what the capture had cut off stays cut off
        wire = np.maximum(sizes, run.wire_len + sizes - run.size.astype(np.int64))
        return Run(
            run.number, run.time_ns, run.interface_id, run.link_type, np.where(same, run.wire_len, wire),
            layout["target"] + _U(self._out.ctypes.data), sizes.astype(np.uint64), (self._out,), run.notes,
        )  # fmt: skip

    # -- what becomes of each frame

    def _layout(self, frames: Frames, run: Run) -> tuple[NDArray[Any], NDArray[np.uint8], dict[int, bytes]]:
        """Layouts, new network headers, and frames that were rewritten plainly by row."""
        orders, roce = self._orders, frames.has(ib.BTH)
        layout, heads = np.zeros(len(frames), LAYOUT), np.zeros((len(frames), HEAD_BYTES), np.uint8)
        layout["original"] = layout["source"] = run.address
        layout["size"], layout["payload"] = run.size, frames.payload_offset
        link = net.ETH.size_bytes + net.VLAN.size_bytes * frames.vlan_count.astype(np.int64)
        layout["l3"] = np.where(frames.has(net.ETH), np.minimum(link, frames.cap_len), _MACS_BYTES)
        layout["bth"] = np.where(roce, frames.bth_offset, layout["l3"])
        network = _network(frames)
        hard = _hard(frames, network, roce)
        pads = np.where(HAS_PADS[frames.opcode], frames.padcount, 0)
        place = frames.payload_offset.astype(np.int64) + frames.payload_len + pads
        layout["was"] = layout["becomes"] = network
        layout["right"] = frames.icrc_ok == 1
        scrub = orders.payload != "keep"
        if scrub or orders.icrc != "auto":
            # a UDP checksum would have to follow
            hard |= roce & (frames.udp_chksum != 0)
        hard |= self._tags(frames, layout)
        values = bulk.values_of(frames, orders)
        if orders.family:
            moved = roce & (network != _FAMILY_NETWORK[orders.family])
            hard |= _heads(
                frames, values, orders.family, self._capture.udp_port, layout, heads, moved & ~hard
            )
        follows = scrub or orders.icrc != "auto"
        layout["icrc"] = np.where(roce & (follows | (layout["head"] > 0)), place, 0)
        layout["mode"], layout["bad"] = _MODES[orders.icrc], orders.icrc == "bad" and 0xFFFF_FFFF
        self._map(frames, run, values, layout, hard)
        return layout, heads, self._payloads(frames, run, layout, roce, hard)

    def _tags(self, frames: Frames, layout: NDArray[Any]) -> NDArray[np.bool_]:
        """Tags pushed and popped; returns the frames whose tags cannot be reached."""
        mapping = self._orders.maps.get("vlan")
        if mapping is None:
            return np.zeros(len(frames), bool)
        tagged, ethernet = frames.vlan_count > 0, frames.has(net.ETH)
        old = np.where(tagged, frames.vid.astype(np.int64), UNTAGGED)
        new = bulk.mapped(old, mapping)
        layout["drop"] = np.where(ethernet & tagged & (new == UNTAGGED), net.VLAN.size_bytes, 0)
        pcp = self._orders.maps["pcp"](0) if "pcp" in self._orders.maps else 0
        words = pcp << 13 | np.maximum(new, 0)
        tag = (
            net.VLAN_TYPES[0] >> 8
            | (net.VLAN_TYPES[0] & 0xFF) << 8
            | (words >> 8) << 16
            | (words & 0xFF) << 24
        )
        layout["tag"] = np.where(ethernet & ~tagged & (new != UNTAGGED), tag, 0)
        return tagged & (frames.l3_offset == 0)

    def _map(
        self, frames: Frames, run: Run, values: Values, layout: NDArray[Any], hard: NDArray[np.bool_]
    ) -> None:
        """Map fields in a copy of the octets, in which the layouts' `source` points then."""
        values = {name: array for name, array in values.items() if frames.present(name).any()}
        if not values:
            return
        first, end = int(run.address[0]), int(run.address[-1] + run.size[-1])
        octets = memory_at(first, end - first).copy()
        base = int(frames.offset[0])
        if hard.any():
            easy = np.flatnonzero(~hard)
            frames, values = frames[easy], {name: array[easy] for name, array in values.items()}
        self._columns.rewrite(octets, base, frames, values)
        layout["source"] = run.address - _U(first) + _U(octets.ctypes.data)
        self._octets = octets

    def _payloads(
        self, frames: Frames, run: Run, layout: NDArray[Any], roce: NDArray[np.bool_], hard: NDArray[np.bool_]
    ) -> dict[int, bytes]:
        """New payloads, and frames that are rewritten plainly, in their order: both may throw dice."""
        plainly: dict[int, bytes] = {}
        chance, zero = self._orders.payload == "random", self._orders.payload == "zero"
        rows = np.flatnonzero(hard | (roce & chance)).tolist()
        scrubbed = bytearray()
        places = np.zeros(len(frames), np.uint64)
        for row in rows:
            if hard[row]:
                new = self._plain(run.record(row))
                plainly[row] = new if new is not None else b""
            else:
                places[row] = len(scrubbed)
                scrubbed += self._plain.chance(int(frames.payload_len[row]))
        if chance or zero:
            layout["payload_len"] = np.where(roce, frames.payload_len, 0)
            size = len(scrubbed) if chance else int(layout["payload_len"].max(initial=0))
            self._fill = np.frombuffer(bytes(scrubbed) if chance else bytes(size), np.uint8)
            layout["scrub"] = places + _U(self._fill.ctypes.data)
        return plainly


def _parts(frames: Frames) -> Iterator[Frames]:
    """A batch in parts that lie in one piece of memory and are not too large."""
    firsts = np.array(sorted(first for first, _ in frames.segments), np.uint64)
    at = 0
    while at < len(frames):
        start = frames.offset[at]
        following = firsts[firsts > start]
        end = min(start + _U(_CHUNK_BYTES), *following[:1]) if len(following) else start + _U(_CHUNK_BYTES)
        upto = max(at + 1, int(np.searchsorted(frames.offset, end)))
        yield frames[at:upto]
        at = upto


def _network(frames: Frames) -> NDArray[np.uint8]:
    """Number of the network header of each frame, 0 for none."""
    found = np.zeros(len(frames), np.uint8)
    for header, number in (
        (net.IPV4, NETWORKS["ipv4"]),
        (net.IPV6, NETWORKS["ipv6"]),
        (ib.GRH, NETWORKS["grh"]),
    ):
        found[frames.has(header)] = number
    return found


def _hard(frames: Frames, network: NDArray[np.uint8], roce: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Frames that are not laid out as the compiled pass can follow."""
    hard = (frames.link_type != LINK_ETHERNET) | (frames.tunnel_count > 0) | (frames.has(ib.GRH) & ~roce)
    link = net.ETH.size_bytes + net.VLAN.size_bytes * frames.vlan_count.astype(np.int64)
    whole = (frames.l3_offset == link) & (frames.bth_offset == link + _NETWORK_BYTES[network])
    whole &= (frames.icrc_ok >= 0) & ((frames.headers & _EXTENDED) == FOLLOWING[frames.opcode])
    # more pads claimed than there are octets
    whole &= ~HAS_PADS[frames.opcode] | (frames.padcount == 0) | (frames.payload_len > 0)
    return hard | (roce & ~whole)


def _heads(
    frames: Frames, values: Values, family: reframe.Family, udp_port: int, layout: NDArray[Any],
    heads: NDArray[np.uint8], moved: NDArray[np.bool_],
) -> NDArray[np.bool_]:  # fmt: skip
    """New network headers of the frames that get one; returns those that cannot have it."""

    def now(name: str) -> NDArray[np.int64]:
        array = values[name] if name in values else frames.column(name)
        return array.astype(np.int64)

    ipv4, grh = frames.has(net.IPV4), frames.has(ib.GRH)
    halves = [values.get(name, frames.column(name)) for name in ("src_hi", "src_lo", "dst_hi", "dst_lo")]
    source, destination = (halves[0], halves[1]), (halves[2], halves[3])
    unfit = np.zeros(len(frames), bool)
    if family == "ipv4":
        for high, low in (source, destination):
            unfit |= (high != 0) | (low >> _U(32) != 0xFFFF)
    one: Any = source
    other: Any = destination
    if family == "ipv4":
        one, other = source[1] & _U(0xFFFF_FFFF), destination[1] & _U(0xFFFF_FFFF)
    body = np.where(
        grh, now("paylen"), now("ip_len") - net.UDP.size_bytes - np.where(ipv4, net.IPV4.size_bytes, 0)
    )
    common = reframe.Common(
        one, other, np.where(grh, now("tclass"), now("dscp") << 2 | now("ecn")),
        np.where(grh, now("hoplmt"), now("ttl")), np.maximum(0, body),
        np.where(grh, entropy.sport_from_flow_label(now("flowlabel")), now("sport")),
    )  # fmt: skip
    label = np.where(ipv4, reframe.kept_identification(now("ip_id"), now("df")), now("flowlabel"))
    dport = np.where(grh, udp_port, now("dport"))
    made, layout["type"] = reframe.headers(family, common, label, dport)
    octets = np.concatenate([_packed(header, fields, len(frames)) for header, fields in made], axis=1)
    if family == "ipv4":
        _put_checksums(octets)
    heads[:, : octets.shape[1]] = octets
    layout["head"] = np.where(moved, octets.shape[1], 0)
    layout["becomes"] = np.where(moved, _FAMILY_NETWORK[family], layout["was"])
    return moved & (unfit | (body + octets.shape[1] > 0xFFFF))


def _packed(header: Header, values: dict[str, Any], rows: int) -> NDArray[np.uint8]:
    """What `Header.pack` makes, for a column of each value; addresses in two halves."""
    words: list[Any] = [0] * (header.size_bytes // 4)
    at = 0
    for field in header.fields:
        value, first = values[field.name], at // 32
        at += field.bits
        for half in value if isinstance(value, tuple) else ():
            words[first], words[first + 1] = half >> _U(32), half & _U(0xFFFF_FFFF)
            first += 2
        if not isinstance(value, tuple):
            words[first] = words[first] | value << (-at % 32)
    out = np.empty((rows, len(words)), ">u4")
    for n, word in enumerate(words):
        out[:, n] = word
    return out.view(np.uint8)


def _put_checksums(octets: NDArray[np.uint8]) -> None:
    """Checksums of the IPv4 headers at the start of each row; they are zero there."""
    words = octets[:, : net.IPV4.size_bytes].reshape(len(octets), -1, 2).astype(np.int64)
    total = (words[:, :, 0] << 8 | words[:, :, 1]).sum(axis=1)
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    at = net.IPV4.places["chksum"].offset
    octets[:, at : at + 2] = (total ^ 0xFFFF).astype(">u2").view(np.uint8).reshape(-1, 2)
