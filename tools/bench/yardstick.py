"""The plain-C reader: compiled on the spot, called through ctypes, its columns compared with ours."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from roce_pkt.capture.columns import BY_NAME, COLUMNS, HINT_CODES, KIND_ROCEV2, header_bit
from roce_pkt.wire import ib, net

SOURCE = Path(__file__).with_name("reader.c")
_HEADERS = {
    "eth": net.ETH,
    "vlan": net.VLAN,
    "ipv4": net.IPV4,
    "ipv6": net.IPV6,
    "udp": net.UDP,
    "bth": ib.BTH,
} | {header.name: header for header in ib.EXTENDED}
_HINTS = {"hint_udp": "udp", "hint_arp": "arp", "hint_ethertype": "ethertype", "hint_icmp": "icmp"} | {
    "hint_icmpv6": "icmpv6", "hint_igmp": "igmp", "hint_proto": "ip-proto", "hint_tcp": "tcp",
}  # fmt: skip

Array = np.ndarray[Any, Any]


def compiler() -> str | None:
    """A C compiler, or None."""
    return next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)


class Yardstick:
    """The compiled reader and its columns, which are used again by each run.

    Args:
        rows: Frames the columns hold.
    """

    def __init__(self, rows: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="roce-pkt-bench-")
        library = Path(self.folder.name) / "reader.so"
        command = [
            compiler() or "cc",
            "-O3",
            "-march=native",
            "-shared",
            "-fPIC",
            "-o",
            str(library),
            str(SOURCE),
        ]
        subprocess.run(command, check=True)
        compiled = ctypes.CDLL(str(library))
        self._read, self._sum = compiled.read_capture, compiled.sum_octets
        self._read.restype, self._sum.restype = ctypes.c_int64, ctypes.c_uint64
        text = SOURCE.read_text()
        names = self._members(text, "columns")
        self.columns: dict[str, Array] = {
            name: np.zeros(
                (rows, BY_NAME[name].width) if BY_NAME[name].width > 1 else rows, BY_NAME[name].dtype
            )
            for name in names
        }
        self._pointers = (ctypes.c_void_p * len(names))(*(self.columns[n].ctypes.data for n in names))
        codes = [
            KIND_ROCEV2 if n == "rocev2" else HINT_CODES[_HINTS[n]] for n in self._members(text, "codes")[:9]
        ]
        bits = [header_bit(_HEADERS[n]) for n in self._members(text, "codes")[9:]]
        self._codes = bytes(codes) + bytes(-len(codes) % 4) + b"".join(b.to_bytes(4, "little") for b in bits)
        self._rows = rows

    @staticmethod
    def _members(text: str, struct: str) -> list[str]:
        body = re.search(rf"struct {struct} \{{(.*?)\n\}};", text, re.DOTALL)
        if body is None:
            raise ValueError(f"no struct {struct} in {SOURCE}")
        return [
            name.strip(" *\n") for line in re.findall(r"\w+ ([^;]+);", body[1]) for name in line.split(",")
        ]

    def read(self, octets: Array) -> int:
        """Read a capture that lies in memory; returns the frames."""
        address = ctypes.c_void_p(octets.ctypes.data)
        return int(
            self._read(
                address,
                ctypes.c_uint64(octets.size),
                self._pointers,
                self._codes,
                ctypes.c_uint64(self._rows),
            )
        )

    def touch(self, octets: Array) -> int:
        """Read every octet and make a sum of them: no reader of the whole capture is faster."""
        return int(self._sum(ctypes.c_void_p(octets.ctypes.data), ctypes.c_uint64(octets.size)))

    def checksums(self, frames: int) -> dict[str, int]:
        """A checksum of every column of the table; those the reader does not have are zero."""
        return {
            column.name: column_checksum(self.columns[column.name][:frames])
            if column.name in self.columns
            else 0
            for column in COLUMNS
        }


def column_checksum(array: Array, first_row: int = 0) -> int:
    """Sum of value times row number, in 64 bits that wrap; batches add up.

    Args:
        array: A column, or a batch of it.
        first_row: Row of its first element.
    """
    values = array.astype(np.int64).view(np.uint64) if array.dtype.kind == "i" else array.astype(np.uint64)
    weights = np.arange(first_row + 1, first_row + len(array) + 1, dtype=np.uint64)
    if values.ndim > 1:
        values = (values * np.arange(1, values.shape[1] + 1, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return int((values * weights).sum(dtype=np.uint64))
