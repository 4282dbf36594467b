"""Ranks from a noisy tree: the true cell lies between the ends as often as stated, and not far from them."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.curator import rank_tree
from incrowd.curator.rank_tree import Drawing, Ends, Forest, Shape, Tree, find, shape_of
from incrowd.mechanisms import Laplace


def forest_of(cells: np.ndarray, groups: int, size: int) -> Forest:
    """The same histogram in every group."""
    held = np.flatnonzero(cells)
    place = np.repeat(np.arange(groups), len(held))
    return Forest(place, np.tile(held, groups), np.tile(cells[held], groups), size)


def ends_of(
    cells: np.ndarray, groups: int, ranks: tuple[float, ...], epsilon: str, confidence: float
) -> Ends:
    return find(drawing_of(cells, groups, epsilon), ranks, 1, confidence)


def drawing_of(cells: np.ndarray, groups: int, epsilon: str) -> Drawing:
    shape = shape_of(len(cells))
    return Drawing(forest_of(cells, groups, shape.size), np.arange(groups), shape, Fraction(epsilon), 1)


@given(st.integers(1, 10**7))
def test_a_tree_holds_all_cells_and_hardly_more_levels_than_it_needs(cells: int) -> None:
    shape = shape_of(cells)
    assert shape.size >= cells and shape.height >= 1
    assert shape.height == 1 or shape.branching ** (shape.height - 1) < cells


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_sums_are_those_of_the_cells(weights: list[int], data: st.DataObject) -> None:
    cells = np.array(weights)
    forest = forest_of(cells, 3, 64)
    first, width = data.draw(st.integers(0, 63)), data.draw(st.integers(1, 64))
    places = np.array([0, 1, 2])
    sums = forest.sums(places, np.full(3, first), min(width, 64 - first))
    assert sums.tolist() == [int(cells[first : first + width].sum())] * 3


def test_weights_too_large_for_a_number_are_clamped_one_by_one() -> None:
    forest = Forest(np.zeros(3, dtype=np.int64), np.arange(3), np.full(3, 2**62 - 1), 4)
    sums = forest.sums(np.zeros(2, dtype=np.int64), np.array([0, 2]), 2)
    assert sums.tolist() == [2**61, 2**61]


def truth_of(cells: np.ndarray, rank: float) -> int:
    below = np.cumsum(cells)
    return int(np.searchsorted(below, rank * below[-1]))


def ages() -> np.ndarray:
    seed = np.random.default_rng(3)
    return np.bincount((17 + seed.gamma(4, 6, 16_000)).astype(int).clip(17, 90) - 17, minlength=74)


def incomes() -> np.ndarray:
    seed = np.random.default_rng(4)
    return np.bincount((seed.lognormal(3, 1, 20_000).clip(0, 999) * 65.536).astype(int), minlength=65_536)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "cells", [ages(), incomes(), np.array([3] * 20), np.array([0] * 50 + [40] + [0] * 23)]
)
@pytest.mark.parametrize("rank", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", ["0.05", "1"])
def test_the_true_cell_lies_between_the_ends(cells: np.ndarray, rank: float, epsilon: str) -> None:
    """1,000 groups at 95%: below 0.91 has a chance under 1e-7."""
    ends = ends_of(cells, 1_000, (rank,), epsilon, 0.95)
    truth = truth_of(cells, rank)
    assert np.mean((ends.lows[0] <= truth) & (truth <= ends.highs[0])) >= 0.91
    assert (ends.lows <= ends.points).mean() > 0.99 and (ends.points <= ends.highs).mean() > 0.99


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "most"), [("0.05", 3.0), ("0.1", 2.0), ("1", 0.2)])
def test_ends_are_not_far_apart(epsilon: str, most: float) -> None:
    """Of 16,000 ages, the mean distance in years over 500 groups."""
    ends = ends_of(ages(), 500, (0.5,), epsilon, 0.95)
    assert float(np.mean(ends.highs - ends.lows)) <= most
    assert math.sqrt(np.mean((ends.points - truth_of(ages(), 0.5)) ** 2.0)) <= most / 2


def test_more_confidence_reaches_further() -> None:
    widths = [float(np.mean(np.subtract(*_ends(level)))) for level in (0.5, 0.9, 0.99, 0.9999)]
    assert widths == sorted(widths) and widths[0] < widths[-1]


def _ends(confidence: float) -> tuple[np.ndarray, np.ndarray]:
    ends = ends_of(incomes(), 300, (0.5,), "0.5", confidence)
    return ends.highs, ends.lows


def test_a_node_that_several_walks_visit_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    release = Laplace.release

    def counted(self: Laplace, values: np.ndarray) -> object:
        drawn.append(len(values))
        return release(self, values)

    monkeypatch.setattr(rank_tree.Laplace, "release", counted)
    ends = ends_of(np.array([0] * 40 + [10**6] + [0] * 33), 7, (0.2, 0.5, 0.5, 0.9), "1", 0.95)
    # Every walk goes to the one cell that holds everything: one node of nine children a level and group.
    assert drawn == [63, 63]
    assert (ends.points == 40).all() and (ends.lows == 40).all() and (ends.highs == 40).all()


@given(
    st.lists(st.floats(-50, 50), min_size=12, max_size=12),
    st.lists(st.integers(0, 2), min_size=2, max_size=2),
    st.floats(0, 1),
)
@settings(max_examples=50)
def test_estimates_are_those_of_least_squares(noisy: list[float], path: list[int], rank: float) -> None:
    """Against the normal equations of the nodes on a path of three levels of three."""
    first, second, third = (np.array(noisy[3 * k : 3 * k + 3]) for k in range(3))
    # Unknown: the two nodes beside the path at levels 1 and 2, and the three leaves at its end.
    rows, seen = [], []
    leaves = [np.eye(7)[4 + k] for k in range(3)]
    inner = [np.eye(7)[2 + k - (k > path[1])] if k != path[1] else sum(leaves) for k in range(3)]
    outer = [np.eye(7)[k - (k > path[0])] if k != path[0] else sum(inner) for k in range(3)]
    for nodes, values in ((outer, first), (inner, second), (leaves, third)):
        rows += nodes
        seen += list(values)
    design = np.array(rows, dtype=float)
    best = np.linalg.lstsq(design, np.array(seen), rcond=None)[0]
    spread = 2.0 * np.linalg.inv(design.T @ design)
    shaped = [level.reshape(1, 1, 3) for level in (first, second, third)]
    chosen = [np.array([[k]]) for k in path]
    gap, deviation = rank_tree._gaps(
        shaped[2], list(zip(shaped[:2], chosen, strict=True)), 2.0, np.array([[[rank]]])
    )
    for edge in range(4):
        left = sum(outer[: path[0]], np.zeros(7)) + sum(inner[: path[1]], np.zeros(7))
        left = left + sum(leaves[:edge], np.zeros(7))
        asked = left - rank * sum(outer)
        assert gap[0, 0, edge] == pytest.approx(float(asked @ best), abs=1e-6)
        assert deviation[0, 0, edge] == pytest.approx(math.sqrt(asked @ spread @ asked), abs=1e-6)


def test_a_shape_of_one_cell_is_a_tree_too() -> None:
    assert shape_of(1) == Shape(2, 1)
    ends = ends_of(np.array([5]), 3, (0.5,), "1", 0.95)
    assert ends.points.shape == (1, 3)


def test_a_kept_tree_answers_every_rank_like_the_one_it_was_drawn_as() -> None:
    """With next to no noise, all ranks are exact; the state that is stored gives the same tree."""
    cells = np.array([5, 0, 20, 1, 0, 0, 7] * 30)
    tree = drawing_of(cells, 1, "100000").whole()
    stored = Tree.from_json(json.loads(json.dumps(tree.to_json())))
    ranks = (0.013, 0.24, 0.5, 0.77, 0.991)
    for held in (tree, stored):
        ends = find(held, ranks, 1, 0.95)
        assert ends.points[:, 0].tolist() == [truth_of(cells, rank) for rank in ranks]
    assert [level.shape for level in stored.levels] == [(1, stored.shape.branching**k) for k in (1, 2)]


def test_kept_trees_of_groups_answer_for_each_of_them() -> None:
    """With next to no noise. Groups may be empty, put in another order, or missing altogether."""
    groups = [np.array([9, 1, 1, 1] * 20), np.zeros(80, np.int64), np.array([0, 1, 1, 9] * 20)]
    place, cell = np.repeat(np.arange(3), 80), np.tile(np.arange(80), 3)
    shape = shape_of(80)
    forest = Forest(place, cell, np.concatenate(groups), shape.size)
    tree = Drawing(forest, np.array([2, 0, 1]), shape, Fraction(100_000), 1).whole()
    again = Tree.from_json(json.loads(json.dumps(tree.in_order(np.array([1, 2, 0])).to_json())))
    ends = find(again, (0.2, 0.7), 1, 0.95)
    for number, rank in enumerate((0.2, 0.7)):
        assert [ends.points[number, place] for place in (0, 2)] == [
            truth_of(groups[0], rank),
            truth_of(groups[2], rank),
        ]
    none = Tree.from_json(json.loads(json.dumps(tree.in_order(np.array([], np.int64)).to_json())))
    assert find(none, (0.5,), 1, 0.95).points.shape == (1, 0)


@pytest.mark.statistical
def test_later_ranks_of_a_kept_tree_are_covered() -> None:
    """300 trees at 95%: fewer than 0.88 of them has a chance under 1e-6."""
    trees = [drawing_of(ages(), 1, "0.1").whole() for _ in range(300)]
    for rank in (0.1, 0.5, 0.9):
        truth = truth_of(ages(), rank)
        ends = [find(tree, (rank,), 1, 0.95) for tree in trees]
        held = [found.lows[0, 0] <= truth <= found.highs[0, 0] for found in ends]
        assert np.mean(held) >= 0.88
