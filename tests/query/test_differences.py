"""What lies between two times, and parts of times: DuckDB's own values inside the calendar, NULL outside."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.expressions import total
from incrowd.query.typed import Field, lookup_in
from tests.query.one_table import computed, corner_rows, refuted, tree_of, typed
from tests.query.times_asked import DIFFERENCES, PARTS

LOW, HIGH = dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24)
NEAR = st.datetimes(dt.datetime(2019, 12, 28), dt.datetime(2024, 3, 2))
"""Close enough together that ends of months and leap days meet."""
ASKED = {**DIFFERENCES, **PARTS}


@pytest.mark.parametrize("sql", ASKED)
@settings(max_examples=12, deadline=None)
@given(moments=st.lists(NEAR | st.datetimes(LOW, HIGH), min_size=2, max_size=5))
def test_a_difference_is_that_of_duckdb(sql: str, moments: list[dt.datetime]) -> None:
    rows = [
        {**corner_rows()[0], "m": moment, "d": moments[place - 1].date()}
        for place, moment in enumerate(moments)
    ]
    claim = typed(sql)
    assert computed(claim.sql, rows) == computed(ASKED[sql] or sql, rows)
    assert not refuted(claim, rows)


@pytest.mark.parametrize("sql", ASKED)
def test_no_row_makes_a_difference_raise(sql: str) -> None:
    assert not refuted(typed(sql), corner_rows("m", "d"))


def bounded(sql: str, first: dt.date, last: dt.date) -> Any:
    """A claim where d has bounds."""
    return total(tree_of(sql), lookup_in({"t": {"d": Field("date", limits=(first, last))}}))


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("DATE_DIFF('year', d, DATE '2024-06-30')", 0, 4),
        ("DATE_DIFF('month', DATE '2024-06-30', d)", -53, -3),
        ("DATE_DIFF('week', d, DATE '2024-01-01')", -8, 206),
        ("DATE_DIFF('day', d, DATE '2024-06-30')", 121, 1627),
        ("DATE_DIFF('hour', d, DATE '2024-06-30')", 121 * 24, 1627 * 24),
        ("TIMESTAMPDIFF('month', d, DATE '2024-06-30')", 2, 53),
        ("EXTRACT(YEAR FROM AGE(DATE '2024-06-30', d))", 0, 4),
        ("EXTRACT(EPOCH FROM (d - DATE '2020-01-16'))", 0, 1506 * 86_400),
        ("EXTRACT(ISOYEAR FROM d)", 2020, 2024),
        ("EXTRACT(DECADE FROM d)", 202, 202),
    ],
)
def test_bounds_of_dates_bound_what_is_counted(sql: str, low: float, high: float) -> None:
    first, last = dt.date(2020, 1, 16), dt.date(2024, 3, 1)
    claim = bounded(sql, first, last)
    assert (claim.low, claim.high) == (low, high)
    rows = [{**corner_rows()[0], "d": first + dt.timedelta(days)} for days in range((last - first).days + 1)]
    values = computed(claim.sql, rows)
    assert low <= min(values) <= low + 1 and high - 1 <= max(values) <= high
    assert claim.values is None or set(values) <= set(claim.values)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DATE_DIFF('fortnight', d, m)", "counts no unit that is known; use MILLENNIUM, CENTURY"),
        ("DATE_DIFF('month', d, s)", "needs two dates, but s is of type text; CAST it AS DATE or TIMESTAMP."),
        ("DATE_SUB('month', d, m)", "write TIMESTAMPDIFF(MONTH, d, m)."),
        ("EXTRACT(DAY FROM AGE(m, d))", "write DATE_DIFF('day', d, m), or EXTRACT(EPOCH FROM m - d)."),
        ("AGE(m, d)", "is an interval, which is no number; write EXTRACT(YEAR FROM AGE(m, d)), or of MONTH."),
        ("EXTRACT(MONTH FROM m - d)", "or DATE_DIFF('month', d, m) for longer units."),
        ("EXTRACT(FORTNIGHT FROM d)", "EXTRACT of FORTNIGHT is not possible here; use YEAR, QUARTER"),
        ("m - d > INTERVAL (x) DAY", "compare EXTRACT(EPOCH FROM m - d) with a number of seconds."),
        ("EXTRACT(DAY FROM x - 1)", "EXTRACT needs a date, but x - 1 is of type integer"),
        ("DATE_PART('day', x - 1)", "DATE_PART needs a date, but x - 1 is of type integer"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_remedy(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
