"""How text is read: exactly the values of the grammar, on both sides of each border."""

from __future__ import annotations

import datetime as dt

import duckdb
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.query.grammar import from_text, read

BORDER = 2**63


@given(
    st.one_of(
        st.integers(-(10**20), 10**20), st.integers(-60, 60).map(lambda near: BORDER + near), st.integers()
    ),
    st.integers(0, 5),
)
@example(BORDER - 1, 0)
@example(BORDER, 0)
@example(-BORDER, 2)
def test_whole_numbers_are_read_up_to_64_bits_and_not_beyond(value: int, zeros: int) -> None:
    sign, digits = ("-" if value < 0 else ""), "0" * zeros + str(abs(value))
    fits = abs(value) < BORDER and len(digits) <= 40
    assert read(sign + digits, "integer") == (value if fits else None)


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
@example(0, 1, 1)
@example(1900, 2, 29)
def test_dates_are_the_days_that_exist_in_the_years_1_to_9999(year: int, month: int, day: int) -> None:
    try:
        expected = dt.date(year, month, day)
    except ValueError:
        expected = None
    assert read(f"{year:04}-{month:02}-{day:02}", "date") == expected


SPELLINGS = [
    *("0000-01-01", "2020-02-30", "2020-1-1", "2020-01-01 ", "1.4", "1_000", " 12", "0x10", "1e5", "1e+5"),
    *("-.5", "+7", "007", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "٣", ""),
    *("infinity", "nan", "2020-01-01 00:00", "2020-01-01T23:59:59.999999", "2020-01-01 24:00", "tRuE", "yes"),
]


def test_the_engine_reads_text_as_the_grammar_does() -> None:
    for kind in ("integer", "float", "boolean", "date", "timestamp"):
        sql = from_text(exp.column("x"), kind).sql("duckdb")
        rows = duckdb.execute(f"SELECT x, {sql} FROM (SELECT UNNEST(?) AS x)", [SPELLINGS]).fetchall()
        assert rows == [(text, read(text, kind)) for text in SPELLINGS]
