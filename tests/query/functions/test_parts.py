"""Parts of dates and timestamps: worked out by hand, as DuckDB has them, and within their bounds."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.expressions import total
from incrowd.query.functions.parts import PARTS, part_asked, start_of
from incrowd.query.typed import Field, Typed, lookup_in
from tests.query.one_table import computed, corner_rows, refuted, tree_of, typed

MOMENTS = st.datetimes(dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24))
CALENDAR = ("DOW", "ISODOW", "DOY", "WEEK", "ISOYEAR", "YEARWEEK", "DECADE", "CENTURY", "MILLENNIUM")


def bounded(sql: str, first: dt.date, last: dt.date) -> Typed:
    return total(tree_of(sql), lookup_in({"t": {"d": Field("date", limits=(first, last))}}))


@pytest.mark.parametrize(
    ("day", "values"),
    [
        (dt.date(2000, 12, 31), (0, 7, 366, 52, 2000, 200052, 200, 20, 2)),
        (dt.date(2001, 1, 1), (1, 1, 1, 1, 2001, 200101, 200, 21, 3)),
        (dt.date(2014, 12, 29), (1, 1, 363, 1, 2015, 201501, 201, 21, 3)),
        (dt.date(2021, 1, 1), (5, 5, 1, 53, 2020, 202053, 202, 21, 3)),
        (dt.date(2024, 12, 30), (1, 1, 365, 1, 2025, 202501, 202, 21, 3)),
        (dt.date(1900, 3, 1), (4, 4, 60, 9, 1900, 190009, 190, 19, 2)),
    ],
)
def test_parts_of_days_where_calendars_turn(day: dt.date, values: tuple[int, ...]) -> None:
    row = {**corner_rows()[0], "d": day, "m": dt.datetime.combine(day, dt.time(23, 59, 59))}
    for part, value in zip(CALENDAR, values, strict=True):
        assert computed(typed(f"EXTRACT({part} FROM d)").sql, [row]) == [value], part
        assert computed(typed(f"DATE_PART('{part}', m)").sql, [row]) == [value], part


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=10, deadline=None)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=5))
def test_a_part_is_that_of_duckdb(part: str, moments: list[dt.datetime]) -> None:
    rows = [{**corner_rows()[0], "m": moment, "d": moment.date()} for moment in moments]
    for column, plain in (("m", "m"), ("d", "d::TIMESTAMP")):
        claim = typed(f"EXTRACT({part} FROM {column})")
        assert computed(claim.sql, rows) == computed(f"EXTRACT({part} FROM {plain})", rows)
        assert not refuted(claim, rows)


@pytest.mark.parametrize("part", PARTS)
def test_null_and_the_ends_of_the_calendar_have_no_part(part: str) -> None:
    rows = corner_rows("d")
    inside = [row["d"] is not None and 1 < row["d"].year < 9999 for row in rows]
    claim = typed(f"EXTRACT({part} FROM d)")
    assert [value is not None for value in computed(claim.sql, rows)] == inside
    assert not refuted(claim, rows)


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("DAYOFMONTH(d)", "EXTRACT(DAY FROM d)"),
        ("DAYOFWEEK(d)", "EXTRACT(DOW FROM d)"),
        ("WEEKDAY(d)", "EXTRACT(DOW FROM d)"),
        ("ISODOW(d)", "EXTRACT(ISODOW FROM d)"),
        ("DATEPART('doy', d)", "EXTRACT(DOY FROM d)"),
        ("date_part('Years', d)", "EXTRACT(YEAR FROM d)"),
        ("Century(d)", "EXTRACT(CENTURY FROM d)"),
        ("EPOCH(d)", "EXTRACT(EPOCH FROM d)"),
    ],
)
def test_one_part_has_several_names(sql: str, same: str) -> None:
    one, other = typed(sql), typed(same)
    assert one.sql.sql("duckdb") == other.sql.sql("duckdb")
    assert (one.low, one.high, one.values) == (other.low, other.high, other.values)
    asked = part_asked(tree_of(sql))
    assert asked is not None and asked[1].name == "d"


@pytest.mark.parametrize(
    ("sql", "low", "high", "many"),
    [
        ("YEAR(d)", 2020, 2021, 2),
        ("QUARTER(d)", 1, 4, 4),
        ("EXTRACT(ISODOW FROM d)", 1, 7, 7),
        ("EXTRACT(HOUR FROM d)", 0, 23, 24),
        ("ISOYEAR(d)", 2020, 2020, 1),
        ("YEARWEEK(d)", 202053, 202053, None),
        ("CENTURY(d)", 21, 21, 1),
        ("MILLENNIUM(d)", 3, 3, 1),
        ("DECADE(d)", 202, 202, 1),
        ("EPOCH(d)", 1_609_113_600, 1_609_632_000, None),
    ],
)
def test_bounds_follow_from_those_of_the_date(sql: str, low: int, high: int, many: int | None) -> None:
    first = dt.date(2020, 12, 28)
    claim = bounded(sql, first, dt.date(2021, 1, 3))
    assert (claim.low, claim.high) == (low, high)
    if many is not None:
        assert claim.values is not None and len(claim.values) == many
    assert not refuted(claim, [{**corner_rows()[0], "d": first + dt.timedelta(day)} for day in range(7)])


@pytest.mark.parametrize(
    ("unit", "first"),
    [("WEEK", dt.date(2024, 2, 26)), ("MONTH", dt.date(2024, 2, 1)), ("YEAR", dt.date(2024, 1, 1))],
)
def test_a_unit_starts_on_its_first_day(unit: str, first: dt.date) -> None:
    row = {**corner_rows()[0], "d": dt.date(2024, 2, 29), "m": dt.datetime(2024, 2, 29, 23, 59)}
    assert computed(start_of(unit, typed("d")), [row]) == [first]
    assert computed(start_of(unit, typed("m")), [row]) == [first]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("EXTRACT(MONTH FROM s)", "EXTRACT needs a date, but s is of type text; CAST it AS DATE."),
        ("DATE_PART('month', x)", "DATE_PART needs a date, but x is of type integer; CAST it AS DATE."),
        ("DATE_PART('fortnight', d)", "EXTRACT of FORTNIGHT is not possible here; use YEAR, QUARTER, MONTH"),
        ("DATE_PART(s, d)", "DATE_PART takes a constant part and a date, as in DATE_PART('year', d)."),
        ("ISOYEAR(d, m)", "ISOYEAR takes one argument here."),
    ],
)
def test_what_is_no_part_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
