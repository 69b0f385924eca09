"""The Global Routing Header: RoCEv1's network layer, EtherType 0x8915."""

from __future__ import annotations

from typing import Any

from scapy.config import conf
from scapy.fields import ShortField
from scapy.packet import Packet

from roce_pkt.layers.bth import BTH, LOWER_SPEAKING
from roce_pkt.layers.fields import fields_of
from roce_pkt.wire import ib

GID_BYTES = 16


class GRH(Packet):
    """The Global Routing Header.

    `sgid` and `dgid` take a number, IPv6 text or IPv4 text (RoCE's mapped form); `paylen` is filled
    on build. What lies beyond `paylen` in a dissected frame is Padding, so a trailer is never taken
    for the ICRC.
    """

    name = "GRH"
    header = ib.GRH
    fields_desc = fields_of(ib.GRH, {"paylen": [ShortField("paylen", None)]})

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_args: Any, **_kargs: Any) -> Any:
        """Raw when there is no room for a GRH."""
        return conf.raw_layer if _pkt and len(_pkt) < ib.GRH.size_bytes else cls

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill the length: everything after this header, ICRC included."""
        if self.paylen is None:
            place = ib.GRH.places["paylen"]
            end = place.offset + place.size
            pkt = pkt[: place.offset] + (len(pay) & place.mask).to_bytes(place.size, "big") + pkt[end:]
        return pkt + pay

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Split by length."""
        return s[: self.paylen], s[self.paylen :]

    def guess_payload_class(self, payload: bytes) -> Any:
        """A BTH if the next header says so."""
        if self.nexthdr == ib.GRH_NEXT_BTH:
            return BTH
        return Packet.guess_payload_class(self, payload)

    def hashret(self) -> bytes:
        """Both GIDs, in no order."""
        pair = (self.sgid ^ self.dgid).to_bytes(GID_BYTES, "big")
        return (pair if conf.checkIPaddr else b"") + self.payload.hashret()

    def answers(self, other: Packet) -> int:
        """1 when the GIDs are turned round and the packet inside answers."""
        if not isinstance(other, GRH):
            return 0
        if conf.checkIPaddr and (self.sgid, self.dgid) != (other.dgid, other.sgid):
            return 0
        return int(self.payload.answers(other.payload))

    def mysummary(self) -> str:
        """Both GIDs."""
        return self.sprintf("GRH %GRH.sgid% > %GRH.dgid%")


LOWER_SPEAKING.append(GRH)
