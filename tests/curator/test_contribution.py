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


def test_the_census_has_noise_for_as_many_cells_as_one_unit_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Fraction, int]] = []

    class Noted:
        def __init__(self, epsilon: Fraction, sensitivity: int) -> None:
            made.append((epsilon, sensitivity))

        def release(self, cells: np.ndarray) -> np.ndarray:
            return cells + 1

    monkeypatch.setattr(caps, "Laplace", Noted)
    # 10 units above 0, 7 above 1, 2 above 2: three, five and two in their cells.
    assert caps.noisy_census(np.array([10, 7, 2]), Fraction(1, 3), 2).tolist() == [4, 6, 3]
    assert made == [(Fraction(1, 3), 2)]


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        ([5, 6, 0, 0, 0, 9], [0, 6, 0, 0, 0, 9]),  # three empty cells between are bridged
        ([0, 6, 0, 0, 0, 0, 9], [0, 6, 0, 0, 0, 0, 0]),  # four are not
        ([6, 0, 0, 0, 0, 9, 9], [6, 0, 0, 0, 0, 0, 0]),
        ([0, 0, 0, 0, 0, 9, 9], [0, 0, 0, 0, 0, 9, 9]),
    ],
)
def test_cells_above_the_floor_count_up_to_the_first_gap(cells: list[int], held: list[int]) -> None:
    assert caps._held(np.array(cells), 5).tolist() == held


def least(cells: list[int], noise_per_cap: float, groups: int, use: Use, norm: int) -> int:
    """The cap of least error, from the formulas of the docstring, unit by unit."""
    units = [0.75 * 2**place for place, number in enumerate(cells) for _ in range(number)]
    errors = []
    for cap in (2.0**place for place in range(len(cells))):
        kept = sum(min(weight, cap if norm == 1 else (cap * weight) ** 0.5) for weight in units)
        noise = 2**0.5 * (cap if norm == 1 else cap**0.5) * noise_per_cap
        cut = sum(units) - kept
        if use == "sum":
            errors.append(noise**2 + (cut / groups) ** 2)
        elif use == "rescaled":
            errors.append((noise * sum(units) / kept) ** 2 + (0.1 * cut / groups) ** 2)
            if sum(units) > 3 * kept:
                errors[-1] = float("inf")
        else:
            errors.append((noise * groups / kept) ** 2 + (0.02 * (1 - kept / sum(units))) ** 2)
    return errors.index(min(errors))


@pytest.mark.parametrize("use", ["sum", "rescaled", "ratio"])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("distance", [1, 2])
def test_the_cap_has_the_least_error(use: Use, norm: int, distance: int) -> None:
    cells = [300, 200, 100, 80, 60, 40, 20, 30]
    for groups in (1, 7, 40):
        for epsilon in (0.005, 0.02, 0.1, 0.5, 3.0):
            expected = least(cells, distance / epsilon, groups, use, norm)
            found = caps.choose(np.array(cells), 10.0, epsilon, groups, distance, use, norm=norm)
            assert found == (expected, min(max(7, expected), expected + caps.SPAN))


def test_the_floor_of_a_census_follows_its_noise() -> None:
    # The chance that one of eight empty cells passes ln(8 / 0.05) / epsilon is a twentieth: 50.75 at 1/10.
    for distance, floor in ((1, 50), (2, 101)):
        for number, seen in ((floor, False), (floor + 1, True)):
            cells = np.array([10_000, 0, 0, number, 0, 0, 0, 0])
            top = caps.choose(cells, 0.1, 1e9, 1, distance, "sum")[1]
            assert top == (3 if seen else 0)


def test_unknown_groups_are_at_least_as_many_as_one_unit_is_in() -> None:
    cells = [300, 200, 100, 80, 60, 40, 20, 300]
    for epsilon in (0.005, 0.02, 0.05, 0.1, 0.5):
        plain = caps.choose(np.array(cells), 10.0, epsilon, None, 1, "sum")
        assert plain == caps.choose(np.array(cells), 10.0, epsilon, 32, 1, "sum")
        paired = caps.choose(np.array(cells), 10.0, epsilon, None, 1, "sum", paired=True)
        assert paired == caps.choose(np.array(cells), 10.0, epsilon, 64, 1, "sum")
        few = caps.choose(np.array(cells[:3]), 10.0, epsilon, None, 1, "sum", paired=True)
        assert few == caps.choose(np.array(cells[:3]), 10.0, epsilon, 32, 1, "sum")
