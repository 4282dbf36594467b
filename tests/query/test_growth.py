"""Short questions that stand for endless work are refused; long ones that do not are planned."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from incrowd.query.growth import LARGEST_EXPRESSION, weight_of
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
    branches = " ".join(f"WHEN v.x = {each} THEN {each}" for each in range(100))
    listed = ", ".join(str(each) for each in range(500))
    plan_of(
        f"SELECT SUM(CASE {branches} ELSE 0 END) FROM visits AS v WHERE v.x IN ({listed})", "user", rows=1
    )
    plan_of(through_sub_queries("ROUND({0} + 1, 2)", 2), "user", rows=1)


def test_an_aggregation_per_unit_ends_what_came_before_it() -> None:
    sql = "SELECT user_id, MAX(f) AS y FROM visits GROUP BY user_id"
    for place in range(12):
        sql = f"SELECT user_id, MAX(y + y) AS y FROM ({sql}) AS q{place} GROUP BY user_id"
    (leaf,) = plan_of(f"SELECT COUNT(*) FROM ({sql}) AS q WHERE y > 0", "user").leaves
    assert all(weight_of(each) < LARGEST_EXPRESSION for each in leaf.rows.expressions)
