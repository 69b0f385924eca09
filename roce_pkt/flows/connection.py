"""What is known of one connection, or of one service id resolution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from roce_pkt.capture.frames import address_text
from roce_pkt.flows.table import Address, Key
from roce_pkt.wire import rdma_cm

Kind = Literal["connection", "resolution"]
Outcome = Literal["established", "replied", "rejected", "no answer", "resolved", "disconnected"]


@dataclass(slots=True)
class End:
    """One end of a connection; what no message told is None.

    Args:
        address: Upper and lower half, as in the columns.
        comm_id: Communication id, or the request id of a resolution.
        qpn: Queue pair.
        start_psn: PSN of the first packet sent to it: it goes with its queue pair, so it is where
            the flow to that queue pair begins.
    """

    address: Address
    comm_id: int | None = None
    qpn: int | None = None
    start_psn: int | None = None

    def as_json(self) -> dict[str, object]:
        """The end as a JSON object."""
        return {
            "address": address_text(*self.address),
            "comm_id": self.comm_id,
            "qpn": self.qpn,
            "start_psn": self.start_psn,
        }


@dataclass(slots=True)
class Connection:
    """One connection, or one service id resolution.

    Args:
        kind: `connection`, or `resolution` for SIDR.
        client: Who asked; for a connection older than the capture, who disconnects.
        server: Who was asked.
        frame: 1-based number of the first frame that tells of it.
        first_ns: Its time.
        service_id: What was asked for, None when the request is not in the capture.
        application: Name by service id and private data.
        transport: `RC`, `UC`, `RD` or `XRC`; empty when unknown.
        mtu_bytes: Path MTU.
        qkey: Queue key that a resolution gave.
        requests: REQ or SIDR_REQ sent, retries included.
        replies: REP or SIDR_REP sent, retries included.
        established_ns: Time of RTU.
        reason: Code of a rejection or of a refused resolution.
        why: The same in words, the application's own included.
        rejected_by: `client` or `server`.
        closed_ns: Time of the first DREQ.
        closed_by: `client` or `server`.
        confirmed: DREP was seen.
        data: What the application said in private data, by header name.
        last_psns: PSN of the datagram that last carried a request or a reply.
    """

    kind: Kind
    client: End
    server: End
    frame: int
    first_ns: int
    service_id: int | None = None
    application: str = rdma_cm.UNKNOWN
    transport: str = ""
    mtu_bytes: int | None = None
    qkey: int | None = None
    requests: int = 0
    replies: int = 0
    established_ns: int | None = None
    reason: int | None = None
    why: str = ""
    rejected_by: str = ""
    closed_ns: int | None = None
    closed_by: str = ""
    confirmed: bool = False
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    last_psns: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def outcome(self) -> Outcome:
        """What came of it.

        `replied` has neither RTU nor rejection; `disconnected` began before the capture.
        """
        if self.established_ns is not None:
            return "established"
        if self.why:
            return "rejected"
        if self.closed_ns is not None:
            return "disconnected"
        if self.replies:
            return "resolved" if self.kind == "resolution" else "replied"
        return "no answer"

    def is_new(self, what: str, psn: int) -> bool:
        """False for a message that was captured twice: its datagram has the same PSN.

        Args:
            what: `request` or `reply`.
            psn: PSN of its datagram.
        """
        before, self.last_psns[what] = self.last_psns.get(what), psn
        return psn != before

    def flow_keys(self) -> tuple[Key | None, Key | None]:
        """Flow keys from client to server and back, as far as the queue pairs are known."""
        client, server = self.client, self.server
        there = None if server.qpn is None else (*client.address, *server.address, server.qpn)
        back = None if client.qpn is None else (*server.address, *client.address, client.qpn)
        return there, back

    def as_json(self) -> dict[str, object]:
        """The connection as a JSON object."""
        service = None if self.service_id is None else f"0x{self.service_id:016x}"
        qkey = None if self.qkey is None else f"0x{self.qkey:08x}"
        as_they_are = (
            *("application", "transport", "mtu_bytes", "requests", "replies", "established_ns"),
            *("reason", "why", "rejected_by", "closed_ns", "closed_by", "confirmed", "data"),
        )
        return {
            "kind": self.kind,
            "outcome": self.outcome,
            "frame": self.frame,
            "first_ns": self.first_ns,
            "client": self.client.as_json(),
            "server": self.server.as_json(),
            "service_id": service,
            "qkey": qkey,
        } | {name: getattr(self, name) for name in as_they_are}
