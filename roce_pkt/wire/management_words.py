"""Management datagrams as people and programs read them: what `present` adds to the plain fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_pkt.wire import cm, cm_words, mad, management, rdma_cm
from roce_pkt.wire.dissection import Dissection, Layer
from roce_pkt.wire.header import Header, ipv4_text, octets_text

_V4_MAPPED = 0xFFFF


def message_of(frame: Dissection) -> Layer | None:
    """The communication management message of a frame, if it has one."""
    return next((layer for layer in frame.layers if layer.header.name == "cm"), None)


def application_of(frame: Dissection) -> str:
    """The application that a REQ or SIDR_REQ is for; empty for other frames."""
    message = message_of(frame)
    if message is None or message.header not in (cm.REQ, cm.SIDR_REQ) or frame.management is None:
        return ""
    consumer = management.consumer_data(message.header, message.values, frame.management.data)
    return rdma_cm.application(message.values["service_id"], consumer)


# -- JSON

EXTRA_NAMES = (
    *("mad.class", "mad.method_name", "mad.attribute", "mad.data"),
    *("cm.message", "cm.application", "cm.transport", "cm.mtu_bytes", "cm.reason_text", "cm.private_data"),
)
"""Names that `add_json` adds to those of the header tables."""


def add_json(out: dict[str, Any], frame: Dissection) -> None:
    """Complete the `mad` and `cm` objects of a frame.

    Args:
        out: The frame's JSON object with an object for each header.
        frame: A frame whose `management` is not None.
    """
    rest = frame.management
    base = frame.find(mad.MAD)
    if rest is None or base is None:
        return
    v = base.values
    words = {
        "class": mad.class_name(v["mgmtclass"]),
        "method_name": mad.method_name(v["mgmtclass"], v["method"]),
        "attribute": mad.attribute_name(v["mgmtclass"], v["attributeid"]),
    }
    out["mad"] |= words
    message = message_of(frame)
    if message is None:
        out["mad"]["data"] = rest.data.hex()
        return
    head = {"message": cm.message_name(message.header)}
    out["cm"] = head | out["cm"] | _message_extras(message) | {"private_data": rest.data.hex()}
    if application := application_of(frame):
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


def tree_line(frame: Dissection) -> str:
    """The octets that follow the headers of a management datagram."""
    rest, message = frame.management, message_of(frame)
    if rest is None or not rest.data:
        return ""
    start, end = max(rest.data_offset, frame.layers[-1].end), rest.data_offset + len(rest.data)
    if start >= end:
        return ""
    name = "Private data" if message else "Data"
    return f"{name}  octets {start}-{end - 1}  {octets_text(rest.data[start - rest.data_offset :], 24)}"


# -- one line


def words(frame: Dissection) -> Iterator[str]:
    """A management datagram in one line, behind the words of its transport."""
    base, message = frame.find(mad.MAD), message_of(frame)
    if base is None:
        return
    v = base.values
    if message is None:
        yield mad.class_name(v["mgmtclass"])
        method, attribute = mad.method_name(v["mgmtclass"], v["method"]), v["attributeid"]
        yield f"{method}({mad.attribute_name(v['mgmtclass'], attribute)})"
        if status := mad.status_text(v["status"]):
            yield f"[{status}]"
        return
    name = cm.message_name(message.header)
    yield f"CM {name}"
    yield from _message_words(message.header, message.values)
    if (application := application_of(frame)) != rdma_cm.UNKNOWN and application:
        yield application
    for layer in frame.layers:
        if layer.header is rdma_cm.NVME_REQ:
            yield f"queue {layer.values['qid']}"


def _message_words(header: Header, v: dict[str, int]) -> Iterator[str]:
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
