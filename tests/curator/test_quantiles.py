"""Quantiles: the exact epsilon of the whole release, ties, empty data, and a mutant."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.curator import quantiles

Joint = dict[tuple[int, int, int], float]


def softmax(edges: np.ndarray, target: int, rate: Fraction) -> np.ndarray:
    scores = -np.maximum(0, np.maximum(edges[:-1] - target, target - edges[1:])) * float(rate)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def joint(cells: list[int], rank: float, epsilon: Fraction, reach: int, row: int, confidence: float) -> Joint:
    """The exact law of (point, low, high) for one rank, from the documented mechanism."""
    edges = np.concatenate(([0], np.cumsum(cells)))
    count = len(cells)
    rate = epsilon / 2 / (2 * (reach + 1))
    miss = math.log(count * 3 / (1 - confidence)) / float(rate)
    slack = math.ceil(miss + miss) + row + 1
    share = Fraction(rank).limit_denominator(10**6)
    law: Joint = {}
    points = softmax(edges, int(edges[-1]) * share.numerator // share.denominator, rate)
    for cell, chance in enumerate(points):
        below = np.append(edges[: cell + 1], edges[cell])
        above = np.append(edges[cell + 1], edges[cell + 1 :]) - edges[cell + 1]
        lows = softmax(below, int(edges[cell]) - slack, rate)
        highs = softmax(above, slack, rate)
        for low, high in itertools.product(range(len(lows)), range(len(highs))):
            law[cell, low, cell + high] = chance * lows[low] * highs[high]
    return law


@given(
    st.lists(st.integers(0, 6), min_size=3, max_size=5),
    st.data(),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    st.sampled_from([Fraction(1, 2), Fraction(2)]),
)
@settings(max_examples=60, deadline=None)
def test_the_whole_release_stays_within_epsilon_on_neighbours(
    cells: list[int], data: st.DataObject, rank: float, epsilon: Fraction
) -> None:
    reach = 3
    added = data.draw(st.lists(st.integers(0, reach), min_size=len(cells), max_size=len(cells)))
    while sum(added) > reach:
        added[int(np.argmax(added))] -= 1
    neighbour = [a + b for a, b in zip(cells, added, strict=True)]
    one = joint(cells, rank, epsilon, reach, 1, 0.9)
    other = joint(neighbour, rank, epsilon, reach, 1, 0.9)
    worst = max(abs(math.log(one[key] / other[key])) for key in one)
    assert worst <= float(epsilon) * (1 + 1e-9)


def test_a_unit_spread_over_two_groups_still_costs_epsilon_once() -> None:
    epsilon, reach = Fraction(1), 4
    worst = 0.0
    for first in range(reach + 1):
        laws = []
        for cells, weight in (([2, 0, 1], first), ([0, 3, 0], reach - first)):
            more = [cells[0] + weight, *cells[1:]]
            one, other = (joint(each, 0.5, epsilon, reach, 1, 0.9) for each in (cells, more))
            laws.append(max(abs(math.log(one[key] / other[key])) for key in one))
        worst = max(worst, sum(laws))
    assert worst <= float(epsilon) * (1 + 1e-9)


def test_a_mutant_that_understates_the_reach_is_caught() -> None:
    """A unit that adds 20 where the noise is made for 1: some pair of neighbours must show it."""
    epsilon = Fraction(2)
    worst = 0.0
    for cells in itertools.product((0, 20), repeat=3):
        for place in range(3):
            more = [each + 20 * (index == place) for index, each in enumerate(cells)]
            one, other = (joint(each, 0.5, epsilon, 1, 1, 0.9) for each in (list(cells), more))
            worst = max(worst, max(abs(math.log(one[key] / other[key])) for key in one))
    assert worst > float(epsilon)


@pytest.mark.statistical
def test_released_cells_follow_the_stated_law() -> None:
    """2,000 draws against the exact law; chi-square, failure below 1e-7."""
    from scipy.stats import chi2

    cells, epsilon, reach = [3, 0, 5, 1], Fraction(4), 1
    law = joint(cells, 0.5, epsilon, reach, 1, 0.9)
    drawn: dict[tuple[int, int, int], int] = {}
    total = 2_000
    for _ in range(total):
        found = quantiles.release(np.array(cells), (0.5,), epsilon, reach, 1, 0.9)
        key = (found.points[0], found.lows[0], found.highs[0])
        drawn[key] = drawn.get(key, 0) + 1
    assert set(drawn) <= set(law)
    big = [key for key, chance in law.items() if chance * total >= 5]
    rest = total - sum(drawn.get(key, 0) for key in big)
    rest_expected = total * (1 - sum(law[key] for key in big))
    statistic = sum((drawn.get(key, 0) - total * law[key]) ** 2 / (total * law[key]) for key in big)
    statistic += (rest - rest_expected) ** 2 / max(rest_expected, 1e-9)
    assert statistic < chi2.isf(1e-7, len(big))


def test_points_of_several_ranks_are_in_order() -> None:
    cells = np.array([0, 10, 0, 200, 0, 10])
    for _ in range(50):
        found = quantiles.release(cells, (0.9, 0.1, 0.5), Fraction(1, 10), 1, 1, 0.95)
        assert found.points[1] <= found.points[2] <= found.points[0]


def test_ends_enclose_the_point_and_empty_data_is_no_special_case() -> None:
    for cells in (np.zeros(7, dtype=np.int64), np.array([0, 0, 0, 10**9, 0, 0, 0])):
        for _ in range(50):
            found = quantiles.release(cells, (0.5,), Fraction(1), 1, 1, 0.95)
            assert found.lows[0] <= found.points[0] <= found.highs[0]


def test_a_heavy_tie_is_found_by_every_rank_inside_it() -> None:
    cells = np.array([5, 5, 100_000, 5, 5])
    found = quantiles.release(cells, (0.1, 0.25, 0.5, 0.75, 0.9), Fraction(1), 1, 1, 0.95)
    assert found.points == (2,) * 5


def test_weights_beyond_the_integers_saturate_instead_of_wrapping() -> None:
    cells = np.full(8, 2**61, dtype=np.int64)
    found = quantiles.release(cells, (0.5,), Fraction(1), 2**31, 2**30, 0.95)
    assert 0 <= found.lows[0] <= found.points[0] <= found.highs[0] < 8
