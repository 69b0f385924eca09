"""Rules for management datagrams: their size and versions, and whether CM messages say what can be true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from roce_pkt.analysis.octets import gather
from roce_pkt.analysis.rules import UD, whole
from roce_pkt.capture.frames import Frames
from roce_pkt.errors import Finding, Severity
from roce_pkt.flows import datagrams
from roce_pkt.wire import cm, cm_words, ib, mad, rdma_cm
from roce_pkt.wire.dissection import Layer, Management
from roce_pkt.wire.header import Header, ipv4_text, ipv6_text

CM_START = bytes((mad.BASE_VERSION, mad.CLASS_CM, mad.CLASS_VERSIONS[mad.CLASS_CM], mad.SEND))
"""First octets of every CM message."""
_V4_MAPPED = 0xFFFF
_LINK_LOCAL = 0xFE80


def judge(frames: Frames) -> Iterator[Finding]:
    """Findings about the management datagrams of a batch whose octets are still held."""
    usable = whole(frames) & (frames.icrc_ok != 0)
    for row in datagrams.rows(frames).tolist():
        if not usable[row]:
            continue
        datagram = datagrams.read(frames, row)
        if datagram is not None:
            for finding in _of_frame(frames, row, datagram):
                yield replace(finding, frame=int(frames.number[row]))
    yield from _astray(frames)


def _finding(rule: str, severity: Severity, text: str) -> Finding:
    return Finding(rule, severity, text)


def _of_frame(frames: Frames, row: int, datagram: Management) -> Iterator[Finding]:
    dqpn, size = int(frames.dqpn[row]), int(frames.payload_len[row])
    if size != mad.MAD_BYTES:
        yield _finding("mad.length", "error", f"a MAD is {mad.MAD_BYTES} octets, this one has {size}")
    base = datagram.find("mad")
    if base is None:
        return
    kind = base.values["mgmtclass"]
    if dqpn > ib.GSI_QPN:
        text = (
            f"a MAD ({mad.class_name(kind)}) goes to QP 0x{dqpn:x}; without a redirection it belongs to QP 1"
        )
        yield _finding("mad.queue_pair", "warning", text)
    elif (kind in mad.SUBNET_CLASSES) is (dqpn == ib.GSI_QPN):
        text = f"{mad.class_name(kind)} on QP {dqpn}; QP 0 is for subnet management, QP 1 for all else"
        yield _finding("mad.queue_pair", "error", text)
    yield from _of_base(base)
    message = datagram.find("cm")
    if message is not None:
        yield from _of_message(message, datagram)


def _of_base(base: Layer) -> Iterator[Finding]:
    v = base.values
    kind, version = v["mgmtclass"], v["classversion"]
    if v["baseversion"] != mad.BASE_VERSION:
        yield _finding("mad.base_version", "error", f"MAD base version {v['baseversion']} is not 1")
    wanted = mad.CLASS_VERSIONS.get(kind, version)
    if version != wanted:
        text = f"{mad.class_name(kind)} class version {version} is not {wanted}: the fields may lie elsewhere"
        yield _finding("mad.class_version", "error", text)
    if kind == mad.CLASS_CM:
        attribute = v["attributeid"]
        if attribute in mad.CM_ATTRIBUTES and v["method"] != mad.SEND:
            name = mad.method_name(kind, v["method"])
            text = f"CM {mad.CM_ATTRIBUTES[attribute]} with method {name}, must be Send"
            yield _finding("cm.method", "error", text)
        if attribute not in mad.CM_ATTRIBUTES and attribute not in mad.COMMON_ATTRIBUTES:
            yield _finding("cm.attribute", "warning", f"CM attribute 0x{attribute:04x} is no message")


# -- CM messages


def _of_message(message: Layer, datagram: Management) -> Iterator[Finding]:
    header, v = message.header, message.values
    name = cm.message_name(header)
    length = v.get("rejected_info_length", v.get("info_length", 0))
    if length > cm.INFO_BYTES:
        text = f"{name} claims {length} octets of additional information, there is room for {cm.INFO_BYTES}"
        yield _finding("cm.info_length", "error", text)
    if header is cm.REJ and v["reason"] not in cm_words.REASONS:
        yield _finding("cm.reason", "warning", f"REJ reason {v['reason']} is not in the standard's list")
    if header is cm.REQ:
        yield from _of_request(v)
    if _offers_queue_pair(header, v) and (v["qpn"] <= ib.GSI_QPN or v["qpn"] == ib.MULTICAST_QPN):
        text = f"{name} offers QP 0x{v['qpn']:x}, which no connection can have"
        yield _finding("cm.queue_pair", "error", text)
    if header in (cm.REQ, cm.SIDR_REQ) and rdma_cm.has_addresses(v["service_id"]):
        yield from _of_addresses(message, datagram)
    nvme = datagram.find("nvme_rdma")
    if nvme is not None:
        yield from _of_nvme(nvme.values)


def _offers_queue_pair(header: Header, v: dict[str, int]) -> bool:
    if header is cm.REQ:
        return cm_words.transport_name(v) in ("RC", "UC")
    if header is cm.REP:
        return not v["local_eecn"]  # an XRC target answers with an EE context in its place
    return header is cm.SIDR_REP and v["sidr_status"] == cm_words.SIDR_VALID


def _of_request(v: dict[str, int]) -> Iterator[Finding]:
    if v["mtu"] not in cm_words.MTU_BYTES:
        yield _finding("cm.mtu", "error", f"REQ with path MTU code {v['mtu']}; 1 to 5 stand for 256 to 4096")
    if cm_words.transport_name(v).startswith("extended"):
        text = f"REQ asks for {cm_words.transport_name(v)}, only 1 (XRC) is known"
        yield _finding("cm.transport", "warning", text)


def _of_addresses(message: Layer, datagram: Management) -> Iterator[Finding]:
    """The RDMA-CM header against itself and against the path it is sent on."""
    found = datagram.find("rdma_cm")
    if found is None:
        if len(datagram.data) >= rdma_cm.RDMA_CM_V4.size_bytes:
            text = (
                f"private data of an RDMA-CM service with IP version {datagram.data[1] >> 4}, must be 4 or 6"
            )
            yield _finding("cm.private_data", "error", text)
        return
    v = found.values
    if v["major"]:
        text = f"RDMA-CM private data header of major version {v['major']}, 0 is known"
        yield _finding("cm.private_data", "error", text)
    if v.get("resv96_src") or v.get("resv96_dst"):
        text = "RDMA-CM private data says IPv4, but its addresses fill more than four octets"
        yield _finding("cm.private_data", "warning", text)
    for name, gid in (("src", "primary_local_gid"), ("dst", "primary_remote_gid")):
        there = message.values.get(gid, 0)
        if not _same_address(v["ip_version"], v[name], there):
            which = "source" if name == "src" else "destination"
            text = (
                f"RDMA-CM {which} {_text(v['ip_version'], v[name])} is not the path's GID {ipv6_text(there)}"
            )
            yield _finding("cm.private_data", "warning", text)


def _same_address(version: int, address: int, gid: int) -> bool:
    """False when a GID is made of an IP address, and of another one."""
    if gid == 0 or gid >> 112 == _LINK_LOCAL:  # none, or made of a MAC address as in RoCEv1
        return True
    mapped = gid >> 32 == _V4_MAPPED
    if version == 4:
        return not mapped or gid & 0xFFFFFFFF == address
    return mapped or gid == address or address >> 112 == _LINK_LOCAL


def _text(version: int, address: int) -> str:
    return ipv4_text(address) if version == 4 else ipv6_text(address)


def _of_nvme(v: dict[str, int]) -> Iterator[Finding]:
    if v.get("recfmt"):
        text = f"NVMe-oF private data of record format {v['recfmt']}, 0 is known"
        yield _finding("nvme.private_data", "error", text)
    if "hrqsize" in v and (not v["hrqsize"] or not v["hsqsize"]):
        text = f"NVMe-oF queue sizes {v['hrqsize']} (receive) and {v['hsqsize']} (send) leave no queue"
        yield _finding("nvme.private_data", "error", text)


# -- messages that went elsewhere


def _astray(frames: Frames) -> Iterator[Finding]:
    """CM messages in datagrams to ordinary queue pairs, without the key of QP 1."""
    sized = (frames.dqpn > ib.GSI_QPN) & (frames.payload_len == mad.MAD_BYTES)
    rows = np.flatnonzero(whole(frames) & (UD[frames.opcode] != 0) & sized & (frames.qkey != ib.GSI_QKEY))
    if not len(rows):
        return
    start = frames.payload_offset[rows].astype(np.int64)
    same = np.ones(len(rows), bool)
    for step, octet in enumerate(CM_START):
        same &= gather(frames, rows, start + step) == octet
    for row in rows[same].tolist():
        text = (
            f"looks like a CM message but goes to QP 0x{int(frames.dqpn[row]):x} with Q_Key"
            f" 0x{int(frames.qkey[row]):08x}; it belongs to QP 1 with 0x{ib.GSI_QKEY:08x}"
        )
        yield Finding("mad.queue_pair", "warning", text, int(frames.number[row]))
