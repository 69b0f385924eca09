"""Whole captures rewritten, impaired and repaired, beside the same done frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from roce_pkt import capture
from roce_pkt.capture.model import Record
from roce_pkt.edit.fault_words import fault_from_words
from roce_pkt.edit.impair import Impairer, impair
from roce_pkt.edit.mapping import Mapping, parse_map
from roce_pkt.edit.repair import repair_icrc
from roce_pkt.edit.rewrite import Orders, Rewriter, rewrite
from roce_pkt.run.generate import Generation
from roce_pkt.scenario.reader import read_text

_FEW = 3000
_FRAMES = 500_000
_FAULT = "drop probability=0.01"
_SCENARIO = """
duration = "100s"
[fabric]
hosts = 2
[[traffic]]
senders = [1]
receiver = 0
verb = "write"
message = "64KiB"
qps = 4
"""

Seconds = Callable[[Callable[[], Any], int], float]
Work = tuple[str, Callable[[], Any], Callable[[], Any] | None, str]


def _orders(*texts: str, **others: Any) -> Orders:
    maps: dict[str, Mapping] = {}
    for text in texts:
        parse_map(text, maps)
    return Orders(maps, **others)


def works(source: Path, few: list[Record], folder: Path) -> list[Work]:
    """What is measured: its name, itself, the same frame by frame over `few`, and its goal."""
    out = folder / "edited.pcap"
    faults = [fault_from_words(_FAULT)]

    def rewritten(what: Orders) -> Callable[[], Any]:
        return lambda: rewrite(capture.open(source), out, what, force=True)

    def one_by_one(what: Orders) -> Callable[[], Any]:
        return lambda: [Rewriter(what, 4791)(record) for record in few]

    def impaired() -> None:
        machine = Impairer(faults, 1, 4791)
        for record in few:
            list(machine.take(record))

    push, ipv6 = _orders("vlan:none=100"), Orders(family="ipv6")
    generated = read_text(f'{_SCENARIO}[[fault]]\ndo = "drop"\nprobability = 0.001\n')
    return [
        ("impair: drop 1%",
         lambda: impair(capture.open(source), out, faults, force=True), impaired, ">= 1 M/s"),
        ("rewrite: VLAN pushed", rewritten(push), one_by_one(push), ">= 1 M/s"),
        ("rewrite: IPv4 to IPv6", rewritten(ipv6), one_by_one(ipv6), ">= 1 M/s"),
        ("icrc fix", lambda: repair_icrc(capture.open(source), out, force=True), None, ">= 1 M/s"),
        ("generate with losses that both sides react to",
         lambda: Generation(generated, _FRAMES).write(out, force=True), None, ">= 0.2 M/s"),
    ]  # fmt: skip


def editing(folder: Path, runs: int, seconds: Seconds) -> list[dict[str, Any]]:
    """Rows of the bench: frames of 1 KB and their acknowledgements, file to file; ratios to frame by frame.

    Args:
        folder: For the files.
        runs: Runs of which the median counts.
        seconds: Measures a work.
    """
    source, rows = folder / "to-edit.pcap", []
    Generation(read_text(_SCENARIO), _FRAMES).write(source, force=True)
    few = [r._replace(octets=bytes(r.octets)) for r in islice(capture.open(source).records(), _FEW)]
    for name, work, plain, goal in works(source, few, folder):
        rate = _FRAMES / seconds(work, runs)
        row: dict[str, Any] = {"name": name, "frames_per_s": rate, "goal": goal}
        if plain is not None:
            row["ratio"] = rate * seconds(plain, max(1, runs // 2)) / _FEW
        rows.append(row)
    return rows
