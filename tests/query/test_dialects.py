"""Other dialects: what means the same is read in DuckDB's words, and what does not is refused."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.clause import clause_of
from incrowd.query.dialects import DIALECTS
from incrowd.query.sql import bounds_of, parse

DAYS = [dt.date(2024, 1, 7) + dt.timedelta(days=days) for days in range(14)]  # from a Sunday


@pytest.mark.parametrize(
    ("dialect", "written", "read"),
    [
        ("bigquery", 'SELECT COUNTIF(s = "a") FROM `t`', "SELECT COUNT_IF(s = 'a') FROM \"t\""),
        ("bigquery", "SELECT LOG(x), LOG(x, 2), DIV(x, y) FROM t", "SELECT LN(x), LOG(2, x), x // y FROM t"),
        ("bigquery", "SELECT SAFE_CAST(x AS INT64) FROM t", "SELECT TRY_CAST(x AS BIGINT) FROM t"),
        ("bigquery", "SELECT CONCAT(a, b), LENGTH(s) FROM t", "SELECT a || b, LENGTH(s) FROM t"),
        ("bigquery", "SELECT EXTRACT(ISOWEEK FROM d) FROM t", "SELECT EXTRACT(WEEK FROM d) FROM t"),
        ("postgres", "SELECT x::float / y FROM t", "SELECT CAST(x AS DOUBLE) / y FROM t"),
        ("postgres", "SELECT CONCAT(a, b), a || b FROM t", "SELECT CONCAT(a, b), a || b FROM t"),
        (
            "postgres",
            "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) FROM t",
            "SELECT PERCENTILE_CONT(x, 0.5) FROM t",
        ),
        ("snowflake", "SELECT TOP 3 NVL(x, 0) FROM t", "SELECT COALESCE(x, 0) FROM t LIMIT 3"),
        ("snowflake", "SELECT DATEDIFF(day, a, b) FROM t", "SELECT DATE_DIFF('DAY', a, b) FROM t"),
        ("spark", "SELECT mean(x), std(x), x div 2 FROM t", "SELECT MEAN(x), STD(x), x // 2 FROM t"),
        (
            "spark",
            "SELECT datediff(a, b) FROM t",
            "SELECT DATE_DIFF('DAY', CAST(b AS DATE), CAST(a AS DATE)) FROM t",
        ),
        (
            "bigquery",
            "SELECT APPROX_QUANTILES(x, 4)[OFFSET(2)] FROM t",
            "SELECT APPROX_QUANTILES(x, 4)[3] FROM t",
        ),
    ],
)
def test_a_dialect_is_read_as_what_it_means(dialect: str, written: str, read: str) -> None:
    assert parse(written, dialect).tree == parse(read).tree


@pytest.mark.parametrize("dialect", ["bigquery", "spark"])
def test_nulls_stand_where_the_dialect_puts_them(dialect: str) -> None:
    (ordered,) = parse("SELECT x FROM t ORDER BY x", dialect).tree.args["order"].expressions
    assert ordered.args["nulls_first"]
    for other in ("postgres", "snowflake"):
        (ordered,) = parse("SELECT x FROM t ORDER BY x DESC", other).tree.args["order"].expressions
        assert ordered.args["nulls_first"]


@pytest.mark.parametrize(
    ("dialect", "sql", "sunday"),
    [
        ("bigquery", "SELECT EXTRACT(DAYOFWEEK FROM d) FROM t", 1),
        ("spark", "SELECT dayofweek(d) FROM t", 1),
        ("spark", "SELECT extract(dow FROM d) FROM t", 1),
        ("postgres", "SELECT EXTRACT(DOW FROM d) FROM t", 0),
        ("snowflake", "SELECT DAYOFWEEK(d) FROM t", 0),
        ("duckdb", "SELECT DAYOFWEEK(d) FROM t", 0),
    ],
)
def test_days_of_the_week_have_the_dialects_numbers(dialect: str, sql: str, sunday: int) -> None:
    with duckdb.connect(":memory:") as engine:
        engine.execute("CREATE TABLE t (d DATE)")
        engine.executemany("INSERT INTO t VALUES (?)", [[day] for day in DAYS])
        days = engine.execute(parse(sql, dialect).tree.sql("duckdb")).fetchall()
    assert [day for (day,) in days] == [sunday + place % 7 for place in range(14)]


def test_weeks_of_bigquery_begin_on_sunday() -> None:
    with duckdb.connect(":memory:") as engine:
        sql = parse("SELECT DATE_TRUNC(d, WEEK) FROM t", "bigquery").tree.sql("duckdb")
        engine.execute("CREATE TABLE t (d DATE)")
        engine.executemany("INSERT INTO t VALUES (?)", [[day] for day in DAYS])
        weeks = [week for (week,) in engine.execute(sql).fetchall()]
    assert weeks == [DAYS[place // 7 * 7] for place in range(14)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_clause_and_named_arguments_are_read_in_every_dialect(dialect: str) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=.5, privacy_unit_column=u) a, "
        "SUM(x, contribution_bounds_per_group => (-1, 2.5)) AS s FROM t GROUP BY a"
    )
    tree = parse(sql, dialect).tree
    (aggregate,) = [node for node in tree.walk() if bounds_of(node) is not None]
    bounds, clause = bounds_of(aggregate), clause_of(tree)
    assert bounds is not None and (bounds.per, bounds.low, bounds.high) == ("group", -1.0, 2.5)
    assert clause is not None and (clause.epsilon, clause.unit) == (0.5, ("u",))
    assert tree == parse(sql).tree


REFUSED = [
    ("postgres", "x / y", "leaves out the rest", "CAST(x AS DOUBLE PRECISION) / y"),
    ("postgres", "COUNT(*) / 7", "leaves out the rest", "CAST(COUNT(*) AS DOUBLE PRECISION) / 7"),
    ("postgres", "SUM(x) / SUM(y)", "leaves out the rest", "CAST(SUM(x) AS DOUBLE PRECISION) / SUM(y)"),
    ("postgres", "s ~ 'a.*'", "Regular expressions of PostgreSQL differ", "s LIKE 'a%'"),
    ("postgres", "s LIKE 'a\\_b'", "A backslash in LIKE", "s LIKE 'a_b'"),
    ("postgres", "AGES(d)", "AGES of PostgreSQL is not known here", ""),
    ("bigquery", "EXTRACT(WEEK FROM d)", "BigQuery's WEEK begins on Sunday", "EXTRACT(ISOWEEK FROM d)"),
    (
        "bigquery",
        "EXTRACT(WEEK(MONDAY) FROM d)",
        "BigQuery's WEEK begins on Sunday",
        "EXTRACT(ISOWEEK FROM d)",
    ),
    ("bigquery", "SUBSTR(s, 0, 2)", "begins outside of the text", "SUBSTR(s, 1, 2)"),
    ("snowflake", "REGEXP_LIKE(s, 'a')", "Regular expressions of Snowflake differ", "s LIKE '%a%'"),
    ("snowflake", "DP_INTERVAL_LOW(x)", "DP_INTERVAL_LOW of Snowflake is not known here", ""),
    ("spark", "CAST(x AS INT)", "a cast to a whole number cuts digits off", "FLOOR(x)"),
    ("spark", "int(x)", "a cast to a whole number cuts digits off", "ROUND(x)"),
    ("spark", "weekday(d)", "WEEKDAY of Spark is not known here", ""),
]


@pytest.mark.parametrize(("dialect", "asked", "said", "remedy"), REFUSED)
def test_what_would_mean_something_else_is_refused(dialect: str, asked: str, said: str, remedy: str) -> None:
    with pytest.raises(QueryError, match=said):
        parse(f"SELECT {asked} FROM t", dialect)
    if remedy:
        parse(f"SELECT {remedy} FROM t", dialect)


@pytest.mark.parametrize(
    "asked", ["100.0 * x / y", "AVG(x) / 7", "x::numeric / y", "SUM(x) * 1.5 / 2", "-(1.0) / x", "x / 2.0"]
)
def test_postgresql_divides_what_is_plainly_no_whole_number(asked: str) -> None:
    assert parse(f"SELECT {asked} FROM t", "postgres").tree.find(exp.Div) is not None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fault_is_told_in_the_dialects_name(dialect: str) -> None:
    with pytest.raises(QueryError, match=r"The SQL cannot be read: near FROM|one SELECT in "):
        parse("SELECT COUNT(* FROM t", dialect)
