"""UDP source port and flow label: how a sender spreads its queue pairs over a fabric's paths.

Source: Linux include/rdma/ib_verbs.h (`rdma_calc_flow_label`, `rdma_flow_label_to_udp_sport`).
Receivers must accept any source port: hardware also sends 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Number = TypeVar("Number", int, "NDArray[np.int64]")
"""One, or an array of them."""

SPORT_BASE = 0xC000
FLOW_LABEL_MASK = 0xFFFFF


def sport_from_flow_label(flow_label: Number) -> Number:
    """UDP source port in 0xC000..0xFFFF for a 20-bit flow label."""
    return (flow_label & 0x3FFF) ^ (flow_label >> 14) | SPORT_BASE


def flow_label_from_qpns(local_qpn: Number, remote_qpn: Number) -> Number:
    """Flow label for a queue pair that was given none; the same from both ends."""
    value = local_qpn * remote_qpn
    value = value ^ value >> 20
    value = value ^ value >> 40
    return value & FLOW_LABEL_MASK


def sport_from_qpns(local_qpn: Number, remote_qpn: Number) -> Number:
    """UDP source port of a queue pair that was given no flow label."""
    return sport_from_flow_label(flow_label_from_qpns(local_qpn, remote_qpn))
