"""Columns of Parquet files in Spark: the queries that read them, computed by DuckDB where both agree."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.errors import QueryError

pytest.importorskip("pyspark")
from incrowd.backends.spark_columns import plain_digits, read

X = exp.column("x", quoted=True)
INT64 = st.integers(-(2**63), 2**63 - 1)


@functools.cache
def engine() -> duckdb.DuckDBPyConnection:
    """DuckDB with Spark's functions that it lacks."""
    connection = duckdb.connect()
    connection.execute("CREATE MACRO try_validate_utf8(x) AS x").fetchall()
    connection.execute("CREATE MACRO timestamp_micros(x) AS x").fetchall()
    return connection


def computed(sql: exp.Expr, engine_type: str, *values: object) -> list[Any]:
    """An expression over values of a type, by DuckDB."""
    texts = ", ".join(f"({exp.Literal.string(str(value))})" for value in values)
    rows = f"SELECT CAST(v AS {engine_type}) AS x FROM (VALUES {texts}) AS t(v)"
    return [value for (value,) in engine().execute(f"SELECT {sql.sql('duckdb')} FROM ({rows})").fetchall()]


def text_of(engine_type: str, kind: str, identifies: bool = False) -> str:
    """The query that reads a column, as Spark is told it."""
    return read(X.copy(), engine_type, kind, identifies)[0].sql("spark")


@pytest.mark.parametrize(
    ("engine_type", "kind", "held"),
    [
        ("decimal(9,2)", "integer", "integer"),
        ("decimal(9,2)", "text", "text"),
        ("decimal(9,2)", "float", "float"),
        ("decimal(9,2)", "boolean", "float"),
        ("string", "date", "text"),
        ("timestamp[us]", "date", "timestamp"),
        ("date", "timestamp", "date"),
        ("boolean", "integer", "boolean"),
    ],
)
def test_a_column_is_held_in_a_kind_that_loses_nothing_for_its_declared_one(
    engine_type: str, kind: str, held: str
) -> None:
    assert read(X.copy(), engine_type, kind, False)[1] == held


@pytest.mark.parametrize("engine_type", ["binary", "group", "two columns", "wide decimal(50,30)", "bigint"])
def test_a_type_that_is_not_understood_is_refused(engine_type: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(X.copy(), engine_type, "text", False)
    assert str(caught.value) == f"{engine_type} is not understood."


def test_days_and_truth_are_read_from_what_files_store() -> None:
    assert text_of("date", "date") == "DATE_FROM_UNIX_DATE(`x`)"
    assert text_of("boolean", "boolean") == "`x`"
    assert text_of("decimal(9,2)", "float") == "CAST(`x` AS DOUBLE)"
    assert text_of("decimal(9,2)", "integer") == "TRY_CAST(ROUND(`x`) AS BIGINT)"


def test_a_decimal_that_identifies_is_whole_or_nobody() -> None:
    values = ("7.00", "7.01", "7.50", "-3.00")
    for identifies, told in ((True, [7, None, None, -3]), (False, [7, 7, 8, -3])):
        sql, _ = read(X.copy(), "decimal(9,2)", "integer", identifies)
        assert computed(sql, "DECIMAL(9,2)", *values) == told


@given(st.decimals(-(10**9), 10**9, places=9, allow_nan=False, allow_infinity=False))
@settings(max_examples=20, deadline=None)
def test_small_decimals_have_all_their_digits(value: Decimal) -> None:
    """Spark writes 1.5E-7; the expression is computed here as Python would, from the same text."""
    written = str(value)
    mantissa, _, exponent = written.partition("E-")
    digits = mantissa.replace(".", "").replace("-", "")
    plain = ("-" if value < 0 else "") + "0." + "0" * (int(exponent or 1) - 1) + digits
    expected = plain if "E-" in written else written
    told = plain_digits(X.copy()).sql("duckdb")
    macros = {
        'CAST("x" AS TEXT)': f"'{written}'",
        '"x" < 0': f"{value < 0}",
        "SUBSTRING_INDEX": "split_index",
    }
    for spark, here in macros.items():
        assert spark in told
        told = told.replace(spark, here)
    engine().execute(
        "CREATE OR REPLACE MACRO split_index(x, mark, n) AS "
        "CASE WHEN NOT contains(x, mark) THEN x ELSE split_part(x, mark, n) END"
    ).fetchall()
    assert engine().execute(f"SELECT {told}").fetchall() == [(expected,)]
    assert Decimal(expected) == value


@given(st.lists(st.text("0123456789-+. a", max_size=4) | st.integers().map(str), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
@example(["7", "007", "-0", "7\n", "0", "-7"])
def test_a_text_that_identifies_a_number_has_one_spelling(texts: list[str]) -> None:
    def canonical(text: str) -> bool:
        return text.removeprefix("-").isdecimal() and str(int(text)) == text

    sql, held = read(X.copy(), "string", "integer", True)
    assert held == "text"
    assert computed(sql, "VARCHAR", *texts) == [text if canonical(text) else None for text in texts]
    for kind, identifies in (("integer", False), ("text", True), ("date", True)):
        assert computed(read(X.copy(), "string", kind, identifies)[0], "VARCHAR", *texts) == texts


@pytest.mark.parametrize("kind", ["float", "boolean", "timestamp"])
def test_a_text_that_identifies_by_anything_else_is_refused(kind: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(X.copy(), "string", kind, True)
    assert str(caught.value) == f"Different texts are the same {kind}."
    assert read(X.copy(), "string", kind, False)[1] == "text"


def micros(engine_type: str, stored: int) -> int | None:
    """The microseconds as which a stored integer is read."""
    cast = read(X.copy(), engine_type, "timestamp", False)[0]
    assert isinstance(cast, exp.Cast) and cast.to.sql("spark") == "TIMESTAMP_NTZ"
    (told,) = computed(cast.this, "BIGINT", stored)
    return None if told is None else int(told)


@given(INT64)
@example((2**63 - 1) // 1000)
@example((2**63 - 1) // 1000 + 1)
@example(-((2**63 - 1) // 1000))
@example(-((2**63 - 1) // 1000) - 1)
@settings(max_examples=20, deadline=None)
def test_milliseconds_are_read_exactly_or_as_null(stored: int) -> None:
    fits = abs(stored) <= (2**63 - 1) // 1000
    assert micros("timestamp[ms]", stored) == micros("timestamp[ms, UTC]", stored)
    assert micros("timestamp[ms]", stored) == (stored * 1000 if fits else None)
    assert micros("timestamp[us]", stored) == micros("timestamp[us, UTC]", stored) == stored


@given(INT64)
@example(500)
@example(-500)
@example(499)
@example(-499)
@settings(max_examples=20, deadline=None)
def test_nanoseconds_are_rounded_to_the_nearest_microsecond_halves_away_from_1970(stored: int) -> None:
    away = (abs(stored) + 500) // 1000
    assert micros("timestamp[ns]", stored) == (away if stored > 0 else -away)


def test_old_moments_are_read_by_spark_itself() -> None:
    assert text_of("timestamp[ns, int96]", "timestamp") == "CAST(`x` AS TIMESTAMP_NTZ)"
