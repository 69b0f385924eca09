"""Parameter profiles for people: side by side, or one with its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roce_pkt.report.text import console
from roce_pkt.units import format_rate

if TYPE_CHECKING:
    from roce_pkt.run.parameter_list import FilledProfile

WIDTH = 80


def show_all(profiles: Sequence[FilledProfile]) -> None:
    """All profiles side by side."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    for filled in profiles:
        out.print(Text.assemble((f"{filled.profile.name:9}", "bold"), filled.profile.title))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("parameter", overflow="fold")
    for filled in profiles:
        table.add_column(filled.profile.name, justify="right", overflow="fold")
    for column in zip(*(filled.parameters for filled in profiles), strict=True):
        values = [filled.shown for filled in column]
        table.add_row(column[0].name, *values, style="" if len(set(values)) > 1 else "dim")
    out.print()
    out.print(table, soft_wrap=False, width=WIDTH)
    out.print("sources and names elsewhere: roce-pkt profiles NAME")


def show_one(filled: FilledProfile) -> None:
    """One profile: each value, what it is, where it comes from, what others call it."""
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    profile = filled.profile
    out.print(Text(f"{profile.name}: {profile.title}", style="bold"), soft_wrap=False, width=WIDTH)
    out.print(profile.about, soft_wrap=False, width=WIDTH)
    out.print(f"Rates stated for a line of {format_rate(profile.reference_rate_bps)}.")
    for parameter in filled.parameters:
        names = [
            f"{' '.join(alias.names)} [{alias.unit}]" if alias.unit else " ".join(alias.names)
            for alias in parameter.row.aliases
        ]
        out.print()
        out.print(Text.assemble((f"{parameter.name} = ", "bold"), (parameter.shown, "bold cyan")))
        for text in (parameter.row.doc, f"source: {parameter.source}", *(f"also: {name}" for name in names)):
            out.print(Padding(Text(text), (0, 0, 0, 4)), soft_wrap=False, width=WIDTH)
