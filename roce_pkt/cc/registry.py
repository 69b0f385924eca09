"""Every congestion-control law by name: those of the package, and those other packages announce.

A package announces a law by an entry point of the group `roce_pkt.cc` that names a module (or a
file) with what `roce_pkt.cc.fixed` has.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from roce_pkt.errors import ScenarioError, nearest

GROUP = "roce_pkt.cc"
BUILT_IN = {
    "dcqcn": "dcqcn",
    "fixed": "fixed",
    "timely": "timely",
    "patched-timely": "patched_timely",
    "hpcc": "hpcc",
    "swift": "swift",
    "dctcp": "dctcp",
    "powertcp": "powertcp",
    "theta-powertcp": "theta_powertcp",
}
"""Name in scenarios -> module of this room."""


def names() -> list[str]:
    """Every law's name: built-in ones, then announced ones."""
    return [*BUILT_IN, *(name for name in sorted(announced()) if name not in BUILT_IN)]


def announced() -> dict[str, str]:
    """Laws of other packages: name -> module."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def built_in(name: str, where: str = "host.cc.algorithm") -> ModuleType:
    """The module of a law of this package.

    Raises:
        ScenarioError: Unknown name, with the nearest right one.
    """
    if name not in BUILT_IN:
        known = names()
        raise ScenarioError(where, f"{name!r} is not one of {', '.join(known)}{nearest(name, known)}")
    return importlib.import_module(f"roce_pkt.cc.{BUILT_IN[name]}")
