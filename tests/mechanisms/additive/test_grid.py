"""Values land on their grid exactly, and flooring moves neighbours no further than is claimed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import (
    CLAMP,
    INTEGERS,
    LIMIT,
    Grid,
    add_saturating,
    at_exponent,
    floored_l1,
    floored_l2,
    lattice_of,
)

reals = st.floats(-1e6, 1e6)
exponents = st.integers(-20, 20)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-1000, 900))
@example(5e-324, -1000)
@example(-(2.0**-1000), -1000)
@example(1.7e308, 900)
@example(-5e-324, 1)
@example(5e-324, 900)
@example(-1e-300, 500)
def test_floats_are_floored_and_clamped_exactly(value, exponent):
    exact = math.floor(Fraction(value) / Fraction(2) ** exponent)
    assert int(at_exponent(exponent).steps(value, "Laplace")) == max(-LIMIT, min(LIMIT, exact))


@given(st.integers(-(2**66), 2**66), st.integers(-70, 70))
def test_integers_are_floored_and_clamped_exactly(value, exponent):
    """To 62 bits before, where the step is coarser than 1."""
    held = max(-CLAMP, min(CLAMP, value)) if exponent > 0 else value
    exact = math.floor(Fraction(held) / Fraction(2) ** exponent)
    assert int(at_exponent(exponent).steps(value, "Laplace")) == max(-LIMIT, min(LIMIT, exact))
    assert at_exponent(exponent).steps([value, 0], "Laplace").tolist()[0] == max(-LIMIT, min(LIMIT, exact))


@given(st.lists(st.tuples(reals, reals), min_size=1, max_size=6), exponents)
def test_flooring_moves_vectors_no_further_than_claimed(pairs, exponent):
    grid = at_exponent(exponent)
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    exact = [abs(Fraction(a) - Fraction(b)) for a, b in pairs]
    apart = grid.steps(one, "Laplace") - grid.steps(other, "Laplace")
    l1 = sum(exact, Fraction(0)) or Fraction(1)
    l2 = Fraction(math.sqrt(sum(x * x for x in exact)) * (1 + 1e-9)) or Fraction(1)
    assert np.abs(apart).sum() <= floored_l1(l1, grid, len(pairs))
    assert sum(int(a) ** 2 for a in apart) <= floored_l2(l2, grid, len(pairs)) ** 2


def test_the_floored_l1_sensitivity_is_reached():
    # Three reals that together move by D = 2.25 cross 2 + 3 grid lines of width 1.
    one, other = np.array([0.875, 0.875, 0.875]), np.array([2.0, 2.0, 0.875])
    grid = at_exponent(0)
    assert np.abs(grid.steps(one, "x") - grid.steps(other, "x")).sum() == 4
    assert floored_l1(Fraction(9, 4), grid, 2) == 4


@given(st.integers(-LIMIT, LIMIT), st.integers(-(2**62) - 1, 2**62))
@example(LIMIT, 2**62)
@example(-LIMIT, 2**62)
@example(-LIMIT, -(2**62) - 1)
def test_sums_saturate_and_never_wrap(value, noise):
    total = add_saturating(np.array([value]), np.array([noise]))
    assert int(total[0]) == max(-LIMIT, min(LIMIT, value + noise))


@given(st.integers(-LIMIT, LIMIT), st.integers(2**62 + 1, 2**70))
@example(LIMIT, 2**62 + 1)
@example(-LIMIT, 2**62 + 1)
def test_noise_clamped_by_its_sampler_gives_the_same_output(value, noise):
    for draw, returned in ((noise, 2**62), (-noise, -(2**62) - 1)):
        clamped = add_saturating(np.array([value]), np.array([returned]))
        assert int(clamped[0]) == max(-LIMIT, min(LIMIT, value + draw))


def test_a_whole_sensitivity_means_integers_and_any_other_means_reals():
    assert lattice_of(None, 1, -20) == INTEGERS
    assert lattice_of(None, np.int64(3), -20) == INTEGERS
    assert lattice_of(None, 1.0, -20) == Grid(-20, integers=False)
    assert lattice_of(0.25, 1, -20) == Grid(-2, integers=False)
    assert lattice_of(INTEGERS, 1.5, -20) == INTEGERS


def test_outputs_keep_the_kind_and_shape_of_the_input():
    assert INTEGERS.values(INTEGERS.steps(3, "x")) == 3
    assert isinstance(INTEGERS.values(INTEGERS.steps(3, "x")), int)
    half = at_exponent(-1)
    assert half.values(half.steps(3.25, "x")) == 3.0
    assert half.values(half.steps([[1, 2], [3, 4]], "x")).tolist() == [[1, 2], [3, 4]]
    assert INTEGERS.steps([], "x").shape == (0,)
    assert INTEGERS.steps(np.array([], dtype=int), "x").shape == (0,)
    assert INTEGERS.steps(np.array([2**40], dtype=np.uint64), "x").tolist() == [2**40]


@pytest.mark.parametrize(
    "value",
    [
        "3",
        None,
        True,
        3j,
        [1, "2"],
        [[1], [2, 3]],
        1.5,
        float("nan"),
        np.ma.masked_array([1, 2], mask=[True, False]),
        Fraction(1, 2),
        np.datetime64("2020-01-01"),
        {"a": 1},
    ],
)
def test_values_that_are_not_integers_are_refused(value):
    with pytest.raises(InvalidInput) as caught:
        INTEGERS.steps(value, "Laplace")
    assert "Laplace" in str(caught.value) and str(caught.value).endswith(".")


def test_no_value_of_the_right_kind_is_refused():
    assert INTEGERS.steps([LIMIT + 1, -(2**80), 2**63, -1], "x").tolist() == [LIMIT, -LIMIT, LIMIT, -1]
    assert INTEGERS.steps(np.array([2**63, 3], dtype=np.uint64), "x").tolist() == [LIMIT, 3]
    extremes = [math.nan, math.inf, -math.inf, 1e300, 5e-324, -5e-324]
    assert at_exponent(-10).steps(extremes, "x").tolist() == [0, LIMIT, -LIMIT, LIMIT, 0, -1]
    with pytest.raises(InvalidInput):
        at_exponent(-10).steps(np.longdouble(1), "x")


@pytest.mark.parametrize("grid", [0, -1, 0.3, 3, float("nan"), "1", True, 2.0**-1040, 2.0**1000])
def test_grids_that_are_not_powers_of_two_are_refused(grid):
    with pytest.raises(InvalidInput):
        lattice_of(grid, 1.0, 0)
