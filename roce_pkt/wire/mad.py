"""Management datagrams: the base header, the RMPP header, and the names of classes and attributes.

      0                   1                   2                   3
      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
     +---------------+---------------+---------------+-+-------------+
 MAD | base version  |   mgmt class  | class version |R|   method    |
     +---------------+---------------+---------------+-+-------------+
     |            status             |        class specific         |
     +-------------------------------+-------------------------------+
     |                        transaction id                         |
     |                                                               |
     +-------------------------------+-------------------------------+
     |         attribute id          |           reserved            |
     +-------------------------------+-------------------------------+
     |                      attribute modifier                       |
     +---------------------------------------------------------------+

A MAD is 256 octets in one UD SEND ONLY to QP 0 (subnet management) or QP 1 (everything else).
Sources: IBTA Vol 1 chapter 13 as laid out in the Linux kernel (ib_mad.h, mad.c).
"""

from __future__ import annotations

from roce_pkt.wire.header import Field, Header

MAD = Header(
    "mad",
    "Management Datagram",
    Field("baseversion", 8, "hex", 1, "base version, 1"),
    Field("mgmtclass", 8, "hex", title="management class"),
    Field("classversion", 8, "hex", 1, "class version"),
    Field("method", 8, "hex", title="method; the highest bit marks a response"),
    Field("status", 16, "hex"),
    Field("classspecific", 16, "hex", title="class specific"),
    Field("transactionid", 64, "key", title="transaction id"),
    Field("attributeid", 16, "hex", title="attribute id"),
    Field("resv16", 16),
    Field("attributemodifier", 32, "hex", title="attribute modifier"),
)

RMPP = Header(
    "rmpp",
    "Reliable Multi-Packet Protocol",
    Field("version", 8, title="RMPP version, 1; 0 when not used"),
    Field("type", 8),
    Field("resptime", 5, title="response time code, 31 none"),
    Field("flags", 3, "hex", title="1 active, 2 first, 4 last"),
    Field("status", 8),
    Field("segment", 32, title="segment number"),
    Field("length", 32, title="payload length, or last segment of the new window"),
)

MAD_BYTES = 256
DATA_BYTES = MAD_BYTES - MAD.size_bytes
BASE_VERSION = 1

CLASS_SUBN_LID, CLASS_SUBN_DIRECTED, CLASS_SUBN_ADM, CLASS_PERF = 0x01, 0x81, 0x03, 0x04
CLASS_DEVICE_MGMT, CLASS_CM, CLASS_DEVICE_ADM, CLASS_BIS = 0x06, 0x07, 0x10, 0x12
VENDOR_RANGE_2 = range(0x30, 0x50)

CLASSES = {
    CLASS_SUBN_LID: "Subn (LID routed)",
    CLASS_SUBN_DIRECTED: "Subn (directed route)",
    CLASS_SUBN_ADM: "SubnAdm",
    CLASS_PERF: "Perf",
    0x05: "BM",
    CLASS_DEVICE_MGMT: "DevMgt",
    CLASS_CM: "CM",
    0x08: "SNMP",
    CLASS_DEVICE_ADM: "DevAdm",
    0x11: "BootMgt",
    CLASS_BIS: "BIS",
    0x21: "Congestion",
}
CLASS_VERSIONS = {
    CLASS_SUBN_LID: 1,
    CLASS_SUBN_DIRECTED: 1,
    CLASS_SUBN_ADM: 2,
    CLASS_PERF: 1,
    CLASS_CM: 2,
}
"""Version of each class as IBTA Vol 1 release 1.2 and later have it."""
SUBNET_CLASSES = (CLASS_SUBN_LID, CLASS_SUBN_DIRECTED)
"""Classes of QP 0; all others are for QP 1."""

SEND = 0x03
RESPONSE = 0x80
METHODS = {
    0x01: "Get",
    0x02: "Set",
    SEND: "Send",
    0x05: "Trap",
    0x06: "Report",
    0x07: "TrapRepress",
    0x81: "GetResp",
    0x86: "ReportResp",
}
SUBN_ADM_METHODS = {
    0x12: "GetTable",
    0x13: "GetTraceTable",
    0x14: "GetMulti",
    0x15: "Delete",
    0x92: "GetTableResp",
    0x94: "GetMultiResp",
    0x95: "DeleteResp",
}

COMMON_ATTRIBUTES = {0x0001: "ClassPortInfo", 0x0002: "Notice", 0x0003: "InformInfo"}
SUBN_ATTRIBUTES = {
    0x0010: "NodeDescription",
    0x0011: "NodeInfo",
    0x0012: "SwitchInfo",
    0x0014: "GUIDInfo",
    0x0015: "PortInfo",
    0x0016: "P_KeyTable",
    0x0017: "SLtoVLMappingTable",
    0x0018: "VLArbitrationTable",
    0x0019: "LinearForwardingTable",
    0x001A: "RandomForwardingTable",
    0x001B: "MulticastForwardingTable",
    0x0020: "SMInfo",
    0x0030: "VendorDiag",
    0x0031: "LedInfo",
}
SUBN_ADM_ATTRIBUTES = {
    0x0011: "NodeRecord",
    0x0012: "PortInfoRecord",
    0x0013: "SLtoVLMappingTableRecord",
    0x0014: "SwitchInfoRecord",
    0x0015: "LinearForwardingTableRecord",
    0x0016: "RandomForwardingTableRecord",
    0x0017: "MulticastForwardingTableRecord",
    0x0018: "SMInfoRecord",
    0x0020: "LinkRecord",
    0x0030: "GuidInfoRecord",
    0x0031: "ServiceRecord",
    0x0033: "P_KeyTableRecord",
    0x0035: "PathRecord",
    0x0036: "VLArbitrationTableRecord",
    0x0038: "MCMemberRecord",
    0x0039: "TraceRecord",
    0x003A: "MultiPathRecord",
    0x003B: "ServiceAssociationRecord",
    0x00F3: "InformInfoRecord",
}
PERF_ATTRIBUTES = {
    0x0010: "PortSamplesControl",
    0x0011: "PortSamplesResult",
    0x0012: "PortCounters",
    0x001D: "PortCountersExtended",
    0x001E: "PortSamplesResultExtended",
}
CM_REQ, CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP, CM_LAP, CM_APR = range(
    0x10, 0x1B
)
CM_ATTRIBUTES = {
    CM_REQ: "REQ",
    CM_MRA: "MRA",
    CM_REJ: "REJ",
    CM_REP: "REP",
    CM_RTU: "RTU",
    CM_DREQ: "DREQ",
    CM_DREP: "DREP",
    CM_SIDR_REQ: "SIDR_REQ",
    CM_SIDR_REP: "SIDR_REP",
    CM_LAP: "LAP",
    CM_APR: "APR",
}
_ATTRIBUTES = {
    CLASS_SUBN_LID: SUBN_ATTRIBUTES,
    CLASS_SUBN_DIRECTED: SUBN_ATTRIBUTES,
    CLASS_SUBN_ADM: SUBN_ADM_ATTRIBUTES,
    CLASS_PERF: PERF_ATTRIBUTES,
    CLASS_CM: CM_ATTRIBUTES,
}

RMPP_TYPES = {1: "DATA", 2: "ACK", 3: "STOP", 4: "ABORT"}
STATUSES = {
    0x0001: "busy",
    0x0002: "redirection required",
    0x0004: "class or version not supported",
    0x0008: "method not supported",
    0x000C: "method and attribute not supported together",
    0x001C: "invalid value in attribute or modifier",
}


def class_name(mgmtclass: int) -> str:
    """A management class in words; ranges kept for vendors and applications have names, others a number."""
    if mgmtclass in CLASSES:
        return CLASSES[mgmtclass]
    # spec: IBTA Vol 1 13.4.4, table of management class values
    if 0x09 <= mgmtclass <= 0x0F or mgmtclass in VENDOR_RANGE_2:
        return f"vendor class 0x{mgmtclass:02x}"
    if 0x10 <= mgmtclass <= 0x2F:
        return f"application class 0x{mgmtclass:02x}"
    return f"class 0x{mgmtclass:02x}"


def method_name(mgmtclass: int, method: int) -> str:
    """A method in words, or its number."""
    name = METHODS.get(method)
    if name is None and mgmtclass == CLASS_SUBN_ADM:
        name = SUBN_ADM_METHODS.get(method)
    return name or f"method 0x{method:02x}"


def attribute_name(mgmtclass: int, attributeid: int) -> str:
    """An attribute of a class in words, or its number."""
    name = _ATTRIBUTES.get(mgmtclass, {}).get(attributeid) or COMMON_ATTRIBUTES.get(attributeid)
    return name or f"attribute 0x{attributeid:04x}"


def status_text(status: int) -> str:
    """The bits of a status that all classes share, in words; empty for success."""
    # spec: IBTA Vol 1 13.4.7: bits 0 to 4 are common, 8 to 14 belong to the class
    low = status & 0x1F
    if low in STATUSES or not low:
        return STATUSES.get(low, "")
    return f"status 0x{status:04x}"


def uses_rmpp(mgmtclass: int) -> bool:
    """True for classes whose MADs have an RMPP header after the base header."""
    classes = (CLASS_SUBN_ADM, CLASS_DEVICE_MGMT, CLASS_DEVICE_ADM, CLASS_BIS)
    return mgmtclass in classes or mgmtclass in VENDOR_RANGE_2
