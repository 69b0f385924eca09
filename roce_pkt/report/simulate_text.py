"""A simulation for people: totals, flows, ports, findings, in 80 columns."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from roce_pkt.report.check_text import STYLES
from roce_pkt.report.simulate_tables import progress
from roce_pkt.report.text import console, printable
from roce_pkt.units import format_bytes, format_rate, format_time_ns

if TYPE_CHECKING:
    from rich.table import Table

    from roce_pkt.run.simulation_flows import Flows
    from roce_pkt.run.simulation_result import PortResult, Simulation

WIDTH = 80
MOST_FLOWS = 16
MOST_PORTS = 12
MOST_FINDINGS = 10


def show(result: Simulation) -> None:
    """Print a simulation's result."""
    from rich.text import Text

    out = console()
    summary = result.summary
    cut = " (interrupted)" if summary["interrupted"] else ""
    name = Text(printable(str(result.scenario["name"])), style="bold")
    totals = (
        f": {format_time_ns(summary['sim_time_ns'])}{cut}, {summary['data_packets']} data packets,"
        f" {format_rate(summary['goodput_bps'])} goodput, fairness {summary['jain']:.4f}"
    )
    out.print(name.append(totals, style="not bold"), soft_wrap=False, width=WIDTH)
    out.print(_flows(result.flows), soft_wrap=False, width=WIDTH)
    if ended := progress(result):
        out.print(ended, soft_wrap=False, width=WIDTH)
    if len(result.flows) > MOST_FLOWS:
        out.print(f"the {MOST_FLOWS} slowest of {len(result.flows)} flows")
    if result.messages:
        out.print(_times(result.messages), soft_wrap=False, width=WIDTH)
    ports = [p for p in result.ports if p.queue_max_bytes or p.xoff or p.paused_ns or p.drops]
    if ports:
        out.print(_ports(ports), soft_wrap=False, width=WIDTH)
        if len(ports) > MOST_PORTS:
            out.print(f"the {MOST_PORTS} fullest of {len(ports)} ports")
    if result.faults:
        done = Counter(fault["do"] for fault in result.faults)
        out.print("faults done: " + ", ".join(f"{count} {name}" for name, count in done.items()))
    for finding in result.findings[:MOST_FINDINGS]:
        text = printable(f"{finding.severity}: {finding.text}")
        out.print(Text(text, style=STYLES[finding.severity]), soft_wrap=False, width=WIDTH)
    if len(result.findings) > MOST_FINDINGS:
        out.print(f"{len(result.findings) - MOST_FINDINGS} more findings (--format json has all)")
    speed = summary["packets_per_cpu_s"] / 1e6
    out.print(f"{summary['cpu_s']:.2f} s of CPU, {speed:.2f} million data packets a CPU second")


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column(columns[0], no_wrap=True, overflow="fold")
    for name in columns[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _flows(flows: Flows) -> Table:
    table = _table("flow", "QP", "goodput", "finished", "marks", "CNPs", "again", "paused")
    for f in flows.slowest(MOST_FLOWS):
        table.add_row(
            f"{_short(f.src)} > {_short(f.dst)}",
            f"{f.dqpn:x}",
            format_rate(f.goodput_bps),
            "-" if f.completion_ns is None else format_time_ns(f.completion_ns),
            str(f.ce),
            str(f.cnps),
            str(f.retransmissions),
            format_time_ns(f.paused_ns) if f.paused_ns else "-",
        )
    return table


def _times(messages: dict[str, Any]) -> Table:
    """Completion times of messages, by length when lengths differ much."""
    table = _table("messages", "number", "mean", "median", "99 %", "slowdown", "99 %")
    parts = messages["by_length"] if len(messages["by_length"]) > 1 else []
    for part in (*parts, messages):
        low, high = part.get("above_bytes", 0), part.get("to_bytes")
        name = "all lengths" if part is messages else f"more than {format_bytes(low)}"
        if high:
            name = f"up to {format_bytes(high)}"
        slow = [part["slowdown_mean"], part["slowdown_p99"]]
        table.add_row(
            name,
            str(part["count"]),
            *(format_time_ns(round(part[key])) for key in ("mean_ns", "p50_ns", "p99_ns")),
            *("-" if value is None else f"{value:.2f}" for value in slow),
        )
    return table


def _short(address: str) -> str:
    """The last part of a simulated address is enough to tell hosts apart."""
    return address.removeprefix("10.0.").removeprefix("fd00::")


def _ports(ports: list[PortResult]) -> Table:
    table = _table("port", "queue mean", "p99", "max", "marks", "XOFF", "paused", "drops")
    for p in sorted(ports, key=lambda p: -p.queue_max_bytes)[:MOST_PORTS]:
        table.add_row(
            p.name,
            format_bytes(round(p.queue_mean_bytes)),
            format_bytes(p.queue_p99_bytes),
            format_bytes(p.queue_max_bytes),
            str(p.marked),
            str(p.xoff),
            format_time_ns(p.paused_ns) if p.paused_ns else "-",
            str(p.drops),
        )
    return table
