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
from roce_pkt.errors import ScenarioError

if TYPE_CHECKING:
    from roce_pkt.events import Event


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
    force: ForceOption = False,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Run a capture through DCQCN: who was marked, who was told, who slowed down.

    CE marks feed a notification point, CNPs (or, without any, the expected ones) a reaction point
    for each flow. Leaves with 1 when a finding is an error.
    """
    from roce_pkt.capture import open as open_capture
    from roce_pkt.files import whole_file
    from roce_pkt.run.observe import observe
    from roce_pkt.units import parse_time_ps

    settings = dict(_setting(change) for change in changes or [])
    rate_bps = None if line_rate is None else _rate(line_rate)
    with ExitStack() as stack:
        tell = None
        if events is not None:
            stream = stack.enter_context(whole_file(events, force=force))

            def tell(event: Event) -> None:
                stream.write(json.dumps(event.as_json()).encode() + b"\n")

        seen = observe(
            open_capture(capture, udp_port),
            profile,
            settings,
            line_rate_bps=rate_bps,
            tap=tap.value,
            path_delay_ps=parse_time_ps(path_delay, "--path-delay"),
            on_event=tell,
        )
    if form is Format.JSON:
        print_json(seen.as_json())
    else:
        from roce_pkt.report.replay_text import show

        show(capture, seen)
    return 1 if seen.failed else 0


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
