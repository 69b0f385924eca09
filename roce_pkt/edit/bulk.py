"""Rewriting millions of frames: mapped columns written in place, the rest of the file as it was.

For mappings that leave every frame's length and layout alone. Frames that the compiled rewriter
does not reach (tunnels, cut ones, fragments) are rewritten plainly, one by one.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.frames import Frames
from roce_pkt.capture.model import LINK_ETHERNET, Record
from roce_pkt.capture.reader import Capture
from roce_pkt.capture.rewrite import Rewriter as ColumnWriter
from roce_pkt.capture.source import GZIP_MAGIC, ZSTD_MAGIC
from roce_pkt.edit.mapping import UNTAGGED, Mapping
from roce_pkt.edit.rewrite import Orders, Rewriter, Rewritten, mapped_address
from roce_pkt.files import whole_file
from roce_pkt.wire import ib
from roce_pkt.wire.opcode import CNP

LEAST_BYTES = 8 << 20
"""Smaller captures are rewritten plainly, before compiled kernels would be loaded."""
_COLUMNS = {
    "mac": ("eth_dst", "eth_src"), "vlan": ("vid",), "pcp": ("pcp",), "dscp": ("dscp",), "ecn": ("ecn",),
    "ttl": ("ttl", "hoplmt"), "flowlabel": ("flowlabel",), "sport": ("sport",), "pkey": ("pkey",),
    "qpn": ("dqpn", "sqpn"), "psn": ("psn",), "qkey": ("qkey",), "rkey": ("rkey", "inv_rkey"), "va": ("va",),
}  # fmt: skip
"""Columns of each field that can be rewritten in place; `ip` has two halves and is done apart."""
FIELDS = {"ip", *_COLUMNS}
"""Fields that are columns."""
_LINK = ("eth_dst", "eth_src", "vid", "pcp")
"""Columns that are rewritten in other frames than RoCE, too."""
_MASK64 = (1 << 64) - 1


def large(capture: Capture) -> bool:
    """Whether a capture is so large that compiled kernels pay; of a pipe that is not known."""
    try:
        info = Path(capture.path).stat()
    except OSError:
        return capture.path == "-"
    return not stat.S_ISREG(info.st_mode) or info.st_size >= (
        LEAST_BYTES >> 3 if _packed(capture) else LEAST_BYTES
    )


def _packed(capture: Capture) -> bool:
    with Path(capture.path).open("rb") as file:
        return file.read(4).startswith((GZIP_MAGIC, ZSTD_MAGIC))


def in_place(capture: Capture, orders: Orders) -> bool:
    """Whether a large capture is a plain file, and the orders leave its layout alone."""
    vlan = orders.maps.get("vlan")
    moves = vlan is not None and (
        UNTAGGED in vlan.exact or UNTAGGED in vlan.exact.values() or vlan.other is not None
    )
    if orders.family or orders.icrc != "auto" or orders.payload != "keep" or orders.drop_other or moves:
        return False
    return Path(capture.path).is_file() and not _packed(capture)


def rewrite_bulk(capture: Capture, path: str | Path, orders: Orders, *, force: bool = False) -> Rewritten:
    """Write a capture again with fields mapped; see `rewrite`."""
    done, writer, plain = Rewritten(), ColumnWriter(), Rewriter(orders, capture.udp_port)
    with Path(capture.path).open("rb") as source, whole_file(path, force=force) as target:
        at = 0
        for frames in capture:
            if not len(frames):
                continue
            end = int(frames.offset[-1]) + int(frames.cap_len[-1])
            source.seek(at)
            octets = np.fromfile(source, np.uint8, end - at)
            _batch(octets, at, frames, orders, writer, plain, done)
            target.write(octets.data)
            at = end
        source.seek(at)
        while rest := source.read(1 << 20):
            target.write(rest)
    return done


def _batch(
    octets: NDArray[np.uint8], base: int, frames: Frames, orders: Orders, writer: ColumnWriter,
    plain: Rewriter, done: Rewritten,
) -> None:  # fmt: skip
    hard = (frames.link_type != LINK_ETHERNET) | (frames.tunnel_count > 0)
    hard |= frames.has(ib.BTH) & (frames.icrc_ok < 0)
    changed = np.zeros(len(frames), bool)
    for row in np.flatnonzero(hard).tolist():
        changed[row] = _plainly(octets, base, frames, row, plain)
    easy = frames[~hard] if hard.any() else frames
    changes: dict[str, NDArray[Any]] = {}
    moved, roce = np.zeros(len(easy), bool), easy.has(ib.BTH)
    for name, values in values_of(easy, orders).items():
        moved |= (values != easy.column(name)) & easy.present(name) & (roce | (name in _LINK))
        changes[name] = values
    if len(easy):
        writer.rewrite(octets, base, easy, changes)
    changed[~hard] = moved
    done.frames += len(frames)
    done.changed += int(changed.sum())
    done.kept += int((~changed).sum())


def _plainly(octets: NDArray[np.uint8], base: int, frames: Frames, row: int, plain: Rewriter) -> bool:
    start, size = int(frames.offset[row]) - base, int(frames.cap_len[row])
    old = octets[start : start + size].tobytes()
    wire_len, link = int(frames.wire_len[row]), int(frames.link_type[row])
    new = plain(Record(int(frames.number[row]), 0, 0, link, size, wire_len, old))
    if new is None or new == old:
        return False
    octets[start : start + size] = np.frombuffer(new, np.uint8)
    return True


def values_of(frames: Frames, orders: Orders) -> dict[str, NDArray[Any]]:
    """New values by column."""
    out: dict[str, NDArray[Any]] = {}
    for field, mapping in orders.maps.items():
        if field == "ip":
            for end in ("src", "dst"):
                out |= _addresses(frames, end, mapping)
            continue
        for name in _COLUMNS[field]:
            old = frames.column(name)
            # a tag that is to be taken out keeps its number until then
            out[name] = _tags(old, mapping) if field == "vlan" else mapped(old, mapping)
    if "psn" in out:
        out["psn"] = np.where(frames.opcode == CNP, frames.psn, out["psn"])
    _traffic_class(frames, orders, out)
    return out


def mapped(old: NDArray[Any], mapping: Mapping) -> NDArray[Any]:
    """What a mapping makes of a column."""
    if mapping.shift and not (
        mapping.exact or mapping.networks or mapping.other is not None or mapping.keyed
    ):
        mask = np.uint64((1 << mapping.bits) - 1)
        shifted = old.astype(np.uint64) + np.uint64(mapping.shift % (1 << mapping.bits))
        return (shifted & mask).astype(old.dtype)
    distinct, where = np.unique(old, return_inverse=True)
    new = np.array([mapping(value) for value in distinct.tolist()], old.dtype)
    return new[where] if len(new) else old


def _tags(old: NDArray[Any], mapping: Mapping) -> NDArray[Any]:
    new = mapped(old.astype(np.int64), mapping)
    return np.where(new == UNTAGGED, old, new)


def _addresses(frames: Frames, end: str, mapping: Mapping) -> dict[str, NDArray[Any]]:
    high, low = frames.column(f"{end}_hi"), frames.column(f"{end}_lo")
    highs, high_at = np.unique(high, return_inverse=True)
    lows, low_at = np.unique(low, return_inverse=True)
    # one number for each combination: sorting numbers is much cheaper than sorting records
    codes = (high_at * len(lows) + low_at) * 8 + frames.ip_version
    distinct, where = np.unique(codes, return_inverse=True)
    new = []
    for code in distinct.tolist():
        pair, version = divmod(code, 8)
        hi, lo = int(highs[pair // len(lows)]), int(lows[pair % len(lows)])
        new.append(mapped_address(hi << 64 | lo, version, mapping))
    if not new:
        return {}
    return {
        f"{end}_hi": np.array([value >> 64 for value in new], np.uint64)[where],
        f"{end}_lo": np.array([value & _MASK64 for value in new], np.uint64)[where],
    }


def _traffic_class(frames: Frames, orders: Orders, out: dict[str, NDArray[Any]]) -> None:
    """DSCP and ECN of a GRH lie together in its traffic class."""
    if not {"dscp", "ecn"} & set(orders.maps) or not frames.has(ib.GRH).any():
        return
    same = Mapping(6)
    dscp, ecn = orders.maps.get("dscp", same), orders.maps.get("ecn", same)
    old = frames.tclass
    distinct, where = np.unique(old, return_inverse=True)
    new = np.array([dscp(v >> 2) << 2 | ecn(v & 3) for v in distinct.tolist()], old.dtype)
    out["tclass"] = new[where]
