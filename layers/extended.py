"""The headers that may follow a BTH, one Scapy class for each row of `wire.ib.EXTENDED`.

Which class comes next is decided by the opcode of the BTH below, never by a header's own content.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.config import conf
from scapy.fields import XLongField
from scapy.packet import Packet

from roce_pkt.layers.fields import SyndromeField, fields_of
from roce_pkt.wire import aeth, ib
from roce_pkt.wire.header import Header
from roce_pkt.wire.opcode import OPCODES


class ExtendedHeader(Packet):
    """What every header after a BTH has in common."""

    header: ClassVar[Header | None] = None

    def guess_payload_class(self, payload: bytes) -> Any:
        """The next header of the opcode, else what the user bound to this class, else Raw."""
        depth, below = 1, self.underlayer
        while isinstance(below, ExtendedHeader):
            depth, below = depth + 1, below.underlayer
        if header_of(below) is ib.BTH:
            following = next_header(below.opcode, depth, len(payload))
            if following is not None:
                return following
        return Packet.guess_payload_class(self, payload)

    def mysummary(self) -> Any:
        """Own words, after those of the headers below."""
        return self.words(), SPEAKING

    def words(self) -> str:
        """What this header adds to the one-line summary."""
        return type(self).__name__


def header_of(layer: object) -> Header | None:
    """The wire table a layer was made from, or None for layers that are not ours."""
    return getattr(type(layer), "header", None)


def next_header(opcode: int, depth: int, room: int) -> Any:
    """The class of the header at `depth` after the BTH.

    Args:
        opcode: The BTH's opcode.
        depth: 0 for the first header after the BTH.
        room: Octets that are left.

    Returns:
        A class; Raw when the header does not fit; None when the opcode asks for no more headers.
    """
    op = OPCODES.get(opcode)
    if op is None or depth >= len(op.headers):
        return None
    wanted = op.headers[depth]
    return LAYERS[wanted.name] if room >= wanted.size_bytes else conf.raw_layer


class RDETH(ExtendedHeader):
    """Reliable Datagram ETH."""

    header = ib.RDETH
    fields_desc = fields_of(ib.RDETH)

    def words(self) -> str:
        """EE context."""
        return f"RDETH eec 0x{self.eec:x}"


class XRCETH(ExtendedHeader):
    """XRC ETH."""

    header = ib.XRCETH
    fields_desc = fields_of(ib.XRCETH)

    def words(self) -> str:
        """Shared receive queue."""
        return f"XRCETH srqn 0x{self.srqn:x}"


class DETH(ExtendedHeader):
    """Datagram ETH."""

    header = ib.DETH
    fields_desc = fields_of(ib.DETH)

    def guess_payload_class(self, payload: bytes) -> Any:
        """A management datagram where it is one, else as after every header."""
        from roce_pkt.layers.mad import MAD, is_management

        return MAD if is_management(self, payload) else super().guess_payload_class(payload)

    def words(self) -> str:
        """Source queue pair and key."""
        return f"DETH from qp 0x{self.sqpn:x} qkey 0x{self.qkey:x}"


class FETH(ExtendedHeader):
    """Flush ETH."""

    header = ib.FETH
    fields_desc = fields_of(ib.FETH)

    def words(self) -> str:
        """Placement and selectivity."""
        return f"FETH plt {self.plt} sel {self.sel}"


class RETH(ExtendedHeader):
    """RDMA ETH."""

    header = ib.RETH
    fields_desc = fields_of(ib.RETH)

    def words(self) -> str:
        """Address, key and length."""
        return f"RETH va 0x{self.va:x} rkey 0x{self.rkey:x} len {self.dmalen}"


class AtomicETH(ExtendedHeader):
    """Atomic ETH."""

    header = ib.ATOMICETH
    fields_desc = fields_of(ib.ATOMICETH)

    def words(self) -> str:
        """Address, key and operands."""
        return (
            f"AtomicETH va 0x{self.va:x} rkey 0x{self.rkey:x} swap 0x{self.swap:x} compare 0x{self.compare:x}"
        )


class AETH(ExtendedHeader):
    """ACK ETH."""

    header = ib.AETH
    fields_desc = fields_of(ib.AETH, {"syndrome": [SyndromeField("syndrome", 0)]})

    def words(self) -> str:
        """Acknowledged, not ready (how long to wait), or refused (why)."""
        return f"AETH {aeth.describe(self.syndrome)} msn {self.msn}"


class AtomicAckETH(ExtendedHeader):
    """Atomic ACK ETH."""

    header = ib.ATOMICACKETH
    fields_desc = fields_of(ib.ATOMICACKETH)

    def words(self) -> str:
        """Original value."""
        return f"AtomicAckETH orig 0x{self.orig:x}"


class ImmDt(ExtendedHeader):
    """Immediate data."""

    header = ib.IMMDT
    fields_desc = fields_of(ib.IMMDT)

    def words(self) -> str:
        """The immediate value."""
        return f"ImmDt 0x{self.data:08x}"


class IETH(ExtendedHeader):
    """Invalidate ETH."""

    header = ib.IETH
    fields_desc = fields_of(ib.IETH)

    def words(self) -> str:
        """The key to invalidate."""
        return f"IETH rkey 0x{self.rkey:x}"


class CNPPadding(ExtendedHeader):
    """The sixteen reserved octets of a congestion notification packet."""

    header = ib.CNP
    fields_desc = fields_of(ib.CNP, {"resv128": [XLongField("reserved1", 0), XLongField("reserved2", 0)]})


LAYERS: dict[str, type[ExtendedHeader]] = {
    layer.header.name: layer
    for layer in (
        RDETH,
        XRCETH,
        DETH,
        FETH,
        RETH,
        AtomicETH,
        AETH,
        AtomicAckETH,
        ImmDt,
        IETH,
        CNPPadding,
    )
}
"""Every extended header's class, by its table's name."""

SPEAKING: list[type[Packet]] = list(LAYERS.values())
"""Layers that also say their words when one above them does; the BTH joins them in its own file."""
