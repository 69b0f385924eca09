"""Every observable fact as a record with a stable name, and its one JSON form.

Whatever finds a fact (a capture being replayed, an engine, a live endpoint) states it as an
`Event`; whatever shows facts reads those. Kinds are dotted: who (`rp` reaction point, `np`
notification point, `cp` congestion point, `pfc`, `wd` watchdog, `rc` reliable connection), what.

An event's flow is the flow it is about, as its data frames name it: of `np.cnp` and `np.missing` the
data whose sender is told, or should be, not the notification's own addresses. Only `cnp_unmatched`,
for which there is no such flow, bears those: its queue pair is the data sender's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

KINDS: Mapping[str, str] = {
    "rp.cut": "a sender's rate was cut",
    "rp.increase": "a sender's rate rose by one recovery step",
    "rp.alpha": "a period without notification ended and alpha decayed",
    "np.cnp": "a receiver sends a notification for a flow, or should",
    "np.missing": "a notification that was due never came",
    "cnp_unmatched": "a notification that belongs to no flow that can be named",
    "cnp.arrived": "a notification reached its sender",
    "cp.mark": "a data frame carries a congestion mark",
    "pfc.xoff": "a class is told to pause",
    "pfc.xon": "a class is told to resume",
    "pfc.expire": "a pause ran out",
    "pfc.violation": "a frame of a paused class was sent",
    "wd.storm": "the watchdog found a pause storm",
    "wd.restore": "the watchdog let a queue go",
    "rc.nak": "a responder refused a packet",
    "rc.retransmit": "a requester sent a packet again",
    "rc.rnr": "a responder had no receive buffer",
    "rc.timeout": "a requester's retry timer ran out",
    "rc.failed": "a queue pair used up its retries",
    "rc.done": "a message was completed",
    "pfc.paused": "a pause took effect at a port",
    "pfc.resumed": "a port may send a class again, told so",
    "deadlock": "ports have stopped each other in a circle",
    "drop": "a switch had no buffer for a frame",
}


class FlowKey(NamedTuple):
    """A directed flow as frames name it.

    Args:
        src: Source address as text.
        dst: Destination address as text.
        dqpn: Destination queue pair: the receiver's.
    """

    src: str
    dst: str
    dqpn: int

    def __str__(self) -> str:
        return f"{self.src} > {self.dst} QP 0x{self.dqpn:x}"


@dataclass(frozen=True, slots=True)
class Event:
    """One fact.

    Args:
        time_ns: When; nanoseconds since 1970 for captures, of the run for simulations.
        kind: A key of `KINDS`.
        flow: The flow it is about, if any; notifications are about the data they answer.
        port: The port it is about, if any.
        frame: 1-based number of the frame that shows it, if any.
        state: What holds after it, in JSON's own types.
    """

    time_ns: int
    kind: str
    flow: FlowKey | None = None
    port: str | None = None
    frame: int | None = None
    state: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The event as one JSON object, absent parts left out."""
        out: dict[str, object] = {"time_ns": self.time_ns, "kind": self.kind}
        if self.flow is not None:
            out["flow"] = self.flow._asdict()
        if self.port is not None:
            out["port"] = self.port
        if self.frame is not None:
            out["frame"] = self.frame
        return out | dict(self.state)
