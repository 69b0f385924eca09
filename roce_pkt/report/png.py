"""A page as a static picture, for a mail or a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roce_pkt.errors import InputError
from roce_pkt.files import whole_file
from roce_pkt.report.page import REST, Page, Panel

WIDTH_INCHES, CURVE_INCHES, LANE_INCHES = 12.0, 1.9, 0.22
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
    heights = [LANE_INCHES * len(panel.lanes) + 0.3 if panel.lanes else CURVE_INCHES for panel in panels]
    figure = Figure(figsize=(WIDTH_INCHES, sum(heights) + 0.6 * len(heights) + 0.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    unit, per_second = page.time_unit
    colors = {group.key: COLORS[at % len(COLORS)] for at, group in enumerate(page.groups)} | {REST: NEUTRAL}
    shown = {group.key for group in page.groups if group.shown} | {None}
    for panel, axis in zip(panels, axes, strict=True):
        _draw(panel, axis, colors, shown, per_second)
    axes[-1].set_xlabel(f"time, {unit}")
    axes[-1].set_xlim(0, page.span_s * per_second or 1)
    figure.suptitle(_plain(page.title), fontsize=11)
    handles = [_handle(colors[group.key], group.name) for group in page.groups if group.shown]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    with whole_file(path, force=force) as stream:
        figure.savefig(stream, format="png", dpi=110)


def _plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def _handle(color: str, name: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, label=_plain(name))


def _draw(panel: Panel, axis: Any, colors: dict[str, str], shown: set[str | None], per_second: float) -> None:
    axis.set_title(f"{panel.title}  {panel.note}", fontsize=8, loc="left")
    axis.tick_params(labelsize=7)
    axis.grid(visible=True, linewidth=0.3)
    for curve in panel.curves:
        if curve.group in shown:
            style, width, alpha = _LINES[curve.weight]
            draw = axis.step if curve.shape == "step" else axis.plot
            extra = {"where": "post"} if curve.shape == "step" else {}
            color = colors.get(curve.group or "", NEUTRAL)
            draw(
                curve.time_s * per_second,
                curve.value,
                style,
                linewidth=width,
                alpha=alpha,
                color=color,
                **extra,
            )
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
            color, hollow = colors.get(marks.group or "", NEUTRAL), marks.symbol == "ring"
            axis.plot(
                marks.time_s * per_second,
                [lanes.index(marks.lane)] * len(marks.time_s),
                _MARKERS[marks.symbol],
                markersize=3,
                color=color,
                markerfacecolor="none" if hollow else color,
                linestyle="none",
            )
    if lanes:
        axis.set_yticks(range(len(lanes)), [_plain(lane) for lane in lanes], fontsize=6)
        axis.set_ylim(len(lanes) - 0.4, -0.6)
    else:
        axis.set_ylabel(panel.unit, fontsize=8)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
