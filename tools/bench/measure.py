"""The measurements of the bench: ours, the yardstick's, and those of the tools people use today."""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import os
import platform
import shutil
import statistics
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from edits import editing
from yardstick import Yardstick, column_checksum, compiler

from roce_pkt import capture
from roce_pkt.capture.build import FrameBuilder
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.rewrite import Rewriter
from roce_pkt.capture.where import parse_where
from roce_pkt.capture.writer import pcap_header

PCAPS = Path(__file__).parents[2] / "pcaps"
_WRAP = (1 << 64) - 1
_OTHERS_FRAMES = 3000
_TSHARK_FRAMES = 60_000
_BUILT = 200_000

Row = dict[str, Any]


def repeated(sources: list[Path], out: Path, size: int, *, only_large: bool = False) -> int:
    """A nanosecond pcap of the sources' frames, repeated up to a size; returns the frames."""
    records = [
        struct.pack("<IIII", r.time_ns // 10**9, r.time_ns % 10**9, r.cap_len, r.wire_len) + bytes(r.octets)
        for path in sources
        for r in capture.open(path).records()
        if r.link_type == 1 and (not only_large or 1040 <= r.cap_len < 1200)
    ]
    once, written, count = b"".join(records), 0, 0
    with out.open("wb") as stream:
        stream.write(pcap_header(1))
        while written < size:
            stream.write(once)
            written, count = written + len(once), count + len(records)
    return count


def _cpu_s() -> float:
    """CPU time of this process and of the ones it waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def seconds(work: Callable[[], Any], runs: int, clock: Callable[[], float] = time.process_time) -> float:
    """Median time of a run, after one to warm up: CPU time, so that other processes do not count.

    Args:
        work: What is measured.
        runs: Runs of which the median counts.
        clock: Another clock: wall time for work on two threads, `_cpu_s` for other programs.
    """
    work()
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def in_turn(one: Callable[[], Any], other: Callable[[], Any], runs: int) -> tuple[float, float]:
    """Median wall times of two works, done in turn so that what else the machine does meets both."""
    times: list[tuple[float, float]] = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        one()
        between = time.perf_counter()
        other()
        times.append((between - start, time.perf_counter() - between))
    first, second = zip(*times[1:], strict=True)
    return statistics.median(first), statistics.median(second)


def read_all(path: Path, *, threads: int, verify: bool) -> int:
    """Every column of a capture, batch after batch."""
    os.environ["ROCE_PKT_THREADS"] = str(threads)
    return sum(len(frames) for frames in capture.open(path).batches(verify=verify))


def yardstick_read(yardstick: Yardstick, path: Path, *, touch: bool = False) -> int:
    """The plain-C reader over a mapping, as ours; with `touch` it only reads every octet."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as mapping:
        octets = np.frombuffer(mapping, np.uint8)
        count = yardstick.touch(octets) if touch else yardstick.read(octets)
        del octets
    return count


def equal_columns(yardstick: Yardstick, path: Path) -> list[str]:
    """Columns whose checksum differs between the yardstick and ours."""
    count = yardstick_read(yardstick, path)
    theirs, row = yardstick.checksums(count), 0
    ours = dict.fromkeys(theirs, 0)
    for frames in capture.open(path).batches(verify=False):
        for column in COLUMNS:
            ours[column.name] = ours[column.name] + column_checksum(frames.column(column.name), row) & _WRAP
        row += len(frames)
    return [name for name in theirs if theirs[name] != ours[name]] + ([] if row == count else ["frames"])


def row(name: str, frames: int, took_s: float, size: int = 0, **more: Any) -> Row:
    """One line of the table."""
    return {"name": name, "frames_per_s": frames / took_s, "bytes_per_s": size / took_s, **more}


def reading(path: Path, count: int, runs: int, yardstick: Yardstick) -> list[Row]:
    """Our reading against the plain-C reader."""
    size = path.stat().st_size
    plain_s = seconds(lambda: yardstick_read(yardstick, path), runs)
    one_s = seconds(lambda: read_all(path, threads=1, verify=False), runs)
    two_s, alone_s = in_turn(
        lambda: read_all(path, threads=2, verify=False), lambda: yardstick_read(yardstick, path), runs
    )
    return [
        row("plain C, one core", count, plain_s, size, ratio=1.0),
        row("dissect all columns, one core", count, one_s, size, ratio=plain_s / one_s, goal=">= 0.8 x C"),
        row(
            "dissect all columns, two threads, wall",
            count,
            two_s,
            size,
            ratio=alone_s / two_s,
            goal=">= 1.5 x C",
        ),
    ]


def others(path: Path, ours_per_s: float, runs: int) -> list[Row]:
    """Scapy, dpkt and tshark on a shorter file of the same frames."""
    rows = []
    few = max(1, runs // 2)
    with path.open("rb") as file:
        head = file.read(64 << 20)
    short = path.with_name("short.pcap")
    taken = _cut(head, short, _OTHERS_FRAMES)
    rows.append(
        _ratio("scapy (contrib.roce)", taken, seconds(lambda: _scapy(short), few), ours_per_s, ">= 1000")
    )
    if importlib.util.find_spec("dpkt"):
        rows.append(
            _ratio("dpkt (Ethernet, IP, UDP only)", taken, seconds(lambda: _dpkt(short), few), ours_per_s)
        )
    if shutil.which("tshark"):
        taken = _cut(head, short, _TSHARK_FRAMES)
        rows.append(
            _ratio(
                "tshark -T fields", taken, seconds(lambda: _tshark(short), few, _cpu_s), ours_per_s, ">= 100"
            )
        )
    return rows


def _ratio(name: str, frames: int, took_s: float, ours_per_s: float, goal: str = "") -> Row:
    return row(name, frames, took_s, ratio=ours_per_s * took_s / frames, goal=goal and f"ours {goal} x")


def _cut(octets: bytes, out: Path, frames: int) -> int:
    at, count = 24, 0
    while count < frames and at + 16 <= len(octets):
        after = at + 16 + struct.unpack_from("<I", octets, at + 8)[0]
        if after > len(octets):
            break
        at, count = after, count + 1
    out.write_bytes(octets[:at])
    return count


def _scapy(path: Path) -> None:
    import scapy.contrib.roce  # noqa: F401 - binds RoCE to UDP
    from scapy.layers.l2 import Ether
    from scapy.utils import RawPcapReader

    for octets, _ in RawPcapReader(str(path)):
        Ether(octets)


def _dpkt(path: Path) -> None:
    dpkt = importlib.import_module("dpkt")

    with path.open("rb") as file:
        for _, octets in dpkt.pcap.Reader(file):
            dpkt.ethernet.Ethernet(octets)


def _tshark(path: Path) -> None:
    fields = [
        "ip.src",
        "ip.dst",
        "udp.srcport",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "infiniband.bth.psn",
    ]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields"] + [part for f in fields for part in ("-e", f)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def writing(runs: int) -> list[Row]:
    """Frames of 1 KB payload built with ICRC into a reused buffer, and by Scapy."""
    count = _BUILT
    number = np.arange(count, dtype=np.uint64)
    columns = {
        "time_ns": number * 100, "eth_dst": 0x020000000002, "eth_src": 0x020000000001,
        "src_lo": 0xFFFF0A000001, "dst_lo": 0xFFFF0A000002, "sport": 0xC000, "opcode": 7, "dqpn": 17,
        "psn": number & 0xFFFFFF, "payload_len": 1024,
    }  # fmt: skip
    payload = np.random.default_rng(1).integers(0, 256, 1 << 20, dtype=np.uint8)
    starts, buffer = number % np.uint64(1000) * np.uint64(1024), np.empty(256 << 10, np.uint8)
    builder = FrameBuilder(columns, payload, starts)
    size = 0

    def ours() -> None:
        nonlocal size
        size = sum(len(chunk) for chunk in builder.chunks(buffer))

    ours_s = seconds(ours, runs)
    scapy_s = seconds(_scapy_build, max(1, runs // 2)) / 200
    scapy = {"ratio": count / ours_s * scapy_s, "goal": ">= 3 M/s, 1000 x scapy"}
    return [
        row("build 1 KB frames with ICRC, one core", count, ours_s, size, **scapy),
        row("  scapy the same", 1, scapy_s),
    ]


def _scapy_build() -> None:
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    for psn in range(200):
        frame = (
            Ether()
            / IP(src="10.0.0.1", dst="10.0.0.2")
            / UDP(sport=0xC000, dport=4791)
            / BTH(opcode=7, psn=psn)
        )
        bytes(frame / (b"x" * 1024))


def rewriting(folder: Path, runs: int) -> list[Row]:
    """Addresses, QPN and PSN of 128-octet frames rewritten in place, ICRC repaired."""
    count = _BUILT
    number = np.arange(count, dtype=np.uint64)
    columns = {
        "time_ns": number,
        "src_lo": 0xFFFF0A000001,
        "opcode": 7,
        "psn": number & 0xFFFFFF,
        "payload_len": 70,
    }
    path = folder / "rewrite.pcap"
    path.write_bytes(pcap_header(1) + b"".join(map(bytes, FrameBuilder(columns, bytes(70)).chunks())))
    frames, fresh = capture.open(path).frames(), np.fromfile(path, np.uint8)
    octets, rewriter = fresh.copy(), Rewriter()
    changes = {"src_lo": 0xFFFF0A0A0A0A, "dqpn": 99, "psn": (frames.psn + 7) & 0xFFFFFF}
    times = []
    for _ in range(runs + 1):
        octets[:] = fresh
        start = time.process_time()
        done = rewriter.rewrite(octets, 0, frames, changes)
        times.append(time.process_time() - start)
        if done.repaired != count:
            raise RuntimeError(f"{done} of {count} frames")
    return [
        row("rewrite + ICRC repair, 128-octet frames", count, statistics.median(times[1:]), goal=">= 8 M/s")
    ]


def filtering(path: Path, runs: int) -> list[Row]:
    """A `--where` expression over columns that are in memory."""
    where = parse_where("opcode == RC_ACKNOWLEDGE and psn >= 100 and src == 10.0.0.1")
    batches = []
    for frames in capture.open(path).batches(verify=False):
        batches.append(frames)
        if sum(map(len, batches)) > 300_000:
            break
    count = sum(map(len, batches))
    took_s = seconds(lambda: [int(where.mask(frames).sum()) for frames in batches], runs)
    return [row("filter columns by --where", count, took_s)]


def all_of(sources: list[Path], folder: Path, megabytes: int, runs: int) -> tuple[list[Row], dict[str, Any]]:
    """Everything, in one process.

    Args:
        sources: Captures whose frames are repeated; the package's own by default.
        folder: For the work files.
        megabytes: Size of the work file.
        runs: Runs of which the median counts.
    """
    sources = sources or sorted(p for p in PCAPS.glob("*.pcap") if "corrupt" not in p.name)
    mixed, large = folder / "mixed.pcap", folder / "large.pcap"
    count = repeated(sources, mixed, megabytes * 10**6)
    big = repeated(sources, large, megabytes * 10**6, only_large=True)
    time.sleep(2.5)  # a file that was just written is not mapped
    remarks, rows, different = [], [], ["no C compiler"]
    if compiler():
        different = []
        for path, frames, note in ((mixed, count, ""), (large, big, " (1 KB)")):
            yardstick = Yardstick(frames + 1)
            different += equal_columns(yardstick, path)
            rows += [r | {"name": r["name"] + note} for r in reading(path, frames, runs, yardstick)]
        ours_per_s = rows[1]["frames_per_s"]
    else:
        ours_per_s = count / seconds(lambda: read_all(mixed, threads=1, verify=False), runs)
    verify_s = seconds(lambda: read_all(large, threads=1, verify=True), runs)
    if compiler():
        touch_s = seconds(lambda: yardstick_read(yardstick, large, touch=True), runs)
        rows.append(row("plain C, every octet read, no column", big, touch_s, large.stat().st_size))
    rows.append(
        row("dissect + verify, 1 KB frames, one core", big, verify_s, large.stat().st_size, goal=">= 8 GB/s")
    )
    rows += others(mixed, ours_per_s, runs) + writing(runs) + rewriting(folder, runs) + filtering(mixed, runs)
    rows += editing(folder, runs, seconds)
    remarks.append("columns differ from the plain-C reader's: " + ", ".join(different) if different else
                   "checksums of all columns equal the plain-C reader's")  # fmt: skip
    load = os.getloadavg()[0]
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, load {load:.1f}"
    return rows, {"machine": machine, "remarks": remarks, "columns_equal": not different}
