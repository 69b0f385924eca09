"""Connection management around the data, when a scenario asks for it: REQ, REP, RTU; DREQ, DREP."""

from __future__ import annotations

from collections.abc import Iterator

from roce_pkt.scenario.plan import Connection, Plan
from roce_pkt.traffic.framing import path_of
from roce_pkt.wire import rdma_cm
from roce_pkt.wire.connect import Side, farewell, handshake
from roce_pkt.wire.exchange import Pair
from roce_pkt.wire.opcode import Transport

STEP_PS = 10_000_000
"""Between two management frames of a connection: software answers them."""
PORT = 18515
"""TCP port that connections ask for: perftest's."""
_SPREAD_PS = 1_000_000
_STEPS = 4


def duration_ps(plan: Plan) -> int:
    """How long connecting takes; 0 when nothing is set up."""
    wanted = _connected(plan)
    return (_STEPS * STEP_PS + len(wanted) * _SPREAD_PS) if wanted else 0


def _connected(plan: Plan) -> list[tuple[int, Connection]]:
    if not plan.scenario.frames.setup:
        return []
    return [(n, c) for n, c in enumerate(plan.connections) if c.traffic.transport != "ud"]


def _sides(plan: Plan, number: int, connection: Connection) -> tuple[Side, Side]:
    c = connection
    path = path_of(plan.scenario, c.a, c.b, c.qpns, data=True)
    service: Transport = c.traffic.transport.upper()  # type: ignore[assignment]
    pair = Pair(path, service, c.qpns[1], c.qpns[0], c.psns[0], plan.scenario.host.mtu_bytes)
    ids = 2 * number + 1, 2 * number + 2
    client = Side(
        pair,
        service_id=rdma_cm.service_id(PORT),
        local_id=ids[0],
        remote_id=ids[1],
        peer_psn=c.psns[1],
        sport=0xC000 + number % 0x3000,
        transaction=number + 1,
    )
    return client, client.peer()


def before(plan: Plan) -> Iterator[tuple[int, bytes]]:
    """Frames that connect, in time order, from time 0 on."""
    frames = []
    for place, (number, connection) in enumerate(_connected(plan)):
        for step, frame in enumerate(handshake(*_sides(plan, number, connection))):
            frames.append((place * _SPREAD_PS + step * STEP_PS, frame))
    yield from sorted(frames, key=lambda item: item[0])


def after(plan: Plan, last_ps: int) -> Iterator[tuple[int, bytes]]:
    """Frames that disconnect, from after the last data frame on."""
    frames = []
    for place, (number, connection) in enumerate(_connected(plan)):
        for step, frame in enumerate(farewell(*_sides(plan, number, connection))):
            frames.append((last_ps + place * _SPREAD_PS + (step + 1) * STEP_PS, frame))
    yield from sorted(frames, key=lambda item: item[0])
