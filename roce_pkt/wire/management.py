"""Read and build a management datagram: what lies in the 256 octets after the datagram header.

Reading never fails: what does not fit, or has no table, stays raw octets. Whether it is right is
judged elsewhere (`roce_pkt.analysis.management`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from roce_pkt.wire import cm, ib, mad, rdma_cm
from roce_pkt.wire.dissection import Layer, Management
from roce_pkt.wire.header import Header, Octets


def carries(bth: Mapping[str, int], deth: Mapping[str, int], payload: Octets) -> bool:
    """True when a datagram is a MAD.

    Every datagram to QP 0 or 1 is one. A MAD may be redirected to another queue pair, which then
    has the Q_Key of QP 1: it is believed when its size and base version fit too.
    """
    if bth["dqpn"] <= ib.GSI_QPN:
        return True
    sized = len(payload) == mad.MAD_BYTES and payload[0] == mad.BASE_VERSION
    return deth["qkey"] == ib.GSI_QKEY and sized


@dataclass(slots=True)
class _Reader:
    octets: bytes
    start: int
    layers: list[Layer]
    at: int = 0

    def take(self, header: Header) -> dict[str, int] | None:
        """Read a header and step over it, if it fits."""
        if self.at + header.size_bytes > len(self.octets):
            return None
        values = header.unpack(self.octets, self.at)
        self.layers.append(Layer(header, self.start + self.at, values))
        self.at += header.size_bytes
        return values


def read(octets: Octets, start: int, end: int) -> Management:
    """Read a MAD.

    Args:
        octets: The frame.
        start: First octet of the MAD in it.
        end: First octet after what was captured of it.
    """
    reader = _Reader(bytes(octets[start:end]), start, [])
    base = reader.take(mad.MAD)
    message: Header | None = None
    if base is not None:
        if mad.uses_rmpp(base["mgmtclass"]):
            reader.take(mad.RMPP)
        elif base["mgmtclass"] == mad.CLASS_CM:
            message = cm.MESSAGES.get(base["attributeid"])
    values = reader.take(message) if message else None
    found = Management(reader.layers, start + reader.at, reader.octets[reader.at : mad.MAD_BYTES])
    if message is not None and values is not None:
        found.layers += private_layers(message, values, found.data, found.data_offset)
    return found


def private_layers(
    message: Header, values: Mapping[str, int], private: bytes, offset: int = 0
) -> Iterator[Layer]:
    """What can be read of a message's private data.

    Args:
        message: Table of the message.
        values: Its fixed fields.
        private: Its private data.
        offset: Where in the frame they begin.
    """
    if message in (cm.REQ, cm.SIDR_REQ):
        service = values["service_id"]
        at = 0
        if rdma_cm.has_addresses(service):
            header = rdma_cm.address_header(private)
            if header is None:
                return
            yield Layer(header, offset, header.unpack(private))
            at = header.size_bytes
        known = rdma_cm.request_data_header(service, private[at:])
    elif message is cm.REP:
        known, at = rdma_cm.reply_data_header("", None, private), 0
    else:
        return
    if known is not None:
        yield Layer(known, offset + at, known.unpack(private, at))


def consumer_data(message: Header, values: Mapping[str, int], private: bytes) -> bytes:
    """Private data without the RDMA-CM header that a request may begin with."""
    if message in (cm.REQ, cm.SIDR_REQ) and rdma_cm.has_addresses(values["service_id"]):
        return private[rdma_cm.RDMA_CM_V4.size_bytes :]
    return private


def mad_octets(values: Mapping[str, int], data: bytes = b"") -> bytes:
    """A MAD of 256 octets.

    Args:
        values: Fields of the base header.
        data: What follows it, filled with zeros to the end.

    Raises:
        ValueError: Too much data, or a value that does not fit its field.
        KeyError: No such field.
    """
    if len(data) > mad.DATA_BYTES:
        raise ValueError(f"a MAD holds {mad.DATA_BYTES} octets after its header, not {len(data)}")
    return mad.MAD.pack(values) + data.ljust(mad.DATA_BYTES, b"\0")


def cm_octets(
    message: Header,
    values: Mapping[str, int],
    private: bytes = b"",
    base: Mapping[str, int] | None = None,
) -> bytes:
    """A communication management message of 256 octets.

    Args:
        message: Table of the message, e.g. `cm.REQ`.
        values: Its fields, as far as they are not their defaults.
        private: Private data, filled with zeros.
        base: Fields of the MAD's base header that are not what the message asks for.

    Raises:
        ValueError: More private data than the message holds, or a value that does not fit.
        KeyError: No such field.
    """
    room = cm.private_bytes(message)
    if len(private) > room:
        name = cm.message_name(message)
        raise ValueError(f"a {name} holds {room} octets of private data, not {len(private)}")
    attribute = next(number for number, table in cm.MESSAGES.items() if table is message)
    head = CM_BASE | {"attributeid": attribute} | dict(base or {})
    return mad_octets(head, message.pack(values) + private)


CM_BASE = {"mgmtclass": mad.CLASS_CM, "classversion": mad.CLASS_VERSIONS[mad.CLASS_CM], "method": mad.SEND}
"""Fields of the base header that every message has."""
