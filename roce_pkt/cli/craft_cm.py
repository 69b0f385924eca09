"""The kinds of `roce-pkt craft` that set up and tear down connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from roce_pkt.errors import InputError
from roce_pkt.wire import cm, cm_words, connect, mad, rdma_cm
from roce_pkt.wire.exchange import Pair
from roce_pkt.wire.header import Field


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for.

    Args:
        pair: The queue pairs, seen from the sender of the first frame.
        service: `tcp:4420`, a bare TCP port, an application's name, or a service id in hexadecimal.
        private: Private data, or None for what the application of the service sends.
        payload: The message of a whole connection.
        exchange: Add what the peer answers.
    """

    pair: Pair
    service: str
    private: bytes | None
    payload: bytes
    exchange: bool


Maker = Callable[[Wanted], Iterator[bytes]]


def settable() -> dict[str, dict[str, Field]]:
    """Fields that `--set` reaches in management datagrams, by header."""
    rdma = {f.name: f for f in rdma_cm.RDMA_CM_V4.fields if f.show != "ipv4"}
    nvme = {f.name: f for f in rdma_cm.NVME_REQ.fields}
    return {"mad": {f.name: f for f in mad.MAD.fields}, "cm": cm.fields(), "rdma_cm": rdma, "nvme_rdma": nvme}


def parse_service(text: str) -> int:
    """The service id of `--service`.

    Raises:
        InputError: No port, no application, no 64-bit number.
    """
    try:
        return rdma_cm.parse_service(text)
    except InputError as error:
        raise InputError(f"--service: {error}") from None


def _client(wanted: Wanted) -> connect.Side:
    service = parse_service(wanted.service)
    private = wanted.private
    if private is None:
        asks_nvme = rdma_cm.application(service) == rdma_cm.NVME
        private = rdma_cm.NVME_REQ.pack(wanted.pair.extra.get("nvme_rdma", {})) if asks_nvme else b""
    return connect.Side(wanted.pair, service, private=private)


def _server(wanted: Wanted) -> connect.Side:
    service, private = parse_service(wanted.service), wanted.private or b""
    return connect.Side(wanted.pair, service, connect.SERVER_ID, connect.CLIENT_ID, private)


def _connect(wanted: Wanted) -> Iterator[bytes]:
    client = _client(wanted)
    if wanted.exchange:
        yield from connect.handshake(client, client.peer())
    else:
        yield client.send(cm.REQ)


def _resolve(wanted: Wanted) -> Iterator[bytes]:
    client = _client(wanted)
    if wanted.exchange:
        yield from connect.resolution(client, client.peer())
    else:
        yield client.send(cm.SIDR_REQ)


def _asks(name: str, answer: str) -> Maker:
    """A message of a client that has its answer."""

    def make(wanted: Wanted) -> Iterator[bytes]:
        client = connect.Side(wanted.pair, parse_service(wanted.service), private=wanted.private or b"")
        yield client.send(cm.BY_NAME[name])
        if wanted.exchange:
            yield client.peer().send(cm.BY_NAME[answer])

    return make


def _single(name: str, *, by_server: bool) -> Maker:
    def make(wanted: Wanted) -> Iterator[bytes]:
        values = {"reason": cm_words.INVALID_SERVICE_ID} if name == "REJ" else {}
        side = _server(wanted) if by_server else connect.Side(wanted.pair, private=wanted.private or b"")
        yield side.send(cm.BY_NAME[name], values)

    return make


def _connection(wanted: Wanted) -> Iterator[bytes]:
    client = _client(wanted)
    yield from connect.connection(client, client.peer(), wanted.payload)


KINDS: dict[str, tuple[str, Maker]] = {
    "cm-req": ("request for a connection, see --service", _connect),
    "cm-mra": ("message received, wait", _single("MRA", by_server=True)),
    "cm-rej": ("rejection; --set cm.reason=8", _single("REJ", by_server=True)),
    "cm-rep": ("reply to a request", _single("REP", by_server=True)),
    "cm-rtu": ("ready to use", _single("RTU", by_server=False)),
    "cm-dreq": ("request to disconnect", _asks("DREQ", "DREP")),
    "cm-drep": ("disconnected", _single("DREP", by_server=True)),
    "cm-sidr-req": ("which datagram queue pair serves, see --service", _resolve),
    "cm-sidr-rep": ("the queue pair that serves", _single("SIDR_REP", by_server=True)),
    "cm-lap": ("load an alternate path", _asks("LAP", "APR")),
    "cm-apr": ("alternate path response", _single("APR", by_server=True)),
    "connection": ("REQ, REP, RTU, one SEND and its ACK, DREQ, DREP", _connection),
}
