"""A page as a static picture, for a mail or a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roce_pkt.errors import InputError
from roce_pkt.files import whole_file
from roce_pkt.report.page import REST, Page, Panel

WIDTH_INCHES, CURVE_INCHES, LANE_INCHES = 12.0, 1.9, 0.22
LOW_INCHES, MANY_PANELS = 1.3, 5
"""Height of a curve's panel where there are many."""
GAP_INCHES, LEFT_INCHES, RIGHT_INCHES = 0.35, 1.7, 0.2
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
BESIDE: dict[str, Any] = {
    "xytext": (8, 0), "textcoords": "offset points", "fontsize": 7, "va": "center",
    "bbox": {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
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
    shown = [group for group in page.groups if group.shown]
    head, foot = 0.2 + 0.15 * title.count("\n"), 0.5 + 0.17 * ((len(shown) + 1) // 2)
    heights = [_height(panel, len(panels)) for panel in panels]
    gaps = GAP_INCHES * (len(panels) + sum(bool(panel.bars) for panel in panels))
    whole = head + sum(heights) + gaps + foot
    figure = Figure(figsize=(WIDTH_INCHES, whole))
    unit, per_second = page.time_unit
    colors = {group.key: COLORS[at % len(COLORS)] for at, group in enumerate(page.groups)} | {REST: NEUTRAL}
    visible = {group.key for group in shown} | {None}
    last = max((at for at, panel in enumerate(panels) if not panel.bars), default=0)
    top = whole - head
    for at, (panel, height) in enumerate(zip(panels, heights, strict=True)):
        # the panel above bars may hold the time axis, whose labels need room
        top -= GAP_INCHES * (2 if panel.bars else 1) + height
        place = (
            LEFT_INCHES / WIDTH_INCHES,
            top / whole,
            1 - (LEFT_INCHES + 0.2) / WIDTH_INCHES,
            height / whole,
        )
        axis = figure.add_axes(place)
        if panel.bars:
            _draw_bars(panel, axis)
            continue
        _draw(panel, axis, colors, visible, per_second)
        axis.set_xlim(0, page.span_s * per_second or 1)
        axis.tick_params(labelbottom=at == last)
        if at == last:
            axis.set_xlabel(f"time, {unit}", fontsize=8)
    figure.text(0.01, 1 - 0.1 / whole, _plain(title), fontsize=9, va="top")
    handles = [_handle(colors[group.key], group.name) for group in shown]
    if handles:
        figure.legend(handles=handles, loc="lower center", ncols=2, fontsize=7, frameon=False)
    with whole_file(path, force=force) as stream:
        figure.savefig(stream, format="png", dpi=110)


def _height(panel: Panel, panels: int) -> float:
    if panel.lanes:
        return LANE_INCHES * len(panel.lanes) + 0.1
    return LOW_INCHES if panels > MANY_PANELS else CURVE_INCHES


def _plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def _handle(color: str, name: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, label=_plain(name))


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
    # curves without a group are told apart by their place
    alone = [curve for curve in panel.curves if curve.group is None and curve.weight == "main"]
    for curve in panel.curves:
        if curve.group in shown:
            style, width, alpha = _LINES[curve.weight]
            draw = axis.step if curve.shape == "step" else axis.plot
            extra = {"where": "post"} if curve.shape == "step" else {}
            color = colors.get(curve.group or "", NEUTRAL)
            place = next((at for at, one in enumerate(alone) if one is curve), None)
            if place is not None and len(alone) > 1:
                color = COLORS[place % len(COLORS)]
                extra["label"] = _plain(curve.name)
            draw(
                curve.time_s * per_second,
                curve.value,
                style,
                linewidth=width,
                alpha=alpha,
                color=color,
                **extra,
            )
    if len(alone) > 1:
        axis.legend(fontsize=6, loc="upper right")
    lanes = panel.lanes
    for bands in panel.bands:
        spans = list(
            zip(bands.start_s * per_second, (bands.stop_s - bands.start_s) * per_second, strict=True)
        )
        axis.broken_barh(
            spans, (lanes.index(bands.lane) - 0.35, 0.7), facecolors=colors.get(bands.group or "", NEUTRAL)
        )
    for marks in panel.marks:
        if marks.group in shown:
            color, hollow = colors.get(marks.group or "", DEED), marks.symbol == "ring"
            axis.plot(
                marks.time_s * per_second,
                [lanes.index(marks.lane)] * len(marks.time_s),
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
                    axis.annotate(marks.name, (time_s * per_second, lanes.index(marks.lane)), **BESIDE)
    if lanes:
        axis.set_yticks(range(len(lanes)), [_plain(lane) for lane in lanes], fontsize=6)
        axis.set_ylim(len(lanes) - 0.4, -0.6)
    else:
        axis.set_ylabel(panel.unit, fontsize=8)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
