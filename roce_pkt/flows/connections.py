"""Connections as communication management tells of them: who asked whom for what, and what came of it.

A capture's few datagrams to QP 1 are read from their octets; everything else passes by. What is
learnt joins the two halves of a queue pair (`Connections.halves`) and says what a flow is for
(`Connections.by_flow`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roce_pkt.capture.frames import Frames
from roce_pkt.flows import datagrams
from roce_pkt.flows.connection import Connection, End, Kind
from roce_pkt.flows.table import Address, Key
from roce_pkt.wire import cm, cm_words, management, rdma_cm
from roce_pkt.wire.dissection import Management
from roce_pkt.wire.header import Header

MAX_CONNECTIONS = 100_000
"""Connections remembered; a hostile capture can ask for millions."""


@dataclass(frozen=True, slots=True)
class _Message:
    """One message with what its frame says of it."""

    header: Header
    values: dict[str, int]
    datagram: Management
    source: Address
    destination: Address
    frame: int
    time_ns: int
    psn: int


class Connections:
    """The connections met so far.

    Attributes:
        found: In the order of their first message.
        left_out: Connections beyond `MAX_CONNECTIONS`.
        orphans: Messages that belong to no connection in the capture.
    """

    def __init__(self) -> None:
        self.found: list[Connection] = []
        self.left_out = 0
        self.orphans = 0
        # (kind, client, server, its id) and the same for servers: the latest of that name
        self._by_client: dict[tuple[Kind, Address, Address, int], Connection] = {}
        self._by_server: dict[tuple[Address, Address, int], Connection] = {}

    def __iter__(self) -> Iterator[Connection]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def add(self, frames: Frames) -> None:
        """Read the messages of a batch.

        Args:
            frames: A batch whose octets are still held.

        Raises:
            LookupError: They are not.
        """
        for message in _messages(frames):
            match cm.message_name(message.header):
                case "REQ" | "SIDR_REQ":
                    self._request(message)
                case "REP":
                    self._reply(message)
                case "SIDR_REP":
                    self._resolved(message)
                case "RTU":
                    self._ready(message)
                case "REJ":
                    self._rejected(message)
                case "DREQ":
                    self._disconnect(message)
                case "DREP":
                    self._disconnected(message)
                case _:  # MRA, LAP and APR change nothing that is told here
                    pass

    # -- looking up and opening

    def _open(self, kind: Kind, client: End, server: End, message: _Message) -> Connection | None:
        if len(self.found) >= MAX_CONNECTIONS:
            self.left_out += 1
            return None
        one = Connection(kind, client, server, message.frame, message.time_ns)
        self.found.append(one)
        if client.comm_id is not None:
            self._by_client[kind, client.address, server.address, client.comm_id] = one
        return one

    def _of_client(self, message: _Message, kind: Kind = "connection") -> Connection | None:
        """The connection whose client sends this message."""
        name = "local_comm_id" if kind == "connection" else "request_id"
        key = kind, message.source, message.destination, message.values[name]
        return self._by_client.get(key)

    def _to_client(self, message: _Message, kind: Kind = "connection") -> Connection | None:
        """The connection whose client this message is for."""
        name = "remote_comm_id" if kind == "connection" else "request_id"
        key = kind, message.destination, message.source, message.values[name]
        return self._by_client.get(key)

    def _either(self, message: _Message) -> tuple[Connection | None, str]:
        """The connection that a message of either side belongs to, and who sends it."""
        if one := self._of_client(message):
            return one, "client"
        if one := self._to_client(message):
            return one, "server"
        source, destination, v = message.source, message.destination, message.values
        if one := self._by_server.get((destination, source, v["local_comm_id"])):
            return one, "server"
        if one := self._by_server.get((source, destination, v["remote_comm_id"])):
            return one, "client"
        return None, ""

    # -- messages

    def _request(self, message: _Message) -> None:
        resolution = message.header is cm.SIDR_REQ
        kind: Kind = "resolution" if resolution else "connection"
        v = message.values
        one = self._of_client(message, kind)
        if one is None or not _is_retry(one, v):
            ident = v["request_id"] if resolution else v["local_comm_id"]
            client = End(message.source, ident, v.get("qpn"), v.get("start_psn"))
            one = self._open(kind, client, End(message.destination), message)
            if one is None:
                return
            _learn(one, message)
        one.requests += one.is_new("request", message.psn)

    def _reply(self, message: _Message) -> None:
        v = message.values
        one = self._to_client(message)
        if one is None:  # asked before the capture began
            client = End(message.destination, v["remote_comm_id"])
            one = self._open("connection", client, End(message.source), message)
            if one is None:
                return
        one.server.comm_id, one.server.qpn, one.server.start_psn = (
            v["local_comm_id"],
            v["qpn"],
            v["start_psn"],
        )
        self._by_server[one.client.address, one.server.address, v["local_comm_id"]] = one
        one.replies += one.is_new("reply", message.psn)
        _note_data(one, message, rdma_cm.NVME_REP)

    def _resolved(self, message: _Message) -> None:
        v = message.values
        one = self._to_client(message, "resolution")
        if one is None:
            client = End(message.destination, v["request_id"])
            one = self._open("resolution", client, End(message.source), message)
            if one is None:
                return
            one.service_id, one.application = v["service_id"], rdma_cm.application(v["service_id"])
        one.replies += one.is_new("reply", message.psn)
        if v["sidr_status"] == cm_words.SIDR_VALID:
            one.server.qpn, one.qkey = v["qpn"], v["qkey"]
        else:
            one.reason, one.rejected_by = v["sidr_status"], "server"
            one.why = cm_words.SIDR_STATUSES.get(one.reason, f"status {one.reason}")

    def _ready(self, message: _Message) -> None:
        one, _ = self._either(message)
        if one is None:
            self.orphans += 1
        elif one.established_ns is None:
            one.established_ns = message.time_ns

    def _rejected(self, message: _Message) -> None:
        one, who = self._either(message)
        if one is None:
            self.orphans += 1
            return
        if one.established_ns is None and not one.why:
            one.reason, one.rejected_by = message.values["reason"], who
            one.why = cm_words.reason_text(one.reason)
            _note_data(one, message, rdma_cm.NVME_REJ)
            if one.application == rdma_cm.NVME and one.reason == cm_words.CONSUMER_DEFINED:
                status = one.data.get("nvme_rdma_rej", {}).get("sts", 0)
                one.why += f": {rdma_cm.NVME_STATUSES.get(status, f'status {status}')}"

    def _disconnect(self, message: _Message) -> None:
        one, who = self._either(message)
        v = message.values
        if one is None:  # older than the capture
            client = End(message.source, v["local_comm_id"])
            server = End(message.destination, v["remote_comm_id"], v["remote_qpn"])
            one, who = self._open("connection", client, server, message), "client"
            if one is None:
                return
            self._by_server[one.client.address, one.server.address, v["remote_comm_id"]] = one
        if one.closed_ns is None:
            one.closed_ns, one.closed_by = message.time_ns, who
            # spec: IBTA Vol 1 12.9.7.1: a connection in use counts as established without its RTU
            if one.replies and one.established_ns is None and not one.why:
                one.established_ns = message.time_ns

    def _disconnected(self, message: _Message) -> None:
        one, _ = self._either(message)
        if one is None:
            self.orphans += 1
        else:
            one.confirmed = True

    # -- what flows learn

    def halves(self) -> dict[Key, Key]:
        """Each directed flow's opposite half, both ways, where both queue pairs are known.

        Keys are those of a `FlowTable`. A number that served several connections with different
        peers joins nothing: which one a frame belonged to is not in its key.
        """
        found: dict[Key, Key] = {}
        doubtful: set[Key] = set()
        for one in self.found:
            there, back = one.flow_keys()
            if there is None or back is None or one.outcome not in ("established", "replied"):
                continue
            for half, other in ((there, back), (back, there)):
                if found.setdefault(half, other) != other:
                    doubtful |= {half, found[half], other}
        return {half: other for half, other in found.items() if half not in doubtful}

    def by_flow(self) -> dict[Key, Connection]:
        """The latest connection or resolution of each directed flow."""
        out: dict[Key, Connection] = {}
        for one in self.found:
            for key in one.flow_keys():
                if key is not None and one.outcome != "rejected":
                    out[key] = one
        return out


def _is_retry(one: Connection, values: dict[str, int]) -> bool:
    """A request that says again what the first one said, and not one that took over its id."""
    same = one.service_id == values["service_id"] and one.client.qpn == values.get("qpn")
    return same and one.client.start_psn == values.get("start_psn") and one.requests > 0


def _learn(one: Connection, message: _Message) -> None:
    v, header = message.values, message.header
    consumer = management.consumer_data(header, v, message.datagram.data)
    one.service_id = v["service_id"]
    one.application = rdma_cm.application(one.service_id, consumer)
    if header is cm.REQ:
        one.transport, one.mtu_bytes = cm_words.transport_name(v), cm_words.MTU_BYTES.get(v["mtu"])
    for layer in message.datagram.layers[2:]:
        one.data[layer.header.name] = layer.header.as_json(layer.values)


def _note_data(one: Connection, message: _Message, nvme: Header) -> None:
    """What the application answered in private data."""
    private = message.datagram.data
    known = rdma_cm.reply_data_header(one.application, nvme, private)
    if known is None:
        return
    if known is rdma_cm.RSOCKET:
        one.application = rdma_cm.RSOCKETS
    suffix = "rej" if message.header is cm.REJ else "rep"
    one.data[f"{known.name}_{suffix}"] = known.as_json(known.unpack(private))


def _messages(frames: Frames) -> Iterator[_Message]:
    """The CM messages of a batch that their receivers took."""
    for row in datagrams.rows(frames).tolist():
        datagram = datagrams.read(frames, row) if frames.icrc_ok[row] else None
        message = datagram.find("cm") if datagram else None
        if datagram is None or message is None:
            continue
        yield _Message(
            message.header,
            message.values,
            datagram,
            (int(frames.src_hi[row]), int(frames.src_lo[row])),
            (int(frames.dst_hi[row]), int(frames.dst_lo[row])),
            int(frames.number[row]),
            int(frames.time_ns[row]),
            int(frames.psn[row]),
        )
