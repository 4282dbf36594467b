"""Intervals are read as DuckDB reads them, and moving by them stays inside the calendar where that is
said."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from incrowd.query.spans import FIRST, LAST, Interval, Span, interval_in, movable, moved, unit_named

SPANS = st.builds(Span, st.integers(0, 200_000), st.integers(0, 4_000_000), st.integers(0, 10**12)).flatmap(
    lambda span: st.sampled_from([span, span.times(-1)])
)


@given(SPANS, st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_between_the_ends_of_a_span_every_moment_stays_in_the_calendar(
    span: Span, moment: dt.datetime
) -> None:
    ends = movable(span)
    if ends is None:
        return
    assert FIRST <= ends[0] <= ends[1] <= LAST
    for inside in (*ends, max(min(moment, ends[1]), ends[0])):
        assert moved(inside, span) is not None


@given(
    st.integers(-100, 100),
    st.integers(-1000, 1000),
    st.integers(-(10**10), 10**10),
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
)
def test_moving_is_that_of_duckdb(months: int, days: int, micros: int, moment: dt.datetime) -> None:
    sql = "SELECT ? + to_months(?) + to_days(?) + to_microseconds(?)"
    ((expected,),) = duckdb.execute(sql, [moment, months, days, micros]).fetchall()
    assert moved(moment, Span(months, days, micros)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "INTERVAL '3' DAYS",
        "INTERVAL 1 MONTH",
        "INTERVAL '1 year 2 mons 3 days 4 hrs 5 min 6 secs'",
        "-INTERVAL 2 WEEKS",
        "2 * INTERVAL '90 minutes'",
        "INTERVAL '-3 days'",
        "TO_HOURS(7)",
        "INTERVAL 2 DECADES",
        "INTERVAL '7' QUARTER",
        "INTERVAL '5 ms'",
    ],
)
def test_an_interval_is_as_long_as_duckdb_says(sql: str) -> None:
    interval = interval_in(sqlglot.parse_one(sql, read="duckdb"))
    assert interval is not None and interval.count is None
    start = dt.datetime(2024, 1, 31, 10)
    ((expected,),) = duckdb.execute(f"SELECT TIMESTAMP '2024-01-31 10:00:00' + ({sql})").fetchall()
    assert moved(start, interval.span) == expected


def test_an_interval_may_be_multiplied_with_an_expression() -> None:
    interval = interval_in(sqlglot.parse_one("INTERVAL (x + 1) WEEK", read="duckdb"))
    assert interval is not None and interval.span == Span(days=7) and str(interval.count) == "x + 1"
    assert interval_in(sqlglot.parse_one("x + 1")) is None
    assert Interval(Span(days=1)).count is None


def test_units_have_many_names() -> None:
    assert [unit_named(name) for name in ("Years", "hrs", "centuries", "us")] == [
        "year",
        "hour",
        "century",
        "microsecond",
    ]
