"""Scenarios that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from roce_pkt.errors import ScenarioError, nearest
from roce_pkt.scenario.reader import read_file, read_text
from roce_pkt.scenario.schema import Scenario

FOLDER = "presets"


@dataclass(frozen=True, slots=True)
class Preset:
    """One scenario of the package.

    Args:
        name: What `--preset` takes.
        about: Its first comment lines: what it shows, and what to look at.
        text: The TOML document.
    """

    name: str
    about: str
    text: str


def names() -> list[str]:
    """Every preset's name."""
    folder = resources.files("roce_pkt.scenario") / FOLDER
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def find(name: str) -> Preset:
    """The preset called `name`.

    Raises:
        ScenarioError: Unknown name, with the nearest right one.
    """
    known = names()
    if name not in known:
        raise ScenarioError(
            "--preset", f"unknown preset {name!r}{nearest(name, known)}; known: {', '.join(known)}"
        )
    text = (resources.files("roce_pkt.scenario") / FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    comments = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        comments.append(line.lstrip("# "))
    return Preset(name, " ".join(comments), text)


def load(name: str, changes: Mapping[str, str] | None = None) -> Scenario:
    """A preset as a scenario."""
    return read_text(find(name).text, f"preset {name}", changes)


def scenario_of(source: Scenario | str | Path, changes: Mapping[str, str] | None = None) -> Scenario:
    """A scenario from a file, or a preset by its name.

    Raises:
        ScenarioError: Something in it is wrong.
        InputError: It cannot be read.
    """
    if isinstance(source, Scenario):
        return source
    if str(source) in names() and not Path(source).exists():
        return load(str(source), changes)
    return read_file(source, changes)
