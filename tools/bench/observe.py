"""How fast a capture is observed, beyond reading it: both measured in one process, CPU seconds.

    python tools/bench/observe.py CAPTURE [--stages]

Kernels are loaded by a first run, which is not counted. With --stages one more run tells where the
time goes, by the parts of the work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from roce_pkt.capture import open as open_capture
from roce_pkt.flows.pairs import Evidence
from roce_pkt.flows.survey import Survey
from roce_pkt.run import findings, observe, pacing
from roce_pkt.run.machines import Machines
from roce_pkt.run.notify import NotificationPoint
from roce_pkt.run.reaction import Senders

REPEATS = 5
LINE_RATE_BPS = 100e9
STAGES: dict[str, list[tuple[Any, str]]] = {
    "flows looked up, frames counted": [(Survey, "add"), (Survey, "rows")],
    "halves paired by acknowledgements": [(Evidence, "add")],
    "how receivers pace": [(pacing, "infer")],
    "rows put in time order": [(Machines, "_in_time"), (observe, "_joined")],
    "pauses, and who obeys": [(Machines, "_pauses")],
    "marks and notifications judged": [(NotificationPoint, "add")],
    "verdicts and notifications handed on": [(Machines, "_expected"), (Machines, "_captured")],
    "frames by sender": [(Machines, "_sent")],
    "reaction points and their pace": [(Senders, "advance")],
    "summing up": [(Machines, "result"), (findings, "findings")],
}
"""Functions of each part; what one calls of another part is not counted twice."""


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def read(path: str) -> None:
    """Dissect a capture and look no further."""
    for _ in open_capture(path):
        pass


def stages(path: str) -> dict[str, float]:
    """CPU seconds of this thread in each part of one run."""
    spent, open_parts = dict.fromkeys(STAGES, 0.0), [0.0]

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            begun = time.thread_time()
            open_parts.append(0.0)
            try:
                return function(*args, **options)
            finally:
                whole = time.thread_time() - begun
                spent[part] += whole - open_parts.pop()
                open_parts[-1] += whole

        return run

    kept = [(owner, name, getattr(owner, name)) for parts in STAGES.values() for owner, name in parts]
    for part, functions in STAGES.items():
        for owner, name in functions:
            setattr(owner, name, timed(part, getattr(owner, name)))
    try:
        begun = time.thread_time()
        observe.observe(open_capture(path), line_rate_bps=LINE_RATE_BPS)
        spent["reading and all else in this thread"] = time.thread_time() - begun - open_parts[0]
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)
    return spent


def main() -> None:
    """Measure, and print the median of some runs."""
    path, frames = sys.argv[1], len(open_capture(sys.argv[1]))
    observe.observe(open_capture(path), line_rate_bps=LINE_RATE_BPS)
    reading, observing = [], []
    for _ in range(REPEATS):
        reading.append(cpu(lambda: read(path)))
        observing.append(cpu(lambda: observe.observe(open_capture(path), line_rate_bps=LINE_RATE_BPS)))
    once, whole = sorted(reading)[REPEATS // 2], sorted(observing)[REPEATS // 2]
    beyond = whole - once
    print(f"{frames} frames: reading {once:.2f} s, observing {whole:.2f} s of CPU, both threads together")
    print(f"beyond reading {beyond:.2f} s: {frames / max(beyond, 1e-9) / 1e6:.2f} M frames/s")
    if "--stages" in sys.argv:
        for part, spent in stages(path).items():
            print(f"{part:<40}{spent * 1e3:8.1f} ms{spent / frames * 1e9:8.1f} ns a frame")


if __name__ == "__main__":
    main()
