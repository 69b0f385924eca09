"""Records of hops (HPCC's INT) as this project's frames carry them: behind the IP datagram.

    0      2      3      4            12           20           28           36          44
    | "HT" | scale| hops | hop 0      | hop 1      | hop 2      | hop 3      | hop 4     |

    hop, 64 bits, big-endian:  speed 4 | time, ns 24 | octets sent 20 | queue 16

The fields of a hop are HPCC's (SIGCOMM 2019, figure 7). Octets sent are in units of 128 and the
queue in units of 80 octets, times `scale`. The place is ours: HPCC's prototype puts its header inside
the packet, which no RoCE decoder reads, and a switch that writes there would break the ICRC.
Behind the datagram, as an Ethernet trailer, every decoder still reads the packet and its ICRC holds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from roce_pkt.cc.feedback import (
    MAX_HOPS,
    QUEUE_BITS,
    QUEUE_MASK,
    QUEUE_UNIT_BYTES,
    SENT_BITS,
    SENT_MASK,
    SENT_UNIT_BYTES,
    SPEEDS_BPS,
    TIME_BITS,
    TIME_MASK,
)

MAGIC = b"HT"
_LAYOUT = struct.Struct(f"!2sBB{MAX_HOPS}Q")
TRAILER_BYTES = _LAYOUT.size


@dataclass(frozen=True, slots=True)
class Hop:
    """What a switch port wrote as the packet left it.

    Args:
        speed_bps: Rate of the port, 0 for an unknown code.
        time_ns: When the packet left; goes round every 16.8 ms.
        sent_bytes: Octets the port had sent; goes round.
        queue_bytes: Octets it left behind.
    """

    speed_bps: int
    time_ns: int
    sent_bytes: int
    queue_bytes: int


def octets_of(scale: int, hops: int, words: Sequence[int]) -> bytes:
    """A trailer.

    Args:
        scale: Of the octet units, 1 to 255.
        hops: Switches the packet went through, recorded or not.
        words: A 64-bit word a recorded hop.
    """
    padded = [*words, *(0 for _ in range(MAX_HOPS - len(words)))]
    return _LAYOUT.pack(MAGIC, scale, min(hops, 255), *padded)


def hop_of(word: int, scale: int) -> Hop:
    """A hop's 64-bit word in plain units."""
    code = word >> (QUEUE_BITS + SENT_BITS + TIME_BITS) & 15
    return Hop(
        speed_bps=int(SPEEDS_BPS[code]) if code < len(SPEEDS_BPS) else 0,
        time_ns=word >> (QUEUE_BITS + SENT_BITS) & TIME_MASK,
        sent_bytes=(word >> QUEUE_BITS & SENT_MASK) * SENT_UNIT_BYTES * scale,
        queue_bytes=(word & QUEUE_MASK) * QUEUE_UNIT_BYTES * scale,
    )


def read(trailer: bytes) -> dict[str, Any] | None:
    """The records of hops in what stands behind a datagram, or None when it is something else."""
    if len(trailer) < TRAILER_BYTES or not trailer.startswith(MAGIC):
        return None
    _, scale, hops, *words = _LAYOUT.unpack_from(trailer)
    shown = words[: min(hops, MAX_HOPS)]
    return {"scale": scale, "hops": hops, "hop": [asdict(hop_of(word, scale)) for word in shown]}
