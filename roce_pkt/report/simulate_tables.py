"""A simulation's facts, tables, findings and parameters for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_pkt.errors import Finding
from roce_pkt.report.page import Kind, Table
from roce_pkt.units import format_bytes, format_rate, format_time_ns

if TYPE_CHECKING:
    from roce_pkt.run.simulation_findings import SimulationFinding
    from roce_pkt.run.simulation_result import Simulation

MOST_RULES = 4
FINDING_WIDTH = 180


def progress(result: Simulation) -> str:
    """How much of its messages a run has done, and when; nothing where they have no end."""
    summary = result.summary
    whole = format_time_ns(summary["sim_time_ns"])
    if summary["done_ns"] is not None:
        return f"all messages done at {format_time_ns(summary['done_ns'])} of {whole}"
    done = result.flows.done
    return f"{done} of {len(result.flows)} flows done in {whole}" if done else ""


def caption(result: Simulation) -> str:
    """What a picture says of its run in a few lines."""
    summary, ports = result.summary, result.ports
    since = result.summary["sim_time_ns"] - result.summary["measured_ns"]
    words = [f"from {format_time_ns(since)} on: " if since else ""]
    words[0] += f"goodput {format_rate(summary['goodput_bps'])}"
    words.append(f"fairness {summary['jain']:.3f}")
    longest = max((p.queue_p99_bytes for p in ports), default=0)
    words.append(f"longest queue (99 %) {format_bytes(longest)}")
    for name, count in (("XOFF", sum(p.xoff for p in ports)), ("drops", sum(p.drops for p in ports))):
        if count:
            words.append(f"{count:,} {name}")
    again = result.flows.total("retransmissions")
    if again:
        words.append(f"{again:,} packets sent again")
    ended = progress(result)
    lines = ["; ".join(filter(None, (ended, ", ".join(words))))]
    rules = list(dict.fromkeys(one.rule for one in result.findings))
    for rule in rules[:MOST_RULES]:
        one, *others = [found for found in result.findings if found.rule == rule]
        more = f" (and {len(others)} more)" if others else ""
        text = f"{rule} at {format_time_ns(one.time_ns)}: {one.text}"
        lines.append((text if len(text) <= FINDING_WIDTH else f"{text[: FINDING_WIDTH - 3]}...") + more)
    return "\n".join(lines)


def facts(result: Simulation) -> list[tuple[str, str]]:
    """The summary as short pairs."""
    facts = []
    times = {f"message_{key}": value for key, value in (result.messages or {}).items() if value is not None}
    times.pop("message_by_length", None)
    for key, value in (result.summary | times).items():
        if value is None or isinstance(value, bool):
            continue
        name, _, unit = key.rpartition("_")
        if unit == "ns":
            facts.append((name.replace("_", " "), format_time_ns(value)))
        elif unit == "bps":
            facts.append((name.replace("_", " "), format_rate(value)))
        else:
            facts.append((key.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.4g}"))
    return facts


def finding(found: SimulationFinding) -> Finding:
    """A finding as a page has it."""
    return Finding(found.rule, found.severity, f"{found.text} (at {format_time_ns(found.time_ns)})")


FLOW_COLUMNS: list[tuple[str, Kind]] = [
    ("flow", "text"), ("verb", "text"), ("messages", "number"), ("goodput", "rate"), ("completion", "time"),
    ("CE", "number"), ("CNPs", "number"), ("CNP delay", "time"), ("sent again", "number"), ("paused", "time"),
]  # fmt: skip
PORT_COLUMNS: list[tuple[str, Kind]] = [
    ("port", "text"), ("queue mean", "bytes"), ("99 %", "bytes"), ("longest", "bytes"), ("marked", "number"),
    ("XOFF", "number"), ("XON", "number"), ("paused", "time"), ("drops", "number"),
]  # fmt: skip
PATH_COLUMNS: list[tuple[str, Kind]] = [
    ("switch", "text"), ("port", "text"), ("sent", "bytes"), ("share", "percent"), ("entropy", "number"),
]  # fmt: skip


def tables(result: Simulation, known: set[str]) -> list[Table]:
    """Flows, ports, and links of equal paths."""
    flows: list[list[Any]] = []
    groups: list[str | None] = []
    for f in result.flows:
        name = f"{f.src} > {f.dst} QP 0x{f.dqpn:x}"
        flows.append(
            [
                name,
                f.verb,
                f.messages,
                f.goodput_bps,
                f.completion_ns,
                f.ce,
                f.cnps,
                f.cnp_delay_mean_ns or None,
                f.retransmissions,
                f.paused_ns,
            ]
        )
        groups.append(name if name in known else None)
    ports: list[list[Any]] = [
        [
            p.name,
            p.queue_mean_bytes,
            p.queue_p99_bytes,
            p.queue_max_bytes,
            p.marked,
            p.xoff,
            p.xon,
            p.paused_ns,
            p.drops,
        ]
        for p in result.ports
    ]
    found = [Table("Flows", FLOW_COLUMNS, flows, groups), Table("Ports", PORT_COLUMNS, ports)]
    links: list[list[Any]] = [
        [one.switch, port, sent, sent / (sum(one.sent_bytes) or 1), one.entropy]
        for one in result.paths
        for port, sent in zip(one.ports, one.sent_bytes, strict=True)
    ]
    return [*found, Table("Equal paths", PATH_COLUMNS, links)] if links else found


def flat(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """A nested scenario as dotted keys."""
    if isinstance(values, dict):
        return [
            pair
            for key, value in values.items()
            for pair in flat(value, f"{prefix}.{key}" if prefix else key)
        ]
    if isinstance(values, list) and values and isinstance(values[0], dict):
        return [pair for at, value in enumerate(values) for pair in flat(value, f"{prefix}[{at}]")]
    return [(prefix, str(values))]
