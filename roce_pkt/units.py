"""Quantities with units, in and out: "400Gbps", "55us", "5KB", "37.5KB", "1MiB".

Rates are bits per second, times integer picoseconds, sizes octets. K, M, G are decimal; Ki, Mi,
Gi are binary. Arithmetic is exact (`fractions`), so "0.1us" is 100000 ps and not 99999.
"""

from __future__ import annotations

import re
from fractions import Fraction

from roce_pkt.errors import ScenarioError

PS_PER_NS = 1000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000
MAX_TIME_PS = 1 << 62  # 53 days: what 64 bits of picoseconds hold, and twice of it
MAX_RATE_BPS = 10**15

_QUANTITY = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+)\s*([A-Za-zµ/%]*)\s*")

TIME_UNITS_PS = {
    "ps": 1,
    "ns": PS_PER_NS,
    "us": PS_PER_US,
    "µs": PS_PER_US,
    "ms": 1000 * PS_PER_US,
    "s": PS_PER_S,
}
_DECIMAL = {"": 1, "K": 10**3, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
RATE_UNITS_BPS = {f"{p}{u}": m for p, m in _DECIMAL.items() for u in ("bps", "bit/s", "b/s")}
SIZE_UNITS_BYTES = {f"{p}B": m for p, m in _DECIMAL.items()} | {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}


def _parse(text: str, units: dict[str, int], where: str, kind: str, example: str) -> Fraction:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ScenarioError(where, f"{text!r} is no {kind}: write a number with a unit, e.g. {example!r}")
    number, unit = match.groups()
    if unit not in units:
        allowed = ", ".join(u for u in units if u and "µ" not in u)
        what = f"unknown unit {unit!r} in {text!r}" if unit else f"{text!r} has no unit"
        raise ScenarioError(where, f"{what}; a {kind} is written in {allowed}")
    return Fraction(number.replace("_", "")) * units[unit]


def parse_time_ps(text: str, where: str = "time") -> int:
    """Read a time such as "55us".

    Args:
        text: Number and unit (ps, ns, us, ms, s).
        where: Named in the error.

    Returns:
        Integer picoseconds.

    Raises:
        ScenarioError: No number, no unit, an unknown unit, or finer than a picosecond.
    """
    value = _parse(text, TIME_UNITS_PS, where, "time", "55us")
    if value > MAX_TIME_PS:
        raise ScenarioError(where, f"{text!r} is more than the clock can count, {MAX_TIME_PS // PS_PER_S} s")
    if value.denominator != 1:
        raise ScenarioError(where, f"{text!r} is finer than a picosecond, the clock's step")
    return value.numerator


def parse_rate_bps(text: str, where: str = "rate") -> float:
    """Read a rate such as "100Gbps" or "40 Mb/s" as bits per second.

    Raises:
        ScenarioError: No number, no unit or an unknown unit.
    """
    value = _parse(text, RATE_UNITS_BPS, where, "rate", "100Gbps")
    if value > MAX_RATE_BPS:
        raise ScenarioError(where, f"{text!r} is more than {MAX_RATE_BPS // 10**12} Tb/s")
    return float(value)


def parse_size_bytes(text: str, where: str = "size") -> int:
    """Read a size such as "400KB" or "1MiB" as octets.

    Raises:
        ScenarioError: No number, no unit, an unknown unit, or a fraction of an octet.
    """
    value = _parse(text, SIZE_UNITS_BYTES, where, "size", "400KB")
    if value.denominator != 1:
        raise ScenarioError(where, f"{text!r} is not a whole number of octets")
    return value.numerator


def _scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int = 4) -> str:
    for factor, unit in steps:
        if abs(value) >= factor:
            return f"{value / factor:.{digits}g} {unit}"
    factor, unit = steps[-1]
    return f"{value / factor:.{digits}g} {unit}"


def format_rate(rate_bps: float) -> str:
    """A rate for people: 50776684270.0 -> "50.78 Gb/s"."""
    return _scaled(rate_bps, ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1, "b/s")))


def format_time_ns(time_ns: float) -> str:
    """A duration for people: 4000 -> "4 us"."""
    return _scaled(time_ns, ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")))


def format_bytes(size_bytes: float) -> str:
    """A size for people, decimal: 1048 -> "1.048 KB"."""
    return _scaled(size_bytes, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B")))
