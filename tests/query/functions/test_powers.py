"""Powers: the value where they are defined, NULL elsewhere, and the range that is claimed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import Row, computed, corner_rows, range_of, refuted, rows, typed

EXPONENTS = ["0", "1", "2", "3", "5", "8", "9", "12", "0.5", "1.5", "2.5", "1.7", "0.001"]
CALLS = [
    *(f"POWER({{}}, {sign}{exponent})" for exponent in EXPONENTS for sign in ("", "-")),
    *("CBRT({})", "SQUARE({})", "POWER(2, {})", "POWER(0.5, {})", "POWER(1.001, {})", "POWER(1, {})"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "inner", ["x", "f", "g", "n", "u", "y - 9", "-g", "f * 1e70", "b", "x * 100", "y - 1"]
)
def test_no_row_refutes_what_is_claimed(call: str, inner: str) -> None:
    assert not refuted(
        typed(call.format(inner)), corner_rows("x", "y") + corner_rows("f", "g", "b") + corner_rows("n", "u")
    )


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CALLS), st.sampled_from(["x", "f", "g", "y", "-g", "-y"]), rows())
def test_a_value_is_that_of_duckdb_where_duckdb_has_one(call: str, inner: str, given_rows: list[Row]) -> None:
    claim = typed(call.format(inner))
    name = call if "SQUARE" not in call else "POWER({}, 2)"
    plain = computed(name.format(f"CAST({inner} AS DOUBLE)"), given_rows)
    operands = computed(f"CAST({inner} AS DOUBLE)", given_rows)
    for one, two, operand in zip(computed(claim.sql, given_rows), plain, operands, strict=True):
        if two is None or not math.isfinite(two):
            assert one is None
        elif operand and not 1e-7 <= abs(operand) <= 1e7:
            # A product below 2^-200 on the way counts as zero, and one beyond 2^200 as infinite.
            assert not one or math.isclose(one, two, rel_tol=1e-6)
        else:
            assert one is not None and math.isclose(one, two, rel_tol=1e-6)
    assert not refuted(claim, given_rows)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("POWER(4, 1.5)", 8.0),
        ("POWER(9, -0.5)", 1 / 3),
        ("2 ** 10", 1024.0),
        ("-2 ^ 3", -8.0),
        ("POWER(-2, 9)", -512.0),
        ("POWER(-2, -1)", -0.5),
        ("POWER(-8, 1.5)", None),
        ("POWER(-8, 0.3)", None),
        ("POWER(0, -1)", None),
        ("POWER(0, -0.3)", None),
        ("POWER(0, 0)", 1.0),
        ("POWER(0, 0.3)", 0.0),
        ("POWER(10, 400)", None),
        ("POWER(10, -400)", 0.0),
        ("POWER(2, 10.0)", 1024.0),
        ("POWER(27, 1.0 / 3)", None),
        ("CBRT(27)", 3.0),
        ("CBRT(-1000)", -10.0),
        ("CBRT(0)", 0.0),
        ("CBRT(NULL)", None),
        ("SQUARE(-3)", 9.0),
    ],
)
def test_known_values(sql: str, value: float | None) -> None:
    if "/" in sql:
        with pytest.raises(QueryError, match="POWER takes a constant exponent"):
            typed(sql.replace("27", "x"))
        return
    assert computed(typed(sql).sql, corner_rows()[:1]) == [value]


@pytest.mark.parametrize("sql", ["POWER(u, 1.7)", "POWER(u, 9)", "CBRT(u)", "POWER(2, u)"])
def test_infinity_and_nan_have_no_power_beyond_products(sql: str) -> None:
    given_rows = [{**corner_rows()[0], "u": value} for value in (math.nan, math.inf)]
    assert computed(typed(sql).sql, given_rows) == [None, None]


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("POWER(x, 5)", "x"),
        ("POWER(x, 8)", "x"),
        ("POWER(y, -1)", "y"),
        ("POWER(g, 0.5)", "g"),
        ("SQUARE(f)", "f"),
    ],
)
def test_products_have_the_range_of_the_ends(sql: str, column: str) -> None:
    assert (typed(sql).low, typed(sql).high) == range_of(sql, column)


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("POWER(g, 1.7)", 0.5**1.7, 2**1.7),
        ("POWER(g, -1.7)", 2**-1.7, 0.5**-1.7),
        ("POWER(x, 9)", -(5.0**9), 20.0**9),
        ("POWER(x, 10)", 0, 20.0**10),
        ("POWER(-g, 9)", -(2.0**9), -(0.5**9)),
        ("CBRT(x)", -(5 ** (1 / 3)), 20 ** (1 / 3)),
        ("POWER(2, x)", 2**-5, 2**20),
        ("POWER(0.5, x)", 2**-20, 2**5),
    ],
)
def test_other_ranges_are_wider_by_a_rounding_alone(sql: str, low: float, high: float) -> None:
    claim = typed(sql)
    assert claim.low is not None and claim.high is not None
    for mine, end in ((claim.low, low), (claim.high, high)):
        assert math.isclose(mine, end, rel_tol=3e-6, abs_tol=1e-200)
    assert claim.low <= low and high <= claim.high


@pytest.mark.parametrize(
    "sql", ["POWER(x, -1)", "POWER(f, -1.5)", "POWER(n, 2)", "POWER(f * 1e80, 8)", "POWER(10, n)"]
)
def test_what_has_no_largest_value_has_no_range(sql: str) -> None:
    assert not typed(sql).bounded


@pytest.mark.parametrize(
    ("sql", "nullable"),
    [
        ("POWER(y, 5)", False),
        ("POWER(y, -5)", False),
        ("POWER(y, 1.7)", False),
        ("POWER(y - 1, 1.7)", False),
        ("POWER(y - 1, -1.7)", True),
        ("POWER(y - 2, 1.5)", True),
        ("POWER(x, 5)", True),
        ("POWER(2, y)", False),
        ("POWER(2, y * 1000)", True),
    ],
)
def test_null_is_possible_where_a_power_is_not_defined(sql: str, nullable: bool) -> None:
    assert typed(sql).nullable is nullable


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("POWER(x, y)", "POWER takes a constant exponent, as in POWER(x, 1.5), or a positive constant base"),
        ("POWER(-2, y)", "POWER takes a constant exponent"),
        ("POWER(x, 1001)", "The exponent of POWER must be 0, or between 0.001 and 1000 in size."),
        ("POWER(x, 1e-9)", "The exponent of POWER must be 0"),
        ("POWER(1.0000000000000002, x)", "The base of POWER is too close to 1; write 1."),
        ("CBRT(s)", "CBRT needs numbers, but s is of type text."),
    ],
)
def test_what_has_no_safe_form_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
