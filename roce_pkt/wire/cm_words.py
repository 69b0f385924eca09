"""What the codes of communication management mean, in words and units.

Sources: IBTA Vol 1 chapter 12; the Linux kernel's ib_cm.h (reasons and statuses) and cm_msgs.h.
"""

from __future__ import annotations

from collections.abc import Callable

from roce_pkt.units import format_time_ns
from roce_pkt.wire import cm, rdma_cm
from roce_pkt.wire.header import Header

REASONS = {
    1: "no queue pair available",
    2: "no EE context available",
    3: "no resources available",
    4: "timeout",
    5: "request not supported",
    6: "invalid communication id",
    7: "invalid communication instance",
    8: "invalid service id: nobody listens",
    9: "invalid transport service type",
    10: "stale connection",
    11: "reliable datagram channel does not exist",
    12: "primary remote GID rejected",
    13: "primary remote LID rejected",
    14: "invalid primary service level",
    15: "invalid primary traffic class",
    16: "invalid primary hop limit",
    17: "invalid primary packet rate",
    18: "alternate remote GID rejected",
    19: "alternate remote LID rejected",
    20: "invalid alternate service level",
    21: "invalid alternate traffic class",
    22: "invalid alternate hop limit",
    23: "invalid alternate packet rate",
    24: "port and communication manager redirected",
    25: "port redirected",
    26: "invalid path MTU",
    27: "insufficient responder resources",
    28: "rejected by the application",
    29: "RNR retry count rejected",
    30: "duplicate local communication id",
    31: "unsupported class version",
    32: "invalid primary flow label",
    33: "invalid alternate flow label",
    35: "vendor option not supported",
}
AP_STATUSES = {
    0: "loaded",
    1: "invalid communication id",
    2: "alternate paths not supported",
    3: "rejected",
    4: "redirected",
    5: "is the primary path already",
    6: "queue pair does not match the communication id",
    7: "LID rejected",
    8: "GID rejected",
    9: "flow label rejected",
    10: "traffic class rejected",
    11: "hop limit rejected",
    12: "packet rate rejected",
    13: "service level rejected",
}
SIDR_STATUSES = {
    0: "valid",
    1: "service id not supported",
    2: "rejected by the service provider",
    3: "no queue pair available",
    4: "redirected",
    5: "class version not supported",
}
SIDR_VALID = 0
CONSUMER_DEFINED, INVALID_SERVICE_ID, STALE_CONNECTION = 28, 8, 10

MTU_BYTES = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
_TRANSPORTS = {0: "RC", 1: "UC", 2: "RD", 3: "extended"}
_EXTENDED_TRANSPORTS = {1: "XRC"}
_MRAED = {0: "REQ", 1: "REP", 2: "LAP"}
_REJECTED = {0: "REQ", 1: "REP", 2: "no message"}
_FAILOVER = {0: "accepted", 1: "not supported", 2: "rejected"}
# Gb/s by the code of a path record, IBTA Vol 1 15.2.5.16 and ib_verbs.h
_RATES_GBPS = {
    2: 2.5, 3: 10, 4: 30, 5: 5, 6: 20, 7: 40, 8: 60, 9: 80, 10: 120, 11: 14, 12: 56, 13: 112, 14: 168,
    15: 25, 16: 100, 17: 200, 18: 300, 19: 28, 20: 50, 21: 400, 22: 600, 23: 800, 25: 1600,
}  # fmt: skip
_TIMEOUTS = ("_response_timeout", "service_timeout", "_ack_timeout", "target_ack_delay")
RETRY_WITHOUT_LIMIT = 7


def timeout_ns(name: str, code: int) -> int | None:
    """A 5-bit timeout in nanoseconds; None for an acknowledge timeout that never runs out."""
    # spec: IBTA Vol 1 12.7: 4.096 us times two to the power of the code; 11.2.5.2: an ACK timeout of
    # 0 disables it
    return None if code == 0 and name.endswith("local_ack_timeout") else 4096 << code


def is_timeout(name: str) -> bool:
    """True for fields that hold a timeout code."""
    return name.endswith(_TIMEOUTS)


def transport_name(values: dict[str, int]) -> str:
    """`RC`, `UC`, `RD` or `XRC` of a REQ, or the numbers of an unknown one."""
    kind, extended = values["transport_service_type"], values["extended_transport_type"]
    name = _TRANSPORTS[kind]
    return _EXTENDED_TRANSPORTS.get(extended, f"extended transport {extended}") if kind == 3 else name


def reason_text(reason: int) -> str:
    """A reason for rejection in words, or its number."""
    return REASONS.get(reason, f"reason {reason}")


def additional_information(header: Header, values: dict[str, int]) -> bytes:
    """The additional information of a REJ, APR or SIDR_REP, as long as it says and as it can be."""
    name, length = ("ari", "rejected_info_length") if header is cm.REJ else ("info", "info_length")
    if name not in values:
        return b""
    return values[name].to_bytes(cm.INFO_BYTES, "big")[: values[length]]


def _ari_text(values: dict[str, int]) -> str:
    """The additional information of a REJ with what it is for this reason."""
    octets = additional_information(cm.REJ, values)
    if not octets:
        return "none"
    # spec: IBTA Vol 1 12.6.7.2: for a value it cannot take, the peer may name one that it can;
    # Linux gives its GUID with a timeout
    reason = values["reason"]
    acceptable = 12 <= reason <= 23 or reason in (26, 27, 29, 31, 32, 33)
    what = "acceptable: " if acceptable else "CA GUID " if reason == 4 and len(octets) == 8 else ""
    return what + octets.hex()


def note(name: str, values: dict[str, int]) -> str:
    """What one field of a message means, or an empty string."""
    value = values[name]
    if is_timeout(name):
        time_ns = timeout_ns(name, value)
        return f"4.096 us x 2^{value} = {format_time_ns(time_ns)}" if time_ns else "never runs out"
    if name.endswith("packet_rate"):
        return f"{_RATES_GBPS[value]:g} Gb/s" if value in _RATES_GBPS else ""
    return _NOTES[name](values) if name in _NOTES else ""


_NOTES: dict[str, Callable[[dict[str, int]], str]] = {
    "service_id": lambda v: rdma_cm.service_text(v["service_id"]),
    "mtu": lambda v: f"{MTU_BYTES[v['mtu']]} octets" if v["mtu"] in MTU_BYTES else "no path MTU",
    "transport_service_type": transport_name,
    "rnr_retry_count": lambda v: "without limit" if v["rnr_retry_count"] == RETRY_WITHOUT_LIMIT else "",
    "reason": lambda v: reason_text(v["reason"]),
    "ari": _ari_text,
    "message_rejected": lambda v: _REJECTED.get(v["message_rejected"], ""),
    "message_mraed": lambda v: _MRAED.get(v["message_mraed"], ""),
    "failover_accepted": lambda v: _FAILOVER.get(v["failover_accepted"], ""),
    "ap_status": lambda v: AP_STATUSES.get(v["ap_status"], "unknown"),
    "sidr_status": lambda v: SIDR_STATUSES.get(v["sidr_status"], "unknown"),
}
