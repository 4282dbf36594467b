"""Dates and timestamps that are moved: DuckDB's own results inside the calendar, NULL outside, and their
bounds."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import computed, corner_rows, refuted, typed
from tests.query.times_asked import SHIFTS

LOW, HIGH = dt.datetime(120, 1, 1), dt.datetime(9900, 12, 31)
"""Far enough from the ends that nothing moved by the intervals here leaves the calendar."""


@pytest.mark.parametrize("sql", SHIFTS)
@settings(max_examples=12, deadline=None)
@given(moments=st.lists(st.datetimes(LOW, HIGH), min_size=1, max_size=4), x=st.integers(-5, 20))
def test_a_moved_time_is_that_of_duckdb(sql: str, moments: list[dt.datetime], x: int) -> None:
    rows = [
        {**corner_rows()[0], "m": moment, "d": moments[-1].date(), "x": x, "y": abs(x) % 4 + 1}
        for moment in moments
    ]
    claim = typed(sql)
    assert computed(claim.sql, rows) == computed(SHIFTS[sql] or sql, rows)
    assert not refuted(claim, rows)


@pytest.mark.parametrize("sql", SHIFTS)
def test_no_row_makes_a_moved_time_raise_or_leave_the_calendar(sql: str) -> None:
    claim = typed(sql)
    assert not refuted(claim, corner_rows("m", "d", "x"))


@pytest.mark.parametrize(
    ("sql", "inside"),
    [
        ("d + 7", (dt.date(9999, 12, 17), dt.date(9999, 12, 18))),
        ("d + INTERVAL '1 month'", (dt.date(9999, 11, 24), dt.date(9999, 11, 25))),
        ("d + y", (dt.date(9999, 12, 30), dt.date(9999, 12, 31))),
    ],
)
def test_what_leaves_the_calendar_is_null(sql: str, inside: tuple[dt.date, dt.date]) -> None:
    rows = [{**corner_rows()[0], "d": day, "y": 1} for day in inside]
    values = computed(typed(sql).sql, rows)
    assert values[0] is not None and values[1] is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "m - m",
            "which is no number; write DATE_DIFF('day', m, m), or EXTRACT(EPOCH FROM m - m).",
        ),
        ("m - d", "write DATE_DIFF('day', d, m)"),
        ("m + 7", "add an interval, such as INTERVAL '7 days', or CAST it AS DATE."),
        ("d + 1.5", "needs a whole number of days, which 1.5 is not; ROUND it."),
        ("d + d", "adds two dates; subtract them"),
        ("5 - d", "takes a date from a number; write the date first."),
        ("x + INTERVAL '1 day'", "which is of type integer, by an interval; CAST it AS DATE or TIMESTAMP."),
        ("INTERVAL '1 day'", "stands by itself; add it to a date"),
        ("d + INTERVAL '1 fortnight'", "has no unit that is known; use microsecond"),
        ("d + INTERVAL 1.5 DAY", "write whole numbers of microsecond"),
        ("d + INTERVAL '1 month -3 days'", "goes forward and back at once"),
        ("d + INTERVAL (x) MONTH", "use days or a constant."),
        ("m + INTERVAL (x) DAY", "CAST m AS DATE."),
        (
            "DATE_ADD('day', 3, d)",
            "DATE_ADD takes a date and an interval, as in DATE_ADD(d, INTERVAL '3 days').",
        ),
        ("d * 2", "* needs numbers, but d is of type date."),
    ],
)
def test_what_cannot_be_moved_is_refused_with_a_remedy(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
