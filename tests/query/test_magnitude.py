"""Sizes of numbers: no constant lies beyond its own, and no operation leaves float64."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.query.magnitude import LARGEST, added, multiplied, rounded, size_of, tame
from incrowd.query.typed import LARGE
from tests.query.one_table import computed, corner_rows, typed

FLOATS = st.floats(allow_nan=False)


@given(FLOATS)
@example(1.0)
@example(0.5)
@example(2.0)
@example(-4.0)
@example(5e-324)
@example(1.7976931348623157e308)
def test_a_constant_lies_within_its_size_and_not_far_within(value: float) -> None:
    size = size_of(value)
    if value == 0 or math.isinf(value):
        assert size == 0
        return
    exponent = math.log2(abs(value))
    assert -size <= exponent <= size
    assert size <= abs(exponent) + 2 or (value < 0 and size <= abs(exponent) + 3)


@settings(max_examples=80, deadline=None)
@given(st.floats())
@example(2.0**200)
@example(math.nextafter(2.0**200, math.inf))
@example(2.0**-200)
@example(math.nextafter(2.0**-200, 0))
def test_a_tamed_number_is_itself_zero_or_infinite(value: float) -> None:
    tamed = tame(typed("u"))
    assert tamed.size == 200
    (result,) = computed(tamed.sql, [{**corner_rows()[0], "u": value}])
    if math.isnan(value):
        assert math.isnan(result)
    elif abs(value) > 2.0**200:
        assert result == math.copysign(math.inf, value)
    else:
        assert result == (0.0 if abs(value) < 2.0**-200 else value)


def test_a_number_of_modest_size_is_left_alone() -> None:
    assert tame(typed("x")) is not None and tame(typed("x")).sql == typed("x").sql
    assert tame(typed("x").but(size=200)).sql == typed("x").sql
    assert tame(typed("x").but(size=201)).size == 200


@given(st.integers(0, LARGE), st.integers(0, LARGE))
@example(480, 480)
@example(480, 481)
@example(LARGE, 0)
def test_operands_are_tamed_exactly_where_a_product_could_leave_float64(one: int, two: int) -> None:
    left, right, size = multiplied(typed("u").but(size=one), typed("u").but(size=two))
    if one + two <= LARGEST:
        assert (left.size, right.size, size) == (one, two, one + two)
    else:
        assert (left.size, right.size, size) == (min(one, 200), min(two, 200), min(one, 200) + min(two, 200))
    assert size <= LARGEST < 1022


@given(st.integers(0, LARGE), st.integers(0, LARGE))
@example(LARGE - 1, 0)
@example(0, LARGE)
def test_operands_are_tamed_where_a_sum_could_leave_float64(one: int, two: int) -> None:
    left, right, size = added(typed("u").but(size=one), typed("u").but(size=two))
    if max(one, two) < LARGE:
        assert (left.size, right.size, size) == (one, two, max(one, two) + 53)
    else:
        assert (left.size, right.size, size) == (
            min(one, 200),
            min(two, 200),
            max(min(one, 200), min(two, 200)) + 53,
        )


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-1e200, 1e200, allow_subnormal=False).filter(lambda value: value == 0 or abs(value) > 1e-200)
)
def test_rounding_to_24_bits_moves_by_one_part_in_two_to_the_24(value: float) -> None:
    (result,) = computed(rounded(exp.column("u", table="t")), [{**corner_rows()[0], "u": value}])
    assert abs(result - value) <= abs(value) * 2.0**-24
    assert (math.frexp(result)[0] * 2**24).is_integer()


@pytest.mark.parametrize("value", [1.0, 3.0, 0.1, 1 / 3])
def test_what_has_24_bits_is_left_as_it_is(value: float) -> None:
    short = math.floor(value * 2**20) / 2**20
    assert computed(rounded(exp.column("u", table="t")), [{**corner_rows()[0], "u": short}]) == [short]
