"""What an AETH syndrome says: acknowledge with credits, receiver not ready, or a reason to refuse.

     7   6 5   4 3 2 1 0
    +-+-----+-----------+   type 00 ACK     value = credit code (31: no limit given)
    |r|type |   value   |        01 RNR NAK value = timer code
    +-+-----+-----------+        11 NAK     value = reason

Sources: IBTA Vol 1 9.7.5.2.1, 9.7.5.2.8 and tables 43-47 as in Linux rdmavt (rc.c, qp.c).
"""

from __future__ import annotations

from typing import Literal

AckType = Literal["ack", "rnr", "reserved", "nak"]
TYPES: tuple[AckType, ...] = ("ack", "rnr", "reserved", "nak")

CREDITS = (
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
)  # fmt: skip
"""Receive credits by code 0..30; code 31 means the field is not used."""
CREDITS_INVALID = 31

# spec: IBTA Vol 1 table 45; code 0 is the longest, 655.36 ms
RNR_TIMERS_US = (
    655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120,
    7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
)  # fmt: skip
"""Receiver-not-ready wait by code, in microseconds."""

NAK_REASONS = {
    0: "PSN sequence error",
    1: "invalid request",
    2: "remote access error",
    3: "remote operational error",
    4: "invalid RD request",
}


def ack_type(syndrome: int) -> AckType:
    """Which of the four types bits 6-5 name."""
    return TYPES[syndrome >> 5 & 3]


def value(syndrome: int) -> int:
    """Bits 4-0."""
    return syndrome & 31


def describe(syndrome: int) -> str:
    """The syndrome in words: "ACK, 16 credits", "RNR NAK, wait 0.64 ms", "NAK, PSN sequence error"."""
    code = value(syndrome)
    match ack_type(syndrome):
        case "ack":
            return "ACK" if code == CREDITS_INVALID else f"ACK, {CREDITS[code]} credits"
        case "rnr":
            return f"RNR NAK, wait {RNR_TIMERS_US[code] / 1000:g} ms"
        case "nak":
            return f"NAK, {NAK_REASONS.get(code, f'reserved code {code}')}"
        case _:
            return f"reserved type, value {code}"
