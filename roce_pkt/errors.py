"""Every error this package raises for a person to read, and every finding it states about a capture.

Two families: the input is theirs (a capture, a scenario, a command line) and something in it
cannot be used (`InputError`), or a frame in a readable capture is wrong (`Finding`, which is data
and is never raised).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


class RoceError(Exception):
    """Base of every error raised on purpose by this package."""


class InputError(RoceError):
    """Wrong use or unreadable input: one line that says where, what, and what to do."""


class CaptureError(InputError):
    """A capture file that cannot be read at all.

    Args:
        path: The file as the user named it.
        what: What is wrong, and what to do about it.
        offset: Octet offset in the file where reading stopped, if known.
    """

    def __init__(self, path: object, what: str, offset: int | None = None) -> None:
        self.path, self.what, self.offset = str(path), what, offset
        where = "" if offset is None else f" at octet {offset}"
        super().__init__(f"{path}{where}: {what}")


class ScenarioError(InputError):
    """A scenario or parameter that is unknown, has a wrong unit, or is out of range.

    Args:
        where: File and key, or the option that carried the value.
        what: What is wrong and what is allowed.
    """

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what
        super().__init__(f"{where}: {what}")


class FilterError(InputError):
    """A `--where` or `--fields` expression that does not parse, with the place."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why decoding a frame stopped: a header did not fit.

    Args:
        layer: Name of the header that was being read.
        offset: Octet offset of that header in the frame.
        needed: Octets the header needs.
        had: Octets that were left.
    """

    layer: str
    offset: int
    needed: int
    had: int

    def __str__(self) -> str:
        return f"{self.layer} at octet {self.offset} needs {self.needed} octets, {self.had} left"


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement about a capture that somebody should look at.

    Args:
        rule: Stable dotted name, e.g. `icrc.wrong`.
        severity: `error`, `warning` or `note`.
        text: One sentence for a person.
        frame: 1-based frame number, or None when it concerns the whole capture.
    """

    rule: str
    severity: Severity
    text: str
    frame: int | None = None

    def as_json(self) -> dict[str, object]:
        """The finding as a JSON object."""
        return asdict(self)


def nearest(word: str, known: Iterable[str]) -> str:
    """A "did you mean" clause for an unknown name, or an empty string when nothing is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
