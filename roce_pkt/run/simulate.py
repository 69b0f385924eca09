"""Simulate: a scenario through hosts, switches and congestion control in closed loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from roce_pkt.engine.session import Session, Sinks
from roce_pkt.run.simulation_end import sampling_ps
from roce_pkt.run.simulation_events import events_of
from roce_pkt.run.simulation_faults import DoneFaults
from roce_pkt.run.simulation_names import Names
from roce_pkt.run.simulation_result import Simulation, collect
from roce_pkt.scenario import presets
from roce_pkt.scenario.schema import Scenario
from roce_pkt.units import PS_PER_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_pkt.capture.model import Interface, Record
    from roce_pkt.events import Event

SLICE_S = 0.2
"""Wall time between two looks at the progress, and at Ctrl-C."""

OnFrame = Callable[["Record", list["Interface"]], None]
OnSamples = Callable[["NDArray[Any]", "NDArray[Any]", "NDArray[Any]", Names], None]
OnRows = Callable[["NDArray[Any]", Names], None]
Progress = Callable[[float, float], None]
"""Called with the share of simulated time that is done, and data packets so far."""


class Onlooker(Protocol):
    """Takes everything that a picture of a run needs."""

    def samples(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """As `on_samples`."""
        ...

    def rows(self, found: NDArray[Any], names: Names) -> None:
        """As `on_rows`."""
        ...


def load(source: Scenario | str | Path, changes: Mapping[str, str] | None = None) -> Scenario:
    """A scenario from a file, or a preset by its name.

    Raises:
        ScenarioError: Something in it is wrong.
        InputError: It cannot be read.
    """
    return presets.scenario_of(source, changes)


def simulate(
    source: Scenario | str | Path,
    changes: Mapping[str, str] | None = None,
    *,
    on_event: Callable[[Event], None] | None = None,
    on_frame: OnFrame | None = None,
    on_samples: OnSamples | None = None,
    on_rows: OnRows | None = None,
    sample_every_ps: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Run a scenario.

    Args:
        source: A scenario, a file, or the name of a preset.
        changes: Dotted key -> value, as `{"switch.ecn.kmin": "50KB"}`.
        on_event: Called with each event, in time order.
        on_frame: Called with each frame at the scenario's taps, and the interfaces, in time order.
        on_samples: Called with blocks of samples: times in ps (n,), queues in octets (n, ports),
            `engine.records.RATE_SAMPLE` (n, halves), and the run's names.
        on_rows: Called with blocks of `engine.records.EVENT_ROW` in time order, and the run's names: events
            as arrays, for whoever wants many of them.
        sample_every_ps: Sampling period for `on_samples`; None for a microsecond, or less where all is done
            so soon that nothing would be seen.
        progress: Called a few times a second.

    Returns:
        The result; after Ctrl-C that of the time simulated so far, with `interrupted` in its summary.

    Raises:
        InputError: The scenario is wrong, or too large for the engine.
    """
    scenario = load(source, changes)
    sinks = Sinks()
    traced = on_event is not None or on_rows is not None
    session = Session(scenario, sinks, (sample_every_ps or PS_PER_US) if on_samples else 0, trace=traced)
    if on_samples is not None and sample_every_ps is None:
        session.sample_every_ps = sampling_ps(scenario, session.built)
        session.built.w["sample_every_ps"] = session.sample_every_ps
    names = Names(scenario, session.built)
    faults = DoneFaults(names)
    if traced:
        sinks.events = _event_sink(names, on_event, on_rows)
    if on_frame is not None:
        sinks.frames = _frame_sink(names, faults, on_frame)
    if on_samples is not None:
        take = on_samples
        sinks.samples = lambda times, queues, rates: take(times, queues, rates, names)
    session.prepare()
    wall, cpu = time.perf_counter(), time.process_time()
    interrupted = False
    try:
        _run(session, progress)
    except KeyboardInterrupt:
        interrupted = True
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    result = collect(session, names, wall, cpu, interrupted=interrupted)
    result.faults = faults.truth()
    return result


def _event_sink(
    names: Names, on_event: Callable[[Event], None] | None, on_rows: OnRows | None
) -> Callable[[NDArray[Any]], None]:
    def sink(rows: NDArray[Any]) -> None:
        if on_rows is not None:
            on_rows(rows, names)
        if on_event is not None:
            for event in events_of(names, rows):
                on_event(event)

    return sink


def _frame_sink(names: Names, faults: DoneFaults, on_frame: OnFrame) -> Callable[[NDArray[Any]], None]:
    from roce_pkt.run.simulation_frames import FrameMaker

    maker = FrameMaker(names, faults)
    interfaces = maker.interfaces()

    def sink(rows: NDArray[Any]) -> None:
        for record in maker.records(rows):
            on_frame(record, interfaces)

    return sink


def _run(session: Session, progress: Progress | None) -> None:
    """Advance in slices of about `SLICE_S`, restarting statistics where the scenario says."""
    end = session.scenario.duration_ps
    warm = session.scenario.measure_from_ps
    step = max(end // 1000, 1)
    while session.now_ps < end and not session.idle:
        begun = time.perf_counter()
        before = session.now_ps
        target = min(before + step, end)
        if before < warm:
            target = min(target, warm)
        session.advance(target)
        if before < warm <= session.now_ps:
            session.restart_statistics()
        if progress is not None:
            progress(session.now_ps / end, float(session.built.w["data_sent"]))
        taken = time.perf_counter() - begun
        step = max(int(step * min(SLICE_S / max(taken, 1e-4), 4.0)), 1)
