"""An observed capture for people: a table of flows, a picture of each rate that was cut, the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_pkt.report.check_text import STYLES
from roce_pkt.report.text import console, printable
from roce_pkt.units import PS_PER_NS, format_bytes, format_rate, format_time_ns

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from roce_pkt.run.observation import Observation, ObservedFlow

WIDTH = 80
MOST_FLOWS = 20
MOST_PICTURES = 6
BLOCKS = "▁▂▃▄▅▆▇█"
BLOCKS_ASCII = "_.:-=+*#"


def show(name: str, seen: Observation) -> None:
    """Print an observation.

    Args:
        name: The capture as the user named it.
        seen: What was observed.
    """
    from rich.text import Text

    out = console()
    span = format_time_ns(seen.duration_ns)
    out.print(Text(f"{printable(name)}: {seen.frames} frames in {span}, {seen.roce} RoCE", style="bold"))
    if seen.flows:
        out.print(_setup_line(seen))
        if seen.paced.text:
            out.print(Text(seen.paced.text, style="dim"), soft_wrap=False, width=WIDTH)
        out.print(_flows(seen), soft_wrap=False, width=WIDTH)
        _rest(out, seen)
        _pictures(out, seen)
    if seen.connections:
        from roce_pkt.report import connections_text

        out.print(connections_text.table(seen.connections, seen.first_ns), soft_wrap=False, width=WIDTH)
        more = connections_text.left_out(len(seen.connections))
        if more:
            out.print(more)
    if seen.pauses:
        out.print(_pauses(seen), soft_wrap=False, width=WIDTH)
    for finding in seen.findings:
        where = f"frame {finding.frame}: " if finding.frame else ""
        text = printable(f"{finding.severity}: {where}{finding.text}")
        out.print(Text(text, style=STYLES[finding.severity]), soft_wrap=False, width=WIDTH)


def _setup_line(seen: Observation) -> str:
    setup = seen.setup
    line = "line rate unknown" if setup.line_rate_bps is None else f"line {format_rate(setup.line_rate_bps)}"
    pace = format_time_ns(setup.np.interval_ps / PS_PER_NS)
    return f"DCQCN profile {setup.profile}, {line}, at most one CNP per {pace}; tap {setup.tap}"


def _rate(seen: Observation, rate: float) -> str:
    return f"{rate:.4f}" if seen.setup.line_rate_bps is None else format_rate(rate)


def _shown(seen: Observation) -> list[ObservedFlow]:
    """Flows of the table: those with data first, those that were slowed before the merely large."""
    flows = [flow for flow in seen.flows if not flow.acks_only] or seen.flows
    return sorted(flows, key=lambda flow: flow.rp is None)[:MOST_FLOWS]


def _flows(seen: Observation) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("flow", overflow="fold", min_width=16, max_width=28)
    for head in ("packets", "bytes", "CE", "CNPs due/\nseen/miss", "lowest\nrate", "last\nrate", "alpha"):
        table.add_column(head, justify="right", no_wrap=True)
    for flow in _shown(seen):
        lowest, last = seen.rates(flow)
        table.add_row(
            f"{flow.key.src} >\n{flow.key.dst} QP 0x{flow.key.dqpn:x}",
            str(flow.sums.frames),
            format_bytes(flow.sums.octets),
            str(flow.sums.ce),
            f"{flow.cnps_expected}/{flow.cnps_seen}/{flow.cnps_missing}",
            _rate(seen, lowest),
            _rate(seen, last),
            "-" if flow.rp is None else f"{flow.rp.alpha:.3f}",
            style="" if flow.rp is None else "yellow",
        )
    return table


def _rest(out: Console, seen: Observation) -> None:
    shown = len(_shown(seen))
    acks = sum(flow.acks_only for flow in seen.flows)
    more = len(seen.flows) - shown - (acks if shown + acks <= len(seen.flows) else 0)
    parts = [f"{more} more flows"] if more > 0 else []
    if acks and shown + acks <= len(seen.flows):
        parts.append(f"{acks} of acknowledgements only")
    if parts:
        out.print(f"not shown: {', '.join(parts)}; --format json has every flow")


def _pictures(out: Console, seen: Observation) -> None:
    """The rate over the capture, lowest value of each part, for the flows cut most."""
    from rich.text import Text

    cut = sorted((flow for flow in seen.flows if flow.rp and flow.rp.cuts), key=lambda f: -f.rp.cuts)  # type: ignore[union-attr]
    if not cut:
        return
    top = seen.line_rate
    blocks = BLOCKS if (out.encoding or "").lower().startswith("utf") else BLOCKS_ASCII
    out.print(
        f"rate over {format_time_ns(seen.roce_ns)} of RoCE, from 0 to {_rate(seen, top)}; lowest of each part"
    )
    for flow in cut[:MOST_PICTURES]:
        history = flow.rp.history if flow.rp else []
        bars = "".join(blocks[min(len(blocks) - 1, int(rate / top * len(blocks)))] for rate in history)
        out.print(Text(f"{bars} {flow.key.dst} QP 0x{flow.key.dqpn:x}"[:WIDTH], style="yellow"))
    if len(cut) > MOST_PICTURES:
        out.print(f"... {len(cut) - MOST_PICTURES} more flows were cut")


def _pauses(seen: Observation) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("pauses sent by", "class", "XOFF", "XON", "paused", "share", "inside"):
        table.add_column(head, justify="left" if head == "pauses sent by" else "right")
    for pause in seen.pauses:
        paused = "line rate unknown" if pause.paused_ns is None else format_time_ns(pause.paused_ns)
        priority = "all" if pause.priority is None else str(pause.priority)
        share = "-" if pause.share is None else f"{pause.share:.1%}"
        inside = "?" if pause.violations is None else str(pause.violations)
        table.add_row(pause.direction, priority, str(pause.xoff), str(pause.xon), paused, share, inside)
    return table
