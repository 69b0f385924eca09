"""The invariant CRC: which octets it covers, which are masked, and its value.

CRC-32 as zlib computes it, stored little-endian, over
  1. eight octets of ones, the place of a local routing header;
  2. RoCEv1: the GRH with traffic class, flow label and hop limit as ones;
     RoCEv2: the IP header with TOS / traffic class, TTL / hop limit, flow label and header checksum
     as ones, then UDP with its checksum as ones;
  3. the BTH with its fifth octet (FECN, BECN, resv6) as ones, everything after it, pads included.

Sources: IBTA Vol 1 7.8.1 and annex A17.3 as implemented by Linux rxe_icrc.c; checked against
captured hardware frames in tests/wire/test_icrc.py.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

from roce_pkt.wire import ib, net
from roce_pkt.wire.header import Octets

Network = Literal["grh", "ipv4", "ipv6"]

LRH_ONES = b"\xff" * 8
BTH_MASKED_OCTET = ib.BTH.places["fecn"].offset

MASKED_FIELDS: dict[Network, tuple[str, ...]] = {
    "grh": ("tclass", "flowlabel", "hoplmt"),
    "ipv4": ("dscp", "ecn", "ttl", "chksum"),
    "ipv6": ("dscp", "ecn", "flowlabel", "ttl"),
}
NETWORK_HEADERS = {"grh": ib.GRH, "ipv4": net.IPV4, "ipv6": net.IPV6}


def _ones(header_name: Network) -> bytes:
    header = NETWORK_HEADERS[header_name]
    values = {f.name: 0 for f in header.fields}
    for name in MASKED_FIELDS[header_name]:
        values[name] = (1 << header.field(name).bits) - 1
    return header.pack(values)


MASKS: dict[Network, bytes] = {name: _ones(name) for name in ("grh", "ipv4", "ipv6")}
"""Octets to OR into the network header: ones where a router may write."""
UDP_MASK = net.UDP.pack({"dport": 0, "chksum": 0xFFFF})
BTH_MASK = bytes(0xFF if i == BTH_MASKED_OCTET else 0 for i in range(ib.BTH.size_bytes))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where the covered octets of a frame lie.

    Args:
        network: Which network header comes first.
        network_offset: Its first octet in the frame.
        bth_offset: First octet of the BTH (for RoCEv2 the UDP header lies right before it).
        end: Offset of the ICRC itself.
    """

    network: Network
    network_offset: int
    bth_offset: int
    end: int

    @property
    def mask(self) -> bytes:
        """Ones for every masked octet, from the network header to the end of the BTH."""
        return MASKS[self.network] + (b"" if self.network == "grh" else UDP_MASK) + BTH_MASK


def masked_headers(octets: Octets, cover: Coverage) -> bytes:
    """Network header, UDP and BTH with the masked bits set."""
    mask = cover.mask
    start = cover.network_offset
    head = int.from_bytes(octets[start : start + len(mask)], "big") | int.from_bytes(mask, "big")
    return head.to_bytes(len(mask), "big")


def compute(octets: Octets, cover: Coverage) -> bytes:
    """The four ICRC octets, in wire order, that belong at `cover.end`.

    Args:
        octets: The whole frame.
        cover: Where its headers lie; options and extension headers are not supported there.
    """
    crc = zlib.crc32(masked_headers(octets, cover), zlib.crc32(LRH_ONES))
    crc = zlib.crc32(octets[cover.bth_offset + ib.BTH.size_bytes : cover.end], crc)
    return crc.to_bytes(4, "little")
