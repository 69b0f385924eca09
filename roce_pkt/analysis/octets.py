"""Rules that need octets, gathered for many frames at once from the capture behind the columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import KIND_PFC, STATUS_CODES
from roce_pkt.capture.frames import Frames
from roce_pkt.wire import ib, mac_control, net

Mask = NDArray[np.bool_]


def gather(f: Frames, rows: NDArray[np.intp], at: NDArray[np.int64]) -> NDArray[np.uint8]:
    """One octet from each of some frames.

    Args:
        f: Frames whose octets are still held.
        rows: Row numbers.
        at: Octet offset within each of those frames; 0 is returned beyond the captured octets.

    Returns:
        uint8 array as long as `rows`.
    """
    out = np.zeros(len(rows), np.uint8)
    place = f.offset[rows].astype(np.int64) + at
    inside = at < f.cap_len[rows]
    for start, held in f.segments:
        octets = np.frombuffer(held, np.uint8)
        here = inside & (place >= start) & (place < start + len(octets))
        out[here] = octets[place[here] - start]
    return out


def _any_nonzero(f: Frames, mask: Mask, first: NDArray[np.int64], count: NDArray[np.int64]) -> Mask:
    """Among the frames of `mask`, those with a non-zero octet in `first .. first + count`."""
    out = np.zeros(len(f), bool)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return out
    found = np.zeros(len(rows), bool)
    for step in range(int(count[rows].max())):
        inside = step < count[rows]
        found |= inside & (gather(f, rows, first[rows] + step) != 0)
    out[rows] = found
    return out


def nonzero_pads(f: Frames) -> Mask:
    """Frames whose pad octets are not all zero. spec: IBTA Vol 1 9.2.3 pads are zero."""
    first = f.payload_offset.astype(np.int64) + f.payload_len
    return _any_nonzero(f, f.has(ib.BTH) & (f.padcount > 0), first, f.padcount.astype(np.int64))


def nonzero_cnp_body(f: Frames) -> Mask:
    """Frames with a CNP body whose sixteen octets are not all zero."""
    first = f.bth_offset.astype(np.int64) + ib.BTH.size_bytes
    return _any_nonzero(f, f.has(ib.CNP), first, np.full(len(f), ib.CNP.size_bytes))


def pfc_reserved(f: Frames) -> Mask:
    """PFC frames whose enable vector has its upper octet set. spec: IEEE 802.3 annex 31D."""
    before = net.ETH.size_bytes + mac_control.MAC_CONTROL.size_bytes
    first = before + net.VLAN.size_bytes * f.vlan_count.astype(np.int64)
    return _any_nonzero(f, f.kind == KIND_PFC, first, np.ones(len(f), np.int64))


def ipv4_checksum_wrong(f: Frames) -> Mask:
    """RoCE frames over plain IPv4 whose header does not sum to zero; 0 is taken for "left to the NIC"."""
    out = np.zeros(len(f), bool)
    plain = (f.payload_offset > 0) & f.has(net.IPV4) & f.has(net.UDP) & (f.ip_chksum != 0)
    plain &= f.bth_offset == f.l3_offset + net.IPV4.size_bytes + net.UDP.size_bytes
    plain &= f.status != STATUS_CODES["cut"]
    rows = np.flatnonzero(plain)
    total = np.zeros(len(rows), np.uint32)
    start = f.l3_offset[rows].astype(np.int64)
    for word in range(0, net.IPV4.size_bytes, 2):
        total += gather(f, rows, start + word).astype(np.uint32) << 8 | gather(f, rows, start + word + 1)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    out[rows] = total != 0xFFFF
    return out
