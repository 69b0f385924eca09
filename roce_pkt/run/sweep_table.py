"""Outcomes of a sweep as a table: averages over seeds, sorted; and as Parquet, one row a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import BinaryIO

from roce_pkt.errors import InputError, nearest
from roce_pkt.run.sweep import METRICS, Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of the varied keys.

    Args:
        values: The combination.
        runs: Seeds it was run with.
        mean: Average over seeds by metric.
        low: Smallest.
        high: Largest.
    """

    values: Mapping[str, str]
    runs: int
    mean: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]


def metric(name: str) -> str:
    """A metric by its name.

    Raises:
        InputError: There is none, with the nearest right name.
    """
    if name not in METRICS:
        raise InputError(
            f"--sort {name}: no such metric{nearest(name, METRICS)}; there are {', '.join(METRICS)}"
        )
    return name


def rows(outcomes: Sequence[Outcome], sort: str) -> list[Row]:
    """Combinations, the best first by one metric.

    Args:
        outcomes: Of single runs, in any order.
        sort: A name of `METRICS`.
    """
    together: dict[tuple[tuple[str, str], ...], list[Outcome]] = {}
    for outcome in outcomes:
        together.setdefault(tuple(outcome.values.items()), []).append(outcome)
    found = []
    for values, many in together.items():
        columns = {name: [o.metrics[name] for o in many] for name in METRICS}
        found.append(
            Row(
                dict(values),
                len(many),
                {name: fmean(column) for name, column in columns.items()},
                {name: min(column) for name, column in columns.items()},
                {name: max(column) for name, column in columns.items()},
            )
        )
    sign = -1 if METRICS[sort] == "higher" else 1

    def order(row: Row) -> tuple[bool, float, tuple[str, ...]]:
        value = row.mean[sort]
        return math.isnan(value), sign * value if not math.isnan(value) else 0.0, tuple(row.values.values())

    return sorted(found, key=order)


def write_parquet(stream: BinaryIO, outcomes: Sequence[Outcome]) -> None:
    """Every run as a row: the varied keys as text, the seed, the metrics.

    Raises:
        InputError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'roce-pkt[parquet]'") from error
    ordered = sorted(outcomes, key=lambda o: (tuple(o.values.values()), o.seed))
    keys = list(ordered[0].values) if ordered else []
    columns = {key: pa.array([o.values[key] for o in ordered], pa.string()) for key in keys}
    columns["seed"] = pa.array([o.seed for o in ordered], pa.int64())
    columns |= {name: pa.array([o.metrics[name] for o in ordered], pa.float64()) for name in METRICS}
    pq.write_table(pa.table(columns), stream, compression="zstd")
