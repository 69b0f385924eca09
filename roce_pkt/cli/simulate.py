"""`roce-pkt simulate`: a scenario in closed loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roce_pkt.cli.common import (
    AsWritten,
    ForceOption,
    Format,
    FormatOption,
    OutputOption,
    key_and_value,
    print_json,
)
from roce_pkt.errors import InputError
from roce_pkt.report.text import console

if TYPE_CHECKING:
    from roce_pkt.capture.model import Interface, Record
    from roce_pkt.events import Event
    from roce_pkt.report.page import Page
    from roce_pkt.report.simulate_page import SimulationPage


def simulate(
    scenario: Annotated[str | None, typer.Argument(metavar="[SCENARIO.toml]", help="Scenario file.")] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="A scenario of the package; see: roce-pkt presets."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a key: switch.ecn.kmin=50KB, host.cc.profile=mlx."
        ),
    ] = None,
    law: Annotated[
        str | None,
        typer.Option(
            "--cc", metavar="LAW", help="Senders' law: hpcc, timely, swift, ... or a file of your own."
        ),
    ] = None,
    output: OutputOption = "",
    taps: Annotated[
        list[str] | None, typer.Option("--tap", metavar="PORT", help="Where -o records: host2, switch0:2.")
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="F.jsonl", help="Write every event, one object a line.")
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(
            "--series", metavar="FILE", help="Write queues and rates over time: .parquet or .jsonl."
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="TIME",
            help="Sampling period of --series, --png, --report: 1us, less for a picture of a short run.",
        ),
    ] = None,
    png: Annotated[
        str | None,
        typer.Option("--png", metavar="FILE", help="Draw goodput, rates, queues, marks, pauses, paths."),
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="F.html", help="Write a page with everything on it.")
    ] = None,
    form: FormatOption = Format.TEXT,
    force: ForceOption = False,
) -> int:
    """Simulate hosts, switches, ECN, PFC and congestion control in closed loop.

    Leaves with 1 when a finding is an error.
    """
    from dataclasses import replace

    from roce_pkt.edit.impair import truth_path
    from roce_pkt.files import check_outputs, whole_file
    from roce_pkt.run import simulate as room

    if (scenario is None) == (preset is None):
        raise InputError("give a scenario file or --preset NAME (roce-pkt presets lists them)")
    given = dict(key_and_value(text) for text in changes or [])
    if law is not None:
        # a scenario's own law may have parameters that this one has not
        given = {"host.cc": "{}", "host.cc.algorithm": json.dumps(law)} | given
    loaded = room.load(scenario, given) if scenario is not None else _preset(str(preset), given)
    if taps:
        loaded = replace(loaded, taps=tuple(taps), written=loaded.written | {"taps": list(taps)})
    if output and not loaded.taps:
        raise InputError("-o needs a place to record: taps in the scenario, or --tap host2")
    truth = truth_path(output) if output and loaded.fault else None
    check_outputs((events, series, png, report, output, truth), (scenario, law), force=force)
    with ExitStack() as stack:
        page = _page(loaded.duration_ps) if report or png else None
        sampled = _samplers(stack, series, page, force=force)
        told = _event_writer(stack, events, force=force) if events else None
        result = room.simulate(
            loaded,
            on_event=told,
            on_rows=page.rows if page is not None else None,
            on_frame=_frame_writer(stack, output, force=force) if output else None,
            on_samples=sampled,
            sample_every_ps=_period_ps(every, series),
            progress=stack.enter_context(_progress(loaded.duration_ps)),
        )
        if truth:
            stream = stack.enter_context(whole_file(truth, force=force))
            stream.writelines(json.dumps(line).encode() + b"\n" for line in result.faults)
    if page is not None:
        _draw(page.page(_title(loaded.name, given), result), report, png, force=force)
    if form is Format.JSON:
        print_json(result.as_json(AsWritten))
    else:
        from roce_pkt.report.simulate_text import show

        show(result)
    return 1 if any(f.severity == "error" for f in result.findings) else 0


def _period_ps(every: str | None, series: str | None) -> int | None:
    """The sampling period; None: what a picture of the run needs."""
    from roce_pkt.units import PS_PER_US, parse_time_ps

    if every is None:
        return PS_PER_US if series else None
    return parse_time_ps(every, "--every")


def _page(span_ps: int) -> SimulationPage:
    from roce_pkt.report.simulate_page import SimulationPage

    return SimulationPage(span_ps)


def _title(name: str, given: dict[str, str]) -> str:
    """A scenario's name, and how it was changed."""
    return ", ".join([name, *(f"{key} = {value}" for key, value in given.items())])


def _draw(page: Page, report: str | None, png: str | None, *, force: bool) -> None:
    """A page as the files that were asked for."""
    if report:
        from roce_pkt.report.html import write_html

        write_html(report, page, force=force)
    if png:
        from roce_pkt.report.png import write_png

        write_png(png, page, force=force)


def _preset(name: str, given: dict[str, str]) -> Any:
    from roce_pkt.scenario import presets

    return presets.load(name, given)


def _event_writer(stack: ExitStack, path: str, *, force: bool) -> Callable[[Event], None]:
    from roce_pkt.files import whole_file

    stream = stack.enter_context(whole_file(path, force=force))

    def write(event: Event) -> None:
        stream.write(json.dumps(event.as_json()).encode() + b"\n")

    return write


def _frame_writer(stack: ExitStack, path: str, *, force: bool) -> Callable[[Record, list[Interface]], None]:
    from roce_pkt.capture.writer import interface_block, packet_block, section_block
    from roce_pkt.files import whole_file

    stream = stack.enter_context(whole_file(path, force=force))
    described: list[Interface] = []
    stream.write(section_block())

    def write(record: Record, interfaces: list[Interface]) -> None:
        if not described:
            described.extend(interfaces)
            stream.write(b"".join(interface_block(i) for i in interfaces))
        stream.write(packet_block(path, record, interfaces[record.interface_id]))

    return write


def _samplers(stack: ExitStack, series: str | None, page: SimulationPage | None, *, force: bool) -> Any:
    """What takes the samples: a file, a page, or nothing."""
    from roce_pkt.files import whole_file

    takers: list[Any] = []
    if series:
        from roce_pkt.run.simulation_series import series_writer

        writer = series_writer(series, stack.enter_context(whole_file(series, force=force)))
        stack.callback(writer.close)
        takers.append(writer)
    if page is not None:
        takers.append(page.samples)
    if not takers:
        return None

    def take(*samples: Any) -> None:
        for taker in takers:
            taker(*samples)

    return take


@contextmanager
def _progress(duration_ps: int) -> Iterator[Callable[[float, float], None] | None]:
    """A bar on standard error, at a terminal only, with simulated time and packets a second."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    import time

    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=1.0, speed="")
        begun = time.perf_counter()

        def tell(share: float, packets: float) -> None:
            speed = packets / max(time.perf_counter() - begun, 1e-3) / 1e6
            text = f"{share * duration_ps / 1e9:.3g} of {duration_ps / 1e9:g} ms"
            bar.update(task, completed=share, description=text, speed=f"{speed:.2f} M packets/s")

        yield tell
