"""Spark's dialect without a Spark: what each construct becomes, computed by DuckDB where both agree."""

from __future__ import annotations

import functools
import math
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from incrowd.backends.spark_sql import DIALECT, MOST, PLACE, SETTINGS
from incrowd.backends.translation import rewritten, translate
from incrowd.errors import BackendError
from tests.backends.parsing import tree

FLOATS = st.floats(width=64)
INT64 = st.integers(-MOST, MOST)


@functools.cache
def engine() -> duckdb.DuckDBPyConnection:
    """DuckDB with Spark's functions that it lacks."""
    connection = duckdb.connect()
    for macro in (
        "rint(x) AS round_even(x, 0)",
        (
            "shiftright(x, n) AS CASE WHEN x >= 0 THEN x // (1::HUGEINT << n) "
            "ELSE -((-x - 1) // (1::HUGEINT << n)) - 1 END"
        ),
        "nanvl(x, y) AS CASE WHEN isnan(x) THEN y ELSE x END",
    ):
        connection.execute(f"CREATE MACRO {macro}").fetchall()
    return connection


def spark(sql: str) -> exp.Expr:
    """An expression of DuckDB's in Spark's dialect."""
    return rewritten(parse_one(sql, read="duckdb"), DIALECT)


def text_of(sql: str) -> str:
    """An expression of DuckDB's as Spark is told it."""
    return spark(sql).sql("spark").replace("`x`", "x").replace("`y`", "y")


def computed(sql: str, kind: str, *values: object) -> Any:
    """A rewritten expression over a column x of values, by DuckDB with wider integers."""
    told = spark(sql).sql("duckdb").replace("BIGINT", "HUGEINT")
    rows = ", ".join(f"(CAST('{value}' AS {kind}))" for value in values)
    ((result,),) = engine().execute(f"SELECT {told} FROM (VALUES {rows}) AS t(x)").fetchall()
    return result


@settings(max_examples=20, deadline=None)
@given(st.lists(INT64, min_size=1, max_size=5))
@example([MOST, MOST])
@example([-MOST, -MOST])
@example([MOST, 1, -1])
@example([-1])
@example([2**21, 2**42, -(2**42) - 2**21 - 1])
def test_a_sum_is_exact_within_64_bits_and_else_the_nearest_end(values: list[int]) -> None:
    total = sum(values)
    assert computed("SUM(x)", "HUGEINT", *values) == max(-MOST, min(MOST, total)) or total == -MOST - 1


@settings(max_examples=20, deadline=None)
@given(FLOATS)
@example(0.5)
@example(-0.5)
@example(-1.5)
@example(2.0**52 + 0.5)
@example(math.inf)
def test_floor_ceil_and_trunc_are_those_of_floats(value: float) -> None:
    for name, exact in (("FLOOR", math.floor), ("CEIL", math.ceil), ("TRUNC", math.trunc)):
        told = computed(f"{name}(x)", "DOUBLE", value)
        if math.isfinite(value):
            assert told == exact(value)
        else:
            assert told == value or (math.isnan(told) and math.isnan(value))


def test_a_result_that_is_cast_to_an_integer_is_rounded_by_spark_itself() -> None:
    assert text_of("CAST(FLOOR(x) AS BIGINT)") == "CAST(FLOOR(x) AS BIGINT)"
    assert text_of("CAST(TRUNC(x) AS BIGINT)") == "CAST((x) AS BIGINT)"
    assert "RINT" in text_of("CAST(CEIL(x) AS BIGINT)") and "RINT" in text_of("CAST(FLOOR(x) AS DOUBLE)")


@settings(max_examples=20, deadline=None)
@given(FLOATS)
@example(0.5)
@example(1.5)
@example(2.0**63)
@example(-(2.0**63))
@example(math.nextafter(2.0**63, 0))
def test_a_float_is_cast_to_the_nearest_integer_or_null(value: float) -> None:
    told = computed("TRY_CAST(CAST(x AS DOUBLE) AS BIGINT)", "DOUBLE", value)
    fits = math.isfinite(value) and -(2**63) <= round(value) < 2**63
    assert told == (round(value) if fits else None)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("TRY_CAST(x AS DATE)", "TRY_CAST(x AS DATE)"),
        ("CAST(x AS TIMESTAMP)", "CAST(x AS TIMESTAMP_NTZ)"),
        ("CAST(5 AS HUGEINT)", "CAST(5 AS BIGINT)"),
        ("CAST(-9223372036854775807 AS HUGEINT)", "CAST(-9223372036854775807 AS BIGINT)"),
        ("REGEXP_FULL_MATCH(x, 'a|b')", r"(x RLIKE '\\A(?:a|b)\\z')"),
        ("x // 2", "x DIV 2"),
        ("x / y", "x / y"),
        ("TRIM(x, ' ')", "BTRIM(x, ' ')"),
        ("CONTAINS(x, 'a')", "CONTAINS(x, 'a')"),
        ("STARTS_WITH(x, 'a')", "STARTSWITH(x, 'a')"),
        ("LEFT(x, 2147483648)", "LEFT(x, 2147483647)"),
        ("LEFT(x, 2147483647)", "LEFT(x, 2147483647)"),
        ("SUBSTRING(x, 9999999999, 3)", "SUBSTRING(x, 2147483647, 3)"),
        ("SUBSTRING(x, 2, 9999999999)", "SUBSTRING(x, 2, 2147483647)"),
        ("EXTRACT(YEAR FROM x)", "YEAR(x)"),
        ("EXTRACT(WEEK FROM x)", "WEEKOFYEAR(x)"),
        ("EXTRACT(DOW FROM x)", "(DAYOFWEEK(x) - 1)"),
        ("ROUND(x, 2)", "ROUND(x, 2)"),
        ("ROW_NUMBER() OVER ()", f"`{PLACE}`"),
        (
            "DATE_TRUNC('month', x)",
            "CAST(DATE_TRUNC('MONTH', CAST(x AS TIMESTAMP_NTZ)) AS TIMESTAMP_NTZ)",
        ),
    ],
)
def test_a_construct_is_written_as_spark_means_it(sql: str, told: str) -> None:
    assert text_of(sql) == told


@pytest.mark.parametrize("sql", ["CAST(9223372036854775808 AS HUGEINT)", "CAST(x AS HUGEINT)"])
def test_a_number_of_more_than_64_bits_is_refused(sql: str) -> None:
    with pytest.raises(BackendError) as caught:
        spark(sql)
    assert str(caught.value) == "A number of more than 64 bits is not known on Spark; use DuckDB."


@pytest.mark.parametrize("sql", ["x % 2", "MD5(x)", "AVG(x)"])
def test_a_construct_that_may_mean_something_else_is_refused(sql: str) -> None:
    with pytest.raises(BackendError):
        spark(sql)


def test_a_common_table_is_not_asked_to_be_kept() -> None:
    told = translate(tree("WITH t AS MATERIALIZED (SELECT 1 AS x) SELECT x FROM t"), DIALECT, {})
    assert told.sql("spark") == "WITH `t` AS (SELECT 1 AS `x`) SELECT `x` FROM `t`"


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8))
@example("straße")
@example("Äİıſ")
def test_letters_change_case_one_by_one_and_plain_ones_as_everywhere(text: str) -> None:
    for name, change in (("UPPER", str.upper), ("LOWER", str.lower)):
        told = spark(f"{name}(x)").sql("duckdb").replace("OCTET_LENGTH", "strlen")
        quoted = exp.Literal.string(text)
        ((changed,),) = engine().execute(f"SELECT {told} FROM (SELECT {quoted} AS x)").fetchall()
        assert len(changed) == len(text)
        assert not text.isascii() or changed == change(text)


def test_settings_make_nothing_raise_and_nothing_be_guessed() -> None:
    assert SETTINGS["spark.sql.ansi.enabled"] == "false" and SETTINGS["spark.sql.session.timeZone"] == "UTC"
    assert SETTINGS["spark.sql.sources.partitionColumnTypeInference.enabled"] == "false"
    assert SETTINGS["spark.sql.parquet.filterPushdown"] == "false"
