"""Windows around released points: which ranges there are, coverage from both sides, and width."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator.rank_tree import Forest
from incrowd.curator.rank_window import edges_around, ends_of
from incrowd.mechanisms import Laplace


def window_of(
    cells: np.ndarray, points: np.ndarray, ranks: tuple[float, ...], epsilon: str, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The ends in as many groups as there are points, all with the same histogram."""
    held, groups = np.flatnonzero(cells), points.shape[1]
    place = np.repeat(np.arange(groups), len(held))
    forest = Forest(place, np.tile(held, groups), np.tile(cells[held], groups), len(cells))
    noise = Laplace(Fraction(epsilon), sensitivity=1)
    return ends_of(forest, np.arange(groups), points, ranks, len(cells), noise, 1, confidence)


def truth_of(cells: np.ndarray, rank: float) -> int:
    below = np.cumsum(cells)
    return int(np.searchsorted(below, rank * below[-1]))


def incomes() -> np.ndarray:
    seed = np.random.default_rng(4)
    return np.bincount((seed.lognormal(3, 1, 20_000).clip(0, 999) * 65.536).astype(int), minlength=65_536)


@given(st.integers(1, 70_000), st.data())
def test_ranges_cover_all_cells_and_the_point_has_one_of_its_own(cells: int, data: st.DataObject) -> None:
    points = data.draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=2))
    (edges,) = edges_around(np.array(points)[:, None], cells)
    assert edges[0] == 0 and edges[-1] == cells and (np.diff(edges) >= 0).all()
    assert {*points, *(point + 1 for point in points)} <= set(edges.tolist())


@pytest.mark.statistical
@pytest.mark.parametrize("rank", [0.01, 0.5, 0.9])
@pytest.mark.parametrize("away", [0, 300])
def test_the_true_cell_lies_between_the_ends(rank: float, away: int) -> None:
    """2,000 windows at 95%: below 0.925 has a chance under 1e-6. They hold it wherever the points lie."""
    cells = incomes()
    truth = truth_of(cells, rank)
    lows, highs = window_of(cells, np.full((1, 2_000), truth + away), (rank,), "0.1", 0.95)
    assert np.mean((lows <= truth) & (truth <= highs)) >= 0.925


@pytest.mark.statistical
def test_ends_are_as_close_as_the_noise_allows() -> None:
    """The gap at an edge has the noise of 34 ranges at weight 1/2: a deviation of sqrt(17) scales.

    The mean width of 500 windows, in rows, is between once and twice what that makes at both ends.
    """
    cells = incomes()
    below, truth = np.concatenate(([0], np.cumsum(cells))), truth_of(cells, 0.5)
    lows, highs = window_of(cells, np.full((1, 500), truth), (0.5,), "0.1", 0.95)
    rows = float(np.mean(below[highs + 1] - below[lows]))
    least = 2 * 1.96 * 17**0.5 * 10
    assert least < rows < 2 * least


@pytest.mark.parametrize("cells", [[0] * 9, [3] * 9, [0, 0, 50_000, 0, 0, 0, 0, 0, 0]])
def test_ends_stay_inside_and_in_order(cells: list[int]) -> None:
    points = np.array([[0, 4, 8], [2, 4, 8]])
    lows, highs = window_of(np.array(cells), points, (0.2, 0.7), "1", 0.95)
    assert lows.shape == highs.shape == (2, 3)
    assert lows.min() >= 0 and highs.max() <= 8 and (lows <= highs).all()
    if max(cells) > 1_000:
        assert (lows <= 2).all() and (highs >= 2).all()
        # The windows of the second group have no edges at the tie; its ends are those around the tie.
        assert lows[:, 0].tolist() == [2, 2] and highs[:, 0].tolist() == [2, 2]


def test_more_confidence_reaches_further() -> None:
    points = np.full((1, 300), truth_of(incomes(), 0.5))
    widths = []
    for level in (0.5, 0.9, 0.99, 0.9999):
        lows, highs = window_of(incomes(), points, (0.5,), "0.5", level)
        widths.append(float(np.mean(highs - lows)))
    assert widths == sorted(widths) and widths[0] < widths[-1]


def test_groups_without_rows_get_all_of_the_range() -> None:
    lows, highs = window_of(np.zeros(4_096, dtype=np.int64), np.full((1, 200), 2_000), (0.5,), "1", 0.95)
    assert np.mean((lows == 0) & (highs == 4_095)) > 0.5
