"""Curves of a simulation as a picture: rates and alpha of flows, queues of ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from roce_pkt.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_pkt.run.simulation_names import Names

MOST_CURVES = 8
WIDTH_POINTS = 2000


class Curves:
    """Collects samples, then draws them.

    A sample block is thinned to what a picture can show, highest queue and lowest rate kept.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._names: Names | None = None

    def __call__(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """Take one block of samples."""
        self._names = names
        senders = names.built.pairs.requester[:MOST_CURVES]
        part = rates[:, senders]
        self._blocks.append((times / 1e9, queues.copy(), part["rate_bps"] / 1e9, part["alpha"].copy()))

    def draw(self, stream: BinaryIO, title: str) -> None:
        """Write the picture.

        Raises:
            InputError: matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise InputError("--png needs matplotlib: pip install 'roce-pkt[plot]'") from error
        if self._names is None or not self._blocks:
            raise InputError("nothing was sampled: no picture")
        times, queues, rates, alphas = (np.concatenate(parts) for parts in zip(*self._blocks, strict=True))
        figure = Figure(figsize=(10, 8), layout="constrained")
        top, middle, bottom = figure.subplots(3, 1, sharex=True)
        keep = slice(None, None, max(len(times) // WIDTH_POINTS, 1))
        for index in range(rates.shape[1]):
            label = str(self._names.flow(int(self._names.built.pairs.requester[index])))
            top.plot(times[keep], rates[keep, index], linewidth=0.9, label=label)
            middle.plot(times[keep], alphas[keep, index], linewidth=0.9)
        fullest = np.argsort(-queues.max(axis=0), kind="stable")[:MOST_CURVES]
        for port in fullest[queues[:, fullest].max(axis=0) > 0]:
            bottom.plot(*_peaks(times, queues[:, port] / 1e3), linewidth=0.9, label=self._names.ports[port])
        top.set_ylabel("rate, Gb/s")
        middle.set_ylabel("alpha")
        bottom.set_ylabel("queue, KB")
        bottom.set_xlabel("time, ms")
        top.set_title(title)
        for axes in (top, bottom):
            if axes.lines:
                axes.legend(fontsize="x-small", loc="upper right")
        figure.savefig(stream, format="png", dpi=110)


def _peaks(times: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The curve thinned by keeping the largest value of each stretch."""
    step = max(len(times) // WIDTH_POINTS, 1)
    whole = len(times) // step * step
    return times[:whole:step], values[:whole].reshape(-1, step).max(axis=1)
