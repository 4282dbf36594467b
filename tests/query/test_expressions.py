"""Row expressions in total form: what is claimed of them holds on every row, and no less is claimed.

DuckDB is the judge: it computes the total form on rows that keep to the declarations, and the question's own
expression where that cannot raise.
"""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.expressions import as_condition, condition, total
from incrowd.query.wildcards import MOST_WILDCARDS
from tests.query.one_table import LOOKUP, Row, computed, corner_rows, range_of, refuted, rows, tree_of, typed

NUMBERS = st.sampled_from(["t.x", "t.y", "t.k", "t.f", "t.g", "0", "1", "-3", "2.5", "(t.x)"])
CONDITIONS = st.sampled_from(["t.b", "t.x > 3", "t.f <= t.g", "t.c = 'a'", "t.s IS NULL", "TRUE", "t.k <> 2"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    signs = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        st.tuples(two, signs).map(lambda parts: f"({parts[0][0]} {parts[1]} {parts[0][1]})"),
        inner.map(lambda one: f"-({one})"),
        inner.map(lambda one: f"ABS({one})"),
        inner.map(lambda one: f"POWER({one}, 2)"),
        inner.map(lambda one: f"FLOOR({one})"),
        inner.map(lambda one: f"ROUND({one}, 1)"),
        inner.map(lambda one: f"SQRT({one})"),
        inner.map(lambda one: f"EXP({one})"),
        inner.map(lambda one: f"LN({one})"),
        inner.map(lambda one: f"SIGN({one})"),
        inner.map(lambda one: f"NULLIF({one}, 1)"),
        inner.map(lambda one: f"CAST({one} AS BIGINT)"),
        two.map(lambda both: f"LEAST({both[0]}, {both[1]})"),
        two.map(lambda both: f"GREATEST({both[0]}, {both[1]})"),
        two.map(lambda both: f"COALESCE({both[0]}, {both[1]})"),
        st.tuples(CONDITIONS, two).map(lambda it: f"CASE WHEN {it[0]} THEN {it[1][0]} ELSE {it[1][1]} END"),
    )


ARITHMETIC = st.recursive(NUMBERS, _larger, max_leaves=5)


@settings(max_examples=150, deadline=None)
@given(ARITHMETIC, rows())
def test_no_row_refutes_what_is_claimed_of_a_number(sql: str, given_rows: list[Row]) -> None:
    assert not refuted(typed(sql), given_rows + corner_rows("x"))


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        CONDITIONS,
        lambda inner: st.one_of(
            inner.map(lambda one: f"NOT ({one})"),
            st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
                lambda it: f"({it[0]} {it[1]} {it[2]})"
            ),
            st.tuples(inner, inner).map(lambda it: f"(({it[0]}) IS NOT DISTINCT FROM ({it[1]}))"),
        ),
        max_leaves=5,
    ),
    rows(),
)
def test_conditions_are_true_where_they_are_as_written(sql: str, given_rows: list[Row]) -> None:
    claim = condition(tree_of(sql), LOOKUP, "WHERE")
    assert computed(claim.sql, given_rows) == computed(sql, given_rows)
    assert not refuted(claim, given_rows)


EQUAL_TO_DUCKDB = [
    *(
        "x + y",
        "x - f",
        "x * f",
        "f - g",
        "-x",
        "- -5",
        "-(x + 1)",
        "x * x - y",
        "(x)",
        "f / g",
        "x // y",
        "k",
    ),
    *("x % y", "x = 3", "x <> 3", "x < 3", "x <= 3", "x > 3", "x >= 3", "x IS DISTINCT FROM 3", "b IS TRUE"),
    *(
        "x IS NULL",
        "x IS NOT NULL",
        "x BETWEEN 0 AND 3",
        "x NOT BETWEEN 0 AND 3",
        "x IN (0, 3)",
        "b IN (TRUE)",
    ),
    *("x IN (3, NULL)", "f IN (0, 1.25)", "c LIKE 'c%'", "c NOT LIKE '_'", "c ILIKE 'b'", "s LIKE '%1%'"),
    *("CASE k WHEN 1 THEN 'one' WHEN 2 THEN 'two' END", "IF(b, x, 0)", "CASE WHEN x > 3 THEN 1 END"),
    *("CAST(x AS DOUBLE)", "CAST(b AS INTEGER)", "x > 2.5", "k = g", "d = '2020-02-29'", "m < '2021-01-01'"),
    *("CAST(x AS BOOLEAN)", "NULL", "TRUE", "'a'", "7", "2.5", "1e300", "9223372036854775807", "b OR NULL"),
    *("s LIKE '!%!_' ESCAPE '!'", "s NOT LIKE '%#_' ESCAPE '#'", "s ILIKE 'A_' ESCAPE '!'"),
    *("x & 6", "x | y", "XOR(x, y)", "~x", "y << 3", "x >> 1", "BIT_COUNT(x)", "x % 3 & 1"),
    *("x IN (1, 2.5)", "d IN ('2020-02-29', '2024-12-30')", "x = NULL", "m > d", "d >= m"),
]


@pytest.mark.parametrize("sql", EQUAL_TO_DUCKDB)
def test_the_total_form_is_the_expression_where_it_cannot_raise(sql: str) -> None:
    names = [
        name for name in ("x", "y", "f", "g", "k", "b", "s", "c", "d", "m") if re.search(rf"\b{name}\b", sql)
    ]
    given_rows = corner_rows(*names)
    claim = typed(sql)
    assert computed(claim.sql, given_rows) == computed(sql, given_rows)
    assert not refuted(claim, given_rows)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("x + y", "xy"),
        ("x - y", "xy"),
        ("x - f", "xf"),
        ("x * f", "xf"),
        ("f * g", "fg"),
        ("x / g", "xg"),
        ("-x", "x"),
        ("(f)", "f"),
        ("x // y", "xy"),
        ("x * -1", "x"),
        ("2 - x", "x"),
        ("x * x", "x"),
        ("CASE WHEN b THEN x ELSE f END", "bxf"),
        ("IF(b, y, 9)", "by"),
        ("CAST(f AS DOUBLE)", "f"),
        ("CAST(b AS INTEGER)", "b"),
        ("x / -g", "xg"),
    ],
)
def test_an_interval_is_as_narrow_as_the_ends_of_its_columns(sql: str, columns: str) -> None:
    claim = typed(sql)
    assert (claim.low, claim.high) == range_of(sql, *columns)


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("x % 3", -2, 2),
        ("y % 3", 0, 2),
        ("(-y) % 3", -2, 0),
        ("f % 2", -2, 2),
        ("x % -4", -3, 3),
        ("x % 1", 0, 0),
        ("f % g", -2, 2),
        ("x / x", None, None),
        ("x / f", None, None),
        ("n + 1", None, None),
        ("u * 2", None, None),
        ("x + NULL", None, None),
        ("x % n", None, None),
        ("1e308 * 10 + x", None, None),
    ],
)
def test_an_interval_that_no_column_fixes_is_open(sql: str, low: float | None, high: float | None) -> None:
    assert (typed(sql).low, typed(sql).high) == (low, high)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("x % 3", (-2, -1, 0, 1, 2)),
        ("y % 101", tuple(range(101))),
        ("y % 102", None),
        ("n % 3", None),
        ("f % 3", None),
        ("x > 3", (False, True)),
        ("NOT b", (False, True)),
        ("x IN (1, 2)", (False, True)),
        ("CASE WHEN b THEN 'p' ELSE 'q' END", ("p", "q")),
        ("CASE WHEN b THEN 9 ELSE k END", (9, 1, 2, 3)),
        ("CASE WHEN b THEN s ELSE 'q' END", None),
        ("7", (7,)),
        ("-7", (-7,)),
        ("2.5", (2.5,)),
        ("'a'", ("a",)),
        ("TRUE", (True,)),
        ("NULL", ()),
        ("k", (1, 2, 3)),
        ("x IS NULL", (False, True)),
        ("x + 1", None),
    ],
)
def test_possible_values_are_listed_where_they_are_few(sql: str, values: tuple[object, ...] | None) -> None:
    assert typed(sql).values == values


@pytest.mark.parametrize(
    ("sql", "nullable"),
    [
        ("x", True),
        ("y", False),
        ("y + k", False),
        ("y + x", True),
        ("x + y", True),
        ("y / k", True),
        ("y / g", False),
        ("y / f", True),
        ("y % 3", False),
        ("y % x", True),
        ("y = 3", False),
        ("x = 3", True),
        ("x IS NOT DISTINCT FROM 3", False),
        ("x IS DISTINCT FROM y", False),
        ("x IS NULL", False),
        ("y IN (1, NULL)", True),
        ("y IN (1, 2)", False),
        ("c LIKE 'a'", False),
        ("s LIKE 'a'", True),
        ("CASE WHEN b THEN y END", True),
        ("CASE WHEN b THEN y ELSE 0 END", False),
        ("NOT y = 3", False),
        ("y = 3 AND b", True),
        ("b OR y = 3", True),
        ("y = 3 AND k = 1", False),
        ("-y", False),
        ("y BETWEEN 1 AND x", True),
        ("'a'", False),
        ("7", False),
        ("TRUE", False),
        ("y / -3", False),
    ],
)
def test_null_is_possible_exactly_where_a_part_allows_it(sql: str, nullable: bool) -> None:
    assert typed(sql).nullable is nullable


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SUM(x) OVER ()", "Window functions over private rows are not possible"),
        ("SUM(x) + 1", "is an aggregate inside a row's expression; aggregate in SELECT or HAVING."),
        ("(SELECT 1)", "A sub-query inside an expression over private rows is not possible"),
        ("EXISTS (SELECT 1)", "A sub-query inside an expression"),
        ("RANDOM()", "gives another value each time; write a constant instead."),
        ("CURRENT_DATE", "gives another value each time"),
        ("nosuch(x)", "NOSUCH is not among the functions that are safe over private rows"),
        ("SUBSTRING(s)", "has too few arguments; write all that the function takes."),
        ("f // g", "needs whole numbers; use FLOOR(a / b)."),
        ("x // g", "needs whole numbers"),
        ("s + 1", "+ needs numbers, but s is of type text."),
        ("x * s", "* needs numbers, but s is of type text."),
        ("s / 2", "/ needs numbers, but s is of type text."),
        ("s % 2", "% needs numbers"),
        ("-s", "- needs numbers"),
        (
            "x = 'a'",
            "compares x, which is of type integer, with 'a', which is of type text; CAST one of them.",
        ),
        ("NOT x", "NOT needs a condition, but x is of type integer."),
        ("x AND b", "AND/OR needs a condition, but x is of type integer."),
        ("b OR s", "AND/OR needs a condition, but s is of type text."),
        ("CASE WHEN x THEN 1 END", "CASE WHEN needs a condition"),
        ("x IS TRUE", "is not understood; use IS NULL, = or, for truth values, IS TRUE."),
        ("x IN ()", "IN needs a list of values, as in x IN (1, 2)."),
        ("x IN (SELECT 1)", "IN needs a list of values, or a sub-query over public tables alone"),
        ("x LIKE 'a'", "needs text on the left and a constant pattern on the right."),
        ("s LIKE c", "needs text on the left and a constant pattern"),
        ("s LIKE 'a\\'", "must not hold a backslash"),
        (f"s LIKE '{'%' * (MOST_WILDCARDS + 1)}'", "holds at most 100 signs %; write several patterns."),
        ("CAST(x AS UUID)", "CAST to UUID is not possible here; use BIGINT"),
        ("CAST(x AS INTEGER[])", "is not possible here"),
        ("CASE WHEN b THEN x ELSE s END", "The branches of CASE are of different types (integer, text)"),
        ("1e999", "The number 1e999 is too large."),
        ("LOWER(x)", "LOWER needs text, but x is of type integer; CAST it AS TEXT."),
        ("s LIKE 'a' ESCAPE '##'", "needs one letter other than % and _ after ESCAPE"),
        ("s LIKE 'a' ESCAPE '%'", "needs one letter other than % and _ after ESCAPE"),
        ("s LIKE 'a#' ESCAPE '#'", "# must stand before %, _ or #; write it twice"),
        ("s LIKE 'a#b' ESCAPE '#'", "# must stand before %, _ or #"),
        ("s LIKE c ESCAPE '#'", "needs a constant pattern and a constant letter."),
        ("TRIM(LEADING FROM s)", "has an option that is not understood; leave it out."),
    ],
)
def test_what_is_not_safe_is_refused_in_one_sentence(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
    assert str(refusal.value).endswith(".")


def test_as_many_wildcards_as_are_allowed_are_read() -> None:
    assert typed(f"s LIKE '{'%' * MOST_WILDCARDS}'").kind == "boolean"


@pytest.mark.parametrize(
    "sql", ["x / 0", "x % 0", "LN(0)", "SQRT(-1)", "CAST('z' AS BIGINT)", "x // 0", "x / (y - y)"]
)
def test_what_has_no_value_is_null(sql: str) -> None:
    claim = typed(sql)
    assert claim.nullable
    assert set(computed(claim.sql, corner_rows("x", "y"))) == {None}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["n", "u"]),
    st.sampled_from(["+", "-", "*", "/", "%"]),
    st.sampled_from(["n", "u", "f", "1e300"]),
)
def test_the_largest_and_smallest_numbers_make_nothing_raise(left: str, sign: str, right: str) -> None:
    claim = typed(f"{left} {sign} {right}")
    assert not refuted(claim, corner_rows(*{name for name in (left, right) if name in ("n", "u", "f")}))


def test_a_literal_is_an_integer_while_64_bits_hold_it() -> None:
    inside, beyond = typed(str(2**63 - 1)), typed(str(2**63))
    assert (inside.kind, inside.values, inside.integral) == ("integer", (2**63 - 1,), True)
    assert (beyond.kind, beyond.values, beyond.integral) == ("float", (float(2**63),), False)
    assert typed("-3").values == (-3,) and typed("-(3)").values == (-3,) and typed("(-2.0)").values == (-2.0,)
    assert typed("3").size == 64 and typed("0.25").size == 2


def test_a_condition_is_a_truth_value_and_a_bare_null_is_one() -> None:
    null = condition(exp.null(), LOOKUP, "WHERE")
    assert (null.kind, null.sql.sql("duckdb")) == ("boolean", "CAST(NULL AS BOOLEAN)")
    with pytest.raises(QueryError, match=r"HAVING needs a condition, but x is of type integer."):
        as_condition(total(tree_of("x"), LOOKUP), tree_of("x"), "HAVING")


def test_a_refusal_names_what_the_user_wrote() -> None:
    assert typed("x + 1").said == "x + 1"
    assert typed("(x)").said == "(x)" or typed("(x)").said == "x"


def test_operands_are_tamed_only_where_their_product_could_overflow() -> None:
    assert "CASE" not in typed("x * y").sql.sql("duckdb")
    assert "CASE" in typed("u * u").sql.sql("duckdb")
    assert "CASE" in typed("u % 3").sql.sql("duckdb")
    assert math.isinf(computed(typed("u * u").sql, [{**corner_rows()[0], "u": 1e308}])[0])
