"""Dates as text: DuckDB's own, whatever the date; and all texts that a date with bounds may become."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.expressions import total
from incrowd.query.typed import Field, lookup_in
from tests.query.one_table import computed, corner_rows, refuted, tree_of, typed
from tests.query.times_asked import FORMATS

MOMENTS = st.datetimes(dt.datetime(1, 1, 8), dt.datetime(9999, 11, 24))


@pytest.mark.parametrize("sql", FORMATS)
@settings(max_examples=15, deadline=None)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=5))
def test_a_text_is_that_of_duckdb(sql: str, moments: list[dt.datetime]) -> None:
    rows = [{**corner_rows()[0], "m": moment, "d": moment.date()} for moment in moments]
    claim = typed(sql)
    assert computed(claim.sql, rows) == computed(FORMATS[sql] or sql, rows)
    assert not refuted(claim, rows)


@pytest.mark.parametrize("sql", FORMATS)
def test_no_row_makes_a_format_raise(sql: str) -> None:
    assert not refuted(typed(sql), corner_rows("m", "d"))


@pytest.mark.parametrize(
    ("sql", "many"),
    [
        ("DAYNAME(d)", 7),
        ("MONTHNAME(d)", 12),
        ("STRFTIME(d, '%Y-%m')", 37),
        ("STRFTIME(d, '%G-W%V')", 159),
        ("STRFTIME(d, '%Y-W%V')", 161),
        ("STRFTIME(d, '%Y')", 4),
        ("STRFTIME(d, '%A in %B')", 84),
        ("STRFTIME(d, '%Y %H')", 4),
        ("LAST_DAY(d)", 37),
    ],
)
def test_bounds_list_every_text_and_no_other(sql: str, many: int) -> None:
    first, last = dt.date(2020, 1, 1), dt.date(2023, 1, 10)
    claim = total(tree_of(sql), lookup_in({"t": {"d": Field("date", limits=(first, last))}}))
    rows = [{**corner_rows()[0], "d": first + dt.timedelta(days)} for days in range((last - first).days + 1)]
    assert claim.values is not None
    assert set(claim.values) == set(computed(claim.sql, rows))
    assert len(claim.values) == many


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("STRFTIME(d, s)", "needs a constant format, as in STRFTIME(d, '%Y-%m')."),
        ("STRFTIME(d, '%Q')", "holds %Q, which is not known here; use %Y, %y"),
        ("STRFTIME(d, 'year')", "names no part of the date; write a format such as '%Y-%m'."),
        (f"STRFTIME(d, '%Y{'-' * 99}')", "has more than 100 letters; shorten it."),
        ("DAYNAME(x)", "needs a date, but x is of type integer; CAST it AS DATE."),
    ],
)
def test_what_cannot_be_written_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
