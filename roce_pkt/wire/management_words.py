"""Management datagrams as people and programs read them: what `present` adds to the plain fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_pkt.wire import cm, cm_words, mad, management, rdma_cm
from roce_pkt.wire.dissection import Layer, Management
from roce_pkt.wire.header import Header, ipv4_text, octets_text

_V4_MAPPED = 0xFFFF


def application_of(datagram: Management) -> str:
    """The application that a REQ or SIDR_REQ is for; empty for other datagrams."""
    message = datagram.find("cm")
    if message is None or message.header not in (cm.REQ, cm.SIDR_REQ):
        return ""
    consumer = management.consumer_data(message.header, message.values, datagram.data)
    return rdma_cm.application(message.values["service_id"], consumer)


# -- JSON

EXTRA_NAMES = (
    *("mad.class", "mad.method_name", "mad.attribute", "mad.data"),
    *("cm.message", "cm.application", "cm.transport", "cm.mtu_bytes", "cm.reason_text", "cm.private_data"),
)
"""Names that `add_json` adds to those of the header tables."""


def add_json(out: dict[str, Any], datagram: Management) -> None:
    """Complete the `mad` and `cm` objects of a frame.

    Args:
        out: An object for each header.
        datagram: What was read.
    """
    base, message = datagram.find("mad"), datagram.find("cm")
    if base is None:
        return
    v = base.values
    words = {
        "class": mad.class_name(v["mgmtclass"]),
        "method_name": mad.method_name(v["mgmtclass"], v["method"]),
        "attribute": mad.attribute_name(v["mgmtclass"], v["attributeid"]),
    }
    out["mad"] |= words
    if message is None:
        out["mad"]["data"] = datagram.data.hex()
        return
    head = {"message": cm.message_name(message.header)}
    out["cm"] = head | out["cm"] | _message_extras(message) | {"private_data": datagram.data.hex()}
    if application := application_of(datagram):
        out["cm"]["application"] = application


def _message_extras(message: Layer) -> dict[str, Any]:
    """Codes of a message in units and words, under names of their own."""
    header, values = message.header, message.values
    out: dict[str, Any] = {
        f"{name}_ns": cm_words.timeout_ns(name, value)
        for name, value in values.items()
        if cm_words.is_timeout(name)
    }
    if header is cm.REQ:
        out["mtu_bytes"] = cm_words.MTU_BYTES.get(values["mtu"])
        out["transport"] = cm_words.transport_name(values)
    elif header is cm.REJ:
        out["reason_text"] = cm_words.reason_text(values["reason"])
    if header in (cm.REJ, cm.APR, cm.SIDR_REP):
        name = "ari" if header is cm.REJ else "info"
        out[name] = cm_words.additional_information(header, values).hex()
    return out


# -- the tree


def note(layer: Layer, name: str) -> str:
    """What one field of a management header means, or an empty string."""
    header, values = layer.header, layer.values
    if header is mad.MAD:
        return _base_note(name, values)
    if header is mad.RMPP:
        return mad.RMPP_TYPES.get(values[name], "") if name == "type" else ""
    if header.name == "cm":
        if name.endswith("_gid") and values[name] >> 32 == _V4_MAPPED:
            return ipv4_text(values[name] & 0xFFFFFFFF)
        return cm_words.note(name, values)
    if header is rdma_cm.NVME_REJ and name == "sts":
        return rdma_cm.NVME_STATUSES.get(values["sts"], "unknown")
    return ""


def _base_note(name: str, values: dict[str, int]) -> str:
    kind, value = values["mgmtclass"], values[name]
    match name:
        case "mgmtclass":
            return mad.class_name(kind)
        case "method":
            return mad.method_name(kind, value)
        case "attributeid":
            return mad.attribute_name(kind, value)
        case "status":
            return mad.status_text(value)
        case _:
            return ""


def tree_line(datagram: Management) -> str:
    """The octets that follow the headers of a management datagram."""
    start, end = datagram.data_offset, datagram.data_offset + len(datagram.data)
    if datagram.layers:
        start = max(start, datagram.layers[-1].end)
    if start >= end:
        return ""
    name = "Private data" if datagram.find("cm") else "Data"
    return (
        f"{name}  octets {start}-{end - 1}  {octets_text(datagram.data[start - datagram.data_offset :], 24)}"
    )


# -- one line


def words(datagram: Management) -> Iterator[str]:
    """A management datagram in one line, behind the words of its transport."""
    base, message = datagram.find("mad"), datagram.find("cm")
    if base is None:
        yield "cut MAD"
        return
    v = base.values
    if message is None:
        yield mad.class_name(v["mgmtclass"])
        method, attribute = mad.method_name(v["mgmtclass"], v["method"]), v["attributeid"]
        yield f"{method}({mad.attribute_name(v['mgmtclass'], attribute)})"
        if status := mad.status_text(v["status"]):
            yield f"[{status}]"
        return
    yield f"CM {cm.message_name(message.header)}"
    yield from message_words(message.header, message.values)
    if (application := application_of(datagram)) != rdma_cm.UNKNOWN and application:
        yield application
    if queue := datagram.find("nvme_rdma"):
        yield f"queue {queue.values['qid']}"


def message_words(header: Header, v: dict[str, int]) -> Iterator[str]:
    """Who, for whom, and what matters in each message."""
    if "request_id" in v:
        yield f"id 0x{v['request_id']:x}"
    else:
        remote = f" > 0x{v['remote_comm_id']:x}" if "remote_comm_id" in v else ""
        yield f"id 0x{v['local_comm_id']:x}{remote}"
    if "qpn" in v:
        yield f"qp 0x{v['qpn']:x}"
    if "start_psn" in v:
        yield f"start psn {v['start_psn']}"
    if "remote_qpn" in v:
        yield f"of qp 0x{v['remote_qpn']:x}"
    if header is cm.REQ:
        yield f"{cm_words.transport_name(v)} mtu {cm_words.MTU_BYTES.get(v['mtu'], '?')}"
    if header in (cm.REQ, cm.SIDR_REQ):
        yield service_words(v["service_id"])
    if header is cm.REJ:
        yield f"[{cm_words.reason_text(v['reason'])}]"
    if header is cm.SIDR_REP and v["sidr_status"] != cm_words.SIDR_VALID:
        yield f"[{cm_words.SIDR_STATUSES.get(v['sidr_status'], 'unknown status')}]"
    if header is cm.APR and v["ap_status"]:
        yield f"[{cm_words.AP_STATUSES.get(v['ap_status'], 'unknown status')}]"
    if header is cm.MRA:
        yield f"wait {cm_words.note('service_timeout', v).rpartition('= ')[2]}"


def service_words(service: int) -> str:
    """A service id in few words."""
    found = rdma_cm.space_and_port(service)
    return f"{found[0].lower()} port {found[1]}" if found else f"service 0x{service:x}"
