"""GoogleSQL's older words are read as the newer ones that mean the same."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from incrowd.query.sql import parse

OLD, NEW = (
    "SELECT WITH ANONYMIZATION OPTIONS(epsilon=1)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)",
)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("ANON_COUNT(*)", "COUNT(*)"),
        ("anon_sum(x)", "SUM(x)"),
        ("ANON_COUNT(x CLAMPED BETWEEN 0 AND 100)", "COUNT(x, contribution_bounds_per_group => (0, 100))"),
        (
            "ANON_SUM(x + 1 CLAMPED BETWEEN -.5 AND 2)",
            "SUM(x + 1, contribution_bounds_per_group => (-.5, 2))",
        ),
        (
            "ANON_AVG(CASE WHEN x BETWEEN 1 AND 2 THEN y END clamped between 0 and 9)",
            "AVG(CASE WHEN x BETWEEN 1 AND 2 THEN y END, contribution_bounds_per_group => (0, 9))",
        ),
        ("ANON_VAR_POP(x CLAMPED BETWEEN 0 AND 9)", "VAR_POP(x, contribution_bounds_per_row => (0, 9))"),
        ("ANON_STDDEV_POP(x)", "STDDEV_POP(x)"),
        (
            "ANON_PERCENTILE_CONT(x, 0.5 CLAMPED BETWEEN 0 AND 9)",
            "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 9))",
        ),
        (
            "ROUND(ANON_SUM(x CLAMPED BETWEEN 0 AND 9)) + ANON_COUNT(*)",
            "ROUND(SUM(x, contribution_bounds_per_group => (0, 9))) + COUNT(*)",
        ),
    ],
)
def test_an_older_function_is_the_newer_one(older: str, newer: str) -> None:
    assert parse(f"{OLD} city, {older} AS a FROM t") == parse(f"{NEW} city, {newer} AS a FROM t")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT ANON_SUM(x) FROM t", "ANON_SUM needs the clause .* or write SUM, without ANON_"),
        (f"{OLD} ANON_MEDIAN(x) FROM t", "The function ANON_MEDIAN is not known; use ANON_AVG, "),
        (f"{OLD} SUM(x CLAMPED BETWEEN 0 AND 1) FROM t", "CLAMPED BETWEEN belongs into an ANON function"),
        (f"{OLD} ANON_SUM(x CLAMPED BETWEEN 0) FROM t", "CLAMPED BETWEEN needs two numbers"),
        (f"{OLD} ANON_SUM(x CLAMPED BETWEEN 0 AND y) FROM t", "needs two numbers, low and high"),
        (f"{OLD} x CLAMPED BETWEEN 0 AND 1 FROM t", "CLAMPED BETWEEN belongs into"),
    ],
)
def test_what_was_no_older_function_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        parse(sql)


def test_a_column_may_be_called_like_an_older_word() -> None:
    assert parse("SELECT anon_sum, clamped, kappa FROM t").tree.named_selects == [
        "anon_sum",
        "clamped",
        "kappa",
    ]
