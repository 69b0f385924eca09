"""What the verbs share: the console, formats, JSON, progress, and text from packets made harmless."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


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


def console(*, stderr: bool = False) -> Console:
    """A console that neither guesses markup nor colours a pipe."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """Text from a capture without control characters, so that it cannot drive a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def print_json(document: Any, *, indent: int | None = 2) -> None:
    """One JSON document on standard output, ASCII only."""
    json.dump(document, sys.stdout, indent=indent, allow_nan=False)
    sys.stdout.write("\n")
