"""Curves of the peer simulator and ours, as numbers and as one picture a run.

    python tools/peer/curves.py FOLDER [-o PICTURES] [--record tests/data/peer_star.json]

FOLDER holds the peer's output: for each run `rate.csv.gz`, `queue.csv.gz`, `pfc.txt`, and
`queue_vs_fluid_5seeds.txt`.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine import rows
from roce_pkt.engine.session import Session, Sinks
from roce_pkt.scenario.reader import read_file
from roce_pkt.scenario.schema import Scenario

HERE = Path(__file__).parent
RUNS = {
    "A_hpcc_dcqcn_default_100g_2to1": ("star-dcqcn-100g", 1_000),
    "C_no_ecn_pfc_only_100g_2to1": ("star-pfc-100g", 1_000),
    "F_paper40g_2to1_samestart": ("star-dcqcn-40g", 10_000),
}
"""The peer's folder -> our scenario, and the sampling period in ns."""


@dataclass(slots=True)
class Curve:
    """One run.

    Args:
        time_ns: Sample times, (n,).
        queue_bytes: At the bottleneck, (n,).
        rate_bps: Of each sender, (n, 2).
        paused_ns: When each host was paused, times.
        resumed_ns: When it was resumed.
    """

    time_ns: NDArray[Any]
    queue_bytes: NDArray[Any]
    rate_bps: NDArray[Any]
    paused_ns: NDArray[Any]
    resumed_ns: NDArray[Any]


def scenario(name: str, **changes: str) -> Scenario:
    """One of the scenarios beside this file."""
    return read_file(HERE / f"{name}.toml", {k.replace("__", "."): v for k, v in changes.items()})


def ours(chosen: Scenario, every_ns: int) -> Curve:
    """Run our engine and keep its samples."""
    blocks: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    events: list[NDArray[Any]] = []
    session = Session(
        chosen,
        Sinks(
            events=events.append,
            samples=lambda t, q, r: blocks.append((t // 1000, q.copy(), r["rate_bps"].copy())),
        ),
        every_ns * 1000,
        trace=True,
    )
    session.advance(chosen.duration_ps)
    times, queues, rates = (np.concatenate(part) for part in zip(*blocks, strict=True))
    pairs, net = session.built.pairs, session.built.topology
    bottleneck = net.ports[int(session.built.arrays.half["port"][pairs.responder[0]])].peer
    found = np.concatenate(events)
    first = found["port"] == int(session.built.arrays.half["port"][pairs.requester[0]])
    paused, resumed = (
        found["time_ps"][first & (found["kind"] == kind)] / 1000
        for kind in (rows.PFC_PAUSED, rows.PFC_RESUMED)
    )
    return Curve(times, queues[:, bottleneck], rates[:, pairs.requester], paused, resumed)


def peers(folder: Path) -> Curve:
    """Read a run of the peer."""
    queue = np.genfromtxt(folder / "queue.csv.gz", delimiter=",", names=True)
    queue = queue[queue["switch_port"] == queue["switch_port"].max()]
    rate = np.genfromtxt(folder / "rate.csv.gz", delimiter=",", names=True)
    both = np.stack([rate["rate_bps"][rate["host"] == h] for h in (1, 2)], axis=1)
    both = np.concatenate((both[:1], both))[: len(queue)]  # the peer's rates start one sample late
    pfc = np.loadtxt(folder / "pfc.txt", ndmin=2) if (folder / "pfc.txt").stat().st_size else np.zeros((0, 5))
    mine = pfc[pfc[:, 1] == 1] if len(pfc) else np.zeros((0, 5))
    moments = [mine[mine[:, 4] == on][:, 0] - 2e9 for on in (1, 0)]
    return Curve(queue["t_ns"].astype(np.int64), queue["egress_bytes_prio3"], both, *moments)


def numbers(curve: Curve, from_ns: int) -> dict[str, float]:
    """What the tests compare."""
    late = curve.time_ns >= from_ns
    found = {
        "queue_mean_bytes": float(curve.queue_bytes[late].mean()),
        "queue_max_bytes": float(curve.queue_bytes.max()),
        "first_peak_bytes": float(curve.queue_bytes[curve.time_ns <= 80_000].max()),
        "rate_min_bps": float(curve.rate_bps.min()),
    }
    if len(curve.paused_ns) > 2:
        count = min(len(curve.paused_ns), len(curve.resumed_ns))
        lengths = curve.resumed_ns[:count] - curve.paused_ns[:count]
        period = float(np.diff(curve.paused_ns).mean())
        found |= {"pause_period_ns": period, "pause_share": float(lengths.mean()) / period}
    return found


def start_of(curve: Curve) -> dict[str, list[float]]:
    """Queue and rates at each of the first 40 us."""
    early = [int(np.searchsorted(curve.time_ns, us * 1000)) for us in range(1, 41)]
    return {
        "queue_bytes": curve.queue_bytes[early].tolist(),
        "rate_bps": curve.rate_bps[early].max(axis=1).tolist(),
    }


def goodput(folder: Path) -> list[float]:
    """Bits a second of payload each sender of the peer got acknowledged."""
    text = (folder / "summary.txt").read_text()
    end_s = float(re.findall(r"SIMULATOR_STOP_TIME (\S+)", (folder / "config.txt").read_text())[0]) - 2.0
    return [int(n) * 8 / end_s for n in re.findall(r"snd_una (\d+)", text)]


def fixed_points(folder: Path) -> list[dict[str, float]]:
    """Rows of the peer's table: hosts, queue, alpha, fluid values."""
    pattern = r"^(\d+) \[.*?\] ([\d.]+) ([\d.]+) .*?alpha sim ([\d.]+) alpha\* fluid ([\d.]+)"
    text = (folder / "queue_vs_fluid_5seeds.txt").read_text()
    names = ("senders", "queue_kb", "fluid_kb", "alpha", "fluid_alpha")
    return [dict(zip(names, map(float, row), strict=True)) for row in re.findall(pattern, text, re.MULTILINE)]


def picture(path: Path, title: str, peer: Curve, mine: Curve) -> None:
    """Both curves, the peer's in grey behind ours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for curve, colour, label in ((peer, "0.6", "peer"), (mine, "tab:blue", "roce-pkt")):
        thin = slice(None, None, max(len(curve.time_ns) // 4000, 1))
        top.plot(curve.time_ns[thin] / 1e6, curve.queue_bytes[thin] / 1e3, color=colour, lw=0.8, label=label)
        lines = curve.rate_bps[thin] / 1e9
        bottom.plot(curve.time_ns[thin] / 1e6, lines, color=colour, lw=0.8, label=[label, None])
    top.set_title(title)
    top.set_ylabel("queue, KB")
    bottom.set_ylabel("rates, Gb/s")
    bottom.set_xlabel("time, ms")
    top.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Compare, draw, and with --record write the table the tests use."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    table: dict[str, Any] = {"fixed_points": fixed_points(options.folder)}
    for run, (name, every_ns) in RUNS.items():
        chosen = scenario(name)
        from_ns = chosen.measure_from_ps // 1000 or 100_000
        peer, mine = peers(options.folder / run), ours(chosen, every_ns)
        table[name] = numbers(peer, from_ns) | {"goodput_bps": goodput(options.folder / run)}
        if every_ns == 1_000:
            table[name]["start"] = start_of(peer)
        print(name)
        for key, value in numbers(mine, from_ns).items():
            theirs = numbers(peer, from_ns).get(key, float("nan"))
            print(f"  {key:18s} peer {theirs:16.5g}  ours {value:16.5g}  {value / theirs - 1:+.1%}")
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            picture(options.output / f"{name}.png", name, peer, mine)
    if options.record:
        options.record.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
