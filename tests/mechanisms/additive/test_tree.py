"""Trees of counts: their sums, their reach, and the least squares that make them consistent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.mechanisms.additive.tree import consistent, height, levels_of

CELLS = st.lists(st.integers(0, 50), min_size=1, max_size=40)


@given(CELLS, st.integers(2, 5))
def test_every_level_sums_the_level_below(cells: list[int], branching: int) -> None:
    levels = levels_of(np.array(cells), branching)
    assert len(levels) == height(len(cells), branching) + 1
    assert levels[-1][: len(cells)].tolist() == cells and not levels[-1][len(cells) :].any()
    for above, below in pairwise(levels):
        assert above.tolist() == below.reshape(-1, branching).sum(axis=1).tolist()


@given(CELLS, CELLS, st.integers(2, 5))
def test_a_unit_moves_each_level_by_no_more_than_its_cells(
    one: list[int], two: list[int], branching: int
) -> None:
    size = max(len(one), len(two))
    first, second = (np.array(cells + [0] * (size - len(cells))) for cells in (one, two))
    reach = np.abs(first - second).sum()
    for a, b in zip(levels_of(first, branching), levels_of(second, branching), strict=True):
        assert np.abs(a - b).sum() <= reach


@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(0, 3), st.integers(0, 10**6))
def test_consistent_cells_are_the_least_squares(branching: int, high: int, seed: int) -> None:
    size = branching**high
    design = np.vstack(_design(size, branching))
    noisy = np.random.default_rng(seed).integers(-100, 100, len(design))
    levels, place = [], 0
    for level in range(high + 1):
        levels.append(noisy[place : place + branching**level])
        place += branching**level
    best = np.linalg.lstsq(design, noisy.astype(float), rcond=None)[0]
    assert consistent(levels, branching) == pytest.approx(best, abs=1e-8)


def _design(size: int, branching: int) -> list[np.ndarray]:
    width, blocks = size, []
    while width >= 1:
        blocks.append(np.kron(np.eye(size // width), np.ones(width)))
        if width == 1:
            break
        width //= branching
    return blocks


def test_exact_levels_stay_as_they_are() -> None:
    cells = np.array([5, 0, 7, 1, 2])
    assert consistent(levels_of(cells, 3), 3)[:5] == pytest.approx(cells)


def test_sums_beyond_64_bits_are_exact_for_python_integers() -> None:
    cells = np.array([2**61] * 9, dtype=object)
    assert levels_of(cells, 3)[0][0] == 9 * 2**61
