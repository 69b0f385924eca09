"""A sweep as a picture: curves over one varied key, or maps over two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from roce_pkt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_pkt.run.sweep_table import Row

Metric = tuple[str, str, float]
SHOWN: tuple[Metric, ...] = (
    ("goodput_bps", "goodput, Gb/s", 1e9),
    ("queue_p99_bytes", "queue p99, KB", 1e3),
    ("paused_ns", "paused, us", 1e3),
)


def draw(stream: BinaryIO, rows: Sequence[Row], order: dict[str, list[str]], title: str) -> None:
    """Write a PNG.

    Args:
        stream: Where it goes.
        rows: Combinations.
        order: The varied keys with their values in the order they were given.
        title: Of the picture.

    Raises:
        InputError: matplotlib is not installed, or not one or two keys are varied.
    """
    if len(order) not in (1, 2):
        raise InputError(f"--png draws one or two varied keys, not {len(order)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("--png needs matplotlib: pip install 'roce-pkt[plot]'") from error
    figure = Figure(figsize=(10, 8) if len(order) == 1 else (13, 4.5), layout="constrained")
    figure.suptitle(title)
    shown = [one for one in SHOWN if any(row.high[one[0]] > 0 for row in rows)] or list(SHOWN[:1])
    if len(order) == 1:
        _curves(figure, rows, order, shown)
    else:
        _maps(figure, rows, order, shown)
    figure.savefig(stream, format="png", dpi=110)


def _curves(figure: Any, rows: Sequence[Row], order: dict[str, list[str]], shown: list[Metric]) -> None:
    ((key, values),) = order.items()
    by_value = {row.values[key]: row for row in rows}
    drawn = [by_value[v] for v in values if v in by_value]
    labels = [row.values[key] for row in drawn]
    all_axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, label, unit) in zip(all_axes, shown, strict=True):
        places = range(len(drawn))
        axes.plot(places, [row.mean[name] / unit for row in drawn], marker="o", markersize=4)
        low, high = ([getattr(row, end)[name] / unit for row in drawn] for end in ("low", "high"))
        axes.fill_between(places, low, high, alpha=0.2, linewidth=0)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, linewidth=0.3)
    all_axes[-1].set_xticks(range(len(labels)), labels)
    all_axes[-1].set_xlabel(key)


def _maps(figure: Any, rows: Sequence[Row], order: dict[str, list[str]], shown: list[Metric]) -> None:
    (down, downs), (across, acrosses) = order.items()
    by_place = {(row.values[down], row.values[across]): row for row in rows}
    for axes, (name, label, unit) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True
    ):
        table = [
            [by_place[d, a].mean[name] / unit if (d, a) in by_place else float("nan") for a in acrosses]
            for d in downs
        ]
        image = axes.imshow(table, cmap="viridis", aspect="auto")
        figure.colorbar(image, ax=axes)
        for y, line in enumerate(table):
            for x, value in enumerate(line):
                axes.text(x, y, f"{value:.3g}", ha="center", va="center", color="w", fontsize="small",
                          bbox={"boxstyle": "round,pad=0.1", "color": "k", "alpha": 0.35})  # fmt: skip
        axes.set_xticks(range(len(acrosses)), acrosses)
        axes.set_yticks(range(len(downs)), downs)
        axes.set_xlabel(across)
        axes.set_ylabel(down)
        axes.set_title(label)
