"""Units of time as bare words: in the text, in the tree and in the values."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import sqlglot

from incrowd.errors import QueryError
from incrowd.query.sql import parse
from incrowd.query.tokens import edited
from incrowd.query.unit_words import UNIT_MARK, quoted_units, whole_units_call
from tests.query.one_table import computed, corner_rows, refuted, tree_of, typed

ROW = {**corner_rows()[0], "d": dt.date(2024, 3, 31), "m": dt.datetime(2024, 2, 29, 12), "y": 2}


def marked(sql: str) -> str:
    return edited(sql, list(quoted_units(sqlglot.tokenize(sql, read="duckdb"))))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("DateAdd(month, 3, d)", f"{UNIT_MARK}DATEADD('month', 3, d)"),
        ("timestampadd ( 'DAY' , 1, d)", f"{UNIT_MARK}TIMESTAMPADD ( 'DAY' , 1, d)"),
        (
            "TIMESTAMPDIFF(DAY, dateadd(week, 1, d), m)",
            f"{UNIT_MARK}TIMESTAMPDIFF('DAY', {UNIT_MARK}DATEADD('week', 1, d), m)",
        ),
    ],
)
def test_a_unit_is_quoted_and_its_call_marked(sql: str, text: str) -> None:
    assert marked(sql) == text


@pytest.mark.parametrize(
    "sql",
    [
        "DATE_DIFF(month, d, m)",
        "month + dateadd",
        "DATEADD(2, 3, d)",
        "DATEADD(",
    ],
)
def test_other_words_stay_as_they_are(sql: str) -> None:
    assert marked(sql) == sql


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("DATEADD(month, -1, d)", dt.datetime(2024, 2, 29)),
        ("dateadd('year', 1, m)", dt.datetime(2025, 2, 28, 12)),
        ("TIMESTAMPADD(DAY, y + 1, d)", dt.datetime(2024, 4, 3)),
        ("DATE_SUB(d, INTERVAL 1 MONTH)", dt.datetime(2024, 2, 29)),
        ("SUBDATE(d, INTERVAL (y) DAY)", dt.datetime(2024, 3, 29)),
        ("TIMESTAMPDIFF(MONTH, m, d)", 1),
        ("TIMESTAMPDIFF(month, d, m)", -1),
        ("TIMESTAMPDIFF('day', m, d)", 30),
        ("TIMESTAMPDIFF(HOUR, m, m + INTERVAL 1 DAY)", 24),
        ("YEAR(DATEADD(month, 10, m))", 2024),
        ("DATEADD(week, 1, m) - INTERVAL 1 DAY", dt.datetime(2024, 3, 6, 12)),
        ("DATEADD(hour, 1, DATEADD(week, 1, m))", dt.datetime(2024, 3, 7, 13)),
        ("TIMESTAMPDIFF(HOUR, m, DATEADD(day, 1, m))", 24),
        ("DATE_SUB(DATE_SUB(d, INTERVAL 1 DAY), INTERVAL 1 DAY)", dt.datetime(2024, 3, 29)),
    ],
)
def test_a_call_means_its_unit(sql: str, value: Any) -> None:
    assert computed(typed(sql).sql, [ROW]) == [value]


@pytest.mark.parametrize(
    "sql", ["DATEADD(month, 3, d)", "TIMESTAMPADD(year, -1, m)", "TIMESTAMPDIFF(SECOND, d, m)"]
)
def test_null_and_the_ends_of_the_calendar_raise_nothing(sql: str) -> None:
    claim = typed(sql)
    rows = corner_rows("d", "m")
    assert not refuted(claim, rows)
    assert {None} == {
        value
        for row, value in zip(rows, computed(claim.sql, rows), strict=True)
        if row["d"] is None and row["m"] is None
    }


def test_another_dialects_call_counts_whole_units() -> None:
    start, end = tree_of("m"), tree_of("d")
    call = whole_units_call("MONTH", start, end)
    assert call.name == f"{UNIT_MARK}TIMESTAMPDIFF"
    assert call.expressions[1:] == [start, end]
    assert call.expressions[1] is not start
    tree = parse("SELECT TIMESTAMP_DIFF(d, m, DAY) FROM t", "bigquery").tree
    assert tree.sql("duckdb") == "SELECT TIMESTAMPDIFF('DAY', m, d) FROM t"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DATEADD(fortnight, 3, d)", "INTERVAL (3) FORTNIGHT has no unit that is known; use microsecond"),
        ("DATEADD(month, x, d)", "moves by months or hours whose number is no constant; use days or a"),
        ("TIMESTAMPDIFF(fortnight, d, m)", "counts no unit that is known; use MILLENNIUM, CENTURY"),
        ("TIMESTAMPDIFF(month, s, m)", "needs two dates, but s is of type text; CAST it AS DATE or"),
        ("DATEADD(month, 3)", "DATEADD is not among the functions that are safe over private rows"),
    ],
)
def test_what_has_no_meaning_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)


def test_no_question_may_hold_the_mark() -> None:
    with pytest.raises(QueryError, match="are reserved; rename it"):
        parse(f"SELECT {UNIT_MARK}DATEADD('day', 1, d) FROM t")
