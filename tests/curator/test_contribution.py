"""Caps from a noisy census: sensible whatever the noise does, and one unit moves the census by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator import contribution as caps
from incrowd.curator.contribution import Use

CELLS = 47


def cumulative(held: list[int]) -> np.ndarray:
    """Units above 0, 1, 2, 4, ... for a number of units in each cell."""
    cells = np.array(held + [0] * (CELLS - len(held)))
    return np.cumsum(cells[::-1])[::-1].copy()


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=CELLS), st.integers(0, CELLS - 1))
def test_one_unit_moves_the_census_by_one(held: list[int], place: int) -> None:
    more = held + [0] * (CELLS - len(held))
    more[place] += 1
    one, other = cumulative(held), cumulative(more)
    cells = [each - np.append(each[1:], 0) for each in (one, other)]
    assert np.abs(cells[0] - cells[1]).sum() == 1


@given(
    st.lists(st.integers(-50, 10_000), min_size=CELLS, max_size=CELLS),
    st.floats(0.001, 10),
    st.floats(0.001, 10),
    st.sampled_from([None, 1, 100, 100_000]),
    st.sampled_from([1, 2]),
    st.sampled_from(["sum", "rescaled", "ratio"]),
    st.sampled_from([1, 2]),
)
def test_any_census_gives_caps(
    cells: list[int], census: float, each: float, groups: int | None, distance: int, use: Use, norm: int
) -> None:
    best, large = caps.choose(np.array(cells), census, each, groups, distance, use, norm == 2, norm)
    assert 0 <= best < CELLS and best <= large <= best + caps.SPAN


def test_nobody_gives_the_least_cap() -> None:
    assert caps.choose(np.zeros(CELLS, dtype=np.int64), 1.0, 1.0, None, 1, "sum") == (0, caps.SPAN)


@pytest.mark.statistical
@pytest.mark.parametrize("use", ["sum", "rescaled", "ratio"])
def test_units_that_noise_invents_far_above_the_others_choose_no_cap(use: Use) -> None:
    """2,000 censuses of a thousand units in the first cells. Fails by chance below 1e-6: each four cells
    higher need one more cell that noise alone lifts above the floor, with a chance of about 2e-3.
    """
    counts = cumulative([200, 400, 300, 90, 10])
    for _ in range(2_000):
        cells = caps.noisy_census(counts, Fraction(1, 20), 1)
        best, _ = caps.choose(cells, 0.05, 0.3, 32, 1, use)
        assert best <= 14


def test_more_budget_for_the_sum_raises_the_cap() -> None:
    cells = np.array([100, 200, 400, 800, 400, 200, 100] + [0] * (CELLS - 7))
    chosen = [caps.choose(cells, 1.0, epsilon, 100, 1, "sum")[0] for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert chosen == sorted(chosen) and chosen[0] < chosen[-1]
