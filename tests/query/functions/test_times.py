"""Functions of dates: DuckDB's own values inside the calendar, NULL outside, and every part's range."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import computed, corner_rows, refuted, typed

FIRST, LAST = dt.date(1, 1, 8), dt.date(9999, 12, 24)
PARTS = {
    "YEAR": (1, 9999),
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DOW": (0, 6),
}
CLOCK = {"HOUR": (0, 23), "MINUTE": (0, 59), "SECOND": (0, 59)}


@pytest.mark.parametrize("part", [*PARTS, *CLOCK])
@settings(max_examples=25, deadline=None)
@given(st.lists(st.datetimes(dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24)), min_size=1, max_size=6))
def test_a_part_is_that_of_duckdb(part: str, moments: list[dt.datetime]) -> None:
    given_rows = [{**corner_rows()[0], "m": moment, "d": moment.date()} for moment in moments]
    for column in ("m", "d"):
        claim = typed(f"EXTRACT({part} FROM {column})")
        source = column if column == "m" or part in PARTS else f"CAST({column} AS TIMESTAMP)"
        assert computed(claim.sql, given_rows) == computed(f"EXTRACT({part} FROM {source})", given_rows)
        assert not refuted(claim, given_rows)


@pytest.mark.parametrize(("part", "span"), [*PARTS.items(), *CLOCK.items()])
def test_the_range_of_a_part_is_the_one_it_takes(part: str, span: tuple[int, int]) -> None:
    claim = typed(f"EXTRACT({part} FROM m)")
    assert (claim.low, claim.high) == span
    assert claim.values == (None if part == "YEAR" else tuple(range(span[0], span[1] + 1)))
    if part not in ("YEAR",):
        days = [
            dt.datetime(2020, 1, 1)
            + dt.timedelta(days=day, hours=day % 24, minutes=day % 60, seconds=day % 60)
            for day in range(2 * 366)
        ]
        values = computed(claim.sql, [{**corner_rows()[0], "m": day} for day in days])
        assert (min(values), max(values)) == span


@pytest.mark.parametrize(
    ("day", "inside"),
    [(FIRST, True), (FIRST - dt.timedelta(1), False), (LAST, True), (LAST + dt.timedelta(1), False)],
)
def test_the_calendar_ends_a_week_before_the_calendars_of_engines(day: dt.date, inside: bool) -> None:
    row = {**corner_rows()[0], "d": day, "m": dt.datetime(day.year, day.month, day.day)}
    for sql in ("YEAR(d)", "DATE_TRUNC('week', d)", "DATE_PART('year', m)"):
        assert (computed(typed(sql).sql, [row])[0] is not None) is inside


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "hour", "minute"])
@settings(max_examples=15, deadline=None)
@given(st.datetimes(dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24)))
def test_a_truncation_is_that_of_duckdb_in_its_own_type(unit: str, moment: dt.datetime) -> None:
    row = {**corner_rows()[0], "m": moment, "d": moment.date()}
    for column in ("m", "d"):
        claim = typed(f"DATE_TRUNC('{unit}', {column})")
        kind = "timestamp" if column == "m" or unit in ("hour", "minute") else "date"
        assert claim.kind == kind
        assert computed(claim.sql, [row]) == computed(
            f"CAST(DATE_TRUNC('{unit}', {column}) AS {kind})", [row]
        )


@settings(max_examples=40, deadline=None)
@given(st.dates(FIRST, LAST), st.dates(FIRST, LAST))
def test_days_between_are_counted_from_the_first_to_the_second(one: dt.date, two: dt.date) -> None:
    row = {**corner_rows()[0], "d": one, "m": dt.datetime(two.year, two.month, two.day, 5)}
    assert computed(typed("DATE_DIFF('day', d, m)").sql, [row]) == [(two - one).days]


def test_names_of_parts_have_other_spellings() -> None:
    row = {**corner_rows()[0], "d": dt.date(2024, 12, 29)}
    for sql in ("DAYOFWEEK(d)", "EXTRACT(DAYOFWEEK FROM d)", "DATE_PART('dow', d)", "DATEPART('weekday', d)"):
        assert computed(typed(sql).sql, [row]) == [0]
    assert computed(typed("DAYOFMONTH(d)").sql, [row]) == [29]
    assert (
        typed("DATE_DIFF('day', d, d)").nullable and typed("YEAR(d)").integral and typed("YEAR(d)").size == 64
    )


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("YEAR(x)", "YEAR needs a date, but x is of type integer; CAST it AS DATE."),
        ("DATE_PART(s, d)", "DATE_PART takes a constant part and a date, as in DATE_PART('year', d)."),
        ("DATE_PART('year')", "DATE_PART takes"),
        ("DATE_TRUNC('decade', d)", "DATE_TRUNC to DECADE is not possible here; use YEAR"),
        ("DATE_TRUNC('day', s)", "needs a date, but s is of type text"),
    ],
)
def test_what_is_no_date_or_no_part_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
