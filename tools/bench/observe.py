"""How fast a capture is observed, beyond reading it: both measured in one process, CPU seconds.

    python tools/bench/observe.py CAPTURE

Kernels are loaded by a first run, which is not counted.
"""

from __future__ import annotations

import sys
import time

from roce_pkt.capture import open as open_capture
from roce_pkt.run.observe import observe

REPEATS = 5


def main() -> None:
    """Measure, and print the median of some runs."""
    path = sys.argv[1]
    frames = len(open_capture(path))
    observe(open_capture(path), line_rate_bps=100e9)
    reading, observing = [], []
    for _ in range(REPEATS):
        begun = time.process_time()
        for _batch in open_capture(path):
            pass
        reading.append(time.process_time() - begun)
        begun = time.process_time()
        observe(open_capture(path), line_rate_bps=100e9)
        observing.append(time.process_time() - begun)
    read, whole = sorted(reading)[REPEATS // 2], sorted(observing)[REPEATS // 2]
    beyond = whole - read
    print(f"{frames} frames: reading {read:.2f} s, observing {whole:.2f} s of CPU, both threads together")
    print(f"beyond reading {beyond:.2f} s: {frames / max(beyond, 1e-9) / 1e6:.2f} M frames/s")


if __name__ == "__main__":
    main()
