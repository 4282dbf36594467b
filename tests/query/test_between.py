"""Parts of a difference of two times, and differences beside constant intervals."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.between import between_times, intervals_compared
from incrowd.query.expressions import total
from incrowd.query.typed import Typed
from tests.query.one_table import LOOKUP, computed, corner_rows, refuted, tree_of, typed

ROW = {
    **corner_rows()[0],
    "d": dt.date(2024, 2, 27),
    "m": dt.datetime(2025, 3, 1, 12, 30, 45, 250_000),
    "y": 4,
}
"""Between them: 368 days, 12:30:45.25 hours; a year and three days."""
QUESTIONS = (
    "EXTRACT(DAY FROM m - d)",
    "EXTRACT(YEAR FROM AGE(m, d))",
    "EXTRACT(MONTH FROM AGE(m, d))",
    "EXTRACT(EPOCH FROM m - d)",
    "m - d >= INTERVAL '368 days'",
)


def never(*_: exp.Expr | Typed) -> Typed:
    raise AssertionError("nothing is to be looked at")


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("EXTRACT(DAY FROM m - d)", 368),
        ("EXTRACT(DAY FROM ((d - m)))", -368),
        ("DATE_PART('hour', m - d)", 12),
        ("MINUTE(d - m)", -30),
        ("EXTRACT(SECOND FROM m - d)", 45),
        ("EXTRACT(EPOCH FROM m - d)", 368 * 86_400 + 45_045.25),
        ("EXTRACT(YEAR FROM AGE(m, d))", 1),
        ("EXTRACT(MONTH FROM AGE(m, DATE '2023-05-02'))", 9),
        ("DATE_PART('month', age(d, m))", 0),
    ],
)
def test_a_part_of_a_difference_is_what_lies_between(sql: str, value: float) -> None:
    assert computed(typed(sql).sql, [ROW]) == [value]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("EXTRACT(DAY FROM d - y)", 23),
        ("DATE_PART('month', d - 27)", 1),
        ("MONTH(m - INTERVAL '1 day')", 2),
        ("EXTRACT(DAY FROM m)", 1),
    ],
)
def test_a_date_moved_back_is_a_date(sql: str, value: int) -> None:
    assert computed(typed(sql).sql, [ROW]) == [value]


@pytest.mark.parametrize("sign", ["<", "<=", "=", "<>", ">=", ">"])
@pytest.mark.parametrize("seconds", [44, 45, 46])
def test_a_difference_is_compared_from_either_side(sign: str, seconds: int) -> None:
    row = {**ROW, "m": dt.datetime(2024, 2, 27, 0, 0, 45)}
    for sql in (
        f"m - d {sign} INTERVAL '{seconds} seconds'",
        f"INTERVAL '{seconds} seconds' {sign} (m - d)",
    ):
        assert computed(typed(sql).sql, [row]) == computed(sql, [row])


@pytest.mark.parametrize("sql", QUESTIONS)
def test_null_and_the_ends_of_the_calendar_raise_nothing(sql: str) -> None:
    claim = typed(sql)
    rows = corner_rows("m", "d")
    assert not refuted(claim, rows)
    for row, value in zip(rows, computed(claim.sql, rows), strict=True):
        if row["m"] is None or row["d"] is None:
            assert value is None
        elif row["m"].year < 9999:
            assert value is not None


def test_each_operand_is_looked_at_once() -> None:
    seen = []

    def looked_at(node: exp.Expr) -> Typed:
        seen.append(node.sql("duckdb"))
        return total(node, LOOKUP)

    for sql in QUESTIONS[:-1]:
        seen.clear()
        assert between_times(tree_of(sql), looked_at, never) is not None
        assert sorted(seen) == ['"t".d', '"t".m']
    seen.clear()
    assert intervals_compared(tree_of(QUESTIONS[-1]), looked_at) is not None
    assert sorted(seen) == ['"t".d', '"t".m']


def test_other_expressions_are_left_alone() -> None:
    for sql in ("d - m", "EXTRACT(DAY FROM m)", "EXTRACT(DAY FROM m - INTERVAL 1 DAY)", "ABS(x - y)"):
        assert between_times(tree_of(sql), never, never) is None
    for sql in ("m > d", "x - y > 3", "m - INTERVAL 1 DAY > d"):
        assert intervals_compared(tree_of(sql), never) is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "AGE(m, d) > INTERVAL 1 YEAR",
            "AGE(m, d) is an interval, which is no number; write EXTRACT(YEAR FROM AGE(m, d)), or of MONTH.",
        ),
        ("EXTRACT(YEAR FROM AGE(d))", "AGE takes two dates, as in EXTRACT(YEAR FROM AGE(last, first))."),
        (
            "INTERVAL (y) DAY < m - d",
            "compares with an interval that is no constant; compare EXTRACT(EPOCH FROM m - d) with a number",
        ),
        ("EXTRACT(YEAR FROM AGE(m, x))", "needs two dates, but x is of type integer; CAST it AS DATE or"),
        ("EXTRACT(HOUR FROM x - y)", "EXTRACT needs a date, but x - y is of type integer; CAST it AS DATE."),
    ],
)
def test_what_has_no_meaning_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
