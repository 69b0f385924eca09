"""A sweep for people: one line a combination, the best first, in 80 columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from roce_pkt.report.text import console, printable
from roce_pkt.units import format_bytes, format_rate, format_time_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_pkt.run.sweep_table import Row

WIDTH = 80
MOST_ROWS = 40
USUAL = ("goodput_bps", "jain", "queue_p99_bytes", "paused_ns", "drops")
HEADINGS = {
    "goodput_bps": "goodput",
    "jain": "fairness",
    "completion_ns": "finished",
    "queue_mean_bytes": "queue mean",
    "queue_p99_bytes": "queue p99",
    "queue_max_bytes": "queue max",
    "paused_ns": "paused",
}


def value_text(name: str, value: float) -> str:
    """One number of a metric."""
    if math.isnan(value):
        return "-"
    if name.endswith("_bps"):
        return format_rate(value)
    if name.endswith("_ns"):
        return format_time_ns(value) if value else "-"
    if name.endswith("_bytes"):
        return format_bytes(round(value))
    return f"{value:.4f}" if name == "jain" else f"{value:g}"


def show(rows: Sequence[Row], sort: str, runs: int) -> None:
    """Print the table, the metric it is sorted by first."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    names = [sort, *(name for name in USUAL if name != sort)][: len(USUAL)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for key in rows[0].values if rows else ():
        table.add_column(printable(key.rpartition(".")[2]), overflow="fold")
    for name in names:
        table.add_column(HEADINGS.get(name, name), justify="right", no_wrap=True)
    for row in rows[:MOST_ROWS]:
        words = [printable(value) for value in row.values.values()]
        table.add_row(*words, *(value_text(name, row.mean[name]) for name in names))
    out = console()
    out.print(table, soft_wrap=False, width=WIDTH)
    if len(rows) > MOST_ROWS:
        out.print(f"the {MOST_ROWS} best of {len(rows)} combinations")
    each = rows[0].runs if rows else 0
    averaged = f", averages of {each} seeds" if each > 1 else ""
    out.print(f"{runs} runs, {len(rows)} combinations{averaged}; sorted by {sort}")
