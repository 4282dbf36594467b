"""The whole way from a question to a plan: options, names of columns, and what stays above the leaves."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.catalog.loading import check
from incrowd.errors import QueryError
from incrowd.query import Contribution, Plan, Question, bound, parse
from incrowd.query.ownership import World
from incrowd.query.planner import _check_outer
from tests.backends.houses import catalog_of, engine_of, plan_of, public_fields

COUNT = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed={}, "
    "max_groups_contributed={}) city, COUNT(*) AS n, COUNT(DISTINCT user_id) AS u FROM visits GROUP BY city"
)


def plan_for(question: Question, contribution: Contribution | None = None) -> Plan:
    return bound(question, catalog_of("user"), public_fields(engine_of("user")), contribution)


def caps(plan: Plan) -> list[float | None]:
    return [measure.cap for measure in plan.leaves[0].measures.values()]


def test_what_the_caller_says_comes_before_the_clause_in_the_question() -> None:
    question = parse(COUNT.format(3, 4))
    assert caps(plan_for(question)) == [3, 4]
    assert caps(plan_for(question, Contribution(rows=5))) == [5, 4]
    assert caps(plan_for(question, Contribution(groups=6))) == [3, 6]
    assert plan_for(question).options == {"max_rows_contributed": 3.0, "max_groups_contributed": 4.0}


@settings(max_examples=25, deadline=None)
@given(st.one_of(st.integers(-5, 5), st.floats(), st.sampled_from([2**30 - 1, 2**30, 2**30 + 1, 0, 1])))
def test_a_contribution_is_a_whole_number_from_1_below_2_to_the_30(value: float) -> None:
    allowed = 1 <= value < 2**30 and float(value).is_integer()
    for name in ("rows", "groups"):
        if allowed:
            assert value in caps(plan_for(parse(COUNT.format(1, 1)), Contribution(**{name: value})))
        else:
            with pytest.raises(
                QueryError, match=f"The number of {name} that one unit contributes must be a whole number"
            ):
                plan_for(parse(COUNT.format(1, 1)), Contribution(**{name: value}))


def test_columns_have_names_and_no_two_the_same() -> None:
    assert plan_of(
        "SELECT city, COUNT(*), SUM(x), AVG(x) AS m FROM visits GROUP BY city", "user"
    ).columns == ("city", "count", "sum_x", "m")
    with pytest.raises(
        QueryError, match=r"Two columns of the answer are called n; give one of them another name with AS\."
    ):
        plan_of("SELECT COUNT(*) AS n, SUM(x) AS n FROM visits", "user")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT q.n FROM (SELECT COUNT(*) AS n FROM visits) AS q WHERE q.n IN (SELECT x FROM visits)",
            "This would show the rows of people; ask for an aggregate instead",
        ),
        (
            (
                "SELECT SUM(q.n, contribution_bounds_per_row => (0, 1)) AS z FROM (SELECT city, COUNT(*) "
                "AS n FROM visits GROUP BY city) AS q"
            ),
            "Contribution bounds must stand in the SELECT that aggregates private rows.",
        ),
    ],
)
def test_only_released_and_public_tables_are_read_above_the_leaves(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(sql, "user")
    assert said in str(refusal.value)
    assert plan_of(
        (
            "SELECT q.n, c.size FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS q JOIN "
            "cities AS c ON c.city = q.city"
        ),
        "user",
    ).leaves


def house_with(table: str) -> object:
    columns = {"id": {"type": "integer"}, "z": {"type": "integer"}}
    tables = {
        "t": {"source": "s", "unit": "id", "columns": columns},
        table: {"source": "s", "private": False, "columns": {"z": {"type": "integer"}}},
    }
    return check({"sources": {"s": {"frame": "s"}}, "tables": tables, "budget": {"epsilon": 1.0}})


@pytest.mark.parametrize(
    ("table", "refused"),
    [("released_0", True), ("RELEASED_0", True), ("released_x", False), ("released_", False)],
)
def test_a_table_of_the_owner_cannot_pass_for_released_numbers(table: str, refused: bool) -> None:
    sql = f"SELECT q.n FROM (SELECT COUNT(*) AS n FROM t) AS q JOIN {table} AS r ON r.z = q.n"
    if refused:
        with pytest.raises(
            QueryError,
            match=f"The table name {table} is reserved for released numbers; ask the owner to rename it",
        ):
            bound(parse(sql), house_with(table))  # type: ignore[arg-type]
    else:
        assert bound(parse(sql), house_with(table)).leaves  # type: ignore[arg-type]


def test_a_deep_question_is_refused_in_words() -> None:
    with pytest.raises(QueryError, match=r"deep|large"):
        plan_of("SELECT COUNT(*) FROM visits WHERE " + "NOT (" * 400 + "b" + ")" * 400, "user")


@pytest.mark.parametrize(
    "sql", ["SELECT x FROM visits", "SELECT x FROM nowhere", "SELECT 1 FROM released_0, visits"]
)
def test_private_and_unknown_tables_cannot_stand_beside_released_numbers(sql: str) -> None:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    with pytest.raises(QueryError, match="cannot be read beside released numbers"):
        _check_outer(sqlglot.parse_one(sql, read="duckdb"), world)  # type: ignore[arg-type]
    for fine in ("SELECT a0 FROM released_0", "SELECT size FROM cities, released_0"):
        _check_outer(sqlglot.parse_one(fine, read="duckdb"), world)  # type: ignore[arg-type]
