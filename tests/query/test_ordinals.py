"""Times as the number of their unit: the same in SQL and in Python, and growing with the time."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.query.moments import whole
from incrowd.query.ordinals import MICROS, MONTHS, UNITS, minus, ordinal, ordinal_of, plus, quotient, times
from tests.query.one_table import computed, corner_rows, typed

MOMENTS = st.lists(st.datetimes(dt.datetime(1, 1, 1)), min_size=2, max_size=5)
MIDNIGHT = dt.time()
ENDS = (dt.datetime(1, 1, 1), dt.datetime.max)


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=15, deadline=None)
@given(moments=MOMENTS)
def test_sql_and_python_count_alike(unit: str, moments: list[dt.datetime]) -> None:
    rows = [{**corner_rows()[0], "m": moment, "d": moment.date()} for moment in moments]
    days = [dt.datetime.combine(moment, MIDNIGHT) for moment in moments]
    of_days = [ordinal_of(unit, day) for day in days]
    assert of_days == [ordinal_of(unit, moment.date()) for moment in moments]
    if unit in MONTHS:
        assert computed(ordinal(unit, typed("m")), rows) == [ordinal_of(unit, moment) for moment in moments]
        assert computed(ordinal(unit, typed("d")), rows) == of_days
    elif MICROS[unit] < MICROS["DAY"]:
        within = [ordinal_of(unit, moment) - day for moment, day in zip(moments, of_days, strict=True)]
        assert computed(ordinal(unit, typed("m")), rows) == within
        assert computed(ordinal(unit, typed("d")), rows) == [0] * len(rows)


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "WEEK"])
@settings(max_examples=15, deadline=None)
@given(moments=MOMENTS)
def test_numbers_differ_by_the_units_that_begin_between(unit: str, moments: list[dt.datetime]) -> None:
    first = moments[0]
    rows = [{**corner_rows()[0], "m": moment} for moment in moments]
    begun = computed(f"DATE_DIFF('{unit}', TIMESTAMP '{first.isoformat()}', m)", rows)
    assert [ordinal_of(unit, moment) - ordinal_of(unit, first) for moment in moments] == begun


@pytest.mark.parametrize(
    ("unit", "last"),
    [
        ("MILLENNIUM", dt.datetime(1999, 12, 31, 23, 59, 59, 999_999)),
        ("CENTURY", dt.datetime(1899, 12, 31, 23, 59, 59, 999_999)),
        ("QUARTER", dt.datetime(2023, 12, 31, 23, 59, 59, 999_999)),
        ("MONTH", dt.datetime(2024, 2, 29, 23, 59, 59, 999_999)),
        ("WEEK", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        ("DAY", dt.datetime(1600, 2, 28, 23, 59, 59, 999_999)),
        ("HOUR", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        ("MILLISECOND", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ],
)
def test_the_next_unit_has_the_next_number(unit: str, last: dt.datetime) -> None:
    micro = dt.timedelta(microseconds=1)
    number = ordinal_of(unit, last)
    assert ordinal_of(unit, last - micro) == number
    assert ordinal_of(unit, last + micro) == number + 1


def test_numbers_before_1970_are_negative() -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 58)
    numbers = [ordinal_of(unit, moment) for unit in ("WEEK", "DAY", "HOUR", "SECOND", "MICROSECOND")]
    assert numbers == [-1, -1, -1, -2, -2_000_000]


def test_units_are_listed_from_the_longest() -> None:
    assert {*UNITS} == {*MONTHS, *MICROS}
    across = [ordinal_of(unit, ENDS[1]) - ordinal_of(unit, ENDS[0]) for unit in UNITS]
    assert all(fewer < more for fewer, more in pairwise(across))
    assert across[-1] < 2**59


@pytest.mark.parametrize("unit", UNITS)
def test_null_has_no_number(unit: str) -> None:
    (value,) = computed(ordinal(unit, typed("m")), [{**corner_rows()[0], "m": None}])
    assert value is None


def test_arithmetic_keeps_its_brackets() -> None:
    three, seven = whole(3), whole(7)
    for sql, value in (
        (quotient(whole(-7), 2), -3),
        (quotient(plus(three, seven), 4), 2),
        (times(minus(three, seven), 5), -20),
        (minus(seven, minus(three, whole(2))), 6),
        (quotient(whole(2**62), 1), 2**62),
        (times(whole(-(2**62)), 1), -(2**62)),
    ):
        assert computed(sql, corner_rows()) == [value]
