"""DuckDB's columns are read without an error, and ids so that no two become one."""

from __future__ import annotations

import datetime as dt
import functools
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.backends.duckdb_columns import NULLS, reading
from incrowd.errors import QueryError

X = exp.column("x", quoted=True)
NOON = dt.datetime(2024, 2, 29, 12)


@functools.cache
def engine() -> duckdb.DuckDBPyConnection:
    """One connection for all tests, in the time zone in which statements run."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'").fetchall()
    return connection


def read(
    engine_type: str, kind: str, *written: str | None, identifies: bool = False, collated: bool = False
) -> list[Any]:
    """Values of one of DuckDB's types, as the reader reads them."""
    sql, _ = reading(collated)(X.copy(), engine_type, kind, identifies)
    values = ", ".join(
        "(NULL)" if text is None else "('" + text.replace("'", "''") + "')" for text in written
    )
    typed = f"SELECT CAST(v AS {engine_type}) AS x, row_number() OVER () AS n FROM (VALUES {values}) AS t(v)"
    rows = engine().execute(f"SELECT {sql.sql('duckdb')} FROM ({typed}) ORDER BY n").fetchall()
    return [value for (value,) in rows]


@pytest.mark.parametrize(
    ("engine_type", "kind", "held"),
    [
        (NULLS, "integer", "integer"),
        (NULLS, "date", "date"),
        ("DECIMAL(9,2)", "integer", "integer"),
        ("DECIMAL(9,2)", "text", "text"),
        ("DECIMAL(9,2)", "float", "float"),
        ("DECIMAL(9,2)", "boolean", "float"),
        ("VARCHAR", "date", "text"),
        ("UUID", "text", "text"),
        ("TIMESTAMP_S", "date", "timestamp"),
        ("BOOLEAN", "integer", "boolean"),
        ("DATE", "timestamp", "date"),
    ],
)
def test_a_column_is_held_in_a_kind_that_loses_nothing_for_its_declared_one(
    engine_type: str, kind: str, held: str
) -> None:
    assert reading(False)(X.copy(), engine_type, kind, False)[1] == held


@pytest.mark.parametrize("engine_type", ["BLOB", "INTEGER[]", "BIGINT", "DOUBLE", "TIME"])
def test_a_type_that_is_not_understood_is_refused(engine_type: str) -> None:
    with pytest.raises(QueryError) as caught:
        reading(False)(X.copy(), engine_type, "text", False)
    assert str(caught.value) == f"{engine_type} is not understood."


def test_a_column_of_nothing_is_null_of_the_declared_kind() -> None:
    for kind, sql in (("integer", "BIGINT"), ("text", "TEXT"), ("timestamp", "TIMESTAMP")):
        assert reading(False)(X.copy(), NULLS, kind, False)[0].sql("duckdb") == f"CAST(NULL AS {sql})"


def test_what_needs_no_cast_is_the_column_itself() -> None:
    for engine_type in ("VARCHAR", "TIMESTAMP", "BOOLEAN", "DATE"):
        assert reading(False)(X.copy(), engine_type, "text", False)[0] == X


DECIMALS = st.decimals(-(10**17), 10**17, places=20, allow_nan=False, allow_infinity=False)


@settings(max_examples=25, deadline=None)
@given(st.lists(DECIMALS, min_size=1, max_size=4))
def test_a_decimal_becomes_the_nearest_float_and_its_own_digits(values: list[Decimal]) -> None:
    written = [format(value, "f") for value in values]
    assert read("DECIMAL(38,20)", "float", *written) == [float(text) for text in written]
    assert [Decimal(text) for text in read("DECIMAL(38,20)", "text", *written)] == values


def test_decimals_of_up_to_15_digits_need_no_text_on_their_way_to_a_float() -> None:
    for digits, through_text in ((15, False), (16, True)):
        sql = reading(False)(X.copy(), f"DECIMAL({digits},2)", "float", False)[0]
        assert ("VARCHAR" in sql.sql("duckdb") or "TEXT" in sql.sql("duckdb")) is through_text
        assert read(f"DECIMAL({digits},2)", "float", "0.29", "-7") == [0.29, -7.0]


def test_a_decimal_that_identifies_is_whole_or_nobody() -> None:
    written = ("7.00", "7.01", "-3.00", "0.00", None)
    assert read("DECIMAL(9,2)", "integer", *written, identifies=True) == [7, None, -3, 0, None]
    assert read("DECIMAL(9,2)", "integer", *written) == [7, 7, -3, 0, None]
    assert read("DECIMAL(38,0)", "integer", "9" * 30, "12", identifies=True) == [None, 12]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("0123456789-+. a", max_size=4) | st.integers().map(str), min_size=1, max_size=6))
def test_a_text_that_identifies_a_number_has_one_spelling(texts: list[str]) -> None:
    def canonical(text: str) -> bool:
        return text.lstrip("-").isdecimal() and str(int(text)) == text if text.strip("-") else False

    told = read("VARCHAR", "integer", *texts, identifies=True)
    assert told == [text if canonical(text) else None for text in texts]
    assert read("VARCHAR", "integer", *texts) == texts == read("VARCHAR", "text", *texts, identifies=True)


def test_other_types_of_text_are_read_as_they_are_written() -> None:
    assert read("ENUM('a', 'b')", "text", "b", None) == ["b", None]
    number = "0b1f4c52-3f66-4b4b-9a39-2f3c4a6c1f01"
    assert read("UUID", "text", number) == [number]


def test_collated_text_is_compared_by_its_letters() -> None:
    for collated in (False, True):
        sql = reading(collated)(X.copy(), "VARCHAR", "text", False)[0].sql("duckdb")
        asked = f"SELECT {sql} = 'a' FROM (SELECT 'A' COLLATE NOCASE AS x)"
        assert engine().execute(asked).fetchall() == [(not collated,)]


@pytest.mark.parametrize(
    "engine_type", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"]
)
def test_a_moment_is_read_in_utc(engine_type: str) -> None:
    assert read(engine_type, "timestamp", "2024-02-29 12:00:00", None) == [NOON, None]


def test_a_moment_beyond_the_calendar_of_microseconds_is_null() -> None:
    far = "290000-01-01 00:00:00"
    assert read("TIMESTAMP_S", "text", far) != [None] == read("TIMESTAMP_MS", "timestamp", None)
    sql = reading(False)(X.copy(), "TIMESTAMP_S", "timestamp", False)[0].sql("duckdb")
    assert sql == 'TRY_CAST("x" AS TIMESTAMP)'
    zoned = reading(False)(X.copy(), "TIMESTAMPTZ_NS", "timestamp", False)[0].sql("duckdb")
    assert zoned == "TRY_CAST(TRY(\"x\" AT TIME ZONE 'UTC') AS TIMESTAMP)"
