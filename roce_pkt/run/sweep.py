"""A grid of simulations: every combination of varied keys, every seed, on all cores.

Points run through a `concurrent.futures.Executor`, so that a cluster's executor can take the place of
the processes here. Each result goes into a journal as soon as it is there; a sweep that was killed
finds it and repeats nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.kernel_cache import cores
from roce_pkt.scenario.presets import scenario_of

METRICS = {
    "goodput_bps": "higher",
    "jain": "higher",
    "completion_ns": "lower",
    "queue_mean_bytes": "lower",
    "queue_p99_bytes": "lower",
    "queue_max_bytes": "lower",
    "marked": "lower",
    "cnps": "lower",
    "retransmissions": "lower",
    "paused_ns": "lower",
    "drops": "lower",
    "errors": "lower",
}
"""What each run is measured by, and which end is the good one."""

MOST_POINTS = 100_000
AHEAD = 4
"""Points handed to the executor for each worker: enough to keep it busy, few to take back."""


@dataclass(frozen=True, slots=True)
class Point:
    """One simulation of a sweep.

    Args:
        source: Scenario file, or the name of a preset.
        values: Dotted key -> value as text, of the varied keys.
        changes: Changes that all points share.
        seed: Of the run.
    """

    source: str
    values: Mapping[str, str]
    changes: Mapping[str, str]
    seed: int

    @property
    def key(self) -> str:
        """What tells it from every other point, in a journal."""
        return json.dumps([sorted(self.values.items()), self.seed])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one point came to.

    Args:
        values: The varied keys.
        seed: Of the run.
        metrics: Numbers by the names of `METRICS`; NaN where there is none (completion of endless flows).
    """

    values: Mapping[str, str]
    seed: int
    metrics: Mapping[str, float]


@dataclass(slots=True)
class Sweep:
    """What is to be run.

    Args:
        source: Scenario file, or the name of a preset.
        vary: Dotted key -> its values as text.
        seeds: Number of seeds for each combination, counted up from the scenario's own.
        changes: Changes that all points share.
    """

    source: str
    vary: Mapping[str, Sequence[str]]
    seeds: int = 1
    changes: Mapping[str, str] = field(default_factory=dict)

    def points(self) -> list[Point]:
        """Every point, the scenario checked under each combination.

        Raises:
            ScenarioError: A value is wrong, or there are too many points.
        """
        count = self.seeds
        for texts in self.vary.values():
            count *= len(texts)
        if count > MOST_POINTS:
            raise ScenarioError("--vary", f"{count} simulations; {MOST_POINTS} is the most of one sweep")
        found = []
        for combination in itertools.product(*self.vary.values()):
            values = dict(zip(self.vary, combination, strict=True))
            base = scenario_of(self.source, {**self.changes, **values}).seed
            found += [Point(self.source, values, self.changes, base + n) for n in range(self.seeds)]
        return found

    def stamp(self) -> str:
        """Digest of all that results depend on: a journal of another sweep is refused."""
        from roce_pkt import __version__

        text = json.dumps(scenario_of(self.source, self.changes).written, sort_keys=True, default=str)
        return hashlib.sha256(f"{__version__}\n{text}".encode()).hexdigest()


def measure(point: Point) -> dict[str, float]:
    """Run one point; what a worker process does.

    Raises:
        InputError: The scenario is wrong, or too large for the engine.
    """
    from roce_pkt.run.simulate import simulate

    result = simulate(point.source, {**point.changes, **point.values, "seed": str(point.seed)})
    switches = [p for p in result.ports if not p.name.startswith("host")]
    fullest = max(switches, key=lambda p: p.queue_mean_bytes)
    flows = result.flows
    ended = flows.columns["completion_ns"].max(initial=0) if flows.done == len(flows) else float("nan")
    return {
        "goodput_bps": result.summary["goodput_bps"],
        "jain": result.summary["jain"],
        "completion_ns": float(ended),
        "queue_mean_bytes": fullest.queue_mean_bytes,
        "queue_p99_bytes": float(max(p.queue_p99_bytes for p in switches)),
        "queue_max_bytes": float(max(p.queue_max_bytes for p in switches)),
        "marked": float(sum(p.marked for p in switches)),
        "cnps": float(flows.total("cnps")),
        "retransmissions": float(flows.total("retransmissions")),
        "paused_ns": float(flows.total("paused_ns")),
        "drops": float(sum(p.drops for p in switches)),
        "errors": float(sum(f.severity == "error" for f in result.findings)),
    }


@dataclass(slots=True)
class Journal:
    """Results on disk, a line each, as they come in.

    Args:
        path: The file.
        stamp: Of the sweep it belongs to.
    """

    path: Path
    stamp: str
    found: dict[str, dict[str, float]] = field(init=False, default_factory=dict)
    _stream: BinaryIO | None = field(init=False, default=None)

    def open(self) -> None:
        """Read what is there, cut off a last line that was not finished, and go on writing.

        Raises:
            InputError: It belongs to another sweep, or cannot be used.
        """
        try:
            self._stream = self.path.open("a+b")
            self._stream.seek(0)
            text = self._stream.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._stream.truncate(len(whole))
        except OSError as error:
            raise InputError(f"{self.path}: cannot be used as a journal: {error.strerror}") from error
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
            self.found = {line["point"]: line["metrics"] for line in lines[1:]}
            stamp = lines[0]["sweep"] if lines else self.stamp
        except (ValueError, KeyError, TypeError) as error:
            self._stream.close()
            raise InputError(f"{self.path}: is no journal of a sweep; remove it") from error
        if stamp != self.stamp:
            self._stream.close()
            raise InputError(
                f"{self.path}: is the journal of another scenario; remove it, or name another output"
            )
        if not lines:
            self._write({"sweep": self.stamp})

    def add(self, key: str, metrics: Mapping[str, float]) -> None:
        """Keep one result; it is on disk when this returns."""
        self.found[key] = dict(metrics)
        self._write({"point": key, "metrics": dict(metrics)})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(line).encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def close(self, *, remove: bool) -> None:
        """Stop writing; remove the file when its results are kept elsewhere."""
        if self._stream is not None:
            self._stream.close()
        if remove:
            self.path.unlink(missing_ok=True)


def workers() -> ProcessPoolExecutor:
    """A process for each core this process may use, forked from one that has the engine loaded.

    Loading it takes a moment, and compiling it, on a machine's first run, seconds: that happens once for
    all of them, beside what this process does meanwhile.
    """
    import multiprocessing

    count = cores()
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["roce_pkt.run.sweep_ready"])
    return ProcessPoolExecutor(count, mp_context=context)


def run(
    points: Sequence[Point],
    executor: Executor,
    journal: Journal | None = None,
    progress: Callable[[int, int], None] | None = None,
    at_once: int = AHEAD * 4,
) -> Iterator[Outcome]:
    """Run the points that a journal does not have yet.

    Args:
        points: What to run.
        executor: Where; it gets `measure` and a `Point`, and no more than `at_once` at a time.
        journal: Opened; takes results, and gives those of an earlier run.
        progress: Called with points done and all points.
        at_once: Points waiting or running in the executor.

    Yields:
        Outcomes: those of the journal first, then as they come in.

    Raises:
        InputError: A point cannot be run.
    """
    had = journal.found if journal else {}
    waiting = [p for p in points if p.key not in had]
    done = len(points) - len(waiting)
    for point in points:
        if point.key in had:
            yield Outcome(point.values, point.seed, had[point.key])
    if progress:
        progress(done, len(points))
    flying: dict[Future[dict[str, float]], Point] = {}
    queue = iter(waiting)
    try:
        while True:
            for point in itertools.islice(queue, at_once - len(flying)):
                flying[executor.submit(measure, point)] = point
            if not flying:
                break
            ready, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in ready:
                point = flying.pop(future)
                metrics = future.result()
                if journal:
                    journal.add(point.key, metrics)
                done += 1
                if progress:
                    progress(done, len(points))
                yield Outcome(point.values, point.seed, metrics)
    finally:
        for future in flying:
            future.cancel()
