"""A captured demand in another fabric, for people: what took how long there, beside the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_pkt.report.check_text import STYLES
from roce_pkt.report.page import Kind, Table
from roce_pkt.report.text import console, printable
from roce_pkt.units import format_bytes, format_time_ns

if TYPE_CHECKING:
    from roce_pkt.run.drive import Driven

WIDTH = 80
MOST_ROWS = 20


def show(name: str, driven: Driven) -> None:
    """Print what came of it.

    Args:
        name: The capture as the user named it.
        driven: The run.
    """
    from rich.table import Table as RichTable
    from rich.text import Text

    out = console()
    scenario = driven.result.scenario.get("name", "")
    out.print(Text(f"{printable(name)} driven through {printable(str(scenario))}", style="bold"))
    table = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("flow", overflow="fold", min_width=16, max_width=26)
    for head in ("messages", "captured", "driven", "ratio", "CE", "CNPs", "sent\nagain"):
        table.add_column(head, justify="right", no_wrap=True)
    rows = driven.rows()
    for train, flow in rows[:MOST_ROWS]:
        before, after = train.completion_ns, flow.completion_ns
        table.add_row(
            f"{train.key.src} >\n{train.key.dst} QP 0x{train.key.dqpn:x}",
            f"{len(train.messages)} x {format_bytes(train.octets)}",
            "-" if before is None else format_time_ns(before),
            "-" if after is None else format_time_ns(after),
            f"{after / before:.3g}" if before and after else "-",
            str(flow.ce),
            str(flow.cnps),
            str(flow.retransmissions),
        )
    out.print(table, soft_wrap=False, width=WIDTH)
    if len(rows) > MOST_ROWS:
        out.print(f"not shown: {len(rows) - MOST_ROWS} more; --format json has every one")
    found = [(f.severity, f.text) for f in driven.findings]
    for severity, text in found + [(f.severity, f.text) for f in driven.result.findings]:
        line = Text(printable(f"{severity}: {text}"), style=STYLES[severity])
        out.print(line, soft_wrap=False, width=WIDTH)


COLUMNS: list[tuple[str, Kind]] = [
    ("flow", "text"), ("verb", "text"), ("messages", "number"), ("length", "bytes"), ("captured", "time"),
    ("driven", "time"), ("CE", "number"), ("CNPs", "number"), ("sent again", "number"),
]  # fmt: skip


def comparison(driven: Driven) -> Table:
    """Completion times in the capture and in the fabric, as a table of a report."""
    rows: list[list[Any]] = [
        [
            str(train.key), train.verb, len(train.messages), train.octets, train.completion_ns,
            flow.completion_ns, flow.ce, flow.cnps, flow.retransmissions,
        ]
        for train, flow in driven.rows()
    ]  # fmt: skip
    return Table("Captured and driven", COLUMNS, rows)
