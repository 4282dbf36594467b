"""Numbers are taken exactly, rounded only to the safe side, and calibrations are given once."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Exponential, Laplace, Mechanism, parameters, sensitivity
from incrowd.mechanisms.parameters import (
    amount,
    failure_each,
    float_above,
    float_below,
    is_whole_type,
    log2_floor,
    one_calibration,
    root_above,
    root_below,
)
from incrowd.noise.readings import binary

ratios = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_count_at_their_exact_value_and_parameters_as_decimals(x):
    assert binary(x, "x") == Fraction(x) == binary(np.float64(x), "x")
    if 1e-100 <= x <= 1e100:
        assert amount(x, "x") == Fraction(repr(x))


def test_the_same_tenth_however_it_is_written():
    assert amount(0.1, "e") == amount(Decimal("0.1"), "e") == amount(Fraction(1, 10), "e")
    assert Laplace(epsilon=0.1).privacy == Laplace(epsilon=Fraction(1, 10)).privacy
    assert (Laplace(epsilon=0.1).privacy * 10).epsilon() <= 1.0
    assert (Exponential(0.1).privacy * 10).epsilon() <= 1.0


@given(ratios)
def test_floats_are_rounded_to_the_side_that_is_named(x):
    assert Fraction(float_below(x)) <= x <= Fraction(float_above(x))
    assert math.nextafter(float_below(x), math.inf) >= float_above(x)
    assert float_above(-x) == -float_below(x)


def test_numbers_beyond_floats_become_the_ends():
    assert float_above(Fraction(10**400)) == math.inf
    assert float_above(Fraction(-(10**400))) == -1.7976931348623157e308
    assert float_below(Fraction(10**400)) == 1.7976931348623157e308


@given(ratios)
def test_roots_enclose(x):
    low, high = root_below(x), root_above(x)
    assert low**2 <= x <= high**2
    assert high - low <= low * Fraction(1, 2**70)


@given(ratios)
def test_the_logarithm_is_exact(x):
    k = log2_floor(x)
    assert Fraction(2) ** k <= x < Fraction(2) ** (k + 1)


@given(st.floats(0.01, 0.999), st.integers(1, 10**6))
def test_many_errors_together_keep_the_confidence(confidence, count):
    failure = failure_each(confidence, count)
    assert (1 - failure) ** count >= confidence * (1 - 1e-9)
    assert failure <= 1 - confidence or count == 1


def test_whole_types():
    assert is_whole_type(1) and is_whole_type(np.int32(4)) and is_whole_type(Fraction(3))
    assert not is_whole_type(1.0) and not is_whole_type(Fraction(1, 2)) and not is_whole_type(True)
    assert type(Laplace(epsilon=1, sensitivity=sensitivity.count().l1).release(3)) is int


@pytest.mark.parametrize("given", [{}, {"a": 1, "b": 1, "c": 1}, {"b": 1}, {"a": 1, "c": 2}])
def test_exactly_one_calibration(given):
    every = {"a": None, "b": None, "c": None} | given
    with pytest.raises(InvalidInput, match="exactly one calibration"):
        one_calibration("Thing", (("a", "b"), ("c",)), every)


def test_the_calibration_that_was_given_is_named():
    assert one_calibration("Thing", (("a", "b"), ("c",)), {"a": 1, "b": 2, "c": None}) == "a"
    assert one_calibration("Thing", (("a", "b"), ("c",)), {"a": None, "b": None, "c": 2}) == "c"


@pytest.mark.parametrize("value", [None, "1", True, 1j, [1], Decimal("nan"), float("inf")])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InvalidInput) as caught:
        parameters.positive(value, "epsilon")
    assert str(caught.value).startswith("epsilon") and str(caught.value).endswith(".")


@pytest.mark.parametrize("value", [0, 1, -0.5, 2, float("nan"), "0.9", 1 - Fraction(1, 10**301)])
def test_confidences_outside_0_to_1_are_refused(value):
    with pytest.raises(InvalidInput, match="confidence"):
        parameters.confidence_level(value)


def test_every_mechanism_says_what_it_costs():
    import incrowd.mechanisms as room

    kinds = [getattr(room, name) for name in room.__all__]
    mechanisms = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Mechanism)]
    assert len(mechanisms) >= 15
    for kind in mechanisms:
        assert (kind.__doc__ and kind is Mechanism) or "privacy" in dir(kind)
