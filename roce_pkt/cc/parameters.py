"""The machine under every parameter table: one row a parameter, everything else derived from it.

From the rows come the record that laws read, the range checks and their messages, the reading of
"40Mbps", "55us", "10MB", "1/256" or "5%", and the names other tools use for the same thing, each
with the unit its bare numbers are in there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from roce_pkt import units
from roce_pkt.cc.law import twin
from roce_pkt.errors import ScenarioError, nearest

Unit = Literal["bps", "ps", "bytes", "ratio", "count", "switch"]
Setting = str | float
"""A value as a person gives it: text with a unit, or a number already in the row's own unit."""

OFF_ON = ("off", "on")
_BARE_NUMBER = re.compile(r"\s*[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?(/[0-9]{1,30})?\s*")
_WHOLE_MAX = 1 << 52
_FLAG_WORDS = {"0": 0, "false": 0, "no": 0, "1": 1, "true": 1, "yes": 1}

FOREIGN_UNITS: Mapping[str, Callable[[Fraction], Fraction]] = {
    "": lambda v: v,
    "us": lambda v: v * units.PS_PER_US,
    "Mb/s": lambda v: v * 10**6,
    "MB": lambda v: v * 10**6,
    "64 B": lambda v: v * 64,
    "%": lambda v: v / 100,
    "1/1024": lambda v: v / 1024,
    "1024ths kept": lambda v: (1024 - v) / 1024,  # the old average's weight; ours is the new sample's
    "log2 of 1024ths": lambda v: Fraction(2) ** (10 - int(v)),  # 11: half of alpha, 10: all of it
    "log2 of 1/g": lambda v: Fraction(1, 2 ** int(v)),
}
"""How a bare number under a foreign name becomes a number in our unit."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Names elsewhere for one parameter.

    Args:
        unit: A key of `FOREIGN_UNITS`, or `% of line`: what a bare number under these names means.
        names: The names; compared without regard to case when longer than two letters.
    """

    unit: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of a parameter table.

    Args:
        name: Key in scenarios and for `--set`; the record's field adds the unit (`ai_rate_bps`).
        unit: `bps`, `ps`, `bytes`, `ratio`, `count`, or `switch` with `choices`.
        default: The default as text.
        doc: One sentence.
        source: Where the default comes from.
        low: Smallest value allowed.
        high: Largest value allowed, or None. A rate is also never above the line rate.
        choices: Words of a switch; the record holds the word's position.
        aliases: Names in other tools.
    """

    name: str
    unit: Unit
    default: str
    doc: str
    source: str
    low: float = 0
    high: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()

    @property
    def field(self) -> str:
        """The record's field: the name with its unit last."""
        return f"{self.name}_{self.unit}" if self.unit in ("bps", "ps", "bytes") else self.name

    def read(self, value: Setting, where: str, line_rate_bps: float, foreign: str | None = None) -> float:
        """One setting as a number in the row's unit, range-checked.

        Args:
            value: Text with a unit, or a number in the row's unit (in the foreign unit, if given).
            where: File and key, or option, for the error.
            line_rate_bps: What a rate in percent is a part of.
            foreign: Key of `FOREIGN_UNITS` that a bare number is in.

        Raises:
            ScenarioError: No such word, no number, a wrong or missing unit, or out of range.
        """
        if self.unit == "switch":
            return self._choice(value, where)
        number = self._bare(value, foreign, line_rate_bps)
        if number is None:
            number = self._with_unit(str(value), where, line_rate_bps)
        high = self.high if self.high is not None else _WHOLE_MAX
        if not self.low <= number <= high:
            raise ScenarioError(where, f"{value} is out of range; {self.name} takes {self.range_text()}")
        return float(number) if self.unit in ("bps", "ratio") else self._whole(number, value, where)

    def _bare(self, value: Setting, foreign: str | None, line_rate_bps: float) -> Fraction | None:
        number = _fraction(str(value))
        if number is None:
            return None
        if foreign == "% of line":
            return number / 100 * Fraction(line_rate_bps)
        if foreign is not None:
            return FOREIGN_UNITS[foreign](number)
        unitless = not isinstance(value, str) or self.unit in ("ratio", "count") or number == 0
        return number if unitless else None

    def _with_unit(self, text: str, where: str, line_rate_bps: float) -> Fraction:
        percent = _percent(text)
        match self.unit:
            case "bps" if percent is not None:
                return percent * Fraction(line_rate_bps)
            case "bps":
                return Fraction(units.parse_rate_bps(text, where))
            case "ps":
                return Fraction(units.parse_time_ps(text, where))
            case "bytes":
                return Fraction(units.parse_size_bytes(text, where))
            case "ratio" if percent is not None:
                return percent
            case _:
                example = "1/256, 0.5 or 50%" if self.unit == "ratio" else "5"
                raise ScenarioError(where, f"{text!r} is no number; {self.name} is written like {example}")

    def _whole(self, number: Fraction, value: Setting, where: str) -> int:
        if number.denominator != 1:
            raise ScenarioError(where, f"{value} is not a whole number of {self.unit}")
        return number.numerator

    def _choice(self, value: Setting, where: str) -> int:
        word = str(value).strip().lower()
        if self.choices == OFF_ON and word in _FLAG_WORDS:
            return _FLAG_WORDS[word]
        if word not in self.choices:
            near = nearest(word, self.choices)
            raise ScenarioError(where, f"{value!r}{near}; {self.name} is one of {', '.join(self.choices)}")
        return self.choices.index(word)

    def text(self, number: float) -> str:
        """A value of this row for people."""
        match self.unit:
            case "switch":
                return self.choices[int(number)]
            case "bps":
                return units.format_rate(number)
            case "ps":
                return units.format_time_ns(number / units.PS_PER_NS)
            case "bytes":
                return units.format_bytes(number)
            case _:
                return f"{number:g}"

    def range_text(self) -> str:
        """What is allowed, for people."""
        if self.choices:
            return ", ".join(self.choices)
        top = "the line rate" if self.unit == "bps" and self.high is None else None
        if self.high is not None:
            top = self.text(self.high)
        return f"{self.text(self.low)} or more" if top is None else f"{self.text(self.low)} to {top}"


def _fraction(text: str) -> Fraction | None:
    """Read 0.5, 1e-3 or 1/256; the pattern keeps a hostile exponent from filling memory."""
    if not _BARE_NUMBER.fullmatch(text):
        return None
    try:
        over, _, under = text.strip().partition("/")
        return Fraction(over) / Fraction(under or 1)
    except ZeroDivisionError:
        return None


def _percent(text: str) -> Fraction | None:
    number = _fraction(text.strip()[:-1]) if text.strip().endswith("%") else None
    return None if number is None else number / 100


class ParameterTable:
    """The rows of one algorithm, and what follows from them.

    Args:
        rows: The parameters, in the order they are shown.

    Attributes:
        dtype: The record laws read: `line_rate_bps` first, then a field for each row.
        twin: The plain Python class with the same fields.
    """

    def __init__(self, *rows: Parameter) -> None:
        self.rows = rows
        self._rows = {row.name: row for row in rows}
        self._aliases: dict[str, tuple[Parameter, str]] = {}
        for row in rows:
            for alias in row.aliases:
                self._aliases |= {_fold(name): (row, alias.unit) for name in alias.names}
        fields = [("line_rate_bps", "f8")]
        fields += [(row.field, "f8" if row.unit in ("bps", "ratio") else "i8") for row in rows]
        self.dtype: np.dtype[Any] = np.dtype(fields, align=True)
        self.twin = twin(self.dtype)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.rows)

    def has_alias(self, name: str) -> bool:
        """True when `name` is a foreign name of one of the rows."""
        return _fold(name) in self._aliases

    def as_json(self, record: Any) -> dict[str, object]:
        """The parameters of a record (or its twin) by field; switches as words."""
        return {
            row.field: row.choices[getattr(record, row.field)] if row.choices else getattr(record, row.field)
            for row in self.rows
        }

    def names(self) -> list[str]:
        """Every name `find` knows: ours, then the foreign ones."""
        return [*self._rows, *(name for row in self.rows for alias in row.aliases for name in alias.names)]

    def find(self, name: str, where: str) -> tuple[Parameter, str | None]:
        """The row a name means, and the foreign unit of its bare numbers (None for our own name).

        Raises:
            ScenarioError: Unknown name, with the nearest right one.
        """
        if name in self._rows:
            return self._rows[name], None
        if _fold(name) in self._aliases:
            return self._aliases[_fold(name)]
        hint = nearest(name, self.names()) or f"; known: {', '.join(self._rows)}"
        raise ScenarioError(where, f"unknown parameter {name!r}{hint}")

    def record(
        self,
        settings: Mapping[str, Setting],
        line_rate_bps: float,
        *,
        rate_scale: float = 1.0,
        where: str = "--set ",
    ) -> Any:
        """Every parameter as one record, defaults filled in.

        Args:
            settings: Values by our name or by a foreign one; of two for one parameter the last counts.
            line_rate_bps: The port's rate.
            rate_scale: Factor on rates given in bits a second; with a `line_rate_bps` of 1.0 it makes
                every rate a fraction of line.
            where: What stands before the name in an error.

        Returns:
            One numpy record of `dtype`; `twin(record)` is its plain Python copy.

        Raises:
            ScenarioError: Unknown name, wrong unit, out of range, or a rate above the line rate.
        """
        record = np.zeros(1, self.dtype)[0]
        record["line_rate_bps"] = line_rate_bps
        given: dict[str, tuple[Parameter, Setting, str | None, str]] = {
            row.name: (row, row.default, None, row.name) for row in self.rows
        }
        for name, value in settings.items():
            row, foreign = self.find(name, f"{where}{name}")
            given[row.name] = (row, value, foreign, name)
        for row, value, foreign, name in given.values():
            place = f"{where}{name}"
            number = row.read(value, place, line_rate_bps / rate_scale, foreign)
            if row.unit == "bps":
                number *= rate_scale
                if number > line_rate_bps:
                    raise ScenarioError(place, f"{value} is above the line rate")
            record[row.field] = number
        return record


def _fold(name: str) -> str:
    """Symbols such as `g`, `F`, `K` keep their case; longer names do not depend on it."""
    return name if len(name) <= 2 else name.lower()
