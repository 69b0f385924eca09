"""How long a RoCE frame really is, whatever the capture did to it.

Captures come cut by a snapshot length, with or without FCS, over raw IP or cooked links, or inside
a mirror's tunnel. The innermost IP header (or GRH) says how long the frame was on its own link.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import KIND_ROCEV1, STATUS_CODES
from roce_pkt.capture.frames import Frames

ETHERNET_BYTES = 14
VLAN_BYTES = 4
IPV6_BYTES = 40
GRH_BYTES = 40
FCS_BYTES = 4
MIN_FRAME_BYTES = 60
"""Without FCS; Ethernet pads shorter frames."""
PREAMBLE_AND_GAP_BYTES = 20
LINK_OVERHEAD_BYTES = FCS_BYTES + PREAMBLE_AND_GAP_BYTES
"""What a frame takes on the wire besides its octets from Ethernet header to ICRC."""


def frame_octets(frames: Frames) -> NDArray[np.int64]:
    """Octets of each RoCE frame from its Ethernet header to its ICRC, padded to the Ethernet minimum.

    Args:
        frames: Frames that have a BTH.
    """
    ip_len = frames.ip_len.astype(np.int64)
    octets = np.where(frames.ip_version == 6, ip_len + IPV6_BYTES, ip_len)
    octets = np.where(frames.kind == KIND_ROCEV1, frames.paylen.astype(np.int64) + GRH_BYTES, octets)
    octets += ETHERNET_BYTES + VLAN_BYTES * frames.vlan_count.astype(np.int64)
    trusted = (frames.status == STATUS_CODES["ok"]) | (frames.status == STATUS_CODES["cut"])
    octets = np.where(trusted, octets, frames.wire_len.astype(np.int64))
    return np.maximum(octets, MIN_FRAME_BYTES)
