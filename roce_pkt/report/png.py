"""A page as a static picture, for a mail or a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from roce_pkt.errors import InputError
from roce_pkt.files import whole_file
from roce_pkt.report.page import REST, Curve, Marks, Page, Panel

WIDTH_INCHES, CURVE_INCHES, LANE_INCHES = 12.0, 1.9, 0.22
LOW_INCHES, MANY_PANELS = 1.3, 5
"""Height of a curve's panel where there are many."""
GAP_INCHES, LEFT_INCHES, RIGHT_INCHES = 0.35, 1.7, 1.2
COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#b8860b",
    "#56b4e9",
    "#8b5cf6",
    "#e11d48",
    "#65a30d",
    "#0d9488",
)
NEUTRAL = "#8a8f98"
DEED = "#c00000"
"""Colour of instants that belong to no group."""
NAMED = 3
"""Instants of one kind and lane whose name is written beside them."""
RIGHT_OF: dict[str, Any] = {"xytext": (8, 0), "ha": "left"}
LEFT_OF: dict[str, Any] = {"xytext": (-8, 0), "ha": "right"}
BOX = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
BELOW: dict[str, Any] = {
    "xytext": (14, -3), "textcoords": "offset points", "fontsize": 6, "va": "top", "bbox": BOX,
}  # fmt: skip
FEW_BANDS = 50
"""A lane of so few bands shows the shortest of them, too; with more their gaps would close."""
AFTER: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "fontsize": 6, "va": "center"}
"""A dotted line's name stands behind its end."""
DASH, NEAR = 4.0, 0.03
"""Length of dashes; curves cover each other that are nowhere further apart than this share of the top."""
BESIDE: dict[str, Any] = {
    "textcoords": "offset points", "fontsize": 7, "va": "center",
    "bbox": BOX,
}  # fmt: skip
_LINES = {"main": ("-", 1.4, 1.0), "thin": ("-", 0.7, 0.5), "dotted": (":", 1.0, 1.0)}
_MARKERS = {"dot": "o", "ring": "o", "cross": "x", "tick": "|"}


def write_png(path: str | Path, page: Page, *, force: bool = False) -> None:
    """Draw the panels of a page, the groups that it opens with.

    Args:
        path: Where the picture shall be.
        page: What to draw.
        force: Replace a file that is there.

    Raises:
        InputError: matplotlib is not installed, or the file exists or cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("--png needs matplotlib: pip install 'roce-pkt[plot]'") from error
    panels = [panel for panel in page.panels if not panel.empty] or [Panel("Nothing to draw")]
    title = "\n".join(filter(None, (page.title, page.caption)))
    used = {curve.group for panel in panels for curve in panel.curves}
    used |= {marks.group for panel in panels for marks in panel.marks}
    shown = [group for group in page.groups if group.shown and group.key in used]
    head, foot = 0.2 + 0.15 * title.count("\n"), 0.5 + 0.17 * ((len(shown) + 1) // 2)
    visible = {group.key for group in shown} | {None}
    heights = [_height(panel, len(panels), visible) for panel in panels]
    gaps = GAP_INCHES * (len(panels) + sum(bool(panel.bars) for panel in panels))
    whole = head + sum(heights) + gaps + foot
    figure = Figure(figsize=(WIDTH_INCHES, whole))
    unit, per_second = page.time_unit
    colors = {group.key: COLORS[at % len(COLORS)] for at, group in enumerate(page.groups)} | {REST: NEUTRAL}
    last = max((at for at, panel in enumerate(panels) if not panel.bars), default=0)
    top = whole - head
    for at, (panel, height) in enumerate(zip(panels, heights, strict=True)):
        # the panel above bars may hold the time axis, whose labels need room
        top -= GAP_INCHES * (2 if panel.bars else 1) + height
        place = (
            LEFT_INCHES / WIDTH_INCHES,
            top / whole,
            1 - (LEFT_INCHES + RIGHT_INCHES) / WIDTH_INCHES,
            height / whole,
        )
        axis = figure.add_axes(place)
        if panel.bars:
            _draw_bars(panel, axis)
            continue
        axis.set_xlim(0, page.span_s * per_second or 1)
        _draw(panel, axis, colors, visible, per_second)
        if 0 < page.since_s < page.span_s:
            axis.axvline(page.since_s * per_second, linestyle="--", linewidth=0.8, color=NEUTRAL)
        axis.tick_params(labelbottom=at == last)
        if at == last:
            axis.set_xlabel(f"time, {unit}", fontsize=8)
    figure.text(0.01, 1 - 0.1 / whole, _plain(page.title), fontsize=9, va="top", weight="bold")
    figure.text(0.01, 1 - 0.1 / whole, _plain("\n" + page.caption), fontsize=9, va="top")
    handles = [_handle(colors[group.key], group.name) for group in shown]
    if handles:
        figure.legend(handles=handles, loc="lower center", ncols=2, fontsize=7, frameon=False)
    with whole_file(path, force=force) as stream:
        figure.savefig(stream, format="png", dpi=110)


def _lanes(panel: Panel, shown: set[str | None]) -> list[str]:
    """Lanes that are not empty: a lane of what is not shown would be."""
    marks = [marks.lane for marks in panel.marks if marks.group in shown]
    return list(dict.fromkeys(marks + [bands.lane for bands in panel.bands]))


def _height(panel: Panel, panels: int, shown: set[str | None]) -> float:
    if panel.lanes:
        return LANE_INCHES * len(_lanes(panel, shown)) + 0.1
    return LOW_INCHES if panels > MANY_PANELS else CURVE_INCHES


def _plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def _handle(color: str, name: str, style: str = "-") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, linestyle=style, label=_plain(name))


def _draw_bars(panel: Panel, axis: Any) -> None:
    axis.set_title(_plain(f"{panel.title}  {panel.note}"), fontsize=8, loc="left")
    axis.tick_params(labelsize=7)
    axis.bar([_plain(bar.name) for bar in panel.bars], [bar.value for bar in panel.bars], color=COLORS[0])
    if panel.level:
        axis.axhline(panel.level, linestyle=":", color=NEUTRAL)
    axis.set_ylabel(panel.unit, fontsize=8)


def _draw(panel: Panel, axis: Any, colors: dict[str, str], shown: set[str | None], per_second: float) -> None:
    axis.set_title(_plain(f"{panel.title}  {panel.note}"), fontsize=8, loc="left")
    axis.tick_params(labelsize=7)
    axis.grid(visible=True, linewidth=0.3)
    _draw_curves(panel, axis, colors, shown, per_second)
    lanes = _lanes(panel, shown)
    for bands in panel.bands:
        spans = list(
            zip(bands.start_s * per_second, (bands.stop_s - bands.start_s) * per_second, strict=True)
        )
        axis.broken_barh(
            spans, (lanes.index(bands.lane) - 0.35, 0.7), color=colors.get(bands.group or "", NEUTRAL),
            linewidth=0.3 if len(spans) < FEW_BANDS else 0,
        )  # fmt: skip
    for marks in panel.marks:
        if marks.group in shown:
            _draw_marks(marks, lanes.index(marks.lane), axis, colors, per_second)
    if lanes:
        axis.set_yticks(range(len(lanes)), [_plain(lane) for lane in lanes], fontsize=6)
        axis.set_ylim(len(lanes) - 0.4, -0.6)
    else:
        axis.set_ylabel(panel.unit, fontsize=8)
        highest = max((float(np.nanmax(c.value)) for c in panel.curves if len(c.value)), default=0.0)
        if panel.log:
            axis.set_yscale("symlog", linthresh=1, linscale=0.3)
            axis.yaxis.set_major_formatter("{x:g}")
        axis.set_ylim(0, panel.top or axis.get_ylim()[1] * (1.3 if panel.log else 1.05))
        if 0 < panel.top < highest:
            axis.annotate(f"up to {highest:,.0f}", (0.0, 1.0), xycoords="axes fraction", **BELOW)


def _draw_curves(
    panel: Panel, axis: Any, colors: dict[str, str], shown: set[str | None], per_second: float
) -> None:
    # curves without a group are told apart by their place
    alone = [curve for curve in panel.curves if curve.group is None and curve.weight == "main"]
    drawn = [curve for curve in panel.curves if curve.group in shown]
    dashes = _dashes([curve for curve in drawn if curve.weight == "main"])
    for curve in drawn:
        style, width, alpha = _LINES[curve.weight]
        draw = axis.step if curve.shape == "step" else axis.plot
        extra: dict[str, Any] = {"where": "post"} if curve.shape == "step" else {}
        color = colors.get(curve.group or "", NEUTRAL)
        number = next((at for at, one in enumerate(alone) if one is curve), None)
        if number is not None and len(alone) > 1:
            color = COLORS[number % len(COLORS)]
        times, values = curve.time_s * per_second, curve.value
        if curve.shape == "step" and curve.weight == "main" and len(times):
            # a step lasts as long as what it stands for
            times, values = np.append(times, axis.get_xlim()[1]), np.append(values, values[-1])
        draw(
            times, values, linestyle=dashes.get(id(curve), style), linewidth=width, alpha=alpha, color=color,
            **extra,
        )  # fmt: skip
        if curve.weight == "dotted" and curve.group is None and len(curve.value):
            end = (1.0, curve.value[-1])
            if len(alone) < 2:  # else a legend stands there, and names it
                axis.annotate(_plain(curve.name), end, xycoords=("axes fraction", "data"), **AFTER)
    if len(alone) > 1:
        handles = [_handle(COLORS[at % len(COLORS)], curve.name) for at, curve in enumerate(alone)]
        handles += [_handle(NEUTRAL, curve.name, ":") for curve in drawn if curve.weight == "dotted"]
        axis.legend(handles=handles, fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.04), frameon=False)


def _dashes(curves: list[Curve]) -> dict[int, Any]:
    """Dashes in turn for curves that cover each other: each shows through the gaps of the others."""
    found: dict[int, Any] = {}
    left = list(curves)
    top = max((float(np.nanmax(curve.value)) for curve in curves if len(curve.value)), default=0.0)
    while left:
        first, *left = left
        same = [one for one in left if _cover(first, one, top * NEAR)]
        left = [one for one in left if not any(one is other for other in same)]
        for place, curve in enumerate([first, *same] if same else []):
            found[id(curve)] = (DASH * place, (DASH, DASH * len(same)))
    return found


def _cover(one: Curve, other: Curve, near: float) -> bool:
    """Whether two curves are nowhere further apart."""
    if not len(one.time_s) or not len(other.time_s):
        return False
    times = np.union1d(one.time_s, other.time_s)
    a, b = (curve.value[np.searchsorted(curve.time_s[1:], times, "right")] for curve in (one, other))
    return bool(np.nanmax(np.abs(a - b), initial=0.0) <= near)


def _draw_marks(marks: Marks, lane: int, axis: Any, colors: dict[str, str], per_second: float) -> None:
    color, hollow = colors.get(marks.group or "", DEED), marks.symbol == "ring"
    axis.plot(
        marks.time_s * per_second,
        [lane] * len(marks.time_s),
        _MARKERS[marks.symbol],
        markersize=3 if marks.group else 7,
        markeredgewidth=1 if marks.group else 2,
        zorder=3,
        color=color,
        markerfacecolor="none" if hollow else color,
        linestyle="none",
    )
    if marks.group is None:
        for time_s in marks.time_s[:NAMED]:
            at = time_s * per_second
            side = LEFT_OF if at > 0.85 * axis.get_xlim()[1] else RIGHT_OF
            axis.annotate(marks.name, (at, lane), **BESIDE, **side)
