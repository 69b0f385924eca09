"""Chance in choosing: as often as asked, in bursts as long as asked, each seed in its own way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from roce_pkt.edit.choose import CERTAIN, chooses
from roce_pkt.scenario.dice import stream_of
from roce_pkt.scenario.fault import ALL

DRAWS = 20_000


def hits(seed: int, probability: float, burst: int = 1) -> list[bool]:
    start, step = stream_of(seed, 7)
    rule = SimpleNamespace(
        fitted=0, hits=0, left=0, nth=ALL, count=ALL, burst=burst,
        chance=int(probability * CERTAIN), dice=start, dice_step=step,
    )  # fmt: skip
    return [chooses(rule) for _ in range(DRAWS)]


@pytest.mark.parametrize("probability", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("seed", [1, 2, 99])
def test_chance_is_met(seed: int, probability: float):
    deviation = (DRAWS * probability * (1 - probability)) ** 0.5
    assert abs(sum(hits(seed, probability)) - DRAWS * probability) < 4 * deviation


def test_seeds_differ_and_repeat():
    assert hits(1, 0.05) == hits(1, 0.05) != hits(2, 0.05)


def test_bursts_are_whole():
    runs = "".join("x" if hit else " " for hit in hits(1, 0.01, burst=3)).split()
    assert runs
    assert all(len(run) % 3 == 0 for run in runs[:-1])
