"""How long frames are: real headers by default, or a flat overhead to compare with other models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from roce_pkt.fabric.link import PREAMBLE_AND_GAP_BYTES
from roce_pkt.scenario.schema import NONE, Scenario
from roce_pkt.wire import ib, mac_control, net

FCS_BYTES = 4
VLAN_BYTES = 4
MIN_FRAME_BYTES = mac_control.MIN_FRAME_BYTES + FCS_BYTES
FLAT_MIN_BYTES = 60


class Around(NamedTuple):
    """Octets on top of a data packet.

    Args:
        first: On the first of a message.
        last: On the last.
        only: On one that is both.
    """

    first: int
    last: int
    only: int

    def pair(self, packets: int) -> tuple[int, int]:
        """Octets of the first and of the last packet, which add up where one packet is both.

        Args:
            packets: Of the message.
        """
        return (self.first, self.last) if packets > 1 else (self.only, 0)


@dataclass(slots=True)
class FrameSizes:
    """Octets of each kind of frame, FCS included, preamble and gap not.

    Args:
        scenario: Says MTU, IP version, VLAN, and `frame_overhead`.
        telemetry_bytes: Records of hops behind the datagram; part of a flat `frame_overhead` if given.
    """

    scenario: Scenario
    telemetry_bytes: int = 0
    base: int = field(init=False)
    """Headers of any RoCE frame, ICRC and FCS."""
    gap: int = field(init=False)
    min: int = field(init=False)
    flat: bool = field(init=False)

    def __post_init__(self) -> None:
        overhead = self.scenario.fabric.frame_overhead_bytes
        self.flat = overhead != NONE
        if self.flat:
            self.base, self.gap, self.min = overhead, 0, FLAT_MIN_BYTES
            return
        ip = net.IPV4 if self.scenario.host.ip == "ipv4" else net.IPV6
        self.base = 14 + ip.size_bytes + net.UDP.size_bytes + ib.BTH.size_bytes + ib.ICRC_BYTES + FCS_BYTES
        self.base += self.telemetry_bytes
        if self.scenario.host.vlan:
            self.base += VLAN_BYTES
        self.gap, self.min = PREAMBLE_AND_GAP_BYTES, MIN_FRAME_BYTES

    def _with(self, *octets: int) -> int:
        return max(self.base + (0 if self.flat else sum(octets)), self.min)

    def around(self, verb: str, service: str) -> Around:
        """Octets that data packets carry on top, by their place in a message."""
        if self.flat:
            return Around(0, 0, 0)
        if verb == "read":
            # spec: IBTA 9.4.4: RDMA READ response FIRST, LAST and ONLY have an AETH, and ONLY has one
            return Around(*[ib.AETH.size_bytes] * 3)
        last = ib.IMMDT.size_bytes if verb.endswith(("_imm", "_inv")) else 0
        first = ib.RETH.size_bytes if verb.startswith("write") else 0
        if service == "ud":
            first = ib.DETH.size_bytes
        return Around(first, last, first + last)

    @property
    def ack(self) -> int:
        """ACK, NAK, RNR NAK."""
        return self._with(ib.AETH.size_bytes)

    @property
    def cnp(self) -> int:
        """Congestion notification packet."""
        return self._with(ib.CNP.size_bytes)

    @property
    def read_request(self) -> int:
        """READ request."""
        return self._with(ib.RETH.size_bytes)

    @property
    def atomic_request(self) -> int:
        """COMPARE_SWAP or FETCH_ADD."""
        return self._with(ib.ATOMICETH.size_bytes)

    @property
    def atomic_response(self) -> int:
        """ATOMIC ACKNOWLEDGE."""
        return self._with(ib.AETH.size_bytes, ib.ATOMICACKETH.size_bytes)

    @property
    def pause(self) -> int:
        """PAUSE and PFC."""
        return MIN_FRAME_BYTES

    @property
    def full_frame(self) -> int:
        """A full data packet in the middle of a message."""
        return max(self.base + (self.scenario.host.mtu_bytes + 3) // 4 * 4, self.min)

    @property
    def full_wire(self) -> int:
        """The longest frame, with its gap."""
        return self.full_frame + ib.RETH.size_bytes + self.gap
