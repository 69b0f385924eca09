"""`roce-pkt sweep`: a grid of simulations on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roce_pkt.cli.common import ForceOption, Format, FormatOption, OutputOption, key_and_value, print_json
from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.report.text import console

if TYPE_CHECKING:
    from roce_pkt.run.sweep import Journal, Outcome, Point


def sweep(
    scenario: Annotated[str | None, typer.Argument(metavar="[SCENARIO.toml]", help="Scenario file.")] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary", metavar="KEY=A,B,C", help="A key and its values: switch.ecn.kmin=5KB,50KB,400KB."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="A scenario of the package; see: roce-pkt presets."),
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key for all runs.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="Runs of each combination.")] = 1,
    sort: Annotated[
        str, typer.Option("--sort", metavar="METRIC", help="What the table is sorted by.")
    ] = "goodput_bps",
    output: OutputOption = "",
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Draw one or two varied keys.")
    ] = None,
    form: FormatOption = Format.TEXT,
    force: ForceOption = False,
) -> None:
    """Simulate every combination of the varied keys.

    With -o RESULTS.parquet every finished run is kept at once beside that file; the same command,
    started again after it was killed, goes on from there.
    """
    from roce_pkt.files import check_outputs, whole_file
    from roce_pkt.run import sweep as room
    from roce_pkt.run import sweep_table

    if (scenario is None) == (preset is None):
        raise InputError("give a scenario file or --preset NAME (roce-pkt presets lists them)")
    if not vary:
        raise InputError("give what to vary: --vary switch.ecn.kmin=5KB,50KB,400KB")
    sweep_table.metric(sort)
    order = dict(_varied(text) for text in vary)
    if png is not None and len(order) > 2:
        raise InputError(f"--png draws one or two varied keys, not {len(order)}")
    check_outputs((output, png), [scenario], force=force)
    grid = room.Sweep(
        str(scenario or preset), order, seeds, dict(key_and_value(text) for text in changes or [])
    )
    points = grid.points()
    journal = room.Journal(Path(f"{output}.journal"), grid.stamp()) if output else None
    if journal:
        journal.open()
    try:
        outcomes = _outcomes(points, journal)
    except BaseException:
        if journal:
            journal.close(remove=False)
        raise
    table = sweep_table.rows(outcomes, sort)
    if journal:
        with whole_file(output, force=force) as stream:
            sweep_table.write_parquet(stream, outcomes)
        journal.close(remove=True)
    if png:
        from roce_pkt.report.sweep_png import draw

        with whole_file(png, force=force) as stream:
            draw(stream, table, order, f"{grid.source}, {len(outcomes)} runs")
    if form is Format.JSON:
        names = {name: None for row in table for name in row.mean}
        print_json(
            [
                {"values": dict(r.values), "runs": r.runs, **{n: _number(r.mean[n]) for n in names}}
                for r in table
            ]
        )
        return
    from roce_pkt.report.sweep_text import show

    show(table, sort, len(outcomes))


def _number(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - NaN alone differs from itself


def _varied(text: str) -> tuple[str, list[str]]:
    key, equals, values = text.partition("=")
    split = _split(values)
    if not equals or not key.strip() or not all(split):
        raise ScenarioError("--vary", f"{text!r} is not KEY=A,B,C, such as switch.ecn.kmin=5KB,50KB")
    if len(set(split)) != len(split):
        raise ScenarioError("--vary", f"{text!r} names a value twice; --seeds repeats runs")
    return key.strip(), split


def _split(values: str) -> list[str]:
    """Split at commas that are not inside brackets, braces or quotes."""
    parts, depth, quoted = [""], 0, False
    for character in values:
        quoted ^= character == '"'
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _outcomes(points: list[Point], journal: Journal | None) -> list[Outcome]:
    """Run them on all cores."""
    from roce_pkt.run import sweep as room

    with room.workers() as executor, _progress(len(points)) as tell:
        return list(room.run(points, executor, journal, tell))


@contextmanager
def _progress(count: int) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error, at a terminal only, with the time of day when it will end."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[end]}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=count, end="")
        begun: list[float] = []

        def tell(done: int, total: int) -> None:
            if not begun:
                begun.extend((time.time(), done))
            since, before = begun
            left = (time.time() - since) / max(done - before, 1) * (total - done)
            clock = (
                time.strftime("ends at %H:%M:%S", time.localtime(time.time() + left)) if done > before else ""
            )
            bar.update(task, completed=done, end=clock)

        yield tell
