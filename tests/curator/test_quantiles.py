"""Quantiles: the exact epsilon of the whole release, ties, empty data, and a mutant."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from incrowd.adversary.audit.replays import losses
from incrowd.curator import quantiles, rank_tree
from incrowd.curator.quantiles import Histograms
from incrowd.mechanisms import Laplace


def histograms(*groups: list[int], reach: int = 1, row: int = 1) -> Histograms:
    """Every group's cells as an engine returns them: what is not empty, in no order."""
    held = [(g, c, w) for g, cells in enumerate(groups) for c, w in enumerate(cells) if w][::-1]
    place, cell, steps = (np.array([line[k] for line in held], dtype=np.int64) for k in range(3))
    return Histograms(place, cell, steps, np.arange(len(groups)), len(groups[0]), reach, row)


def released(
    held: Histograms, ranks: tuple[float, ...], epsilon: Fraction, confidence: float
) -> quantiles.Quantiles:
    """The quantiles alone; a lone group counts as none."""
    return quantiles.release(held, ranks, epsilon, confidence, len(held.groups) > 1)[0]


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=5, max_size=5), min_size=1, max_size=3),
    st.data(),
    st.sampled_from([(0.5,), (0.0,), (0.1, 0.9), (0.1, 0.5, 0.9), (1.0, 0.2, 0.3, 0.4)]),
    st.sampled_from([Fraction(1, 2), Fraction(2)]),
)
@settings(max_examples=60, deadline=None)
def test_one_unit_s_rows_cost_epsilon_at_most(
    cells: list[list[int]], data: st.DataObject, ranks: tuple[float, ...], epsilon: Fraction
) -> None:
    """Replayed draw by draw, whatever came out before: a unit may spread its weight over groups and cells."""
    reach, more = 3, [list(group) for group in cells]
    for _ in range(data.draw(st.integers(0, reach))):
        more[data.draw(st.integers(0, len(cells) - 1))][data.draw(st.integers(0, 4))] += 1

    grouped = len(cells) > 1 or data.draw(st.booleans())

    def release(groups: list[list[int]]) -> object:
        return quantiles.release(histograms(*groups, reach=reach), ranks, epsilon, 0.9, grouped)

    spent, mu = losses(release, cells, more)
    assert spent <= float(epsilon) * (1 + 1e-9) and mu == 0


def test_a_mutant_that_understates_the_reach_is_caught() -> None:
    """A unit that adds 2,000 where the noise is made for 1."""

    def release(cells: list[int]) -> object:
        return quantiles.release(histograms(cells, reach=1), (0.5,), Fraction(1), 0.9, False)

    assert losses(release, [0, 5, 9], [2_000, 5, 9])[0] > 1


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


@pytest.mark.statistical
def test_released_points_follow_the_stated_law() -> None:
    """4,000 groups against the exact law; chi-square, failure below 1e-7."""
    cells, epsilon, total = [3, 0, 5, 1], Fraction(4), 4_000
    law = np.exp(law_of_point(cells, 0.5, epsilon / 2, 1))
    law /= law.sum()
    drawn = released(histograms(*[cells] * total), (0.5,), epsilon, 0.9)
    counts = np.bincount(drawn.points[0], minlength=4)
    statistic = float(((counts - total * law) ** 2 / (total * law)).sum())
    assert statistic < chi2.isf(1e-7, 3)


@pytest.mark.parametrize("ranks", [(0.9, 0.5), (0.9, 0.1, 0.5)])
def test_points_of_several_ranks_are_in_order(ranks: tuple[float, ...]) -> None:
    many = histograms(*[[0, 10, 0, 200, 0, 10]] * 50)
    drawn = released(many, ranks, Fraction(1, 10), 0.95)
    ordered = drawn.points[np.argsort(ranks)]
    assert (np.diff(ordered, axis=0) >= 0).all()


@pytest.mark.parametrize("ranks", [(0.5,), (0.2, 0.5, 0.7)])
@pytest.mark.parametrize("cells", [[0] * 7, [0, 0, 0, 10**9, 0, 0, 0], [1] * 7])
def test_ends_enclose_the_point_and_empty_data_is_no_special_case(
    cells: list[int], ranks: tuple[float, ...]
) -> None:
    drawn = released(histograms(*[cells] * 50), ranks, Fraction(1), 0.95)
    assert (drawn.lows <= drawn.points).all() and (drawn.points <= drawn.highs).all()
    assert drawn.lows.min() >= 0 and drawn.highs.max() <= 6


def test_a_heavy_tie_is_found_by_every_rank_inside_it() -> None:
    # Noise is that of whole chains of 1,024 steps, so the tie has to be heavier than thousands of those.
    cells = histograms([5, 5, 100_000_000, 5, 5])
    for ranks in ((0.1, 0.25, 0.5, 0.75, 0.9), (0.3,)):
        drawn = released(cells, ranks, Fraction(1), 0.95)
        assert (drawn.points == 2).all() and (drawn.lows == 2).all() and (drawn.highs == 2).all()


@pytest.mark.parametrize("ranks", [(0.1, 0.5, 0.9), (0.5,)])
def test_weights_beyond_the_integers_are_added_up_exactly(ranks: tuple[float, ...]) -> None:
    cells = histograms([2**60] * 9, reach=2**31, row=2**30)
    drawn = released(cells, ranks, Fraction(1), 0.95)
    assert drawn.points[:, 0].tolist() == [int(rank * 9) for rank in ranks]
    assert (drawn.lows <= drawn.points).all() and (drawn.points <= drawn.highs).all()


def test_every_point_uses_its_part_of_epsilon_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: list[tuple[list[int], Fraction]] = []

    def noted(utilities: np.ndarray, rate: Fraction) -> int:
        draws.append(([int(utility) for utility in utilities], rate))
        return 1

    monkeypatch.setattr(quantiles, "categorical", noted)
    drawn = released(histograms([2, 3, 5], reach=3, row=2), (0.5, 0.25), Fraction(1), 0.9)
    assert drawn.points[:, 0].tolist() == [1, 1]
    # Half of epsilon for two points, over twice the sensitivity, over what a target may move: 3/4, 1/2.
    point = Fraction(1, 2) / 2 / 6
    # Rank 1/4 of 10 is 5/2: counted in halves, at half the rate.
    assert draws == [([-1, 0, -5], point / Fraction(3, 4) / 2), ([-3, 0, 0], point / Fraction(1, 2))]


@pytest.mark.parametrize(
    ("ranks", "kept", "parts"),
    [
        ((0.5,), True, [("1/10", 2_048), ("3/10", 2_048)]),
        ((0.5, 0.5, 0.1), True, [("1/10", 2_048), ("3/10", 2_048)]),
        ((0.5,), False, [("1/2", 2_048)]),
        ((0.1, 0.2, 0.3), False, [("1/2", 2_048)]),
        ((0.1, 0.2, 0.3), True, [("1/2", 2_048)]),
    ],
)
def test_windows_and_trees_use_what_the_points_leave(
    ranks: tuple[float, ...],
    kept: bool,
    parts: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The two levels of a tree share its part; the sensitivity is rounded up to whole chains, as stated."""
    made: list[tuple[Fraction, int]] = []

    class Noted(Laplace):
        def __post_init__(self) -> None:
            super().__post_init__()
            made.append((Fraction(self.epsilon), int(self.sensitivity)))

    for module in (rank_tree, quantiles):
        monkeypatch.setattr(module, "Laplace", Noted)
    _, tree = quantiles.release(histograms([1] * 81, reach=1_500), ranks, Fraction(1), 0.95, kept)
    assert quantiles.levels_of(81) == 2
    assert made == [(Fraction(epsilon), reach) for epsilon, reach in parts]
    assert (tree is not None) == kept


@pytest.mark.parametrize("shares", [quantiles.DRAWN, quantiles.DRAWN_AND_KEPT, quantiles.TREE_ALONE])
def test_shares_are_all_of_epsilon(shares: quantiles.Shares) -> None:
    assert shares.points + shares.window + shares.tree == 1


@pytest.mark.parametrize(
    ("share", "spread"), [("0", "1/2"), ("1", "1/2"), ("1/2", "1/2"), ("1/10", "9/10"), ("9/10", "9/10")]
)
def test_how_far_a_target_moves(share: str, spread: str) -> None:
    assert quantiles._spread(Fraction(share)) == Fraction(spread)


def test_the_edges_and_the_middle_of_a_cell() -> None:
    parts = SimpleNamespace(low=10.0, high=30.0, buckets=4, bands=(), whole=False)
    assert [quantiles.value_of(parts, 1, end) for end in ("low", "middle", "high")] == [15.0, 17.5, 20.0]
    ages = SimpleNamespace(low=18, high=90, buckets=72, bands=(), whole=True)
    assert [quantiles.value_of(ages, 3, end) for end in ("low", "middle", "high")] == [21, 21, 21]
    pairs = SimpleNamespace(low=18, high=90, buckets=36, bands=(), whole=True)
    assert quantiles.value_of(pairs, 3, "middle") == 25.0
    halves = SimpleNamespace(low=18.0, high=90.0, buckets=72, bands=(), whole=False)
    assert quantiles.value_of(halves, 3, "middle") == 21.5


def test_a_leaf_of_the_tree_may_be_several_cells() -> None:
    """10,001 cells, three to a leaf: the ends of a tree are leaves, drawn points and windows are cells."""
    cells = [0] * 10_001
    cells[7_000] = 10**6
    cells[-1] = 10**6
    for ranks, first, last, end in (
        ((0.2, 0.9), 7_000, 7_000, 10_000),
        ((0.2, 0.3, 0.9), 6_999, 7_001, 9_999),
    ):
        drawn = released(histograms(cells), ranks, Fraction(1), 0.95)
        assert (drawn.lows[0, 0], drawn.highs[0, 0]) == (first, last)
        assert drawn.highs[-1, 0] == 10_000 and drawn.lows[-1, 0] == end
        assert drawn.points[0, 0] == 7_000
    assert quantiles.levels_of(10_001) == quantiles.levels_of(3_334) == 3
