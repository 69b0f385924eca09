"""`roce-pkt presets`: the scenarios that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer

from roce_pkt.cli.common import Format, FormatOption, print_json
from roce_pkt.report.text import console


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print this one as TOML; else list all.")
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """List the scenarios that come with the package, or print one to start your own from."""
    from roce_pkt.scenario import presets as room

    if name is not None:
        preset = room.find(name)
        if form is Format.JSON:
            print_json({"name": name, "about": preset.about, "scenario": room.load(name).written})
        else:
            typer.echo(preset.text, nl=False)
        return
    found = [room.find(n) for n in room.names()]
    if form is Format.JSON:
        print_json([{"name": p.name, "about": p.about} for p in found])
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for preset in found:
        table.add_row(preset.name, preset.about)
    console().print(table, soft_wrap=False, width=80)
