"""CM messages, one Scapy class for each, and what applications put into their private data.

    a = Ether()/IP(src="10.0.0.1", dst="10.0.0.2")/UDP()
    b = Ether()/IP(src="10.0.0.2", dst="10.0.0.1")/UDP()
    born = [
        a/gsi()/CMReq(local_comm_id=1, service_id="tcp:4420", qpn=0x33, start_psn=200)
         /RDMACM(src="10.0.0.1", dst="10.0.0.2")/NVMeRDMAReq(qid=0),
        b/gsi()/CMRep(local_comm_id=2, remote_comm_id=1, qpn=0x22, start_psn=100),
        a/gsi(psn=1)/CMRtu(local_comm_id=1, remote_comm_id=2),
        a/BTH(dqpn=0x22, psn=100, ackreq=1)/b"hello",
        b/BTH(dqpn=0x33, psn=100)/AETH(syndrome=0x1f, msn=1),
        a/gsi(psn=2)/CMDreq(local_comm_id=1, remote_comm_id=2, remote_qpn=0x22),
        b/gsi(psn=1)/CMDrep(local_comm_id=2, remote_comm_id=1),
    ]

`start_psn` is where the receiver of the message begins: the client's packets start at what REP says.
Private data is payload: a message may be followed by bytes or by the layers of an application.
"""

from __future__ import annotations

from typing import Any

from scapy.fields import XLongField
from scapy.packet import Packet, bind_top_down

from roce_pkt.layers.fields import fields_of, noted
from roce_pkt.layers.mad import MAD, MESSAGES, SPEAKING, ManagementHeader
from roce_pkt.wire import cm, management_words, rdma_cm
from roce_pkt.wire.header import Header
from roce_pkt.wire.management import CM_BASE


class ServiceIdField(XLongField):
    """A service id: a number, or words as `roce_pkt.wire.rdma_cm.parse_service` reads them."""

    def any2i(self, pkt: Any, x: Any) -> Any:  # noqa: ARG002 - Scapy's signature
        """A number; other values pass through."""
        return rdma_cm.parse_service(x) if isinstance(x, str) else x


def _fields(table: Header) -> list[Any]:
    replaced = {"service_id": [ServiceIdField("service_id", 0)]} if "service_id" in table.places else {}
    return noted(fields_of(table, replaced))


class CMMessage(ManagementHeader):
    """What all messages have in common."""

    def guess_payload_class(self, payload: bytes) -> Any:
        """The RDMA-CM header or the application's own data where they are known, else Raw."""
        known = self.private_table(payload)
        return PRIVATE[id(known)] if known else Packet.guess_payload_class(self, payload)

    def private_table(self, _payload: bytes) -> Header | None:
        """The table of what the private data begin with, where it is known."""
        return None

    def words(self) -> str:
        """Name, ids, queue pair and what else matters."""
        values = {field.name: self._number(field.name) for field in self.header.fields}
        parts = management_words.message_words(self.header, values)
        return " ".join((f"CM {cm.message_name(self.header)}", *parts))


class _Request(CMMessage):
    """A message with a service id and, for RDMA-CM, addresses."""

    def private_table(self, payload: bytes) -> Header | None:
        """The RDMA-CM header of this service, or an application's data."""
        if rdma_cm.has_addresses(self.service_id):
            return rdma_cm.address_header(payload)
        return rdma_cm.request_data_header(self.service_id, payload)


class CMReq(_Request):
    """Request for a connection."""

    name = "CM REQ"
    header = cm.REQ
    fields_desc = _fields(cm.REQ)


class CMMra(CMMessage):
    """Message received, wait."""

    name = "CM MRA"
    header = cm.MRA
    fields_desc = _fields(cm.MRA)


class CMRej(CMMessage):
    """Rejected, with a reason."""

    name = "CM REJ"
    header = cm.REJ
    fields_desc = _fields(cm.REJ)


class CMRep(CMMessage):
    """Reply to a request."""

    name = "CM REP"
    header = cm.REP
    fields_desc = _fields(cm.REP)

    def private_table(self, payload: bytes) -> Header | None:
        """Data of rsockets, which show by themselves; others need the request."""
        return rdma_cm.reply_data_header("", None, payload)


class CMRtu(CMMessage):
    """Ready to use."""

    name = "CM RTU"
    header = cm.RTU
    fields_desc = _fields(cm.RTU)


class CMDreq(CMMessage):
    """Request to disconnect."""

    name = "CM DREQ"
    header = cm.DREQ
    fields_desc = _fields(cm.DREQ)


class CMDrep(CMMessage):
    """Disconnected."""

    name = "CM DREP"
    header = cm.DREP
    fields_desc = _fields(cm.DREP)


class CMSidrReq(_Request):
    """Which datagram queue pair serves this service?"""

    name = "CM SIDR_REQ"
    header = cm.SIDR_REQ
    fields_desc = _fields(cm.SIDR_REQ)


class CMSidrRep(CMMessage):
    """The queue pair that serves."""

    name = "CM SIDR_REP"
    header = cm.SIDR_REP
    fields_desc = _fields(cm.SIDR_REP)


class CMLap(CMMessage):
    """Load an alternate path."""

    name = "CM LAP"
    header = cm.LAP
    fields_desc = _fields(cm.LAP)


class CMApr(CMMessage):
    """Alternate path response."""

    name = "CM APR"
    header = cm.APR
    fields_desc = _fields(cm.APR)


# -- private data


class _Addresses(ManagementHeader):
    """RDMA-CM's header; what follows belongs to the application of the service below."""

    def guess_payload_class(self, payload: bytes) -> Any:
        """The application's own data where they are known, else Raw."""
        service = self.underlayer.service_id if isinstance(self.underlayer, _Request) else 0
        known = rdma_cm.request_data_header(service, payload)
        return PRIVATE[id(known)] if known else Packet.guess_payload_class(self, payload)

    def words(self) -> str:
        """Addresses."""
        return f"{self.src} > {self.dst}"


class RDMACM(_Addresses):
    """RDMA-CM private data header for IPv4."""

    name = "RDMA-CM"
    header = rdma_cm.RDMA_CM_V4
    fields_desc = fields_of(rdma_cm.RDMA_CM_V4)


class RDMACM6(_Addresses):
    """RDMA-CM private data header for IPv6."""

    name = "RDMA-CM IPv6"
    header = rdma_cm.RDMA_CM_V6
    fields_desc = fields_of(rdma_cm.RDMA_CM_V6)


class NVMeRDMAReq(ManagementHeader):
    """NVMe over Fabrics: what a host asks for."""

    name = "NVMe-oF RDMA request"
    header = rdma_cm.NVME_REQ
    fields_desc = fields_of(rdma_cm.NVME_REQ)

    def words(self) -> str:
        """Queue."""
        return f"NVMe-oF queue {self.qid}"


class NVMeRDMARep(ManagementHeader):
    """NVMe over Fabrics: what a controller grants. Read with `NVMeRDMARep(bytes(packet[CMRep].payload))`."""

    name = "NVMe-oF RDMA reply"
    header = rdma_cm.NVME_REP
    fields_desc = fields_of(rdma_cm.NVME_REP)


class NVMeRDMARej(ManagementHeader):
    """NVMe over Fabrics: why a controller refuses."""

    name = "NVMe-oF RDMA reject"
    header = rdma_cm.NVME_REJ
    fields_desc = noted(fields_of(rdma_cm.NVME_REJ))


class RSocketData(ManagementHeader):
    """What the two sides of an rsockets connection tell each other."""

    name = "rsockets"
    header = rdma_cm.RSOCKET
    fields_desc = fields_of(rdma_cm.RSOCKET)


PRIVATE: dict[int, type[Packet]] = {
    id(layer.header): layer for layer in (RDMACM, RDMACM6, NVMeRDMAReq, NVMeRDMARep, NVMeRDMARej, RSocketData)
}
"""Class of each private data table."""

_MESSAGES = (
    CMReq, CMMra, CMRej, CMRep, CMRtu, CMDreq, CMDrep, CMSidrReq, CMSidrRep, CMLap, CMApr,
)  # fmt: skip
for _layer in _MESSAGES:
    _attribute = next(number for number, table in cm.MESSAGES.items() if table is _layer.header)
    MESSAGES[_attribute] = _layer
    bind_top_down(MAD, _layer, attributeid=_attribute, **CM_BASE)
    SPEAKING.append(_layer)
