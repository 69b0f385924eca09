"""`roce-pkt profiles`: the parameter profiles, with values, units, sources and foreign names."""

from __future__ import annotations

from typing import Annotated

import typer

from roce_pkt.cli.common import Format, FormatOption, print_json


def profiles(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One profile with every source; else all.")
    ] = None,
    form: FormatOption = Format.TEXT,
) -> int:
    """Show congestion-control profiles: values, units, where each comes from, names elsewhere."""
    from roce_pkt.run.parameter_list import listed

    chosen = listed(name)
    if form is Format.JSON:
        print_json([profile.as_json() for profile in chosen])
    else:
        from roce_pkt.report import profiles_text

        if name is None:
            profiles_text.show_all(chosen)
        else:
            profiles_text.show_one(chosen[0])
    return 0
