"""Periods: when one is closed, and what may be declared."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.periods import Period, Span
from tests.catalog.faults import fault_of
from tests.catalog.test_tables import private

_LENGTH = {"day": 1, "month": 31, "year": 366}


def start_of(day: dt.date, by: Span) -> dt.date:
    """The first day of the period that holds a day."""
    return {"day": day, "month": day.replace(day=1), "year": day.replace(month=1, day=1)}[by]


@given(
    st.dates(dt.date(1990, 1, 1), dt.date(2100, 1, 1)),
    st.sampled_from(["day", "month", "year"]),
    st.integers(0, 400),
)
def test_a_period_is_closed_so_many_days_after_its_end_and_not_before(
    today: dt.date, by: Span, late: int
) -> None:
    opened = Period(column="day", by=by, closed_after=late).open_from(today).date()
    assert opened == start_of(opened, by)
    assert opened + dt.timedelta(days=late) <= today, "the last closed period ended where the open one starts"
    following = start_of(opened + dt.timedelta(days=_LENGTH[by]), by)
    assert following + dt.timedelta(days=late) > today, "the period that is open would be closed already"


@pytest.mark.parametrize(
    ("period", "said"),
    [
        ({"column": "day"}, "period.by"),
        ({"column": "day", "by": "week"}, "period.by: expected day, month or year, not 'week'"),
        ({"column": "day", "by": []}, "period.by: expected day, month or year, not a list"),
        ({"column": "dya", "by": "day"}, "period.column: no column dya is declared, perhaps you mean day"),
        ({"column": "cost", "by": "day"}, "period.column: cost is a float column; periods are those of a"),
        ({"column": "day", "by": "day", "closed_after": -1}, "period.closed_after: must be a whole number"),
        ({"column": "day", "by": "day", "closed_after": 0.5}, "period.closed_after: must be a whole number"),
        ({"column": "day", "by": "day", "closed_after": 10**400}, "period.closed_after: expected a finite"),
        ({"column": "day", "by": "day", "revision": 0}, "period.revision: must be a whole number"),
        ("month", "period: expected fields such as column, by, closed_after"),
    ],
)
def test_what_is_no_period_is_refused(period: Any, said: str) -> None:
    assert fault_of(lambda: private(period=period)).startswith(said)


def test_a_public_table_has_none() -> None:
    period = {"column": "day", "by": "day"}
    assert fault_of(lambda: private(private=False, unit=None, period=period)).startswith("period: a public")
