"""Functions that shift or scale a number: DuckDB's values, and the range that is claimed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import Row, computed, corner_rows, refuted, rows, typed

CALLS = {
    "DEGREES({})": "DEGREES({})",
    "RADIANS({})": "RADIANS({})",
    "LOG1P({})": "LN(1 + {})",
    "EXPM1({})": "EXP({}) - 1",
    "{} * PI()": "{} * PI()",
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("inner", ["x", "f", "g", "n", "u", "f * 1e70", "b"])
def test_no_row_refutes_what_is_claimed(call: str, inner: str) -> None:
    assert not refuted(typed(call.format(inner)), corner_rows("x", "f", "g", "b") + corner_rows("n", "u"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(CALLS)), st.sampled_from(["f", "g", "x"]), rows())
def test_a_value_is_that_of_duckdb(call: str, inner: str, given_rows: list[Row]) -> None:
    plain = computed(CALLS[call].format(f"CAST({inner} AS DOUBLE)"), given_rows)
    for one, two in zip(computed(typed(call.format(inner)).sql, given_rows), plain, strict=True):
        defined = two is not None and math.isfinite(two)
        assert math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-7) if defined else one is None


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("DEGREES(g)", math.degrees(0.5), math.degrees(2)),
        ("RADIANS(x)", math.radians(-5), math.radians(20)),
        ("LOG1P(g)", math.log(1.5), math.log(3)),
        ("EXPM1(g)", math.expm1(0.5), math.expm1(2)),
        ("PI()", math.pi, math.pi),
    ],
)
def test_a_range_is_no_wider_than_rounding_asks(sql: str, low: float, high: float) -> None:
    claim = typed(sql)
    assert claim.low is not None and claim.high is not None
    assert low - 1e-5 <= claim.low <= low + 1e-12 and high - 1e-12 <= claim.high <= high + 1e-4


def test_null_below_minus_one() -> None:
    assert computed(typed("LOG1P(-1)").sql, corner_rows()[:1]) == [None]
    assert typed("LOG1P(f)").nullable and not typed("LOG1P(g)").nullable


def test_one_argument_is_taken() -> None:
    with pytest.raises(QueryError, match="LOG1P takes one argument here"):
        typed("LOG1P(f, 1)")
