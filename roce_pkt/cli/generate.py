"""`roce-pkt generate`: frames of a workload at line rate."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from roce_pkt.cli.common import ForceOption, Format, FormatOption, print_json
from roce_pkt.errors import InputError, ScenarioError

if TYPE_CHECKING:
    from roce_pkt.scenario.schema import Scenario


def generate(
    scenario: Annotated[str, typer.Argument(metavar="[SCENARIO.toml]", help="Scenario file.")] = "",
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="pcap, or pcapng by its name.")
    ] = "",
    preset: Annotated[
        str,
        typer.Option("--preset", metavar="NAME", help="A scenario of the package; see: roce-pkt presets."),
    ] = "",
    like: Annotated[
        str, typer.Option("--like", metavar="'CMD'", help="As perftest: 'ib_write_bw -q 4 -s 65536'.")
    ] = "",
    changes: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key: host.mtu=4096 (repeatable)."),
    ] = [],  # noqa: B006
    taps: Annotated[
        list[str], typer.Option("--tap", metavar="HOST", help="Record at host0, ...; else what all send.")
    ] = [],  # noqa: B006
    count: Annotated[int, typer.Option("--count", min=0, metavar="N", help="Frames at most; 0 all.")] = 0,
    show: Annotated[
        bool, typer.Option("--scenario", help="Print the scenario as TOML; write nothing.")
    ] = False,
    force: ForceOption = False,
    form: FormatOption = Format.TEXT,
) -> int:
    """Write the frames of a workload: verbs, patterns, rates and faults as the scenario says.

    Without a fabric: every host's line is its own, nothing queues in between, nothing is lost unless a
    [[fault]] says so. Faults are listed in FILE.truth.jsonl.
    """
    from roce_pkt.files import check_outputs

    text, name = _text(scenario, preset, like)
    if show:
        sys.stdout.write(text)
        return 0
    loaded = _load(text, name, changes)
    if taps:
        loaded = replace(loaded, taps=tuple(taps), written=loaded.written | {"taps": list(taps)})
    if not output:
        raise InputError("generate: -o FILE says where the frames go")
    check_outputs([output], [scenario], force=force)
    from roce_pkt.run.generate import Generation  # the compiler, too, after what may be wrong

    done = Generation(loaded, count).write(output, force=force)
    if form is Format.JSON:
        print_json(
            {
                "frames": done.frames,
                "octets": done.octets,
                "connections": done.connections,
                "last_ns": done.last_ns,
                "faults": dict(done.faults),
                "scenario": loaded.written,
            }
        )
    else:
        from roce_pkt.units import format_bytes, format_time_ns

        faults = "".join(f", {n} {kind}" for kind, n in done.faults.items())
        sys.stdout.write(
            f"{done.frames} frames, {format_bytes(done.octets)}, {format_time_ns(done.last_ns)}, "
            f"{done.connections} connections{faults}\n"
        )
    return 0


def _text(scenario: str, preset: str, like: str) -> tuple[str, str]:
    """The one source that is given: its TOML text, and its name for errors."""
    from roce_pkt.scenario import presets, reader
    from roce_pkt.traffic import perftest

    if sum(map(bool, (scenario, preset, like))) != 1:
        raise InputError("generate: give one of SCENARIO.toml, --preset NAME or --like 'ib_write_bw ...'")
    if preset:
        return presets.find(preset).text, f"preset {preset}"
    if like:
        return perftest.scenario_text(like), "--like"
    return reader.file_text(scenario), scenario


def _load(text: str, name: str, changes: list[str]) -> Scenario:
    from roce_pkt.scenario.reader import read_text

    given = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ScenarioError("--set", f"{change!r} is not KEY=VALUE, such as host.mtu=4096")
        given[key.strip()] = value.strip()
    return read_text(text, name, given)
