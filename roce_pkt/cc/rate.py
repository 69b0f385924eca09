"""Bounds of a rate, and the rows of a parameter table that several laws share."""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law
from roce_pkt.cc.parameters import Parameter
from roce_pkt.units import PS_PER_NS, PS_PER_S

SHORTEST_PS = PS_PER_NS
LONGEST_PS = PS_PER_S

MIN_RATE = Parameter(
    "min_rate", "bps", "100Mbps", "Floor of the rate.",
    "HPCC simulator: 100Mbps to 1Gbps by configuration; ns3-rdma has 1 % of line",
    low=1e-9,
)  # fmt: skip
MAX_RATE = Parameter(
    "max_rate", "bps", "0", "Ceiling of the rate; 0 is the line rate.",
    "ns3-rdma holds TIMELY below 96 % of line, the other sources do not",
)  # fmt: skip
BASE_RTT = Parameter(
    "base_rtt", "ps", "0", "T: round trip of a full packet through empty queues; 0 is the longest flow's.",
    "HPCC simulator: the longest of the topology, for all",
    high=LONGEST_PS,
)  # fmt: skip
INT_SCALE = Parameter(
    "int_scale", "count", "1", "Units of the octet and queue fields of a hop, in times 128 and 80 octets.",
    "HPCC simulator: INT_MULTI, raised for fast links so that the counters do not go round too early",
    low=1, high=255,
)  # fmt: skip


@law
def ceiling_bps(p: Any) -> float:
    """Line rate, or `max_rate` where one is set."""
    top: float = p.line_rate_bps
    return min(top, p.max_rate_bps) if p.max_rate_bps > 0.0 else top


@law
def bounded(p: Any, rate_bps: float) -> float:
    """A rate between `min_rate` and the ceiling."""
    return max(p.min_rate_bps, min(rate_bps, ceiling_bps(p)))
