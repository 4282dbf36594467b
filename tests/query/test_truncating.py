"""The starts of units are those of DuckDB."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.query.truncating import UNITS, starts, truncated


@pytest.mark.parametrize("unit", UNITS)
@given(moment=st.datetimes(dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24)))
def test_the_start_of_a_unit_is_that_of_duckdb(unit: str, moment: dt.datetime) -> None:
    ((expected,),) = duckdb.execute(f"SELECT DATE_TRUNC('{unit}', ?)", [moment]).fetchall()
    assert truncated(moment, unit) == expected


@pytest.mark.parametrize(
    ("unit", "days"), [("YEAR", 9_000), ("QUARTER", 900), ("MONTH", 300), ("WEEK", 90), ("DAY", 20)]
)
@given(low=st.datetimes(dt.datetime(1, 1, 8), dt.datetime(9900, 12, 24)), far=st.floats(0, 1))
def test_starts_are_all_that_can_be_between(unit: str, days: int, low: dt.datetime, far: float) -> None:
    high = low + dt.timedelta(days=days * far)
    listed = list(starts(unit, low, high))
    assert listed[0] == truncated(low, unit) and listed[-1] == truncated(high, unit)
    assert all(truncated(one, unit) == one for one in listed)
    steps = {truncated(low + (high - low) * place / 50, unit) for place in range(51)}
    assert steps <= set(listed) and listed == sorted(set(listed))
