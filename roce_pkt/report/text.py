"""The terminal: a console that guesses nothing, and text from packets made harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False) -> Console:
    """A console that neither guesses markup nor colours a pipe."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """Text from a capture without control characters, so that it cannot drive a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
