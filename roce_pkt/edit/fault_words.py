"""Faults from the command line: `drop qp=0x11 psn=1007 occurrence=2`."""

from __future__ import annotations

import json
from pathlib import Path

from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.scenario.fault import Fault
from roce_pkt.scenario.field import rows_of
from roce_pkt.scenario.reader import file_text, read_faults


def fault_from_words(text: str) -> Fault:
    """One fault: its kind, then KEY=VALUE words as in a `[[fault]]` table.

    Raises:
        InputError: What is wrong, and what is allowed.
    """
    kind, *words = text.split()
    lines = ["[[fault]]", f"do = {json.dumps(kind)}"]
    rows = rows_of(Fault)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise InputError(f"--fault {text!r}: {word!r} is not KEY=VALUE; e.g. 'drop qp=0x11 psn=1007'")
        quoted = key in rows and isinstance(rows[key][1].default, str)
        lines.append(f"{json.dumps(key)} = {json.dumps(value) if quoted or not _bare(value) else value}")
    option = f"--fault {text!r}"
    try:
        return read_faults("\n".join(lines), option)[0]
    except ScenarioError as error:
        # the words became lines of a table that nobody wrote: name the key, not the line
        key = error.where.rpartition(": ")[2].removeprefix("fault[0].")
        raise ScenarioError(f"{option}: {key}" if key != option else option, error.what) from None


def _bare(text: str) -> bool:
    """Whether a word is a TOML number or truth value as it stands."""
    if text in ("true", "false"):
        return True
    for read in (lambda t: int(t, 0), float):
        try:
            read(text)
        except ValueError:
            continue
        return True
    return False


def faults_from_file(path: str | Path) -> tuple[Fault, ...]:
    """Faults from a TOML file of `[[fault]]` tables.

    Raises:
        InputError: It cannot be read, or something in it is wrong.
    """
    return read_faults(file_text(path), str(path))
