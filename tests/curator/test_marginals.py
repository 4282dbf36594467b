"""Consistent totals against the normal equations, solved densely; and whole numbers that still add up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from incrowd.curator.marginals import Floats, grid, rounded, subsets, tree, variances


def sums_of(shape: Sequence[int], levels: Sequence[tuple[int, ...]]) -> Floats:
    """The matrix that adds cells up to the numbers of all levels."""
    places = np.indices(shape).reshape(len(shape), -1).T
    rows = [
        np.all(places[:, level] == place, axis=1)
        for level in levels
        for place in itertools.product(*[range(shape[key]) for key in level])
    ]
    return np.array(rows, dtype=np.float64)


def solved(sums: Floats, numbers: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The cells by least squares, and the variance of all numbers."""
    spread = np.linalg.inv(sums.T @ (sums / noise[:, None]))
    return spread @ (sums.T @ (numbers / noise)), np.diag(sums @ spread @ sums.T)


@pytest.mark.parametrize(
    "levels",
    [
        [(0, 1, 2), (0, 1), (0,), ()],
        [(0, 1, 2), (0, 2), (1,), ()],
        [(0, 1, 2), *itertools.combinations(range(3), 2), (0,), (1,), (2,), ()],
    ],
)
def test_a_grid_is_solved_as_the_normal_equations_are(levels: list[tuple[int, ...]]) -> None:
    shape, rng = (2, 3, 4), np.random.default_rng(5)
    measured = {
        level: (rng.normal(size=[shape[key] for key in level]) * 9, 0.5 + place)
        for place, level in enumerate(levels)
    }
    numbers = np.concatenate([np.ravel(values) for values, _ in measured.values()])
    noise = np.concatenate([np.full(np.size(values), spread) for values, spread in measured.values()])
    sums = sums_of(shape, levels)
    cells, spread = solved(sums, numbers, noise)
    assert np.allclose(grid(shape, measured).ravel(), cells)
    found = variances(shape, {level: variance for level, (_, variance) in measured.items()}, levels)
    sizes = [int(np.prod([shape[key] for key in level])) for level in levels]
    assert np.allclose(np.repeat(found, sizes), spread)


def test_levels_without_their_finest_agree_on_what_they_share() -> None:
    rng = np.random.default_rng(7)
    rows, columns = rng.normal(size=3), rng.normal(size=4)
    cells = grid((3, 4), {(0,): (rows, 1.0), (1,): (columns, 1.0)})
    assert cells.sum() == pytest.approx((3 * columns.sum() + 4 * rows.sum()) / 7, rel=1e-12, abs=1e-12)
    assert np.allclose(cells.sum(axis=1) - cells.sum() / 3, rows - rows.mean())


def test_a_tree_of_unequal_branches_is_solved_as_the_normal_equations_are() -> None:
    rng = np.random.default_rng(11)
    middle, top = np.array([0, 0, 0, 1, 2, 2, 3]), np.array([0, 0, 0, 0, 1, 1, 1])
    levels = [(np.arange(7), 7), (middle, 4), (top, 2), (np.zeros(7, dtype=np.int64), 1)]
    spreads = [1.0, 3.0, None, 0.25]
    measured = [
        None if spread is None else (rng.normal(size=count) * 5, spread)
        for (_, count), spread in zip(levels, spreads, strict=True)
    ]
    sums = np.concatenate([(member == np.arange(count)[:, None]) * 1.0 for member, count in levels])
    held = [(values, np.full(len(values), spread)) for values, spread in filter(None, measured)]
    kept = np.repeat([each is not None for each in measured], [count for _, count in levels])
    numbers, noise = (np.concatenate(part) for part in zip(*held, strict=True))
    cells, _ = solved(sums[kept], numbers, noise)
    spread = np.diag(sums @ np.linalg.inv(sums[kept].T @ (sums[kept] / noise[:, None])) @ sums.T)
    values, known = tree(levels, measured)
    assert np.allclose(np.concatenate(values), sums @ cells)
    assert np.allclose(np.concatenate(known), spread)


def test_a_tree_without_groups_has_a_total_of_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    values, known = tree([(nothing, 0), (nothing, 1)], [(np.zeros(0), 1.0), (np.array([5.0]), 1.0)])
    assert (values[1][0], known[1][0]) == (0.0, 0.0)


@pytest.mark.parametrize("shape", [(1,), (40,), (5, 7), (3, 4, 5)])
def test_rounded_cells_are_whole_and_all_their_sums_are_near(shape: tuple[int, ...]) -> None:
    cells = np.random.default_rng(13).normal(size=shape) * 100
    whole = rounded(cells, 1.0)
    assert np.array_equal(whole, np.rint(whole))
    axes = range(len(shape))
    for kept in subsets(tuple(axes)):
        over = tuple(axis for axis in axes if axis not in kept)
        assert np.abs(whole.sum(axis=over) - cells.sum(axis=over)).max() <= 2.0 ** len(kept) / 2 + 1e-9


def test_rounding_beyond_float64_takes_larger_units() -> None:
    whole = rounded(np.array([2.0**61, 1.0, -(2.0**60)]), 1.0)
    assert whole.sum() == 2.0**61 - 2.0**60
    assert rounded(np.zeros((0, 3)), 1.0).shape == (0, 3)
