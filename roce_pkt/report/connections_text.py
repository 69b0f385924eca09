"""Connections that communication management told of, as a short table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_pkt.report.text import printable
from roce_pkt.units import format_time_ns

if TYPE_CHECKING:
    from rich.table import Table

    from roce_pkt.flows.connection import Connection, End

MOST_CONNECTIONS = 10


def table(connections: list[Connection], first_ns: int) -> Table:
    """The first connections, one a row.

    Args:
        connections: In the order of their first message.
        first_ns: Start of the capture.
    """
    from rich.table import Table

    out = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    out.add_column("connection", overflow="fold", min_width=18, max_width=30)
    out.add_column("for", overflow="fold", max_width=14)
    out.add_column("frame", justify="right", no_wrap=True)
    out.add_column("began", justify="right", no_wrap=True)
    out.add_column("outcome", overflow="fold", max_width=22)
    for one in connections[:MOST_CONNECTIONS]:
        outcome = printable(f"rejected: {one.why}" if one.outcome == "rejected" else one.outcome)
        if one.outcome == "established" and one.closed_ns is not None:
            outcome += f", closed by {one.closed_by}"
        out.add_row(
            f"{_end(one.client)} >\n{_end(one.server)}",
            printable(" ".join(filter(None, (one.application, one.transport)))),
            str(one.frame),
            f"+{format_time_ns(one.first_ns - first_ns)}",
            outcome,
        )
    return out


def left_out(count: int) -> str | None:
    """What to say of those that the table has no room for."""
    more = count - MOST_CONNECTIONS
    return f"not shown: {more} more connections; --format json has every one" if more > 0 else None


def _end(end: End) -> str:
    qpn = "" if end.qpn is None else f" QP 0x{end.qpn:x}"
    return f"{end.as_json()['address']}{qpn}"
