"""Laws of message sizes as quantile tables: one draw is one look-up, whatever the law.

A table has `QUANTILES` sizes of equal chance, in rising order. Empirical laws are data files beside
this one, each with its source; between their points sizes are spread evenly.
"""

from __future__ import annotations

from importlib import resources
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from roce_pkt.scenario.schema import Traffic

QUANTILES = 4096
LARGEST_BYTES = 1 << 31


def empirical(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of an empirical law.

    Args:
        name: A file of `cdf/`, e.g. `web-search`.

    Returns:
        Sizes in octets, and the fraction of messages that are not larger.
    """
    text = resources.files("roce_pkt.scenario").joinpath("cdf", f"{name}.csv").read_text()
    points = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    table = np.array(points, np.float64)
    return table[:, 0], table[:, 1] / 100


def quantiles(traffic: Traffic, most_bytes: int) -> NDArray[np.int64]:
    """The table of a traffic's sizes.

    Args:
        traffic: Names the law and its numbers.
        most_bytes: No message is larger (one packet for UD).
    """
    middle = (np.arange(QUANTILES) + 0.5) / QUANTILES
    match traffic.sizes:
        case "fixed":
            sizes = np.full(QUANTILES, float(traffic.message_bytes))
        case "uniform":
            low, high = traffic.message_min_bytes, traffic.message_bytes
            sizes = low + middle * (high - low + 1) - 0.5
        case "log-normal":
            normal = np.array([NormalDist().inv_cdf(p) for p in middle.tolist()])
            sizes = traffic.message_bytes * np.exp(traffic.sigma * normal)
        case name:
            points, chance = empirical(name)
            sizes = np.interp(middle, chance, points)
    return np.clip(np.rint(sizes), 1, min(most_bytes, LARGEST_BYTES)).astype(np.int64)
