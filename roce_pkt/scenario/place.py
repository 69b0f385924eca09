"""Where in a TOML text a key stands, for errors that name the line."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")

Path = tuple[str | int, ...]


def line_of(text: str, path: Path) -> int | None:
    """The 1-based line of a key.

    Args:
        text: The TOML document.
        path: Table names, the index in an array of tables, then the key; a key inside an inline
            table is found on the line of that table or below.

    Returns:
        The line, or None when the key is not in the text (its value is a default).
    """
    names = [p for p in path if isinstance(p, str)]
    index = next((p for p in path if isinstance(p, int)), 0)
    best: tuple[int, int] | None = None
    table: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _split(header[2])
            name = ".".join(table)
            seen[name] = seen.get(name, -1) + 1
            if header[1] and names[:1] == table and seen[name] != index:
                table = ["another table of the array"]
            depth = len(table) if names[: len(table)] == table else 0
        else:
            depth = _depth(line, table, names)
        if depth and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None


def _split(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _depth(line: str, table: list[str], names: list[str]) -> int:
    """How much of the path is settled on this line: table names, the key, keys of an inline table."""
    if names[: len(table)] != table:
        return 0
    key, equals, rest = line.partition("=")
    keys = table + _split(key)
    if not equals or names[: len(keys)] != keys:
        return 0
    depth = len(keys)
    for name in names[depth:]:
        if not re.search(rf"[{{,]\s*[\"']?{re.escape(name)}[\"']?\s*=", rest):
            break
        depth += 1
    return depth
