"""Keyed bijections: the same value always becomes the same other value, and the key leads back.

Addresses keep their common prefixes (two hosts of one subnet stay in one subnet); multicast,
management queue pairs and the management queue key stay what they are, so that frames still mean
the same.

Source for prefixes: Xu, Fan, Ammar, Moon, ICNP 2002 (Crypto-PAn); the pseudo-random function here
is keyed BLAKE2b.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b

from roce_pkt.edit.mapping import SUBJECTS, V4_MAPPED, Mapping
from roce_pkt.wire import ib

Bijection = tuple[Callable[[int], int], Callable[[int], int]]
_ROUNDS = 6
_MEMORY = 1 << 16
_V6_KEPT_BITS = 16
_V4_KEPT_BITS = 4
_MAC_GROUP = 1 << 40
_MAC_LOCAL = 1 << 41


def anonymous(key: str) -> dict[str, Mapping]:
    """Mappings that hide who talks, by field name.

    Args:
        key: Whoever has it can undo them.
    """
    secret = blake2b(key.encode(), digest_size=32).digest()
    made = {
        "ip": _addresses(secret),
        "mac": _macs(secret),
        "qpn": _walked(_feistel(secret + b"qpn", 24), frozenset({0, ib.GSI_QPN, ib.MULTICAST_QPN})),
        "qkey": _walked(_feistel(secret + b"qkey", 32), frozenset({ib.GSI_QKEY})),
        "rkey": _feistel(secret + b"rkey", 32),
        "va": _added(secret),
    }
    return {name: Mapping(SUBJECTS[name].bits, keyed=keyed) for name, keyed in made.items()}


def _random(secret: bytes, text: str) -> int:
    # blake2b takes a key of at most 64 octets
    return int.from_bytes(blake2b(text.encode(), key=secret[:64], digest_size=8).digest(), "big")


def _remembered(forward: Callable[[int], int], backward: Callable[[int], int]) -> Bijection:
    return lru_cache(_MEMORY)(forward), lru_cache(_MEMORY)(backward)


def _feistel(secret: bytes, bits: int) -> Bijection:
    """A bijection on numbers of an even count of bits."""
    half = bits // 2
    mask = (1 << half) - 1

    def rounds(value: int, order: range) -> int:
        left, right = value >> half, value & mask
        for n in order:
            left, right = right, left ^ _random(secret, f"{n}/{right}") & mask
        return right << half | left

    # the halves are exchanged after the last round, so the inverse is the same with its rounds reversed
    return _remembered(
        lambda value: rounds(value, range(_ROUNDS)), lambda value: rounds(value, range(_ROUNDS - 1, -1, -1))
    )


def _walked(inner: Bijection, fixed: frozenset[int]) -> Bijection:
    """A bijection that leaves `fixed` alone: walk on until outside of it."""

    def walk(step: Callable[[int], int]) -> Callable[[int], int]:
        def run(value: int) -> int:
            if value in fixed:
                return value
            value = step(value)
            while value in fixed:
                value = step(value)
            return value

        return run

    return walk(inner[0]), walk(inner[1])


def _added(secret: bytes) -> Bijection:
    """Virtual addresses keep their order in a message and their place in a page."""
    offset = _random(secret, "va") & ~0xFFF
    mask = (1 << 64) - 1
    return (lambda value: (value + offset) & mask), (lambda value: (value - offset) & mask)


def _macs(secret: bytes) -> Bijection:
    inner = _feistel(secret + b"mac", 46)

    def run(step: Callable[[int], int]) -> Callable[[int], int]:
        def map_one(value: int) -> int:
            if value & _MAC_GROUP:
                return value
            rest = step(value >> 42 << 40 | value & (1 << 40) - 1)
            return rest >> 40 << 42 | value & _MAC_LOCAL | rest & (1 << 40) - 1

        return map_one

    return run(inner[0]), run(inner[1])


def _addresses(secret: bytes) -> Bijection:
    def run(*, backward: bool) -> Callable[[int], int]:
        def map_one(value: int) -> int:
            if value >> 32 == 0xFFFF:
                low = value & 0xFFFF_FFFF
                return value if low >> 28 >= 0xE else V4_MAPPED | bits(low, 32, _V4_KEPT_BITS)
            return value if value >> 120 == 0xFF or value < 2 else bits(value, 128, _V6_KEPT_BITS)

        def bits(value: int, width: int, kept: int) -> int:
            old = new = value >> (width - kept)
            for n in range(kept, width):
                bit = value >> (width - 1 - n) & 1
                prefix = new if backward else old
                other = bit ^ _random(secret, f"{width}/{n}/{prefix}") & 1
                old, new = old << 1 | bit, new << 1 | other
            return new

        return map_one

    forward, backward = run(backward=False), run(backward=True)
    return _remembered(forward, backward)
