"""Every statement that is run is proven, on every engine; every known way to raise is refused."""

from __future__ import annotations

import os

import pytest

from incrowd.backends import release_statement
from incrowd.backends.totality import PIECE, Prover
from incrowd.backends.trees import text_of
from incrowd.errors import BackendError, CatalogError
from tests.backends.houses import plan_of
from tests.backends.parsing import tree
from tests.backends.totality.corpus import final, fixed, generated, prover_of, rows

ENGINES = ("duckdb", "postgres", "spark")
STATEMENTS = int(os.environ.get("INCROWD_STATEMENTS", "8"))
"""How many questions of each list are proven on each engine; by hand: INCROWD_STATEMENTS=1000."""
TYPES = {
    "u": "BIGINT",
    "i": "BIGINT",
    "f": "DOUBLE",
    "t": "VARCHAR",
    "d": "DATE",
    "s": "TIMESTAMP",
    "n": "DECIMAL",
}
POSTGRES = {
    **{"u": "bigint", "i": "bigint", "f": "double precision", "t": "text", "d": "date", "n": "numeric"},
    **{"s": "timestamp without time zone"},
}
SPARK = {"u": "bigint", "i": "bigint", "f": "double", "t": "string", "d": "date", "s": "timestamp_ntz"}


def prover(engine: str) -> Prover:
    return Prover(engine, {"p": {"duckdb": TYPES, "postgres": POSTGRES, "spark": SPARK}[engine]})


@pytest.mark.parametrize("engine", ENGINES)
def test_every_expression_is_proven(engine: str) -> None:
    for query in rows():
        prover_of(engine).prove(final(engine, "user", query))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_statement_that_is_run_is_proven(engine: str) -> None:
    count = STATEMENTS // 4 if engine == "spark" else STATEMENTS
    for mode, statement in [*fixed(count), *generated(count)]:
        prover_of(engine).prove(final(engine, mode, statement))


ONE = "CAST('1e+300' AS DOUBLE)"
RAISING = {
    "a constant key that is folded": f"SELECT COUNT(*) AS n FROM p GROUP BY CAST((ROUND({ONE})) AS BIGINT)",
    "FLOOR beyond 64 bits": f"SELECT CAST(FLOOR({ONE}) AS BIGINT) AS x FROM p",
    "CEIL beyond 64 bits": "SELECT CAST(CEIL(CAST('1e+19' AS DOUBLE)) AS BIGINT) AS x FROM p",
    "ABS of the least integer": "SELECT ABS(CAST(-9223372036854775807 AS BIGINT) - 1) AS x FROM p",
    "a constant as another type": "SELECT CAST('x' AS BIGINT) AS x FROM p",
    "a day that does not exist": "SELECT CAST('2020-02-30' AS DATE) AS x FROM p",
    "a cast of a float": "SELECT CAST(f AS BIGINT) AS x FROM p",
    "a cast that its guard misses": (
        "SELECT CASE WHEN f <= CAST('9.223372036854776e+18' AS DOUBLE) THEN CAST(f AS BIGINT) END AS x FROM p"
    ),
    "a guard that lets NaN pass": (
        "SELECT CASE WHEN f > CAST('0.0' AS DOUBLE) THEN CAST(LEAST(f, f) AS BIGINT) END AS x FROM p"
    ),
    "a guard in WHERE": (
        "SELECT CAST(f AS BIGINT) AS x FROM p WHERE f > CAST('0.0' AS DOUBLE) AND f < CAST('9.0' AS DOUBLE)"
    ),
    "a guard around an aggregate": (
        "SELECT CASE WHEN MIN(f) > CAST('0.0' AS DOUBLE) THEN SUM(CAST(f AS BIGINT)) END AS x FROM p"
    ),
    "a guard of another expression": (
        "SELECT CASE WHEN f >= CAST('0.0' AS DOUBLE) AND f < CAST('9.0' AS DOUBLE) "
        "THEN CAST(f * f * f AS BIGINT) + CAST(-f * CAST('1e+30' AS DOUBLE) AS BIGINT) END AS x FROM p"
    ),
    "a cast of text": "SELECT CAST(t AS BIGINT) AS x FROM p",
    "a product": "SELECT i * i AS x FROM p",
    "a sum of two": "SELECT i + CAST(1 AS BIGINT) AS x FROM p",
    "a negation": "SELECT -i AS x FROM p",
    "ABS": "SELECT ABS(i) AS x FROM p",
    "a root": "SELECT SQRT(f) AS x FROM p",
    "a logarithm of zero": "SELECT CASE WHEN f >= CAST('0.0' AS DOUBLE) THEN LN(f) END AS x FROM p",
    "a constant in a dead branch": "SELECT CASE WHEN i >= CAST(9 AS BIGINT) THEN CASE WHEN i < "
    "CAST(9 AS BIGINT) THEN CASE WHEN i < CAST(2147483648 AS BIGINT) THEN "
    "CAST(CAST(2147483648 AS BIGINT) AS INT) END END END AS x FROM p",
    "a date beyond the calendar": "SELECT CASE WHEN d >= CAST('9999-12-01' AS DATE) AND "
    "d <= CAST('9999-12-31' AS DATE) THEN d + CAST('40' AS INT) END AS x FROM p",
    "a day that may be any": "SELECT CAST('1970-01-01' AS DATE) + CAST(i AS INT) AS x FROM p",
    "an interval from anywhere": "SELECT (s + INTERVAL '1' DAY) IS NULL AS x FROM p",
    "EXP": "SELECT EXP(f) AS x FROM p",
    "a function that is not known": "SELECT GAMMA(f) AS x FROM p",
    "a window": "SELECT SUM(i) OVER (PARTITION BY u) AS x FROM p",
    "a date as a timestamp": "SELECT CAST(CAST(d AS TIMESTAMP) AS DATE) AS x FROM p",
    "a part of a date": "SELECT EXTRACT(YEAR FROM d) AS x FROM p",
    "a date in the result": "SELECT d AS x FROM p",
    "text that grows": "SELECT t || t AS x FROM p",
    "a pattern with an escape": "SELECT t LIKE 'a\\\\' AS x FROM p",
    "a pattern of rows": "SELECT t LIKE t AS x FROM p",
    "a decimal": "SELECT f * 0.1 AS x FROM p",
    "a sum of floats": "SELECT SUM(f) AS x FROM p",
    "a condition that is none": "SELECT i AS x FROM p WHERE i",
    "types that differ": "SELECT i = t AS x FROM p",
    "a table that is not known": "SELECT x AS x FROM p JOIN other ON TRUE",
    "a subquery as a value": "SELECT (SELECT i FROM p) AS x FROM p",
    "a limit": "SELECT i AS x FROM p LIMIT 3",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RAISING)
def test_what_may_raise_is_refused(engine: str, name: str) -> None:
    with pytest.raises(BackendError):
        prover(engine).prove(tree(RAISING[name], engine))


OWN = {
    "duckdb": [
        "SELECT CAST(1 AS BIGINT) // i AS x FROM p",
        "SELECT SUM(CAST(i AS HUGEINT)) AS x FROM p",
        "SELECT CAST(SUM(i) AS BIGINT) AS x FROM p",
        "SELECT TRY_CAST(s AS TEXT) AS x FROM p",
        "SELECT DATE_TRUNC('week', d) AS x FROM p",
    ],
    "postgres": [
        "SELECT i / i AS x FROM p",
        "SELECT f / f AS x FROM p",
        "SELECT f * f AS x FROM p",
        "SELECT f + f AS x FROM p",
        "SELECT CASE WHEN ABS(f) < CAST('1e+100' AS DOUBLE PRECISION) THEN f * f END AS x FROM p",
        "SELECT CASE WHEN ABS(f) > CAST('1e-100' AS DOUBLE PRECISION) THEN f * f END AS x FROM p",
        "SELECT CAST(n AS DOUBLE PRECISION) AS x FROM p",
        "SELECT CAST(n AS BIGINT) AS x FROM p",
        "SELECT ROUND(n) AS x FROM p",
        "SELECT UPPER(t) AS x FROM p",
        "SELECT CASE WHEN LEFT(t, 100) ~ '^([0-9]+)$' THEN CAST(LEFT(t, 100) AS BIGINT) END AS x FROM p",
    ],
    "spark": [
        "SELECT SUM(i) AS x FROM p",
        "SELECT i * CAST(2 AS BIGINT) AS x FROM p",
        "SELECT FLOOR(f) AS x FROM p",
        "SELECT CAST(d AS TIMESTAMP_NTZ) AS x FROM p",
    ],
}


@pytest.mark.parametrize(
    ("engine", "sql"), [(engine, sql) for engine, statements in OWN.items() for sql in statements]
)
def test_what_may_raise_on_one_engine_is_refused_there(engine: str, sql: str) -> None:
    with pytest.raises(BackendError):
        prover(engine).prove(tree(sql, engine))


@pytest.mark.parametrize(
    ("key", "computed"),
    [
        ("ROUND(1e300)", "ROUND(CAST('1e+300' AS DOUBLE))"),
        ("FLOOR(1e300)", "FLOOR(CAST('1e+300' AS DOUBLE))"),
        ("CEIL(1e19)", "CEIL(CAST('1e+19' AS DOUBLE))"),
        ("ABS(9223372036854775807)", "ABS(CAST(9223372036854775807 AS DOUBLE))"),
    ],
)
def test_a_constant_key_of_a_sub_query_is_proven_as_it_is_and_refused_as_it_was(
    key: str, computed: str
) -> None:
    """It once raised for those who have a row that passes WHERE."""
    asked = f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT user_id, {key} AS c FROM visits WHERE x = 3) AS p"
    (leaf,) = plan_of(asked, "user", rows=1).leaves
    statement = release_statement(leaf).tree
    prover_of("duckdb").prove(statement)
    sql = text_of(statement)
    raising = sql.replace("GROUP BY", f"GROUP BY CAST(({computed}) AS BIGINT),", 1)
    assert raising != sql
    with pytest.raises(BackendError):
        prover_of("duckdb").prove(tree(raising))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("CAST(x AS BIGINT)", "UBIGINT"),
        ("CAST(x AS BIGINT)", "DECIMAL(38,0)"),
        ("CAST(x AS TIMESTAMP)", "TIMESTAMP_S"),
        ("TRY_CAST(x AS TEXT)", "TIMESTAMP_MS"),
        ("x AT TIME ZONE 'UTC'", "TIMESTAMP WITH TIME ZONE"),
        ("CAST(x AS DOUBLE)", "VARCHAR"),
    ],
)
def test_a_source_that_may_raise_is_refused_when_it_is_opened(sql: str, kind: str) -> None:
    with pytest.raises(CatalogError):
        Prover("duckdb").view("t", [(tree(f"SELECT {sql} AS x FROM {PIECE}"), {"x": kind})])


def test_statements_over_public_tables_alone_are_let_pass() -> None:
    known = Prover("duckdb", {"p": TYPES, "q": TYPES}, private=["p"])
    known.prove(tree("SELECT DISTINCT v FROM (SELECT * FROM q) AS domain"))
    with pytest.raises(BackendError):
        known.prove(tree("SELECT CAST(q.f AS BIGINT) AS x FROM p CROSS JOIN q"))
