"""What the verbs share: their common options, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from roce_pkt.errors import Finding, ScenarioError


class Format(StrEnum):
    """How a verb prints."""

    TEXT = "text"
    JSON = "json"


CaptureArgument = Annotated[
    str, typer.Argument(metavar="CAPTURE", help="pcap or pcapng, also .gz and .zst; - reads stdin.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="Text for people or one JSON document.")]
OutputOption = Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]
UdpPortOption = Annotated[
    int, typer.Option("--udp-port", min=1, max=65535, help="UDP destination port that carries RoCEv2.")
]


class AsWritten(list[Any]):
    """A list in a document for `print_json` whose items are made as they are written.

    Args:
        items: Makes them; read once.
    """

    def __init__(self, items: Iterator[Any]) -> None:
        super().__init__()
        self._items = items

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return self._items


def print_json(document: Any, *, indent: int | None = 2) -> None:
    """One JSON document on standard output, ASCII only."""
    json.dump(document, sys.stdout, indent=indent, allow_nan=False)
    sys.stdout.write("\n")


def tell_losses(losses: Iterable[Finding]) -> None:
    """Say on standard error what of a capture could not be read."""
    from roce_pkt.report.text import printable

    for loss in losses:
        sys.stderr.write(printable(f"{loss.severity}: {loss.text}") + "\n")


def with_losses(document: dict[str, Any], losses: Iterable[Finding]) -> dict[str, Any]:
    """The document, with what of a capture could not be read where there is such a thing."""
    told = [loss.as_json() for loss in losses]
    return document | {"losses": told} if told else document


def key_and_value(text: str) -> tuple[str, str]:
    """A change to a scenario, from `--set`.

    Raises:
        ScenarioError: It is not KEY=VALUE.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise ScenarioError("--set", f"{text!r} is not KEY=VALUE, such as switch.ecn.kmin=50KB")
    return key.strip(), value.strip()
