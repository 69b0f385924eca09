"""Communication management: the eleven messages that set queue pairs up, move them and tear them down.

      REQ ->                    a client asks for a connection: its queue pair, the path
      <- MRA                    "received, be patient"
      <- REP                    the server accepts: its queue pair
      RTU ->                    ready to use
      <- REJ                    refused, with a reason (by either side)
      LAP ->  <- APR            load an alternate path, and the answer
      DREQ -> <- DREP           disconnect, and the answer
      SIDR_REQ -> <- SIDR_REP   which datagram queue pair serves this service id?

A message follows the base header of its MAD and fills the other 232 octets; what its fixed fields
leave is private data. Sources: IBTA Vol 1 chapter 12, tables 106 to 120, as laid out in the Linux
kernel (ibta_vol1_c12.h), vendor ids of enhanced connection establishment included. What the codes
mean is in `cm_words`.
"""

from __future__ import annotations

from roce_pkt.wire import mad
from roce_pkt.wire.header import Field, Header

_LOCAL_ID = Field("local_comm_id", 32, "hex", title="communication id of the sender")
_REMOTE_ID = Field("remote_comm_id", 32, "hex", title="communication id of the receiver")
_SERVICE_ID = Field("service_id", 64, "key", title="service id")
_PKEY = Field("pkey", 16, "hex", 0xFFFF, "partition key")
_QKEY = Field("qkey", 32, "key", title="queue key")
_QPN = Field("qpn", 24, "hex", title="queue pair of the sender")
_REMOTE_QPN = Field("remote_qpn", 24, "hex", title="queue pair (or EE context) of the receiver")
# spec: IBTA Vol 1 12.7, Starting PSN: where the other side begins; so it is in real captures
_START_PSN = Field("start_psn", 24, title="PSN of the first packet that the receiver of this sends")
_RESPONDER = Field("responder_resources", 8, title="READs and atomics the sender serves at a time")
_INITIATOR = Field("initiator_depth", 8, title="READs and atomics the sender has open at a time")
_GUID = Field("local_ca_guid", 64, "key", title="GUID of the sender's channel adapter")
_FLOW_CONTROL = Field("end_to_end_flow_control", 1)
_SRQ = Field("srq", 1, title="shared receive queue")
_RNR_RETRY = Field("rnr_retry_count", 3, default=7)
_INFO = Field("info", 576, "octets", title="additional information")
_INFO_LENGTH = Field("info_length", 8, title="octets of additional information")


def _path(which: str) -> tuple[Field, ...]:
    """The fields that name a path's ends, up to the GIDs."""
    return (
        Field(f"{which}_local_lid", 16, "hex"),
        Field(f"{which}_remote_lid", 16, "hex"),
        Field(f"{which}_local_gid", 128, "ipv6"),
        Field(f"{which}_remote_gid", 128, "ipv6"),
    )


def _level(which: str, last: tuple[Field, ...]) -> tuple[Field, ...]:
    """The last two octets of a path: service level and timeout."""
    return (
        Field(f"{which}_sl", 4, title="service level"),
        Field(f"{which}_subnet_local", 1),
        Field(f"resv3_{which}", 3),
        Field(f"{which}_local_ack_timeout", 5),
        *last,
    )


def _whole_path(which: str, last: tuple[Field, ...]) -> tuple[Field, ...]:
    return (
        *_path(which),
        Field(f"{which}_flow_label", 20, "hex"),
        Field(f"resv6_{which}", 6),
        Field(f"{which}_packet_rate", 6),
        Field(f"{which}_traffic_class", 8, "hex"),
        Field(f"{which}_hop_limit", 8),
        *_level(which, last),
    )


REQ = Header(
    "cm",
    "CM REQ, request for a connection",
    _LOCAL_ID,
    Field("resv8", 8),
    Field("vendor_id", 24, "hex", title="vendor of enhanced connection establishment, 0 none"),
    _SERVICE_ID,
    _GUID,
    Field("resv32", 32),
    _QKEY,
    _QPN,
    _RESPONDER,
    Field("local_eecn", 24, "hex", title="EE context of the sender"),
    _INITIATOR,
    Field("remote_eecn", 24, "hex", title="EE context of the receiver"),
    Field("remote_cm_response_timeout", 5, default=20),
    Field("transport_service_type", 2),
    _FLOW_CONTROL,
    _START_PSN,
    Field("local_cm_response_timeout", 5, default=20),
    Field("retry_count", 3, default=7),
    _PKEY,
    Field("mtu", 4, default=3, title="path MTU code"),
    Field("rdc_exists", 1),
    _RNR_RETRY,
    Field("max_cm_retries", 4, default=15),
    _SRQ,
    Field("extended_transport_type", 3),
    *_whole_path("primary", (Field("resv3_ack", 3),)),
    *_whole_path("alternate", (Field("sap_supported", 1), Field("resv2", 2))),
)
MRA = Header(
    "cm",
    "CM MRA, message received, wait",
    _LOCAL_ID,
    _REMOTE_ID,
    Field("message_mraed", 2, title="message that is acknowledged"),
    Field("resv6", 6),
    Field("service_timeout", 5),
    Field("resv3", 3),
)
REJ = Header(
    "cm",
    "CM REJ, rejected",
    _LOCAL_ID,
    _REMOTE_ID,
    Field("message_rejected", 2, title="message that is rejected"),
    Field("resv6", 6),
    Field("rejected_info_length", 7, title="octets of additional reject information"),
    Field("resv1", 1),
    Field("reason", 16),
    Field("ari", 576, "octets", title="additional reject information"),
)
REP = Header(
    "cm",
    "CM REP, reply to a request",
    _LOCAL_ID,
    _REMOTE_ID,
    _QKEY,
    _QPN,
    Field("vendor_id_high", 8, "hex"),
    Field("local_eecn", 24, "hex", title="EE context of the sender"),
    Field("vendor_id_mid", 8, "hex"),
    _START_PSN,
    Field("vendor_id_low", 8, "hex"),
    _RESPONDER,
    _INITIATOR,
    Field("target_ack_delay", 5),
    Field("failover_accepted", 2),
    _FLOW_CONTROL,
    _RNR_RETRY,
    _SRQ,
    Field("resv4", 4),
    _GUID,
)
RTU = Header("cm", "CM RTU, ready to use", _LOCAL_ID, _REMOTE_ID)
DREQ = Header("cm", "CM DREQ, request to disconnect", _LOCAL_ID, _REMOTE_ID, _REMOTE_QPN, Field("resv8", 8))
DREP = Header("cm", "CM DREP, disconnected", _LOCAL_ID, _REMOTE_ID)
LAP = Header(
    "cm",
    "CM LAP, load an alternate path",
    _LOCAL_ID,
    _REMOTE_ID,
    Field("resv32", 32),
    _REMOTE_QPN,
    Field("remote_cm_response_timeout", 5, default=20),
    Field("resv3", 3),
    Field("resv32_path", 32),
    *_path("alternate"),
    Field("alternate_flow_label", 20, "hex"),
    Field("resv4", 4),
    Field("alternate_traffic_class", 8, "hex"),
    Field("alternate_hop_limit", 8),
    Field("resv2", 2),
    Field("alternate_packet_rate", 6),
    *_level("alternate", (Field("resv3_ack", 3),)),
)
APR = Header(
    "cm",
    "CM APR, alternate path response",
    _LOCAL_ID,
    _REMOTE_ID,
    _INFO_LENGTH,
    Field("ap_status", 8),
    Field("resv16", 16),
    _INFO,
)
SIDR_REQ = Header(
    "cm",
    "CM SIDR_REQ, which queue pair serves this service",
    Field("request_id", 32, "hex"),
    _PKEY,
    Field("resv16", 16),
    _SERVICE_ID,
)
SIDR_REP = Header(
    "cm",
    "CM SIDR_REP, the queue pair that serves",
    Field("request_id", 32, "hex"),
    Field("sidr_status", 8),
    _INFO_LENGTH,
    Field("vendor_id_upper", 16, "hex"),
    _QPN,
    Field("vendor_id_low", 8, "hex"),
    _SERVICE_ID,
    _QKEY,
    _INFO,
)

MESSAGES: dict[int, Header] = {
    mad.CM_REQ: REQ,
    mad.CM_MRA: MRA,
    mad.CM_REJ: REJ,
    mad.CM_REP: REP,
    mad.CM_RTU: RTU,
    mad.CM_DREQ: DREQ,
    mad.CM_DREP: DREP,
    mad.CM_SIDR_REQ: SIDR_REQ,
    mad.CM_SIDR_REP: SIDR_REP,
    mad.CM_LAP: LAP,
    mad.CM_APR: APR,
}
"""The table of each message, by attribute id."""
BY_NAME: dict[str, Header] = {mad.CM_ATTRIBUTES[attribute]: header for attribute, header in MESSAGES.items()}
_NAMES = {id(header): name for name, header in BY_NAME.items()}
INFO_BYTES = 72
"""Most octets of additional information in REJ, APR and SIDR_REP."""


def message_name(header: Header) -> str | None:
    """`REQ`, `REP`, ... for the table of a message, None for any other."""
    return _NAMES.get(id(header))


def private_bytes(header: Header) -> int:
    """Octets of private data that a message has room for."""
    return mad.DATA_BYTES - header.size_bytes


def fields() -> dict[str, Field]:
    """Every field of every message by name; a name means the same width in all of them."""
    return {field.name: field for header in MESSAGES.values() for field in header.fields}
