"""Speed of the simulator: data packets a CPU second, memory, start-up.

    python tools/bench/engine.py [--json FILE]

Each row is the best of several runs of the same scenario in one process, by `time.process_time`.
For comparison: an ns-3 model of the same star does 0.21 million data packets a CPU second on the
machine these numbers were asked for (run F, one ACK a data packet).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from roce_pkt.engine.session import Session, Sinks
from roce_pkt.scenario.reader import read_file, read_text
from roce_pkt.scenario.schema import Scenario

HERE = Path(__file__).parent
RUNS = 5
NS3_MILLION = 0.21


def star(senders: int, *, rate: str = "40Gbps", duration: str = "50ms", extra: str = "") -> Scenario:
    """`senders` hosts to one, with PFC and marking."""
    return read_text(
        f'name = "star"\nduration = "{duration}"\n[fabric]\nhosts = {senders + 1}\nrate = "{rate}"\n{extra}'
    )


PFC_INCAST = """[switch]
buffer = "24MiB"
[switch.ecn]
kmin = "5KB"
kmax = "200KB"
pmax = 0.01
[switch.pfc]
headroom = "20KB"
alpha = 0.01
[[traffic]]
receiver = 0
message = "1MB"
"""
ALL_TO_ALL = """name = "leaf-spine"
duration = "400us"
[fabric]
kind = "leaf-spine"
hosts = 256
leaves = 16
spines = 8
trunk_rate = "200Gbps"
[switch]
buffer = "32MiB"
[switch.ecn]
kmin = "100KB"
kmax = "400KB"
pmax = 0.2
[host]
ack = { every = 16 }
[[traffic]]
pattern = "all-to-all"
message = "64KB"
"""


FAT_TREE = """name = "fat-tree"
duration = "40us"
[fabric]
kind = "fat-tree"
k = 16
hosts = 1024
rate = "400Gbps"
trunk_rate = "400Gbps"
[host]
ack = { every = 16 }
[[traffic]]
pattern = "all-to-all"
message = "64KB"
"""


def run_f() -> Scenario:
    """Run F's work: 40 Gb/s, two to one, one ACK a data packet, 200 ms."""
    return read_file(HERE.parent / "peer/star-dcqcn-40g.toml", {"measure_from": "0us"})


def flows(count: int) -> Scenario:
    """`count` queue pairs of two hosts share one bottleneck, loaded to nine tenths."""
    return read_text(
        f'name = "{count} flows"\nduration = "20ms"\n[fabric]\nhosts = 3\n'
        '[switch.ecn]\nkmin = "100KB"\nkmax = "400KB"\npmax = 0.05\n'
        f'[[traffic]]\nreceiver = 2\nmessage = "1MB"\nqps = {count // 2}\nstagger = "100ns"\n'
        f'rate = "{90e3 / count:g}Mbps"\n'
    )


def speed(scenario: Scenario, *, traced: bool = False, runs: int = RUNS) -> dict[str, float]:
    """Best speed of a scenario."""
    best, packets, events = float("inf"), 0, 0
    for _ in range(runs):
        sinks = Sinks(lambda _: None, None, lambda *_: None) if traced else Sinks()
        session = Session(scenario, sinks, 1_000_000 if traced else 0, trace=traced)
        session.prepare()
        begun = time.process_time()
        session.advance(scenario.duration_ps)
        best = min(best, time.process_time() - begun)
        packets, events = int(session.built.w["data_sent"]), int(session.built.w["events"])
    return {
        "data_packets": packets,
        "million_a_cpu_s": packets / best / 1e6,
        "ns_a_packet": best / packets * 1e9,
        "events_a_packet": events / packets,
    }


def start_up(*, cold: bool) -> float:
    """Wall seconds of one `simulate` of a short scenario in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if cold:
            environment["NUMBA_CACHE_DIR"] = folder
        words = [sys.executable, "-m", "roce_pkt", "simulate", "--preset", "incast", "--set", "duration=10us"]
        return wall_of(words, environment)


def wall_of(words: list[str], environment: dict[str, str] | None = None) -> float:
    """Wall seconds of a command."""
    begun = time.perf_counter()
    subprocess.run(words, env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


def measure() -> dict[str, Any]:
    """Every row."""
    rows: dict[str, Any] = {
        "run F, tracing off": speed(run_f()),
        "run F, 1 us sampler and events": speed(run_f(), traced=True),
    }
    rows["peak memory so far, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    rows["64 to one, PFC"] = speed(star(64, extra=PFC_INCAST))
    rows["256 hosts all to all"] = speed(read_text(ALL_TO_ALL))
    for count in (2, 20, 200, 2000):
        rows[f"{count} flows"] = speed(flows(count))
    rows["1,024 hosts all to all"] = speed(read_text(FAT_TREE), runs=1)
    rows["peak memory in all, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    rows["import numba alone, s"] = wall_of([sys.executable, "-c", "import numba"])
    rows["first simulate, s"] = start_up(cold=True)
    rows["simulate again, s"] = start_up(cold=False)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = measure()
    for name, row in rows.items():
        if isinstance(row, float):
            print(f"{name:32s} {row:8.2f}")
        else:
            ratio = row["million_a_cpu_s"] / NS3_MILLION
            print(
                f"{name:32s} {row['million_a_cpu_s']:8.2f} M/s  {row['ns_a_packet']:7.0f} ns a packet"
                f"  {row['events_a_packet']:5.2f} events a packet  {ratio:4.0f}x ns-3"
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
