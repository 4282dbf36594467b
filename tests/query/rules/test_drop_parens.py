"""Parentheses that group nothing make no other question, and those that group make one."""

from __future__ import annotations

import itertools

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules.drop_parens import drop_parens
from incrowd.query.sql import DIALECT
from tests.backends.houses import catalog_of, plan_of

WORLD = World(catalog_of("user"), {})
OPERATORS = ["+", "-", "*", "/", "=", "<>", "<", ">=", "AND", "OR", "//", "%", "**", "IS DISTINCT FROM"]
VALUES = [None, 0, 1, 2, -3]
ENGINE = duckdb.connect()
TABLE = ", ".join(
    f"({a}, {b}, {c})" for a, b, c in itertools.product(*[["NULL" if v is None else v for v in VALUES]] * 3)
)
ENGINE.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {TABLE}) AS v(a, b, c)")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """An expression with parentheses anywhere, needed or not; without them it may mean something else."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(["a", "b", "c", "1", "(a)", "((2))", "ABS(b)", "CAST(c AS BIGINT)"]))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    form = draw(
        st.sampled_from(["{} {} {}", "({}) {} {}", "{} {} ({})", "({} {} {})", "NOT {}", "NOT ({})", "-({})"])
    )
    if form.count("{}") == 1:
        return form.format(left)
    return form.format(left, draw(st.sampled_from(OPERATORS)), right)


def answer(sql: str) -> str | None:
    try:
        return repr(ENGINE.sql(sql).fetchall())
    except duckdb.Error:
        return None


@settings(max_examples=400, deadline=None)
@given(expressions())
@example("(a = b) = c")
@example("a = (b = c)")
@example("(NOT a) = b")
@example("a - (b - c)")
@example("-(-(a))")
@example("(a OR b) AND c")
@example("(a + NOT a) + a IS DISTINCT FROM a")
def test_the_engine_reads_the_same_with_and_without(expression: str) -> None:
    sql = f"SELECT a, b, c, ({expression}) AS v FROM t WHERE ({expression}) IS NOT NULL ORDER BY a, b, c"
    tree = parse(sql).tree
    before, after = tree.sql(DIALECT), drop_parens(tree.copy(), WORLD).sql(DIALECT)
    assert answer(before) == answer(after)
    assert drop_parens(parse(after).tree, WORLD).sql(DIALECT) == after, "the same tree is read from it"


def fingerprint(sql: str) -> str:
    return plan_of(sql, "user").fingerprint


@pytest.mark.parametrize(
    "spelling",
    [
        "SELECT city, COUNT(*) AS n FROM visits WHERE (x > 1) AND f <> 2 GROUP BY city",
        "select city, count(*) n from visits where ((x) > (1)) and (f != 2) group by city",
        "SELECT CITY, COUNT(*) AS n\n FROM Visits /* who */ WHERE x > 1 AND f <> 2 GROUP BY (city) -- done",
        'SELECT (city), (COUNT(*)) AS n FROM "visits" WHERE (x > 1 AND f <> 2) GROUP BY 1;',
        "FROM visits SELECT city, COUNT(*) AS n WHERE x > 1 AND f <> 2 GROUP BY ALL",
    ],
)
def test_spellings_of_one_question_are_one_question(spelling: str) -> None:
    asked = "SELECT city, COUNT(*) AS n FROM visits WHERE x > 1 AND f <> 2 GROUP BY city"
    assert fingerprint(spelling) == fingerprint(asked)


CONDITIONS = [
    "x > 1", "x >= 1", "NOT x > 1", "x > 1 AND f > 2 OR x < 0", "x > 1 AND (f > 2 OR x < 0)",
    "(x = 1) = (f = 2)", "x - 1 - f > 0", "x - (1 - f) > 0", "x * (f + 1) > 0", "x * f + 1 > 0",
    "x / (f * 2) > 1", "x / f * 2 > 1", "NOT (x > 1 AND f > 2)", "NOT x > 1 AND f > 2", "x IN (1)",
    "x IN (1, 2)", "x IS NULL", "x IS NOT NULL",
]  # fmt: skip


def test_different_questions_stay_different() -> None:
    prints = [fingerprint(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}") for condition in CONDITIONS]
    assert len(set(prints)) == len(CONDITIONS)
