"""Functions of numbers: their value where they are defined, NULL elsewhere, and the range that is claimed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import Row, computed, corner_rows, range_of, refuted, rows, typed

CALLS = [
    *(
        "FLOOR({})",
        "CEIL({})",
        "ROUND({})",
        "TRUNC({})",
        "ROUND({}, 1)",
        "ROUND({}, -1)",
        "ABS({})",
        "SIGN({})",
    ),
    *(
        "LN({})",
        "LOG({})",
        "LOG(2, {})",
        "SQRT({})",
        "EXP({})",
        "POWER({}, 1)",
        "POWER({}, 2)",
        "POWER({}, 3)",
    ),
    *("POWER({}, 4)", "TRUNC({}, 1)", "TRUNC({}, -1)"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("inner", ["x", "f", "g", "n", "u", "y - 9", "f * 1e70", "b", "x * 100"])
def test_no_row_refutes_what_is_claimed(call: str, inner: str) -> None:
    assert not refuted(
        typed(call.format(inner)), corner_rows("x", "y") + corner_rows("f", "g", "b") + corner_rows("n", "u")
    )


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CALLS), st.sampled_from(["x", "f", "g", "y"]), rows())
def test_a_value_is_that_of_duckdb(call: str, inner: str, given_rows: list[Row]) -> None:
    defined = [row for row in given_rows if row[inner] is not None and row[inner] > 0]
    values = computed(typed(call.format(inner)).sql, defined)
    for one, two in zip(values, computed(call.format(f"CAST({inner} AS DOUBLE)"), defined), strict=True):
        assert math.isclose(one, two, rel_tol=1e-7, abs_tol=1e-7)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("ABS(x)", "x"),
        ("ABS(y)", "y"),
        ("ABS(-g)", "g"),
        ("ABS(f)", "f"),
        ("POWER(x, 2)", "x"),
        ("POWER(x, 3)", "x"),
        ("POWER(-g, 2)", "g"),
        ("POWER(g, 4)", "g"),
        ("POWER(f, 1)", "f"),
        ("FLOOR(x)", "x"),
        ("CEIL(x)", "x"),
        ("SIGN(x)", "x"),
    ],
)
def test_the_range_is_as_narrow_as_the_ends_of_the_column(sql: str, columns: str) -> None:
    assert (typed(sql).low, typed(sql).high) == range_of(sql, *columns)


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("SQRT(g)", math.sqrt(0.5), math.sqrt(2)),
        ("LN(g)", math.log(0.5), math.log(2)),
        ("LOG(g)", math.log10(0.5), math.log10(2)),
        ("LOG(2, y)", 0, 2),
        ("LOG(0.5, y)", -2, 0),
        ("EXP(f)", math.exp(-2.5), math.exp(7.5)),
        ("SQRT(y - 1)", 0, math.sqrt(3)),
        ("ROUND(f, 1)", -2.6, 7.6),
        ("ROUND(f, -1)", -12.5, 17.5),
        ("FLOOR(f)", -3, 7),
        ("CEIL(f)", -2, 8),
        ("TRUNC(f)", -2, 7),
        ("ROUND(f)", -3, 8),
    ],
)
def test_a_range_is_no_wider_than_rounding_asks(sql: str, low: float, high: float) -> None:
    claim = typed(sql)
    assert claim.low is not None and claim.high is not None
    assert low - 1e-5 <= claim.low <= low and high <= claim.high <= high * (1 + 2e-6) + 1e-5


@pytest.mark.parametrize(
    "sql",
    [
        "LN(y - 1)",
        "LN(x)",
        "SQRT(x)",
        "EXP(n)",
        "EXP(f * 1000)",
        "ABS(n)",
        "POWER(n, 2)",
        "LOG(f)",
        "POWER(f * 1e80, 4)",
    ],
)
def test_what_may_be_undefined_or_endless_has_no_range(sql: str) -> None:
    assert not typed(sql).bounded


@pytest.mark.parametrize(
    ("sql", "nullable"),
    [
        ("LN(g)", False),
        ("LN(y - 1)", True),
        ("SQRT(y - 1)", False),
        ("SQRT(x)", True),
        ("LN(f)", True),
        ("EXP(g)", False),
        ("EXP(y * 1000)", True),
        ("ABS(y)", False),
        ("ABS(x)", True),
        ("SIGN(y)", False),
        ("SIGN(g)", True),
        ("ROUND(y)", False),
        ("POWER(y, 2)", False),
        ("ROUND(y, 2)", False),
        ("ROUND(x, 2)", True),
        ("SQRT(x * x)", True),
    ],
)
def test_null_is_possible_where_the_function_is_not_defined(sql: str, nullable: bool) -> None:
    assert typed(sql).nullable is nullable


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("ROUND(2.5)", 3.0),
        ("ROUND(-2.5)", -3.0),
        ("ROUND(1.25, 1)", 1.3),
        ("ROUND(1250, -2)", 1300.0),
        ("TRUNC(-1.7)", -1.0),
        ("SIGN(-0.5)", -1.0),
        ("SIGN(0)", 0.0),
        ("SIGN(7)", 1.0),
        ("SIGN(1e300)", 1.0),
        ("LOG(100)", 2.0),
        ("LOG(2, 8)", 3.0),
        ("EXP(600)", None),
        ("EXP(-600)", 0.0),
        ("EXP(-599)", math.exp(-599)),
        ("EXP(599)", math.exp(599)),
        ("EXP(0)", 1.0),
        ("LN(0)", None),
        ("LN(-1)", None),
        ("SQRT(0)", 0.0),
        ("SQRT(-1)", None),
        ("POWER(3, 4)", 81.0),
        ("POWER(3, 3)", 27.0),
        ("ROUND(1.5, 30)", 1.5),
        ("ROUND(7, -30)", 0.0),
        ("POWER(3, 1)", 3.0),
        ("TRUNC(-1.27, 1)", -1.2),
        ("TRUNC(1299, -2)", 1200.0),
    ],
)
def test_known_values(sql: str, value: float | None) -> None:
    (result,) = computed(typed(sql).sql, corner_rows())
    assert result == value if value is None else math.isclose(result, value, rel_tol=1e-7)


@pytest.mark.parametrize("sql", ["SIGN(u)", "LN(u)", "SQRT(u)", "EXP(u)"])
def test_nan_and_the_infinities_are_no_exception(sql: str) -> None:
    given_rows = [{**corner_rows()[0], "u": value} for value in (math.nan, math.inf, -math.inf)]
    values = [
        None if value is not None and math.isnan(value) else value
        for value in computed(typed(sql).sql, given_rows)
    ]
    expected = {
        "SIGN(u)": [None, 1.0, -1.0],
        "LN(u)": [None, math.inf, None],
        "SQRT(u)": [None, math.inf, None],
    }
    assert sql not in expected or [
        value if value is None or math.isfinite(value) else None for value in values
    ] == [value if value is None or math.isfinite(value) else None for value in expected[sql]]
    assert sql != "EXP(u)" or values == [None, None, 0.0]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("FLOOR(f)", "integer"),
        ("ROUND(f)", "integer"),
        ("ROUND(f, 1)", "float"),
        ("ROUND(f, 0)", "integer"),
        ("ROUND(f, -1)", "integer"),
        ("ABS(x)", "integer"),
        ("ABS(f)", "float"),
        ("SQRT(x)", "float"),
        ("POWER(x, 2)", "integer"),
        ("SIGN(f)", "integer"),
    ],
)
def test_whole_results_are_known_as_such(sql: str, kind: str) -> None:
    assert typed(sql).kind == kind


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("POWER(x, y)", "POWER takes a constant exponent"),
        ("LOG(1, x)", "The base of LOG must be a positive constant other than 1."),
        ("LOG(0, x)", "The base of LOG"),
        ("LOG(-2, x)", "The base of LOG"),
        ("LOG(y, x)", "The base of LOG"),
        ("ABS(s)", "ABS needs numbers, but s is of type text."),
        ("ROUND(f, y)", "The number of digits of ROUND must be a constant whole number."),
        ("ROUND(f, 1.5)", "The number of digits of ROUND"),
        ("LN(d)", "LN needs numbers, but d is of type date."),
    ],
)
def test_what_has_no_safe_form_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
