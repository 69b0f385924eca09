"""Management datagrams: the base header and RMPP; CM messages are in `roce_pkt.layers.cm`.

    gsi()/CMReq(...)      BTH to QP 1, DETH with its Q_Key, MAD; then any message

A MAD is filled with zeros to its 256 octets on build.
"""

from __future__ import annotations

from typing import Any

from scapy.config import conf
from scapy.packet import Packet, bind_top_down

from roce_pkt.layers.bth import BTH
from roce_pkt.layers.extended import DETH, SPEAKING, header_of
from roce_pkt.layers.fields import fields_of, noted
from roce_pkt.wire import ib, management, management_words
from roce_pkt.wire import mad as wire
from roce_pkt.wire.dissection import Layer
from roce_pkt.wire.header import Header

MESSAGES: dict[int, type[Packet]] = {}
"""Class of each CM message by attribute id; `roce_pkt.layers.cm` fills it."""


class ManagementHeader(Packet):
    """What the layers above a DETH have in common: notes beside values, and one summary."""

    header: Header

    def note_of(self, name: str) -> str:
        """What a field's value means, or an empty string."""
        values = {field.name: self._number(field.name) for field in self.header.fields}
        return management_words.note(Layer(self.header, 0, values), name)

    def _number(self, name: str) -> int:
        value = self.getfieldval(name)
        if isinstance(value, bytes):
            return int.from_bytes(value.ljust(self.header.field(name).bits // 8, b"\0"), "big")
        return value if isinstance(value, int) else 0

    def mysummary(self) -> Any:
        """Own words, after those of the headers below."""
        return self.words(), SPEAKING

    def words(self) -> str:
        """What this header adds to the one-line summary."""
        return type(self).__name__


class MAD(ManagementHeader):
    """The base header of a management datagram."""

    name = "MAD"
    header = wire.MAD
    fields_desc = noted(fields_of(wire.MAD))

    def guess_payload_class(self, payload: bytes) -> Any:
        """The RMPP header or CM message that the class asks for, else what the user bound, else Raw."""
        kind: Any = None
        if wire.uses_rmpp(self.mgmtclass):
            kind = RMPP
        elif self.mgmtclass == wire.CLASS_CM:
            kind = MESSAGES.get(self.attributeid)
        if kind is None:
            return Packet.guess_payload_class(self, payload)
        return kind if len(payload) >= kind.header.size_bytes else conf.raw_layer

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill with zeros to 256 octets."""
        return pkt + pay.ljust(wire.DATA_BYTES, b"\0")

    def words(self) -> str:
        """Class, method and attribute."""
        kind = self.mgmtclass
        attribute = wire.attribute_name(kind, self.attributeid)
        return f"MAD {wire.class_name(kind)} {wire.method_name(kind, self.method)}({attribute})"


class RMPP(ManagementHeader):
    """The header of the reliable multi-packet protocol."""

    name = "RMPP"
    header = wire.RMPP
    fields_desc = noted(fields_of(wire.RMPP))

    def words(self) -> str:
        """Type and segment."""
        return f"RMPP {wire.RMPP_TYPES.get(self.type, self.type)} segment {self.segment}"


def is_management(deth: Packet, payload: bytes) -> bool:
    """True when what follows a DETH is a MAD with room for its base header."""
    bth = deth.underlayer
    if header_of(bth) is not ib.BTH or len(payload) < wire.MAD.size_bytes:
        return False
    return management.carries({"dqpn": bth.dqpn}, {"qkey": deth.qkey}, payload)


def gsi(psn: int = 0, **fields: int) -> Packet:
    """Headers of a datagram to QP 1 up to its MAD: `lower/gsi()/CMReq(...)`.

    Args:
        psn: PSN of the datagram; QP 1 counts its own.
        fields: Fields of the MAD, such as `transactionid`, the same in a message and its answer.
    """
    return BTH(dqpn=ib.GSI_QPN, psn=psn) / DETH() / MAD(**{"transactionid": 1} | fields)


bind_top_down(DETH, MAD, qkey=ib.GSI_QKEY, sqpn=ib.GSI_QPN)
