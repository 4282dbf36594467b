"""Times as whole numbers, and back."""

from __future__ import annotations

import datetime as dt

from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.query import moments
from tests.query.one_table import computed, corner_rows, typed

EPOCH = dt.datetime(1970, 1, 1)


@settings(deadline=None)
@given(st.lists(st.datetimes(), min_size=1, max_size=5))
def test_days_and_microseconds_are_counted_since_1970(given_moments: list[dt.datetime]) -> None:
    rows = [{**corner_rows()[0], "m": moment, "d": moment.date()} for moment in given_moments]
    days = [(moment.date() - EPOCH.date()).days for moment in given_moments]
    assert computed(moments.day_number(typed("d")), rows) == days
    assert computed(moments.day_number(typed("m")), rows) == days
    assert computed(moments.date_of(moments.day_number(typed("m"))), rows) == [row["d"] for row in rows]
    micros = [(moment - EPOCH) // dt.timedelta(microseconds=1) for moment in given_moments]
    assert computed(moments.micros_between(typed("TIMESTAMP '1970-01-01'"), typed("m")), rows) == micros
    assert computed(moments.clock(typed("m")), rows) == [number % moments.DAY for number in micros]
    assert computed(moments.seconds_of_day(typed("m")), rows) == [
        number % moments.DAY // 10**6 for number in micros
    ]
    assert moments.number_of(given_moments[0].date()) == days[0]


def test_a_number_beyond_the_calendar_is_no_date() -> None:
    rows = [
        {**corner_rows()[0], "n": number}
        for number in (moments.LAST_DAY + 1, moments.FIRST_DAY - 1, 2**63 - 1)
    ]
    assert computed(moments.date_of(typed("n").sql), rows) == [None, None, None]
