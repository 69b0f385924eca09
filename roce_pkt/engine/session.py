"""One run of the engine: advance time, take out rows before their buffers overflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt import machine_code
from roce_pkt.engine import records, rows, units, world
from roce_pkt.engine.adaptive_ecn import AdaptiveEcn
from roce_pkt.engine.deadlock import DeadlockWatch
from roce_pkt.engine.overseer import Hands, Overseer
from roce_pkt.engine.watch import BrokenAdapter, Watcher
from roce_pkt.errors import InputError
from roce_pkt.scenario.schema import Scenario

COUNTED = (
    "ce", "cnps", "again", "naks", "timeouts", "received_bytes", "cnps_taken", "cnps_lost", "cnp_delay_ps",
    "cnp_delay_max_ps",
)  # fmt: skip
"""Statistics of a queue pair's half."""
Sink = Callable[[NDArray[Any]], None]


def _nowhere(_: NDArray[Any]) -> None:
    pass


@dataclass(slots=True)
class Sinks:
    """Where rows go, in time order; a sink that is not given drops them.

    Args:
        events: Takes arrays of `records.EVENT_ROW`.
        frames: Takes arrays of `records.FRAME_ROW`.
        samples: Takes (times, queues, rates): (n,), (n, ports), (n, halves).
    """

    events: Sink | None = None
    frames: Sink | None = None
    samples: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[Any]], None] | None = None


def overseers(scenario: Scenario, built: world.Built) -> list[Overseer]:
    """What looks at a run from outside."""
    hands = Hands(built)
    found: list[Overseer] = []
    if scenario.storm.hosts:
        found.append(BrokenAdapter(hands, scenario.storm))
    if scenario.watchdog.enabled:
        found.append(Watcher(hands, scenario.watchdog))
    if scenario.switch.pfc.mode != "off" and built.topology.switches > 1:
        found.append(DeadlockWatch(hands))
    if scenario.switch.ecn.enabled and scenario.switch.ecn.adaptive:
        found.append(AdaptiveEcn(hands, scenario.switch.ecn))
    return found


@dataclass(slots=True)
class Session:
    """A scenario being run.

    Args:
        scenario: What to simulate.
        sinks: Where rows go.
        sample_every_ps: Sampling period, 0 for none.
        trace: Write event rows.
    """

    scenario: Scenario
    sinks: Sinks = field(default_factory=Sinks)
    sample_every_ps: int = 0
    trace: bool = False
    built: world.Built = field(init=False)
    overseers: list[Overseer] = field(init=False)
    _held: dict[str, list[NDArray[Any]]] = field(init=False, default_factory=dict)
    _sampled: int = field(init=False, default=0)
    _sent_before: Any = field(init=False, default=0)
    _loop: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.built = world.build(self.scenario, trace=self.trace, sample_every_ps=self.sample_every_ps)
        self.overseers = overseers(self.scenario, self.built)

    @property
    def now_ps(self) -> int:
        """Simulated time."""
        return int(self.built.w["now_ps"])

    @property
    def idle(self) -> bool:
        """True when nothing will ever happen again."""
        return int(self.built.arrays.top.min()) >> records.SHIFT >= records.FAR_PS

    def prepare(self) -> None:
        """Load the compiled loop, or compile it on a machine's first run, before any clock is read."""
        built = self.built
        self._loop = machine_code.entry(units.install(built.w, built.arrays.half, built.law.unit))

    def advance(self, until_ps: int) -> None:
        """Run until `until_ps`.

        Raises:
            InputError: The pool of packets is used up.
        """
        while self.now_ps < until_ps:
            self._advance(min([until_ps, *(o.next_ps for o in self.overseers)]))
            for overseer in self.overseers:
                if overseer.next_ps <= self.now_ps:
                    overseer.look(self.now_ps)
        self._drain(whole=True)

    def _advance(self, until_ps: int) -> None:
        if self._loop is None:
            self.prepare()
        w = self.built.w
        while self.now_ps < until_ps:
            self._run(until_ps)
            stop, w["stop"] = int(w["stop"]), records.GO
            if stop == records.POOL_EMPTY:
                raise InputError(
                    f"{self.scenario.name}: at {self.now_ps / 1e6:g} us all {len(self.built.arrays.packet)}"
                    " packets of the engine's pool are in use; a smaller switch.buffer, or a"
                    " host.transport.window, bounds what is in flight"
                )
            if stop == records.FAULTS_FULL:
                raise InputError(
                    f"{self.scenario.name}: at {self.now_ps / 1e6:g} us more faults are done, or packets"
                    " counted for `occurrence`, than one run remembers; choose fewer frames"
                )
            if stop == records.LAW_FAILED:
                self._explain_law()
            if stop == records.GO:
                break
            self._drain(whole=False)

    def _run(self, until_ps: int) -> None:
        """The compiled loop, until `until_ps` or a reason to stop."""
        if machine_code.call(self._loop, self.built.w.__array_interface__["data"][0], until_ps) != 0:
            raise RuntimeError(f"the engine's loop raised an exception at {self.now_ps} ps; please report it")

    def _explain_law(self) -> None:
        """A user's own law failed in the loop: run the call again in plain Python, which says where.

        Raises:
            InputError: Always.
        """
        built = self.built
        built.law.explain(
            built.arrays.before[0],
            built.arrays.ack[0],
            int(built.w["failed_call"]),
            int(built.w["failed_ps"]),
        )

    def _drain(self, *, whole: bool) -> None:
        """Hand over the rows that no later row can precede."""
        w, arrays = self.built.w, self.built.arrays
        limit = self.now_ps if not whole else records.FAR_PS
        for name, buffer, count, time, sink in (
            ("events", arrays.row, "rows", "time_ps", self.sinks.events),
            ("frames", arrays.frame, "frames", "at_ps", self.sinks.frames),
        ):
            written = int(w[count])
            w[count] = 0
            if sink is None:
                continue
            held = self._held.setdefault(name, [])
            held.append(buffer[:written].copy())
            merged = np.concatenate(held)
            merged = merged[np.argsort(merged[time], kind="stable")]
            ready = int(np.searchsorted(merged[time], limit)) if not whole else len(merged)
            self._held[name] = [merged[ready:]]
            if ready:
                sink(merged[:ready])
        samples = int(w["samples"])
        w["samples"] = 0
        if samples and self.sinks.samples is not None:
            times = (self._sampled + np.arange(samples, dtype=np.int64)) * self.sample_every_ps
            self.sinks.samples(times, arrays.queues[:samples], arrays.rates[:samples])
        self._sampled += samples

    def restart_statistics(self) -> None:
        """Statistics count from now on; states stay."""
        port, half, line = self.built.arrays.port, self.built.arrays.half, self.built.arrays.line
        now = self.now_ps
        port["queued_since_ps"] = now
        port["queue_byte_ps"] = 0
        port["queue_max_bytes"] = port["queued_bytes"]
        for name in ("marked", "xoffs", "xons", "drops"):
            port[name] = 0
        for name in COUNTED:
            half[name] = 0
        line["paused_ps"] = 0
        self._sent_before = port["sent_bytes"].copy()
        line["paused_since_ps"] = np.maximum(line["paused_since_ps"], now)
        self.built.arrays.histogram[:] = 0

    def sent_bytes(self) -> NDArray[np.int64]:
        """Octets each port has sent since statistics count, (ports,)."""
        sent: NDArray[np.int64] = self.built.arrays.port["sent_bytes"] - self._sent_before
        return sent

    def settle(self) -> None:
        """Bring time-weighted statistics up to now."""
        port = self.built.arrays.port
        held = self.now_ps - port["queued_since_ps"]
        port["queue_byte_ps"] += port["queued_bytes"] * held.astype(np.float64)
        port["queued_since_ps"] = self.now_ps

    def quantile_bytes(self, port: int, share: float) -> int:
        """A queue length not exceeded for `share` of the time, to 3 %."""
        bins = self.built.arrays.histogram[port * records.BINS : (port + 1) * records.BINS]
        total = int(bins.sum())
        if total == 0:
            return 0
        number = int(np.searchsorted(np.cumsum(bins), share * total))
        return int(rows.floor_of(number))
