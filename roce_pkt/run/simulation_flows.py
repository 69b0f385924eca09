"""A simulation's flows: columns of all, and one as an object where somebody looks at it.

A large fabric has a million: what is summed, sorted or searched is done by columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import records
from roce_pkt.engine.session import Session
from roce_pkt.fabric.pause import paused_total_ps
from roce_pkt.run.message_times import Messages, MessageTimes
from roce_pkt.run.simulation_end import measured_ps
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS, PS_PER_S

AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One queue pair.

    Args:
        src: Address that posts the work.
        dst: Address that serves it.
        dqpn: Queue pair at `dst`.
        verb: Operation.
        goodput_bps: Payload delivered in order, over the time the flow was active and measured.
        completion_ns: From its start to the end of its last message, None while it runs.
        messages: Messages completed.
        ce: Marked data frames that arrived.
        cnps: Notifications sent for it.
        cnps_lost: Those that a switch dropped.
        cnp_delay_mean_ns: From their sending to the sender they are for; 0 when none arrived.
        cnp_delay_max_ns: The longest of those.
        retransmissions: Packets sent again.
        naks: Refusals its requester got.
        damaged: Frames of it, both ways, that arrived with a wrong ICRC and were dropped.
        timeouts: Retry timers that ran out.
        paused_ns: Time its sender was paused.
        failed: True when its retries were used up.
        times: Completion times of its messages, where they are told apart.
    """

    src: str
    dst: str
    dqpn: int
    verb: str
    goodput_bps: float
    completion_ns: int | None
    messages: int
    ce: int
    cnps: int
    cnps_lost: int
    cnp_delay_mean_ns: int
    cnp_delay_max_ns: int
    retransmissions: int
    naks: int
    damaged: int
    timeouts: int
    paused_ns: int
    failed: bool
    times: MessageTimes | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON's types; `asdict` copies every number, which takes a minute for a million flows."""
        values = {name: getattr(self, name) for name in _NAMES}
        deep = {n: asdict(v) for n, v in values.items() if is_dataclass(v) and not isinstance(v, type)}
        return values | deep


_NAMES = tuple(one.name for one in fields(FlowResult))
COLUMNS = np.dtype(
    [
        ("goodput_bps", "f8"),
        ("completion_ns", "i8"),  # or RUNNING
        ("messages", "i8"),
        *((name, "u4") for name in ("ce", "cnps", "cnps_lost")),
        *((name, "i8") for name in ("cnp_delay_mean_ns", "cnp_delay_max_ns")),
        *((name, "u4") for name in ("retransmissions", "naks", "damaged", "timeouts")),
        ("paused_ns", "i8"),
        ("failed", "?"),
    ]
)
"""Numbers of a flow, named and ordered as in `FlowResult`."""
RUNNING = -1


class Flows(Sequence[FlowResult]):
    """Flows in the scenario's order.

    Args:
        columns: Rows of `COLUMNS`.
        names: What they are called.
        messages: Completion times of their messages.
        halves: The requesting half of each.
    """

    __slots__ = ("_halves", "_messages", "_names", "columns")

    def __init__(
        self, columns: NDArray[Any], names: Names, messages: Messages, halves: NDArray[np.int64]
    ) -> None:
        self.columns = columns
        self._names, self._messages, self._halves = names, messages, halves

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> FlowResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[FlowResult]: ...
    def __getitem__(self, index: int | slice) -> FlowResult | list[FlowResult]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        return self._made(number, self.columns[number].item())

    def __iter__(self) -> Iterator[FlowResult]:
        for first in range(0, len(self), AT_ONCE):
            for number, row in enumerate(self.columns[first : first + AT_ONCE].tolist(), first):
                yield self._made(number, row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(_equal, self, other))

    __hash__ = None  # type: ignore[assignment]

    def _made(self, number: int, row: tuple[Any, ...]) -> FlowResult:
        values: dict[str, Any] = dict(zip(COLUMNS.names or (), row, strict=True))
        if values["completion_ns"] == RUNNING:
            values["completion_ns"] = None
        key = self._names.flow(int(self._halves[number]))
        verb, times = self._names.verbs(number), self._messages.of_flow(number)
        return FlowResult(key.src, key.dst, key.dqpn, verb, **values, times=times)

    @property
    def done(self) -> int:
        """How many have come to their end."""
        return int((self.columns["completion_ns"] != RUNNING).sum())

    def total(self, name: str) -> int:
        """Sum of a column of counts."""
        return int(self.columns[name].sum(dtype=np.int64))

    def slowest(self, count: int) -> list[FlowResult]:
        """Those with the least goodput, all in order when there are no more."""
        if len(self) <= count:
            return list(self)
        order = np.argsort(self.columns["goodput_bps"], kind="stable")[:count]
        return [self[n] for n in order.tolist()]


def _equal(one: object, other: object) -> bool:
    return one == other


def flows_of(session: Session, names: Names, messages: Messages) -> Flows:
    """Read the flows out of a session."""
    pairs, half, now = session.built.pairs, session.built.arrays.half, session.now_ps
    asks, serves = pairs.requester, pairs.responder
    data = np.where(np.isin(half["verb"][asks], (records.READ, records.ATOMIC)), serves, asks)
    ended, start = half["ended_ps"][asks], pairs.flow["start_ps"]
    span = np.where(ended >= 0, ended, now) - np.maximum(start, now - measured_ps(session))
    taken = half["received_bytes"][asks] + half["received_bytes"][serves]
    made = np.zeros(len(asks), COLUMNS)
    made["goodput_bps"] = np.where(span > 0, taken * 8.0 * PS_PER_S / np.maximum(span, 1), 0.0)
    made["completion_ns"] = np.where(ended >= 0, (ended - start) // PS_PER_NS, RUNNING)
    reliable = half["service"][asks] == records.RC
    made["messages"] = np.where(reliable, half["messages"][asks], half["msn"][serves])
    for name, field in (("ce", "ce"), ("cnps", "cnps"), ("retransmissions", "again"), ("damaged", "damaged")):
        made[name] = half[field][asks] + half[field][serves]
    for name in ("naks", "timeouts"):
        made[name] = half[name][asks]
    made["failed"] = half["failed"][asks] != 0
    made["cnps_lost"] = half["cnps_lost"][data]
    arrived = np.maximum(half["cnps_taken"][data].astype(np.int64), 1)
    made["cnp_delay_mean_ns"] = half["cnp_delay_ps"][data] // arrived // PS_PER_NS
    made["cnp_delay_max_ns"] = half["cnp_delay_max_ps"][data] // PS_PER_NS
    made["paused_ns"] = paused_by_cell(session)[half["cell"][data]] // PS_PER_NS
    return Flows(made, names, messages, asks)


def paused_by_cell(session: Session) -> NDArray[np.int64]:
    """How long each class of each port was paused, (ports * classes,), in picoseconds."""
    arrays = session.built.arrays
    bits = (arrays.port["paused"][:, None] >> np.arange(records.CLASSES)) & 1
    return np.array(
        [
            paused_total_ps(bool(on), line, session.now_ps)
            for on, line in zip(bits.ravel().tolist(), arrays.line, strict=True)
        ],
        np.int64,
    )
