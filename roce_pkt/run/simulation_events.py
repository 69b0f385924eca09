"""Event rows of the engine as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from roce_pkt.cc import dcqcn, feedback
from roce_pkt.engine import rows
from roce_pkt.events import Event
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS

NUMBERS = {
    "cp.mark": "queue_bytes",
    "np.cnp": "ce",
    "cnp.arrived": "delay_ns",
    "rc.done": "messages",
    "pfc.xoff": "priority",
    "pfc.xon": "priority",
    "pfc.expire": "priority",
    "pfc.paused": "priority",
    "pfc.resumed": "priority",
    "wd.storm": "priority",
    "wd.restore": "priority",
    "deadlock": "priority",
}
"""What the row's number is; a PSN for the others."""


def events_of(names: Names, found: NDArray[Any]) -> Iterator[Event]:
    """The events of some rows, in their order."""
    start, peers = names.built.pairs.start_psn, names.built.pairs.half["peer"].tolist()
    phases = feedback.PHASES if names.built.law.by_address else dcqcn.PHASES
    for time_ps, code, half, port, number, phase, rate, target, alpha in found.tolist():
        kind = rows.EVENTS[code]
        # a notification is about what the other half sends; the engine notes the half that notifies
        about = peers[half] if kind == "np.cnp" else half
        flow = None if half == rows.NO_HALF else names.flow(about)
        state: dict[str, object]
        if kind.startswith("rp."):
            state = {"rate_bps": rate, "target_bps": target, "alpha": alpha, "stage": number}
            state["phase"] = phases[phase]
        elif kind in NUMBERS:
            state = {NUMBERS[kind]: number // PS_PER_NS if code == rows.CNP_ARRIVED else number}
        else:
            state = {"psn": int(start[half] + number) & 0xFFFFFF}
        at_port = flow is None or kind == "drop"
        yield Event(time_ps // PS_PER_NS, kind, flow, names.ports[port] if at_port else None, None, state)
