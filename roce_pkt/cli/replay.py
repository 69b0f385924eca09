"""`roce-pkt replay`: a capture through DCQCN's endpoint logic."""

from __future__ import annotations

import json
from contextlib import ExitStack
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from roce_pkt.cli.common import (
    CaptureArgument,
    ForceOption,
    Format,
    FormatOption,
    UdpPortOption,
    print_json,
)
from roce_pkt.errors import InputError, ScenarioError

if TYPE_CHECKING:
    from roce_pkt.capture import Capture
    from roce_pkt.edit.annotate import Notes
    from roce_pkt.events import Event
    from roce_pkt.run.machines import Plan
    from roce_pkt.run.observation import Observation
    from roce_pkt.run.observe import MakeWatcher
    from roce_pkt.run.track import Track
    from roce_pkt.run.watch import Watcher
    from roce_pkt.scenario.schema import Scenario


class Tap(StrEnum):
    """Where a capture was taken."""

    SENDER = "sender"
    RECEIVER = "receiver"
    MIDDLE = "middle"


def replay(
    capture: CaptureArgument,
    line_rate: Annotated[
        str | None,
        typer.Option(
            "--line-rate",
            metavar="RATE",
            help="Senders' port speed, e.g. 100Gbps; else the capture's own, else rates are fractions.",
        ),
    ] = None,
    tap: Annotated[Tap, typer.Option("--tap", help="Where the capture was taken.")] = Tap.MIDDLE,
    path_delay: Annotated[
        str, typer.Option("--path-delay", metavar="TIME", help="One way from sender to receiver, e.g. 4us.")
    ] = "0us",
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="DCQCN parameters; see: roce-pkt profiles.")
    ] = "paper",
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a parameter: ai_rate=40Mbps, np.interval=4us, rpg_gd=10.",
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
    events: Annotated[
        str | None, typer.Option("--events", metavar="F.jsonl", help="Write every event, one object a line.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="F.pcapng", help="Write the same frames with comments."),
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="F.html", help="Write a page with everything on it.")
    ] = None,
    png: Annotated[str | None, typer.Option("--png", metavar="F.png", help="Draw a picture.")] = None,
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric", metavar="SCENARIO.toml", help="Drive another fabric with the capture's messages."
        ),
    ] = None,
    open_loop: Annotated[
        bool, typer.Option("--open-loop", help="With --fabric: messages begin when they did in the capture.")
    ] = False,
    force: ForceOption = False,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Run a capture through DCQCN: who was marked, who was told, who slowed down.

    CE marks feed a notification point, CNPs (or, without any, the expected ones) a reaction point
    for each flow. Leaves with 1 when a finding is an error.
    """
    from roce_pkt.capture import open as open_capture
    from roce_pkt.files import check_outputs, whole_file
    from roce_pkt.run.observe import observe
    from roce_pkt.units import parse_time_ps

    settings = dict(_setting(change) for change in changes or [])
    rate_bps = None if line_rate is None else _rate(line_rate)
    delay_ps = parse_time_ps(path_delay, "--path-delay")
    if output is not None and capture == "-":
        raise InputError("-o: a pipe can be read once; write the capture to a file first")
    check_outputs((output, events, report, png), (capture, fabric), force=force)
    source = open_capture(capture, udp_port)
    if fabric is not None:
        if output is not None or png is not None:
            raise InputError("-o and --png are for a capture that is observed; leave --fabric out")
        return _drive(capture, source, fabric, open_loop, form, events, report, force)
    with ExitStack() as stack:
        outputs = _Outputs(stack, capture, output, report, png, force=force)
        tell = None
        if events is not None:
            stream = stack.enter_context(whole_file(events, force=force))

            def tell(event: Event) -> None:
                stream.write(json.dumps(event.as_json()).encode() + b"\n")

        seen = observe(
            source,
            profile,
            settings,
            line_rate_bps=rate_bps,
            tap=tap.value,
            path_delay_ps=delay_ps,
            on_event=tell,
            watchers=outputs.watchers(),
        )
        outputs.write(source, seen)
    if form is Format.JSON:
        print_json(seen.as_json())
    else:
        from roce_pkt.report.replay_text import show

        show(capture, seen)
    return 1 if seen.failed else 0


def _drive(
    name: str, source: Capture, fabric: str, open_loop: bool, form: Format, events: str | None,
    report: str | None, force: bool,
) -> int:  # fmt: skip
    """The capture's messages through another fabric."""
    from roce_pkt.files import whole_file
    from roce_pkt.report.simulate_page import SimulationPage
    from roce_pkt.run.drive import drive

    pages: list[SimulationPage] = []
    with ExitStack() as stack:
        stream = None if events is None else stack.enter_context(whole_file(events, force=force))

        def tell(event: Event) -> None:
            if stream is not None:
                stream.write(json.dumps(event.as_json()).encode() + b"\n")

        def watch(scenario: Scenario) -> SimulationPage:
            pages.append(SimulationPage(scenario.duration_ps))
            return pages[0]

        driven = drive(
            source, fabric, open_loop=open_loop, on_event=tell if events else None,
            watch=watch if report else None,
        )  # fmt: skip
    if report is not None:
        from roce_pkt.report.drive_text import comparison
        from roce_pkt.report.html import write_html

        page = pages[0].page(
            f"{name} driven through {driven.result.scenario.get('name', fabric)}", driven.result
        )
        page.tables.insert(0, comparison(driven))
        page.findings = driven.findings + page.findings
        write_html(report, page, force=force)
    if form is Format.JSON:
        print_json(driven.as_json())
    else:
        from roce_pkt.report.drive_text import show

        show(name, driven)
    return 1 if any(f.severity == "error" for f in driven.result.findings) else 0


class _Outputs:
    """The files that a replay can write, and those who collect what goes into them."""

    def __init__(
        self,
        stack: ExitStack,
        name: str,
        output: str | None,
        report: str | None,
        png: str | None,
        *,
        force: bool,
    ) -> None:
        self._stack, self._force = stack, force
        self._name, self._output, self._report, self._png = name, output, report, png
        self._notes: Notes | None = None
        self._track: Track | None = None

    def watchers(self) -> list[MakeWatcher]:
        """Those who must watch the run."""
        made: list[MakeWatcher] = []
        if self._output is not None:
            made.append(self._annotator)
        if self._report is not None or self._png is not None:
            made.append(self._tracker)
        return made

    def _annotator(self, plan: Plan) -> Watcher:
        from roce_pkt.edit.annotate import Notes
        from roce_pkt.report.notes import Writer
        from roce_pkt.run.watch import EventLog

        self._notes = self._stack.enter_context(Notes())
        line_rate, fractions = float(plan.setup.rp["line_rate_bps"]), plan.setup.line_rate_bps is None
        return EventLog(plan.survey, plan.owners.candidates, Writer(self._notes, line_rate, fractions))

    def _tracker(self, plan: Plan) -> Watcher:
        from roce_pkt.run.track import Track

        self._track = Track(plan)
        return self._track

    def write(self, capture: Capture, seen: Observation) -> None:
        """Write them."""
        if self._output is not None and self._notes is not None:
            from roce_pkt.edit.annotate import annotate

            annotate(capture, self._output, self._notes, force=self._force)
        if self._track is None:
            return
        from roce_pkt.report.replay_page import page_of
        from roce_pkt.report.text import printable

        page = page_of(printable(self._name), seen, self._track)
        if self._report is not None:
            from roce_pkt.report.html import write_html

            write_html(self._report, page, force=self._force)
        if self._png is not None:
            from roce_pkt.report.png import write_png

            write_png(self._png, page, force=self._force)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ScenarioError("--set", f"{text!r} is not KEY=VALUE, such as ai_rate=40Mbps")
    return name.strip(), value.strip()


def _rate(text: str) -> float:
    from roce_pkt.units import parse_rate_bps

    rate_bps = parse_rate_bps(text, "--line-rate")
    if rate_bps <= 0:
        raise ScenarioError("--line-rate", f"{text!r} is no speed")
    return rate_bps
