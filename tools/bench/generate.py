"""How fast frames of 1 KB with ICRC are generated, beside Scapy building the same frames.

    python tools/bench/generate.py [--frames N] [--folder /dev/shm]

In memory (rows scheduled and framed into a buffer), into a RAM-backed file, and peak memory of
runs of different lengths. Seconds are those of this process's CPU, the median of five.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from roce_pkt.run.generate import Generation
from roce_pkt.scenario.reader import read_text
from roce_pkt.traffic.framing import Framer

SCENARIO = """
duration = "100s"
[fabric]
hosts = 2
[host]
mtu = 1024
[host.ack]
every = 64
[[traffic]]
senders = [1]
receiver = 0
verb = "write"
message = "64KiB"
qps = 4
"""
RUNS = 5
SCAPY_FRAMES = 300


def into_memory(frames: int) -> int:
    """Generate frames and let them go."""
    generation = Generation(read_text(SCENARIO), frames)
    framer = Framer(generation.plan)
    return sum(count for rows in generation.rows() for count, _ in framer.write(rows))


def into_file(frames: int, path: Path) -> int:
    """Generate frames into a capture."""
    return Generation(read_text(SCENARIO), frames).write(path, force=True).frames


def rate(work: Callable[[], int]) -> float:
    """Frames a CPU second, median of several runs."""
    work()
    found = []
    for _ in range(RUNS):
        start = time.process_time()
        frames = work()
        found.append(frames / (time.process_time() - start))
    return statistics.median(found)


def with_scapy() -> int:
    """The same kind of frame by Scapy's own contrib."""
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    for psn in range(SCAPY_FRAMES):
        ip = IP(src="10.0.0.2", dst="10.0.0.1")
        bytes(Ether() / ip / UDP(sport=49152, dport=4791) / BTH(opcode=7, psn=psn) / Raw(bytes(1024)))
    return SCAPY_FRAMES


def peak_mb(frames: int, folder: Path) -> float:
    """Peak memory of a process that writes so many frames."""
    code = (
        "import sys, resource; sys.path.insert(0, 'tools/bench'); import generate; from pathlib import Path;"
        f"generate.into_file({frames}, Path({str(folder)!r}) / 'peak.pcap');"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (folder / "peak.pcap").unlink()
    return float(done.stdout)


def main() -> None:
    """Print the figures."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--frames", type=int, default=500_000)
    words.add_argument("--folder", type=Path, default=Path("/dev/shm"))  # noqa: S108
    given = words.parse_args()
    path = given.folder / "generated.pcap"
    memory = rate(lambda: into_memory(given.frames))
    file = rate(lambda: into_file(given.frames, path))
    path.unlink()
    scapy = rate(with_scapy)
    print(f"into memory         {memory / 1e6:8.2f} M frames a CPU second")
    print(f"into a file in RAM  {file / 1e6:8.2f} M frames a CPU second")
    print(f"Scapy               {scapy:8.0f}   frames a CPU second: {memory / scapy:.0f} times less")
    for frames in (100_000, 1_000_000, 3_000_000):
        print(f"peak memory of {frames:9,d} frames {peak_mb(frames, given.folder):6.0f} MB")


if __name__ == "__main__":
    main()
