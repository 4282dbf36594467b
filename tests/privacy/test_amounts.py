from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.privacy import amounts

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite)
def test_a_float_stands_for_its_shortest_decimal(x: float) -> None:
    assert amounts.read(x, "x") == Fraction(repr(x))
    assert amounts.float_up(amounts.read(x, "x")) == x
    assert amounts.float_down(amounts.read(x, "x")) == x


@given(st.fractions())
def test_floats_enclose_every_rational(x: Fraction) -> None:
    assert amounts.read(amounts.float_down(x), "x") <= x <= amounts.read(amounts.float_up(x), "x")


@given(st.fractions(min_value=0, max_value=10**6))
def test_units_enclose_every_amount_within_one(x: Fraction) -> None:
    up, down = amounts.units_up(x), amounts.units_down(x)
    assert amounts.from_units(down) <= x <= amounts.from_units(up)
    assert up - down <= 1


def test_tenths_and_thirds_are_whole_numbers_of_units() -> None:
    for n in range(1, 17):
        assert amounts.units_up(Fraction(1, n)) * n == amounts.UNITS
    assert amounts.units_up(amounts.read(0.1, "x")) * 10 == amounts.UNITS


def test_every_kind_of_number_is_read() -> None:
    for value in (1, 1.0, Fraction(1), Decimal(1), np.float64(1), np.float32(1), np.int32(1)):
        assert amounts.read(value, "x") == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, Decimal("NaN"), "1", None, True, 1j, [1]])
def test_what_is_no_number_is_refused_by_name(bad: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        amounts.read(bad, "epsilon")


def test_bounds_are_named() -> None:
    with pytest.raises(InvalidInput, match="epsilon must be zero or more"):
        amounts.read_amount(-0.1, "epsilon")
    with pytest.raises(InvalidInput, match="delta must be at most 1"):
        amounts.read_probability(1.5, "delta")
    with pytest.raises(InvalidInput, match="steps must be a whole number, 1 or more"):
        amounts.read_count(0, "steps", 1)
    with pytest.raises(InvalidInput, match="whole number"):
        amounts.read_count(1.5, "steps")


@given(st.fractions(min_value=Fraction(1, 10**8), max_value=50))
def test_precise_formulas_are_close_upper_bounds(x: Fraction) -> None:
    bound = amounts.precisely(lambda e: e.exp(), x)
    assert math.exp(float(x)) == pytest.approx(float(bound), rel=1e-12)
    assert bound >= amounts.precisely(lambda e: e.exp(), x * (1 - Fraction(1, 10**25)))


def test_precise_formulas_are_above_the_truth_by_a_hair() -> None:
    for x in (Fraction(1, 3), Fraction(7), Fraction(1, 10**6)):
        bound = amounts.precisely(lambda e: e.exp(), x)
        with mp.workdps(90):
            truth = mp.exp(mp.mpf(x.numerator) / x.denominator)
            stated = mp.mpf(bound.numerator) / bound.denominator
            assert truth < stated <= truth * (1 + mp.mpf("1.1e-30"))


@settings(max_examples=20)
@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_roots_and_short_numbers_round_up_and_hardly(x: Fraction) -> None:
    root = Fraction(repr(amounts.root_up(x)))
    assert x <= root**2 <= x * (1 + Fraction(1, 10**15))
    short = amounts.short_up(x)
    assert x <= short <= x * (1 + Fraction(1, 10**39))


def test_roots_outside_the_range_of_floats() -> None:
    for amount in (Fraction(1, 10**640), Fraction(10**600), Fraction(2, 10**641)):
        root = Fraction(repr(amounts.root_up(amount)))
        assert amount <= root**2
        assert root <= Fraction(repr(math.nextafter(amounts.root_up(amount), math.inf)))
    assert amounts.root_up(Fraction(10**600)) == 1e300
    assert amounts.root_up(Fraction(0)) == 0.0
    assert amounts.float_up(Fraction(10**400)) == math.inf
    assert amounts.float_down(Fraction(1, 3)) == 1 / 3 == math.nextafter(amounts.float_up(Fraction(1, 3)), 0)
    assert Fraction(repr(amounts.float_down(Fraction(2, 3)))) <= Fraction(2, 3)


def test_the_least_amounts_and_probabilities_are_allowed() -> None:
    assert amounts.read_amount(0, "epsilon") == 0
    assert amounts.read_probability(1, "delta") == 1
    assert amounts.read_count(0, "steps") == 0
    assert amounts.LEAST == 5e-324
