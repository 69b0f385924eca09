"""A report as data: panels over one time axis, tables, findings, parameters. Knows no DCQCN and no HTML.

Whatever has something to show (an observed capture, a simulation) fills a `Page`; `html` and `png`
draw it. Times are seconds from the start of what is shown; names are text from anywhere and are
escaped by whoever draws them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roce_pkt.errors import Finding

Numbers = NDArray[np.float64]
Shape = Literal["step", "line"]
Weight = Literal["main", "thin", "dotted"]
Symbol = Literal["dot", "ring", "cross", "tick"]
Kind = Literal["text", "number", "frame", "rate", "bytes", "time", "percent"]
"""What a table column holds; numbers of every kind sort as numbers and are shown with their unit."""

REST = "rest"
"""Group of the curve that stands for everything not shown one by one."""


@dataclass(slots=True)
class Group:
    """Something with its own colour and switch, mostly a flow.

    Args:
        key: What curves, marks and table rows refer to.
        name: For people.
        shown: Visible when the page opens.
    """

    key: str
    name: str
    shown: bool = True


@dataclass(slots=True)
class Curve:
    """Values over time.

    Args:
        name: What is drawn, e.g. `rate`.
        group: Key of its group, or None: always visible, in a neutral colour.
        time_s: Seconds, ascending.
        value: In the panel's unit; NaN breaks the line.
        shape: `step`: a value holds until the next; `line`: straight between them.
        weight: How it is drawn.
    """

    name: str
    group: str | None
    time_s: Numbers
    value: Numbers
    shape: Shape = "line"
    weight: Weight = "main"


@dataclass(slots=True)
class Marks:
    """Instants.

    Args:
        name: What happened.
        group: Key of its group, or None.
        time_s: Seconds, ascending.
        lane: Lane of each panel they are drawn in.
        symbol: How they are drawn.
        notes: A line for each, shown under the pointer; may be empty.
    """

    name: str
    group: str | None
    time_s: Numbers
    lane: str
    symbol: Symbol = "dot"
    notes: Sequence[str] = ()


@dataclass(slots=True)
class Bands:
    """Spans of time in one lane, such as the pauses of a class.

    Args:
        name: What they are.
        lane: Lane they are drawn in.
        start_s: Where each starts, ascending.
        stop_s: Where each ends.
        group: Key of a group, or None.
        shade: Also shade every panel behind them.
    """

    name: str
    lane: str
    start_s: Numbers
    stop_s: Numbers
    group: str | None = None
    shade: bool = False


@dataclass(slots=True)
class Bar:
    """One number of a panel that has no time axis.

    Args:
        name: Whose it is.
        value: In the panel's unit.
    """

    name: str
    value: float


@dataclass(slots=True)
class Panel:
    """One strip of the picture: curves with a value axis, lanes of marks and bands, or bars.

    Args:
        title: What it shows.
        unit: Unit of the values; empty for lanes.
        note: How to read it.
        curves: Curves.
        marks: Marks, by lane.
        bands: Bands, by lane.
        bars: Bars, beside each other; such a panel has nothing else.
        level: A value to compare bars with.
        log: True where what is small counts as well as what is large.
        top: Highest value of the axis, where a peak would hide the rest; 0 for what the curves need.
    """

    title: str
    unit: str = ""
    note: str = ""
    curves: list[Curve] = field(default_factory=list)
    marks: list[Marks] = field(default_factory=list)
    bands: list[Bands] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    level: float = 0.0
    log: bool = False
    top: float = 0.0

    @property
    def lanes(self) -> list[str]:
        """Names of the lanes, in the order they came."""
        return list(dict.fromkeys([m.lane for m in self.marks] + [b.lane for b in self.bands]))

    @property
    def empty(self) -> bool:
        """True when there is nothing to draw."""
        return not any(len(c.time_s) for c in self.curves) and not self.lanes and not self.bars


@dataclass(slots=True)
class Table:
    """Rows that sort and filter.

    Args:
        title: What they are.
        columns: Heading and kind of each column.
        rows: Values; None is shown as a dash.
        groups: Key of each row's group, or None; empty when no row has one.
        note: What was left out, if anything.
    """

    title: str
    columns: list[tuple[str, Kind]]
    rows: list[list[Any]]
    groups: list[str | None] = field(default_factory=list)
    note: str = ""


@dataclass(slots=True)
class Parameter:
    """A value that something ran with.

    Args:
        name: Its key.
        value: With its unit.
        source: Where the value comes from.
        doc: One sentence.
    """

    name: str
    value: str
    source: str = ""
    doc: str = ""


@dataclass(slots=True)
class Page:
    """A whole report.

    Args:
        title: What was looked at.
        facts: Short (name, value) pairs for the top.
        span_s: Length of the time axis.
        groups: What can be switched on and off.
        panels: From top to bottom, all over the same time axis.
        tables: Tables.
        findings: What somebody should look at.
        parameters: What it ran with.
        caption: Lines below the title of a static picture, which has no tables.
        since_s: From when on numbers count; marked in the picture when it is later than 0.
    """

    title: str
    facts: list[tuple[str, str]]
    span_s: float
    groups: list[Group] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    caption: str = ""
    since_s: float = 0.0

    @property
    def time_unit(self) -> tuple[str, float]:
        """Unit of the time axis, and how many of them a second has."""
        for name, per_second in (("s", 1.0), ("ms", 1e3)):
            if self.span_s * per_second >= 2:
                return name, per_second
        return "us", 1e6

    def as_json(self) -> dict[str, Any]:
        """Everything in JSON's own types; arrays as base64 of little-endian floats."""
        unit, per_second = self.time_unit
        return {
            "title": self.title,
            "facts": self.facts,
            "time_unit": unit,
            "span": self.span_s * per_second,
            "since": self.since_s * per_second,
            "groups": [{"key": g.key, "name": g.name, "shown": g.shown} for g in self.groups],
            "panels": [_panel(panel, per_second) for panel in self.panels if not panel.empty],
            "tables": [
                {"title": t.title, "columns": t.columns, "rows": t.rows, "groups": t.groups, "note": t.note}
                for t in self.tables
            ],
            "findings": [finding.as_json() for finding in self.findings],
            "parameters": [[p.name, p.value, p.source, p.doc] for p in self.parameters],
        }


def _panel(panel: Panel, per_second: float) -> dict[str, Any]:
    return {
        "title": panel.title,
        "unit": panel.unit,
        "note": panel.note,
        "lanes": panel.lanes,
        "curves": [
            {
                "name": c.name,
                "group": c.group,
                "t": packed(c.time_s * per_second, "f8"),
                "v": packed(c.value, "f4"),
                "shape": c.shape,
                "weight": c.weight,
            }
            for c in panel.curves
        ],
        "marks": [
            {
                "name": m.name,
                "group": m.group,
                "t": packed(m.time_s * per_second, "f8"),
                "lane": m.lane,
                "symbol": m.symbol,
                "notes": list(m.notes),
            }
            for m in panel.marks
        ],
        "bands": [
            {
                "name": b.name,
                "group": b.group,
                "lane": b.lane,
                "from": packed(b.start_s * per_second, "f8"),
                "to": packed(b.stop_s * per_second, "f8"),
                "shade": b.shade,
            }
            for b in panel.bands
        ],
        "bars": [[b.name, b.value] for b in panel.bars],
        "level": panel.level,
        "log": panel.log,
        "top": panel.top,
    }


def packed(values: Numbers, dtype: Literal["f4", "f8"]) -> dict[str, str]:
    """An array as plotly takes it: its type and its octets in base64."""
    octets = np.ascontiguousarray(values, f"<{dtype}").tobytes()
    return {"dtype": dtype, "bdata": base64.b64encode(octets).decode()}
