"""Quantiles: the exact epsilon of the whole release, ties, empty data, and a mutant."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.curator import quantiles

Joint = dict[tuple[int, int, int], float]


def softmax(edges: np.ndarray, target: float, rate: Fraction) -> np.ndarray:
    logs = scores(edges, target, rate)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def joint(cells: list[int], rank: float, epsilon: Fraction, reach: int, row: int, confidence: float) -> Joint:
    """The exact law of (point, low, high) for one rank, from the documented mechanism."""
    edges = np.concatenate(([0], np.cumsum(cells)))
    count = len(cells)
    rate = epsilon / 2 / (2 * reach)
    share = Fraction(rank).limit_denominator(10**6)
    faster = rate / (max(share, 1 - share) if 0 < share < 1 else Fraction(1, 2))
    slack = (
        math.ceil(math.log(count * 3 / (1 - confidence)) * (1 / float(rate) + 1 / float(faster))) + row + 1
    )
    law: Joint = {}
    points = softmax(edges, float(int(edges[-1]) * share), faster)
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


def ranged(one: np.ndarray, other: np.ndarray) -> float:
    """How far the log ratios of two laws are apart, from their logarithms: what bounded range bounds."""
    return float((one - other).max() - (one - other).min())


def scores(edges: np.ndarray, target: float, rate: Fraction) -> np.ndarray:
    return -np.maximum(0, np.maximum(edges[:-1] - target, target - edges[1:])) * float(rate)


def law_of_point(cells: list[int], rank: float, epsilon: Fraction, reach: int) -> np.ndarray:
    """The logarithms of the law of one point, as released, up to a constant."""
    edges = np.concatenate(([0], np.cumsum(cells)))
    share = Fraction(rank).limit_denominator(10**6)
    spread = max(share, 1 - share) if 0 < share < 1 else Fraction(1, 2)
    return scores(edges, float(int(edges[-1]) * share), epsilon / (2 * reach * spread))


RANKS = [0.0, 0.1, 0.5, 0.75, 0.99, 1.0]


@pytest.mark.parametrize("rank", RANKS)
def test_a_point_uses_its_epsilon_and_no_more(rank: float) -> None:
    """Over all histograms of three cells and all ways to add weight of up to 3 or to replace it."""
    epsilon, reach, worst, replaced = Fraction(1), 3, 0.0, 0.0
    added = [more for more in itertools.product(range(4), repeat=3) if sum(more) <= reach]
    for cells in itertools.product((0, 1, 2_000), repeat=3):
        plain = law_of_point(list(cells), rank, epsilon, reach)
        laws = [np.add(cells, more).tolist() for more in added]
        worst = max(worst, *(ranged(plain, law_of_point(more, rank, epsilon, reach)) for more in laws))
        twice = [law_of_point(more, rank, epsilon, 2 * reach) for more in laws]
        replaced = max(replaced, *(ranged(one, two) for one, two in itertools.combinations(twice[::3], 2)))
    assert 0.999 <= worst <= 1 + 1e-9
    assert replaced <= 1 + 1e-9


def test_a_mutant_that_rounds_the_target_is_caught_in_many_groups() -> None:
    """The bug: with k = 1/2 a target in whole steps moves a step too far in each group of a unit."""
    epsilon, groups = Fraction(1), 4

    def rounded(cells: list[int]) -> np.ndarray:
        edges = np.concatenate(([0], np.cumsum(cells)))
        return scores(edges, int(edges[-1]) // 2, epsilon / groups)

    def exact(cells: list[int]) -> np.ndarray:
        return law_of_point(cells, 0.5, epsilon, groups)

    pairs = [
        (list(cells), place) for cells in itertools.product((0, 1, 2, 3), repeat=3) for place in range(3)
    ]
    spent = [
        groups
        * max(
            ranged(law(cells), law([c + (i == place) for i, c in enumerate(cells)])) for cells, place in pairs
        )
        for law in (rounded, exact)
    ]
    assert spent[0] > 1.2 and spent[1] <= 1 + 1e-9


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


def test_weights_beyond_the_integers_are_added_up_exactly() -> None:
    cells = np.full(9, 2**61, dtype=np.int64)
    found = quantiles.release(cells, (0.1, 0.5, 0.9), Fraction(1), 2**31, 2**30, 0.95)
    assert found.points == (0, 4, 8)
    assert 0 <= found.lows[1] <= found.points[1] <= found.highs[1] < 9


def test_every_draw_uses_its_part_of_epsilon_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: list[tuple[list[int], Fraction]] = []

    def noted(utilities: np.ndarray, rate: Fraction) -> int:
        draws.append(([int(utility) for utility in utilities], rate))
        return 1

    monkeypatch.setattr(quantiles, "categorical", noted)
    found = quantiles.release(np.array([2, 3, 5]), (0.5, 0.25), Fraction(1), 3, 2, 0.9)
    assert found == quantiles.Quantiles((1, 1), (1, 1), (2, 2))
    # Half of epsilon for two points, over twice the sensitivity, over the 3/4 and 1/2 that a target may move.
    point = Fraction(1, 2) / 2 / 6
    # Rank 1/4 of 10 is 5/2: counted in halves, at half the rate.
    assert draws[0] == ([-1, 0, -5], point / Fraction(3, 4) / 2)
    assert draws[1] == ([-3, 0, 0], point / Fraction(1, 2))
    slack = (
        math.ceil(math.log(3 * 4 / 0.1) * (float(1 / (point / Fraction(3, 4))) + float(1 / point))) + 2 + 1
    )
    # Below cell 1 lie 2, above it 5; both ends may be the cell itself.
    ends = [([-(slack - 2), -slack], point), ([-slack, -(slack - 5)], point)]
    assert draws[2:] == ends * 2


@pytest.mark.parametrize(
    ("share", "spread"), [("0", "1/2"), ("1", "1/2"), ("1/2", "1/2"), ("1/10", "9/10"), ("9/10", "9/10")]
)
def test_how_far_a_target_moves(share: str, spread: str) -> None:
    assert quantiles._spread(Fraction(share)) == Fraction(spread)


def test_the_edges_and_the_middle_of_a_cell() -> None:
    parts = SimpleNamespace(low=10.0, high=30.0, buckets=4, whole=False)
    assert [quantiles.value_of(parts, 1, end) for end in ("low", "middle", "high")] == [15.0, 17.5, 20.0]
    ages = SimpleNamespace(low=18, high=90, buckets=72, whole=True)
    assert [quantiles.value_of(ages, 3, end) for end in ("low", "middle", "high")] == [21, 21, 21]
    pairs = SimpleNamespace(low=18, high=90, buckets=36, whole=True)
    assert quantiles.value_of(pairs, 3, "middle") == 25.0
    halves = SimpleNamespace(low=18.0, high=90.0, buckets=72, whole=False)
    assert quantiles.value_of(halves, 3, "middle") == 21.5
