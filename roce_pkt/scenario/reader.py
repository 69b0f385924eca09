"""Read a scenario: TOML text -> checked values, every default written out.

An error is one line: file, line, key, the value, what is allowed, and the nearest right name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roce_pkt.errors import InputError, ScenarioError, nearest
from roce_pkt.scenario import checks
from roce_pkt.scenario.fault import Fault
from roce_pkt.scenario.field import Row, rows_of
from roce_pkt.scenario.place import line_of
from roce_pkt.scenario.schema import Scenario, Traffic

MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Document:
    """A scenario's text, and how to name a place in it.

    Args:
        name: File or preset, as the user named it.
        text: The TOML document.
    """

    name: str
    text: str

    def where(self, path: tuple[str | int, ...]) -> str:
        """`file:line: key` for an error."""
        line = line_of(self.text, path)
        place = self.name if line is None else f"{self.name}:{line}"
        return f"{place}: {dotted(path)}"


def dotted(path: tuple[str | int, ...]) -> str:
    """A path for people: `switch.ecn.kmin`, `traffic[1].verb`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_file(path: str | Path, overrides: Mapping[str, str] | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: The TOML file.
        overrides: Dotted key -> TOML value or bare text, applied before checking.

    Raises:
        ScenarioError: Something in it is wrong.
        InputError: It cannot be read.
    """
    return read_text(file_text(path), str(path), overrides)


def file_text(path: str | Path) -> str:
    """The text of a TOML file.

    Raises:
        InputError: It cannot be read, is too large or no text.
    """
    try:
        with Path(path).open("rb") as file:
            octets = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(octets) > MAX_BYTES:
        raise InputError(f"{path}: more than {MAX_BYTES} octets is no scenario file")
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text file (octet {error.start} is not UTF-8)") from error


def read_text(text: str, name: str = "scenario", overrides: Mapping[str, str] | None = None) -> Scenario:
    """Read a scenario from TOML text.

    Args:
        text: The document.
        name: Named in errors.
        overrides: Dotted key -> TOML value or bare text, applied before checking.

    Raises:
        ScenarioError: Not TOML, an unknown key, a wrong value, or values that contradict each other.
    """
    document = Document(name, text)
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ScenarioError(name, f"not TOML: {error}") from error
    for key, value in (overrides or {}).items():
        _override(values, key, value)
    scenario = _top(document, values)
    checks.check(document.where, scenario)
    return scenario


def _override(values: dict[str, Any], key: str, text: str) -> None:
    *tables, last = key.split(".")
    targets = [values]
    for table in tables:
        # a key of [[traffic]] is changed in every such table
        inner = [target.setdefault(table, {}) for target in targets]
        targets = [one for found in inner for one in (found if isinstance(found, list) else [found])]
        if not all(isinstance(target, dict) for target in targets):
            raise ScenarioError(key, f"{table!r} is not a table")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for target in targets:
        target[last] = value


def read_faults(text: str, name: str) -> tuple[Fault, ...]:
    """Read a document of `[[fault]]` tables and nothing else.

    Args:
        text: TOML.
        name: Named in errors.

    Raises:
        ScenarioError: Not TOML, no such table, an unknown key or a wrong value.
    """
    document = Document(name, text)
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ScenarioError(name, f"not TOML: {error}") from error
    if set(values) != {"fault"}:
        raise ScenarioError(name, "[[fault]] tables are needed, and nothing else")
    return tuple(section for section, _ in _tables(document, "fault", Fault, values["fault"]))


def _tables(document: Document, key: str, kind: type, tables: Any) -> list[tuple[Any, dict[str, Any]]]:
    """An array of tables, each with what it says in full."""
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise ScenarioError(document.where((key,)), f"{key} is written as [[{key}]] tables")
    return [_section(document, (key, i), kind, table) for i, table in enumerate(tables)]


def _top(document: Document, values: dict[str, Any]) -> Scenario:
    traffic = _tables(document, "traffic", Traffic, values.pop("traffic", []))
    faults = _tables(document, "fault", Fault, values.pop("fault", []))
    if not traffic:
        raise ScenarioError(document.where(("traffic",)), "at least one [[traffic]] table is needed")
    fields, written = _fields(document, (), Scenario, values, skip=("traffic", "fault"))
    written["traffic"] = [table for _, table in traffic]
    written["fault"] = [table for _, table in faults]
    return Scenario(
        **fields,
        traffic=tuple(section for section, _ in traffic),
        fault=tuple(section for section, _ in faults),
        written=written,
    )


def _section(
    document: Document, path: tuple[str | int, ...], kind: type, values: Any
) -> tuple[Any, dict[str, Any]]:
    if not isinstance(values, dict):
        raise ScenarioError(document.where(path), f"{values!r} is not a table")
    fields, written = _fields(document, path, kind, values)
    return kind(**fields), written


def _fields(
    document: Document,
    path: tuple[str | int, ...],
    kind: type,
    values: Mapping[str, Any],
    skip: tuple[str, ...] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = {key: row for key, row in rows_of(kind).items() if key not in skip}
    for key in values:
        if key not in rows:
            allowed = f"; allowed here: {', '.join(rows)}" if not nearest(key, rows) else ""
            raise ScenarioError(
                document.where((*path, key)), f"unknown key {key!r}{nearest(key, rows)}{allowed}"
            )
    fields: dict[str, Any] = {}
    written: dict[str, Any] = {}
    for key, (name, row) in rows.items():
        inner = (*path, key)
        if isinstance(row.default, type):
            fields[name], written[key] = _section(document, inner, row.default, values.get(key, {}))
        else:
            stated = values.get(key, row.default)
            fields[name] = _value(document, inner, row, stated)
            written[key] = stated
    return fields, written


def _value(document: Document, path: tuple[str | int, ...], row: Row, stated: Any) -> Any:
    try:
        return row.read(stated, document.where(path))
    except ScenarioError as error:
        raise ScenarioError(error.where, f"{error.what}; allowed: {row.allowed}") from None
