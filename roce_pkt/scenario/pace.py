"""Rates as testers say them: percent of the line, bits a second on layer 1 or 2, packets a second."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from roce_pkt.errors import ScenarioError
from roce_pkt.scenario.schema import ARRIVALS, NONE, Traffic
from roce_pkt.units import PS_PER_S, parse_rate_bps

L1_BYTES = 24
"""What a frame takes on the wire besides its captured octets: FCS 4, preamble 8, gap 12."""
L2_BYTES = 4
"""FCS."""
CONSTANT, POISSON, ON_OFF, BURST = range(len(ARRIVALS))
UNLIMITED = 0

_PERCENT = re.compile(r"([0-9.]+)\s*%")
_LAYERED = re.compile(r"(.+?)\s*(L1|L2)?")


@dataclass(frozen=True, slots=True)
class Pace:
    """When a queue pair's packets are due.

    A packet of n captured octets is followed by the next one
    `(octet_cost * (n + extra) + packet_cost) / rate` picoseconds later, all whole numbers, so that
    nothing is lost over any number of packets.

    Args:
        rate: Divisor; 0 means as fast as the line.
        octet_cost: Picoseconds times rate, for each octet.
        packet_cost: The same for each packet.
        extra: Octets that count besides those captured.
    """

    rate: int = UNLIMITED
    octet_cost: int = 0
    packet_cost: int = 0
    extra: int = 0


def pace_of(traffic: Traffic, line_bps: int, where: str) -> Pace:
    """Read `load`, or `rate` when there is none.

    Args:
        traffic: The table.
        line_bps: Rate of the sender's line.
        where: Named in errors.

    Raises:
        ScenarioError: It cannot be read, or is above the line's rate.
    """
    text = traffic.load.strip()
    if not text:
        return Pace() if traffic.rate_bps == NONE else _bits(round(traffic.rate_bps), L1_BYTES)
    percent = _PERCENT.fullmatch(text)
    if percent:
        share = _number(percent[1], text, where)
        if not 0 < share <= 100:
            raise ScenarioError(where, f"{text!r} is not between 0% and 100%")
        return Pace() if share == 100 else _bits(round(line_bps * share / 100), L1_BYTES)
    if text.lower().endswith("pps"):
        pps = round(parse_rate_bps(text[:-3] + "bps", where))
        if pps <= 0:
            raise ScenarioError(where, f"{text!r} is no rate to send at")
        return Pace(pps, 0, PS_PER_S)
    layered = _LAYERED.fullmatch(text)
    number, layer = (layered[1], layered[2]) if layered else (text, None)
    rate_bps = round(parse_rate_bps(number, where))
    if not 0 < rate_bps <= line_bps:
        raise ScenarioError(where, f"{text!r} is not between nothing and the line's rate")
    return _bits(rate_bps, L2_BYTES if layer == "L2" else L1_BYTES)


def _number(text: str, whole: str, where: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ScenarioError(where, f"{whole!r} is no share of the line such as 40%") from None


def _bits(rate_bps: int, extra: int) -> Pace:
    return Pace(rate_bps, 8 * PS_PER_S, 0, extra)
