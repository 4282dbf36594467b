"""LEAST, GREATEST, COALESCE and NULLIF: what they pick, and the ends and NULLs that follow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import Row, computed, corner_rows, range_of, refuted, rows, typed

NUMBERS = st.sampled_from(["x", "y", "f", "g", "k", "n", "3", "NULL"])


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(["LEAST", "GREATEST", "COALESCE"]), st.lists(NUMBERS, min_size=1, max_size=3), rows())
def test_a_choice_is_that_of_duckdb_and_within_its_claim(
    name: str, parts: list[str], given_rows: list[Row]
) -> None:
    sql = f"{name}({', '.join(parts)})"
    claim = typed(sql)
    plain = f"{name}({', '.join(f'CAST({part} AS DOUBLE)' for part in parts)})"
    assert computed(f"CAST(({claim.sql.sql('duckdb')}) AS DOUBLE)", given_rows) == computed(plain, given_rows)
    assert not refuted(claim, given_rows)


@pytest.mark.parametrize(
    "sql",
    [
        "LEAST(x, y)",
        "LEAST(x, f)",
        "LEAST(y, g)",
        "GREATEST(x, y)",
        "GREATEST(x, f)",
        "GREATEST(y, 2)",
        "COALESCE(x, y)",
        "COALESCE(x, f, g)",
        "NULLIF(x, 50)",
        "LEAST(x)",
        "GREATEST(y, g, x)",
    ],
)
def test_the_range_is_as_narrow_as_the_columns_allow(sql: str) -> None:
    claim = typed(sql)
    assert (claim.low, claim.high) == range_of(
        sql, *(name for name in "xyfgk" if re.search(rf"\b{name}\b", sql))
    )


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("LEAST(n, 3)", None, 3),
        ("GREATEST(n, 3)", 3, None),
        ("LEAST(GREATEST(n, 0), 9)", 0, 9),
        ("LEAST(n, x)", None, None),
        ("GREATEST(n, x)", None, None),
        ("GREATEST(n, y)", 1, None),
        ("COALESCE(n, 3)", None, None),
        ("LEAST(u, n)", None, None),
    ],
)
def test_an_end_holds_if_an_argument_that_is_always_there_enforces_it(
    sql: str, low: float | None, high: float | None
) -> None:
    assert (typed(sql).low, typed(sql).high) == (low, high)


@pytest.mark.parametrize(
    ("sql", "nullable"),
    [
        ("LEAST(x, f)", True),
        ("LEAST(x, y)", False),
        ("GREATEST(y, g)", False),
        ("COALESCE(x, f)", True),
        ("COALESCE(x, 0)", False),
        ("NULLIF(y, 1)", True),
        ("LEAST(d, d)", True),
    ],
)
def test_null_is_left_only_if_every_argument_may_be_null(sql: str, nullable: bool) -> None:
    assert typed(sql).nullable is nullable


def test_dates_are_compared_with_dates() -> None:
    sql = "GREATEST(d, CAST('2021-01-01' AS DATE))"
    assert typed(sql).kind == "date"
    assert computed(typed(sql).sql, corner_rows("d")) == computed(sql, corner_rows("d"))
    assert computed(typed("NULLIF(c, 'a')").sql, corner_rows("c")) == [None, "B", "cd"]
    assert computed(typed("COALESCE(s, c)").sql, corner_rows("s"))[0] == "a"


def test_kinds_and_listed_values_survive_a_choice() -> None:
    assert typed("LEAST(x, y)").kind == "integer" and typed("LEAST(x, f)").kind == "float"
    assert typed("COALESCE(k, 9)").values == (1, 2, 3, 9)
    assert typed("NULLIF(k, 2)").values == (1, 2, 3)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("LEAST(s, c)", "LEAST needs numbers, but s is of type text."),
        ("GREATEST(d, 3)", "GREATEST needs numbers, but d is of type date."),
        ("GREATEST(d, m)", "GREATEST needs numbers"),
        (
            "COALESCE(x, s)",
            "The branches of COALESCE are of different types (integer, text); CAST them to one.",
        ),
        ("NULLIF(x, 'a')", "NULLIF compares x, which is of type integer, with 'a', which is of type text"),
    ],
)
def test_arguments_of_different_kinds_are_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
