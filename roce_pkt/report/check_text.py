"""The verdict of `check` for people: one line of summary, one table of rules, the first findings of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roce_pkt.report.nothing import nothing_here
from roce_pkt.report.text import console, printable

if TYPE_CHECKING:
    from roce_pkt.analysis.check import Verdict

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def show(name: str, verdict: Verdict, limit: int) -> None:
    """Print a verdict.

    Args:
        name: The capture as the user named it.
        verdict: What was found.
        limit: Findings shown of each rule.
    """
    from rich.table import Table
    from rich.text import Text

    out = console()
    kinds = ", ".join(f"{n} {printable(kind)}" for kind, n in verdict.kinds.most_common())
    icrc = verdict.icrc
    out.print(Text(f"{printable(name)}: {verdict.frames} frames ({kinds})", style="bold"))
    out.print(f"ICRC: {icrc['right']} right, {icrc['wrong']} wrong, {icrc['unchecked']} cannot be checked")
    if not any(verdict.kinds[k] for k in ("rocev2", "rocev1", "pfc", "pause")):
        out.print(nothing_here(verdict.kinds))
    if not verdict.counts:
        out.print(Text("Nothing wrong found.", style="green"))
        return
    table = Table(box=None, pad_edge=False)
    for head, justify in (("rule", "left"), ("severity", "left"), ("frames", "right")):
        table.add_column(head, justify=justify, style="" if head != "severity" else None)  # type: ignore[arg-type]
    order = ("error", "warning", "note")
    for rule, count in sorted(
        verdict.counts.items(), key=lambda i: (order.index(verdict.severities[i[0]]), -i[1])
    ):
        severity = verdict.severities[rule]
        table.add_row(rule, Text(severity, style=STYLES[severity]), str(count))
    out.print(table)
    shown: Counter[str] = Counter()
    for finding in verdict.findings:
        shown[finding.rule] += 1
        if shown[finding.rule] <= limit:
            where = f"frame {finding.frame}: " if finding.frame else ""
            out.print(Text(f"{where}{printable(finding.text)}", style=STYLES[finding.severity]))
    hidden = sum(verdict.counts.values()) - sum(min(n, limit) for n in shown.values())
    if hidden > 0:
        out.print(f"... {hidden} more; --limit N or --format json shows them")
