"""Short questions that stand for endless work are refused; long ones that do not are planned."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.growth import LARGEST_EXPRESSION, marked, refuse_growth, weight_of
from tests.backends.houses import plan_of


def nested(form: str, times: int) -> str:
    sql = "v.f"
    for _ in range(times):
        sql = form.format(sql)
    return f"SELECT COUNT(*) FROM visits AS v WHERE {sql} > 0"


def through_sub_queries(form: str, times: int) -> str:
    sql = "SELECT f AS y FROM visits"
    for place in range(times):
        sql = f"SELECT {form.format('y')} AS y FROM ({sql}) AS q{place}"
    return f"SELECT COUNT(*) FROM ({sql}) AS q WHERE y > 0"


@pytest.mark.parametrize(
    "sql",
    [nested("ROUND({0})", 12), through_sub_queries("{0} + {0}", 30), through_sub_queries("EXP({0})", 9)],
)
def test_an_expression_that_multiplies_itself_is_refused(sql: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        plan_of(sql, "user")


def test_long_lists_and_a_few_steps_are_planned() -> None:
    branches = " ".join(f"WHEN v.x = {number} THEN {number}" for number in range(100))
    listed = ", ".join(str(number) for number in range(500))
    plan_of(
        f"SELECT SUM(CASE {branches} ELSE 0 END) FROM visits AS v WHERE v.x IN ({listed})", "user", rows=1
    )
    plan_of(through_sub_queries("ROUND({0} + 1, 2)", 2), "user", rows=1)


def test_an_aggregation_per_unit_ends_what_came_before_it() -> None:
    sql = "SELECT user_id, MAX(f) AS y FROM visits GROUP BY user_id"
    for place in range(12):
        sql = f"SELECT user_id, MAX(y + y) AS y FROM ({sql}) AS q{place} GROUP BY user_id"
    (leaf,) = plan_of(f"SELECT COUNT(*) FROM ({sql}) AS q WHERE y > 0", "user").leaves
    assert all(weight_of(expression) < LARGEST_EXPRESSION for expression in leaf.rows.expressions)


@pytest.mark.parametrize(
    ("sql", "weight"),
    [
        ("x", 2),
        ("x + x", 5),
        ("ROUND(x)", 19),
        ("LOWER(x)", 11),
        ("UPPER(x)", 11),
        ("FLOOR(x)", 7),
        ("CEIL(x)", 7),
        ("TRUNC(x)", 7),
        ("TRY_CAST(x AS BIGINT)", 1 + 16 * 3),
        ("CAST(x AS BIGINT)", 4),
        ("x IN (SELECT y FROM t)", 4),
        ("ROUND(ROUND(x))", 1 + 9 * 19),
        ("1", 1),
    ],
)
def test_an_expression_weighs_its_parts_as_often_as_engines_write_them(sql: str, weight: int) -> None:
    assert weight_of(sqlglot.parse_one(sql, read="duckdb")) == weight


def test_the_limit_is_the_last_weight_that_is_planned() -> None:
    def wide(parts: int) -> exp.Expr:
        return exp.Coalesce(this=exp.column("x"), expressions=[exp.column("x")] * parts)

    most = (LARGEST_EXPRESSION - 3) // 2
    assert weight_of(wide(most)) in (LARGEST_EXPRESSION, LARGEST_EXPRESSION - 1)
    refuse_growth(wide(most), "it")
    with pytest.raises(
        QueryError, match=r"^it is too long or nested too deeply to be computed; write it in fewer steps, "
    ):
        refuse_growth(wide(most + 1), "it")


def test_a_column_that_stands_for_an_expression_weighs_as_much() -> None:
    column = marked(exp.column("y"), 500)
    assert weight_of(column) == 500 and weight_of(exp.Round(this=column)) == 1 + 9 * 500
    assert weight_of(column.copy()) == 500


@pytest.mark.parametrize("operator", ["*", "-", "/"])
def test_a_long_chain_is_refused_before_its_copies_are_made(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied on the way stays near the largest expression, however long the chain."""
    copied = 0
    deepcopy = exp.Expr.__deepcopy__

    def counted(node: exp.Expr, memo: object) -> exp.Expr:
        nonlocal copied
        copied += 1
        return deepcopy(node, memo)

    monkeypatch.setattr(exp.Expr, "__deepcopy__", counted)
    with pytest.raises(QueryError, match="nested too deeply"):
        plan_of(f"SELECT COUNT(*) FROM visits AS v WHERE {operator.join(['v.f'] * 100)} > 0", "user")
    assert copied < 5_000


@pytest.mark.parametrize(("operator", "operands"), [("*", 12), ("+", 30), (" > 0 OR ", 100)])
def test_a_chain_of_moderate_length_is_planned(operator: str, operands: int) -> None:
    plan_of(f"SELECT COUNT(*) FROM visits AS v WHERE {operator.join(['v.f'] * operands)} > 0", "user")
