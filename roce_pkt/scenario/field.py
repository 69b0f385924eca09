"""One row of the scenario schema: how a key is written, what it may hold, what it means.

A section of a scenario is a frozen dataclass whose fields are made by the helpers here. The name
of a field carries its unit (`kmin_bytes`); the key in the file is the name without it (`kmin`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from roce_pkt.errors import ScenarioError, nearest
from roce_pkt.units import parse_rate_bps, parse_size_bytes, parse_time_ps

UNIT_SUFFIXES = ("_bytes", "_bps", "_ps")
META = "scenario"


@dataclass(frozen=True, slots=True)
class Row:
    """What the schema knows about one key.

    Args:
        read: Turns the value in the file into the value of the field; raises ScenarioError.
        default: The value as a file would state it; it is written out in every result.
        allowed: What may be written, in words.
        doc: What the key means.
    """

    read: Callable[[Any, str], Any]
    default: Any
    allowed: str
    doc: str


def key_of(name: str) -> str:
    """The key in the file for a field's name: `kmin_bytes` -> `kmin`."""
    for suffix in UNIT_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def rows_of(section: type) -> dict[str, tuple[str, Row]]:
    """The keys of a section in order: key -> (field name, row)."""
    found = {}
    for field in dataclasses.fields(section):
        if META in field.metadata:
            found[key_of(field.name)] = (field.name, cast("Row", field.metadata[META]))
    return found


def _row(read: Callable[[Any, str], Any], default: Any, allowed: str, doc: str) -> Any:
    return dataclasses.field(metadata={META: Row(read, default, allowed, doc)})


def _number(kind: type, low: float, high: float) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        right = isinstance(value, int | float) if kind is float else isinstance(value, int)
        if not right or isinstance(value, bool) or not low <= value <= high:
            span = (
                f"a whole number from {low} to {high}"
                if kind is int
                else f"a number from {low:g} to {high:g}"
            )
            raise ScenarioError(where, f"{value!r} is not {span}")
        return kind(value)

    return read


def _or_words(parse: Callable[[str, str], Any], words: Mapping[str, Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        if isinstance(value, str) and value in words:
            return words[value]
        return parse(value, where)

    return read


def integer(default: int, doc: str, low: int = 0, high: int = 1 << 62) -> Any:
    """A whole number."""
    return _row(_number(int, low, high), default, f"{low} to {high}", doc)


def fraction(default: float, doc: str, low: float = 0.0, high: float = 1.0) -> Any:
    """A plain number."""
    return _row(_number(float, low, high), default, f"{low:g} to {high:g}", doc)


def time(default: str, doc: str, **words: int) -> Any:
    """A time with a unit, or one of the words given with the value each stands for."""
    allowed = " or ".join(["a time such as 55us", *words])
    return _row(_or_words(parse_time_ps, words), default, allowed, doc)


def rate(default: str, doc: str, **words: float) -> Any:
    """A rate with a unit, or a word."""
    allowed = " or ".join(["a rate such as 100Gbps", *words])
    return _row(_or_words(_positive_rate, words), default, allowed, doc)


def size(default: str, doc: str, **words: int) -> Any:
    """A size with a unit, or a word."""
    allowed = " or ".join(["a size such as 400KB", *words])
    return _row(_or_words(parse_size_bytes, words), default, allowed, doc)


def _positive_rate(value: str, where: str) -> float:
    rate_bps = parse_rate_bps(value, where)
    if not 1e6 <= rate_bps <= 1.6e12:
        raise ScenarioError(where, f"{value!r} is outside 1Mbps to 1600Gbps")
    return rate_bps


def choice(default: str, doc: str, *allowed: str) -> Any:
    """One of a few words."""

    def read(value: Any, where: str) -> str:
        if value not in allowed:
            hint = nearest(str(value), allowed)
            raise ScenarioError(where, f"{value!r} is not known{hint}")  # the reader adds what is allowed
        return str(value)

    return _row(read, default, ", ".join(allowed), doc)


def text(default: str, doc: str) -> Any:
    """Any text."""

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise ScenarioError(where, f"{value!r} is not text")
        return value

    return _row(read, default, "text", doc)


def flag(default: bool, doc: str) -> Any:
    """True or false."""

    def read(value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise ScenarioError(where, f"{value!r} is not true or false")
        return value

    return _row(read, default, "true or false", doc)


def numbers(default: list[int], doc: str, high: int) -> Any:
    """A list of whole numbers from 0 to `high`."""
    one = _number(int, 0, high)

    def read(value: Any, where: str) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise ScenarioError(where, f"{value!r} is not a list of whole numbers")
        return tuple(one(v, where) for v in value)

    return _row(read, default, f"a list of numbers from 0 to {high}", doc)


def texts(default: list[str], doc: str) -> Any:
    """A list of texts."""

    def read(value: Any, where: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise ScenarioError(where, f"{value!r} is not a list of texts")
        return tuple(value)

    return _row(read, default, "a list of texts", doc)


def times(default: list[str], doc: str) -> Any:
    """A list of times with units."""

    def read(value: Any, where: str) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise ScenarioError(where, f"{value!r} is not a list of times")
        return tuple(parse_time_ps(v, where) for v in value)

    return _row(read, default, "a list of times such as 55us", doc)


def pairs(default: list[list[int]], doc: str) -> Any:
    """A list of [source, destination] host numbers."""
    one = _number(int, 0, 1 << 20)

    def read(value: Any, where: str) -> tuple[tuple[int, int], ...]:
        if not isinstance(value, list) or not all(isinstance(v, list) and len(v) == 2 for v in value):
            raise ScenarioError(where, f"{value!r} is not a list of [source, destination] pairs")
        return tuple((one(a, where), one(b, where)) for a, b in value)

    return _row(read, default, "a list of [source, destination] pairs", doc)


def mapping(default: dict[str, int], doc: str, key_high: int, value_high: int) -> Any:
    """A table from number to number, e.g. `{ 26 = 3 }`."""
    one = _number(int, 0, value_high)

    def read(value: Any, where: str) -> dict[int, int]:
        if not isinstance(value, dict):
            raise ScenarioError(where, f"{value!r} is not a table such as {{ 26 = 3 }}")
        for k in value:
            if not str(k).isdigit() or int(k) > key_high:
                raise ScenarioError(where, f"{k!r} is not a number from 0 to {key_high}")
        return {int(k): one(v, where) for k, v in value.items()}

    return _row(read, default, f"a table from 0..{key_high} to 0..{value_high}", doc)


def free_table(doc: str) -> Any:
    """A table whose keys another room checks (parameters of a congestion-control law)."""

    def read(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ScenarioError(where, f"{value!r} is not a table")
        return dict(value)

    return _row(read, {}, "a table", doc)


def apart() -> Any:
    """A field that is no key of the file."""
    return dataclasses.field()


def section(kind: type, doc: str) -> Any:
    """A table with keys of its own."""
    return _row(lambda value, _: value, kind, "a table", doc)
