"""Frames of communication management: single messages, and a connection from birth to end.

Like `exchange`, for hands and tests: right unless told otherwise, nothing lost or late.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from roce_pkt.wire import cm, exchange, ib, management, rdma_cm
from roce_pkt.wire.build import Stack, Values, gid_of
from roce_pkt.wire.cm_words import INVALID_SERVICE_ID, MTU_BYTES
from roce_pkt.wire.exchange import Pair, merge
from roce_pkt.wire.header import Header

CLIENT_ID, SERVER_ID = 1, 2
_MTU_CODES = {size: code for code, size in MTU_BYTES.items()}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two ends of a connection, about to send.

    Args:
        pair: The queue pairs seen from here: `sqpn` is this side's own, `dqpn` the peer's, `psn` that
            of the first packet sent from here. `extra` may hold values for `mad`, `cm`, `rdma_cm`
            and `nvme_rdma` too.
        service_id: What the client asks for.
        local_id: Communication id (or request id) of this side.
        remote_id: The peer's.
        private: Private data, without an RDMA-CM header.
        peer_psn: PSN of the first packet that the peer sends, which this side tells it; None for
            the same as its own.
        sport: Port that the client has bound, of RDMA-CM's port spaces.
        transaction: Transaction id, the same for a message and its answer.
    """

    pair: Pair = field(default_factory=Pair)
    service_id: int = rdma_cm.service_id(4420)
    local_id: int = CLIENT_ID
    remote_id: int = SERVER_ID
    private: bytes = b""
    peer_psn: int | None = None
    sport: int = 0xC000
    transaction: int = 1

    @property
    def start_psn(self) -> int:
        """What this side tells the peer to begin with."""
        return self.pair.psn if self.peer_psn is None else self.peer_psn

    def peer(self, private: bytes = b"") -> Side:
        """The other end.

        Args:
            private: Its private data.
        """
        pair = self.pair
        back = replace(pair, path=pair.path.reversed(), dqpn=pair.sqpn, sqpn=pair.dqpn, psn=self.start_psn)
        return replace(
            self,
            pair=back,
            peer_psn=pair.psn,
            local_id=self.remote_id,
            remote_id=self.local_id,
            private=private,
        )

    def send(self, message: Header, values: Values | None = None, psn: int = 0) -> bytes:
        """One message to the peer's QP 1.

        Args:
            message: Its table, e.g. `cm.REQ`.
            values: Fields that are neither defaults nor known from this side.
            psn: PSN of the datagram; QP 1 counts its own.
        """
        extra = self.pair.extra
        known = {name: v for name, v in self._known(message).items() if name in message.places}
        given = {name: v for name, v in extra.get("cm", {}).items() if name in message.places}
        base = {"transactionid": self.transaction} | dict(extra.get("mad", {}))
        private = self._private(message)
        octets = management.cm_octets(message, known | dict(values or {}) | given, private, base)
        stack: Stack = {"bth": {"dqpn": ib.GSI_QPN}, "deth": {"qkey": ib.GSI_QKEY, "sqpn": ib.GSI_QPN}}
        gsi = replace(self.pair, transport="UD", psn=psn)
        return gsi.request("UD_SEND_ONLY", 0, stack, octets)

    def _known(self, message: Header) -> Values:
        pair, path = self.pair, self.pair.path
        code = {"RC": 0, "UC": 1, "RD": 2, "XRC": 3}.get(pair.transport, 0)
        return {
            "local_comm_id": self.local_id,
            "remote_comm_id": self.remote_id,
            "request_id": self.local_id if message is cm.SIDR_REQ else self.remote_id,
            "service_id": self.service_id,
            "qpn": pair.sqpn,
            "remote_qpn": pair.dqpn,
            "start_psn": self.start_psn,
            "mtu": _MTU_CODES.get(pair.mtu_bytes, 0),
            "transport_service_type": code,
            "extended_transport_type": int(code == 3),
            "primary_local_gid": gid_of(path.src),
            "primary_remote_gid": gid_of(path.dst),
            "primary_flow_label": path.flow_label,
            "primary_traffic_class": path.dscp << 2 | path.ecn,
            "primary_hop_limit": path.ttl,
            "primary_local_ack_timeout": 19,
            "qkey": 0x11111111 if message is cm.SIDR_REP else 0,
        }

    def _private(self, message: Header) -> bytes:
        """Private data; a request of RDMA-CM begins with the addresses."""
        if message not in (cm.REQ, cm.SIDR_REQ) or not rdma_cm.has_addresses(self.service_id):
            return self.private
        source, destination = map(ipaddress.ip_address, (self.pair.path.src, self.pair.path.dst))
        header = rdma_cm.RDMA_CM_V4 if source.version == 4 else rdma_cm.RDMA_CM_V6
        values = {"sport": self.sport, "src": int(source), "dst": int(destination)}
        return header.pack(values | dict(self.pair.extra.get("rdma_cm", {}))) + self.private


def handshake(client: Side, server: Side) -> Iterator[bytes]:
    """REQ, REP, RTU."""
    yield client.send(cm.REQ)
    yield server.send(cm.REP)
    yield replace(client, private=b"").send(cm.RTU, psn=1)


def farewell(client: Side, server: Side) -> Iterator[bytes]:
    """DREQ, DREP."""
    yield replace(client, private=b"").send(cm.DREQ, psn=2)
    yield replace(server, private=b"").send(cm.DREP, psn=1)


def rejection(client: Side, server: Side, reason: int = INVALID_SERVICE_ID) -> Iterator[bytes]:
    """REQ, REJ. A server that has nobody for a service id has no communication id either."""
    yield client.send(cm.REQ)
    yield replace(server, local_id=0).send(cm.REJ, {"reason": reason})


def resolution(client: Side, server: Side) -> Iterator[bytes]:
    """SIDR_REQ, SIDR_REP."""
    yield client.send(cm.SIDR_REQ)
    yield server.send(cm.SIDR_REP)


def connection(client: Side, server: Side, payload: bytes) -> Iterator[bytes]:
    """A whole connection: set up, one message with its acknowledge, torn down.

    Args:
        client: Who asks, and sends the message.
        server: `client.peer(...)`.
        payload: The message.
    """
    yield from handshake(client, server)
    frames = list(exchange.message(client.pair, "SEND", payload, merge()))
    yield from frames
    if client.pair.transport in ("RC", "RD", "XRC"):
        yield client.pair.ack(len(frames) - 1)
    yield from farewell(client, server)
