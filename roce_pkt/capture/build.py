"""Millions of frames from columns: headers by column, payload from a buffer, everything else worked out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from roce_pkt.capture import kernel_build as kernels
from roce_pkt.capture.columns import BY_NAME, COLUMNS, KIND_OTHER, KIND_ROCEV2, Column
from roce_pkt.capture.frames import Array, Frames, dtype_of
from roce_pkt.capture.kernel_crc import SCRATCH_BYTES, crc_way, slicing_table
from roce_pkt.capture.kernel_fields import BLOCK_BYTES, PLACES, ROWS
from roce_pkt.capture.kernel_put import PCAP, PCAPNG
from roce_pkt.capture.model import NANOSECONDS, Interface
from roce_pkt.capture.writer import interface_block, pcap_header, section_block
from roce_pkt.errors import InputError, nearest
from roce_pkt.files import whole_file
from roce_pkt.jit import memory

Format = Literal["pcap", "pcapng"]
_U = np.uint64
_BUFFER_BYTES = 256 << 10
_RECORD_BYTES = 192
_MAX_PAYLOAD = 65_000
_COMPUTED = {
    "number", "offset", "wire_len", "cap_len", "link_type", "hint", "hint_value", "status", "headers",
    "eth_type", "ip_len", "ip_proto", "ip_chksum", "frag", "mf", "udp_len", "paylen", "nexthdr", "padcount",
    "l3_offset", "bth_offset", "payload_offset", "trailer_len", "icrc", "icrc_ok", "tunnel_count",
    "tunnel_kind", "tunnel_id", "outer_src_hi", "outer_src_lo", "outer_dst_hi", "outer_dst_lo",
    "vl", "sl", "lnh", "pktlen", "dlid", "slid",
}  # fmt: skip
"""Columns that follow from the others, or that frames made here do not have."""
_DEFAULTS = {"kind": KIND_ROCEV2, "ip_version": 4}


def default_of(column: Column) -> int:
    """Value of a column that is not given: the default of its field."""
    if column.name in _DEFAULTS:
        return _DEFAULTS[column.name]
    return max(
        (header.field(field).default for header, field in column.sources if not column.part), default=0
    )


class FrameBuilder:
    """Makes the octets of capture records from columns.

    Args:
        columns: Arrays of equal length under the names of `Frames` (`time_ns`, `src_lo`, `dqpn`, `psn`,
            `opcode`, `payload_len`, ...), or `Frames`; single numbers count for every frame. Fields not
            given take their header's default. Lengths, pads, checksums and ICRC are worked out: columns
            that hold them are ignored. A UDP checksum is written as `udp_chksum` says (0 by default, as
            hardware does). `vlan_count` says how many VLAN tags there are.
        payload: Octets that payloads are taken from.
        starts: First octet in `payload` of each frame's payload; by default every one starts at 0.
        form: `pcap` (nanosecond) or `pcapng`.

    Raises:
        InputError: Columns that do not exist or differ in length, payload that is not there, or frames
            that cannot be made (kind `other`).
    """

    def __init__(
        self,
        columns: Mapping[str, Any] | Frames,
        payload: bytes | memoryview | Array = b"",
        starts: Array | None = None,
        form: Format = "pcap",
    ) -> None:
        given = dict(columns.columns if isinstance(columns, Frames) else columns)
        unknown = [name for name in given if name not in BY_NAME]
        if unknown:
            raise InputError(f"no column {unknown[0]!r}{nearest(unknown[0], BY_NAME)}")
        lengths = {len(v) for v in given.values() if np.ndim(v)}
        if len(lengths) > 1:
            raise InputError(f"columns differ in length: {sorted(lengths)}")
        self.count = lengths.pop() if lengths else 1
        self._arrays = {
            name: np.broadcast_to(np.asarray(v), (self.count, *np.shape(v)[1:]))
            for name, v in given.items()
            if name not in _COMPUTED
        }
        octets = payload if isinstance(payload, np.ndarray) else np.frombuffer(payload, np.uint8)
        self._payload = np.ascontiguousarray(octets.view(np.uint8))
        zero = np.zeros(self.count, np.uint64)
        self._starts = zero if starts is None else np.ascontiguousarray(starts, dtype=np.uint64)
        self._form = PCAP if form == "pcap" else PCAPNG
        self._check()
        self._block = np.zeros(BLOCK_BYTES, np.uint8)
        self._views = {c.name: self._view(c) for c in COLUMNS if c.name not in _COMPUTED}
        for column in COLUMNS:
            if column.name not in _COMPUTED:
                self._views[column.name][:] = default_of(column)
        self._scratch, self._table = np.zeros(SCRATCH_BYTES, np.uint8), slicing_table()

    def _check(self) -> None:
        sizes = self._arrays.get("payload_len", np.zeros(1, np.int64))
        if len(self._starts) != self.count:
            raise InputError(f"{len(self._starts)} payload starts for {self.count} frames")
        if sizes.size and int(sizes.max()) > _MAX_PAYLOAD:
            raise InputError(f"payload of {int(sizes.max())} octets; a frame holds {_MAX_PAYLOAD}")
        ends = self._starts + np.asarray(sizes).astype(np.uint64)
        if ends.size and int(ends.max()) > self._payload.size:
            raise InputError(
                f"payloads reach to octet {int(ends.max())}, the payload has {self._payload.size}"
            )
        kinds = self._arrays.get("kind")
        if kinds is not None and (np.asarray(kinds) == KIND_OTHER).any():
            raise InputError("frames of kind `other` cannot be made from columns; copy their octets")

    def _view(self, column: Column) -> Array:
        shape = (ROWS, column.width) if column.width > 1 else (ROWS,)
        return np.ndarray(shape, dtype_of(column), self._block, PLACES[column.name])

    def chunks(self, buffer: Array | None = None) -> Iterator[memoryview]:
        """The records, in pieces; each piece is valid until the next one is asked for.

        Args:
            buffer: Memory to write into, again for every piece.
        """
        longest = int(np.max(self._arrays.get("payload_len", 0))) + _RECORD_BYTES
        out: Any = np.empty(max(_BUFFER_BYTES, 2 * longest), np.uint8) if buffer is None else buffer
        mem, payload = memory(out), memory(self._payload)
        checks = (_U(1), _U(crc_way()), _U(self._table.ctypes.data), _U(self._scratch.ctypes.data))
        address = _U(self._block.ctypes.data)
        for first in range(0, self.count, ROWS):
            rows = min(ROWS, self.count - first)
            for name, array in self._arrays.items():
                self._views[name][:rows] = array[first : first + rows]
            starts = self._starts[first : first + rows]
            row = 0
            while row < rows:
                size, after = kernels.build(
                    mem, address, _U(row), _U(rows), payload, memory(starts), self._form, checks
                )
                if int(after) == row:
                    raise InputError(
                        f"a buffer of {out.size} octets is too small for frame {first + row + 1}"
                    )
                row = int(after)
                yield memoryview(out[: int(size)])


def write_frames(
    path: str | Path,
    columns: Mapping[str, Any] | Frames,
    payload: bytes | memoryview | Array = b"",
    starts: Array | None = None,
    *,
    interfaces: Sequence[Interface] = (Interface(),),
    comments: Sequence[str] = (),
    form: Format | None = None,
    force: bool = False,
) -> int:
    """Write frames made from columns as a capture.

    Args:
        path: Where the file shall be; pcapng when its name ends in `.pcapng`, else nanosecond pcap.
        columns: See `FrameBuilder`.
        payload: Octets that payloads are taken from.
        starts: First octet in `payload` of each frame's payload.
        interfaces: Interfaces of a pcapng, Ethernet with nanosecond stamps; `interface_id` says which.
        comments: Comments on the whole pcapng.
        form: Overrules what the name says.
        force: Replace a file that is there.

    Returns:
        Frames written.

    Raises:
        InputError: As `FrameBuilder`, or the file exists or cannot be written.
    """
    made = form or ("pcapng" if str(path).endswith(".pcapng") else "pcap")
    builder = FrameBuilder(columns, payload, starts, made)
    for interface in interfaces:
        if interface.link_type != 1 or interface.resolution != NANOSECONDS or interface.offset_s:
            raise InputError(f"{path}: interface {interface.name!r} is not Ethernet with nanosecond stamps")
    with whole_file(path, force=force) as stream:
        if made == "pcap":
            stream.write(pcap_header(1))
        else:
            stream.write(section_block(comments) + b"".join(interface_block(i) for i in interfaces))
        for chunk in builder.chunks():
            stream.write(chunk)
    return builder.count
