from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.scenario.reader import read_text
from roce_pkt.scenario.schema import SIZES
from roce_pkt.scenario.sizes import QUANTILES, empirical, quantiles


def table(law: str, most: int = 1 << 31, **more: object) -> np.ndarray:
    words = "".join(f"{k} = {v!r}\n" for k, v in ({"sizes": law} | more).items())
    return quantiles(read_text(f"[[traffic]]\n{words}").traffic[0], most)


@pytest.mark.parametrize("law", SIZES)
def test_a_table_rises_and_keeps_its_bounds(law: str):
    sizes = table(law, 1 << 20)
    assert len(sizes) == QUANTILES
    assert (np.diff(sizes) >= 0).all()
    assert sizes[0] >= 1
    assert sizes[-1] <= 1 << 20


@pytest.mark.parametrize("law", SIZES[3:])
def test_an_empirical_law_meets_its_points(law: str):
    points, chance = empirical(law)
    sizes = table(law)
    assert (np.diff(points) > 0).all()
    assert (np.diff(chance) >= 0).all()
    assert chance[-1] == 1
    following = np.append(points[1:], np.inf)
    for point, after, p in zip(points, following, chance, strict=True):
        if after - point > 2:  # sizes are whole: between neighbours rounding decides
            assert abs(np.mean(sizes <= point) - p) <= 0.002


@given(st.integers(1, 5000), st.integers(0, 100_000))
def test_uniform_has_the_mean_of_its_ends(low: int, more: int):
    sizes = table("uniform", message=f"{low + more}B", message_min=f"{low}B")
    assert abs(sizes.mean() - (low + more / 2)) <= 1 + more / QUANTILES
    assert low <= sizes[0] <= sizes[-1] <= low + more


def test_log_normal_has_its_median_and_sigma():
    sizes = table("log-normal", message="100KB", sigma=0.5)
    assert abs(np.median(sizes) / 100_000 - 1) < 0.01
    assert abs(np.log(sizes).std() - 0.5) < 0.01
