"""A tree in another engine's constructs: a copy, whose names are folded and whose unknowns are refused."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from incrowd.backends import postgres_sql, spark_sql
from incrowd.backends.translation import Dialect, case_table, keep_rows, short_name, translate
from incrowd.backends.trees import text_of
from incrowd.errors import BackendError
from tests.backends.parsing import tree

DIALECTS = [postgres_sql.DIALECT, spark_sql.DIALECT]
TABLES = {"t": exp.select(exp.column("x", quoted=True)).from_(exp.to_table("stored"))}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_translating_leaves_the_statement_and_the_tables_as_they_are(dialect: Dialect) -> None:
    asked = tree("WITH r AS (SELECT x FROM t) SELECT SUM(x) // 2 AS s, UPPER('a') AS u FROM r")
    before, reads = text_of(asked), text_of(TABLES["t"])
    first, second = (text_of(translate(asked, dialect, TABLES), dialect.name) for _ in range(2))
    assert first == second
    assert (text_of(asked), text_of(TABLES["t"])) == (before, reads)


def test_tables_become_the_queries_that_read_them_and_names_are_folded() -> None:
    translated = translate(tree("SELECT T.X AS Y FROM T"), postgres_sql.DIALECT, TABLES)
    assert text_of(translated, "postgres") == 'SELECT "t"."x" AS "y" FROM (SELECT "x" FROM stored) AS "t"'


def test_precedence_is_that_of_the_tree() -> None:
    """A rewrite may put an operator where a call was: FLOOR(x) is a difference on Spark."""
    product = exp.Mul(this=exp.Floor(this=exp.column("x")), expression=exp.column("x"))
    statement = exp.select(exp.alias_(product, "y")).from_("t")
    text = text_of(translate(statement, spark_sql.DIALECT, TABLES), "spark")
    read = tree(text, "spark").expressions[0].this
    assert isinstance(read, exp.Mul) and isinstance(read.this.unnest(), exp.Sub)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_is_not_known_is_refused(dialect: Dialect) -> None:
    with pytest.raises(BackendError, match="is not known on"):
        translate(tree("SELECT MD5(x) AS y FROM t"), dialect, TABLES)
    with pytest.raises(BackendError, match="There is no table other"):
        translate(tree("SELECT x FROM other"), dialect, TABLES)


def test_rows_that_are_read_once_are_kept() -> None:
    asked = tree("WITH r AS NOT MATERIALIZED (SELECT x FROM t) SELECT x FROM r")
    kept = translate(asked, postgres_sql.DIALECT, TABLES, once={"t"})
    assert [cte.args["materialized"] for cte in kept.find_all(exp.CTE)] == [True]
    keep_rows(asked)
    assert "r AS MATERIALIZED" in text_of(asked)


def test_long_names_stay_apart() -> None:
    names = ["a" * 70 + end for end in "bc"]
    sql = f"SELECT x AS {names[0]}, x AS {names[1]} FROM t"
    translated = translate(tree(sql), postgres_sql.DIALECT, TABLES)
    assert [column.alias for column in translated.expressions] == [short_name(name, 63) for name in names]
    assert len({column.alias for column in translated.expressions}) == 2


def test_a_result_that_the_user_is_reading_is_left_alone() -> None:
    duckdb.execute("SELECT * FROM range(5000)")
    assert duckdb.fetchone() == (0,)
    assert case_table.__wrapped__(True) == case_table(True)
    assert len(duckdb.fetchall()) == 4999
