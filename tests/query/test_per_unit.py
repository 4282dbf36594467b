"""Aggregation inside one unit: what stands in GROUP BY."""

from __future__ import annotations

import math
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd import Curator
from incrowd.backends import release_statement
from incrowd.backends.trees import text_of
from incrowd.curator.request import Request
from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.measure import MOST_BOUND
from incrowd.query.ownership import Relation, World, select_rows
from incrowd.query.per_unit import check_bounds, clamped, group_keys
from incrowd.query.rules import rewrite
from incrowd.query.typed import Typed
from tests.backends.houses import catalog_of, engine_of, public_fields, tables_from

CONSTANTS = [
    *("ROUND(1e300)", "FLOOR(1e300)", "CEIL(1e19)", "ABS(9223372036854775807)", "TRUNC(-1e308)", "1e300"),
    *("CAST('x' AS INTEGER)", "1 / 0", "LN(0)", "NULL", "CAST('9999-99-99' AS DATE)", "7", "'a'", "TRUE"),
    *("9223372036854775807", "-9223372036854775807 - 9", "POWER(1e70, 4)", "EXP(700)", "1 = 1"),
]


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize(
    "inner", ["SELECT DISTINCT id, {} AS c FROM t {}", "SELECT id, {} AS c FROM t {} GROUP BY id, c"]
)
def test_a_constant_key_answers_whether_or_not_a_row_passes(constant: str, inner: str) -> None:
    """A key whose type no constant fits would raise as soon as one row came by: an exact oracle."""
    table = pa.table({"id": ["ann", "bob"], "disease": ["hiv", "flu"]})
    curator = Curator.from_tables(t=table, unit="id", budget=(1.0, 0.0))
    for who in ("ann", "bob"):
        sql = f"SELECT COUNT(*) AS n FROM ({inner})".format(
            constant, f"WHERE id = '{who}' AND disease = 'hiv'"
        )
        plan = curator.prepare(Request(sql, contribution=1)).plan
        (leaf,) = plan.leaves
        rows = curator._backend.run(release_statement(leaf).tree).to_pylist()
        assert sum(row["n0"] or 0 for row in rows) == leaf.measures["m0"].sensitivity_steps * (who == "ann")


def test_public_rows_are_grouped_by_a_constant_alone() -> None:
    people = pa.table({"id": [1, 2], "k": [1.0, 2.0]})
    curator = Curator.from_tables(
        t=people, c=pa.table({"n": [1, 2, 3]}), public=["c"], unit="id", budget=(1.0, 0.0)
    )
    counted = "SELECT ROUND(1e300) AS r, COUNT(*) AS m FROM c GROUP BY r"
    sql = f"SELECT COUNT(*) AS n FROM t JOIN ({counted}) AS p ON t.k < p.m"
    plan = curator.prepare(Request(sql, contribution=1)).plan
    (leaf,) = plan.leaves
    rows = curator._backend.run(release_statement(leaf).tree).to_pylist()
    assert sum(row["n0"] for row in rows) == 2 * leaf.measures["m0"].sensitivity_steps


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT_IF(NULL) AS n FROM t", "SELECT COUNT(*) FILTER (WHERE NULL) AS n FROM t",
     "SELECT SUM(CASE WHEN NULL THEN 1 ELSE 0 END) AS n FROM t"],
)  # fmt: skip
def test_a_bare_null_is_a_condition_that_holds_nowhere(sql: str) -> None:
    curator = Curator.from_tables(t=pa.table({"id": [1, 2]}), unit="id", budget=(1.0, 0.0))
    (leaf,) = curator.prepare(Request(sql, contribution=1)).plan.leaves
    tree = release_statement(leaf).tree
    assert "WHEN NULL" not in text_of(tree)
    assert sum(row["n0"] or 0 for row in curator._backend.run(tree).to_pylist()) == 0


@pytest.mark.parametrize("words", ["NOT LIKE 'f%'", "NOT ILIKE 'F%'", "!~~ 'f%'"])
def test_not_like_is_the_opposite_of_like(words: str) -> None:
    table = pa.table({"id": [1, 2, 3], "s": ["flu", "cold", "fever"]})
    curator = Curator.from_tables(t=table, unit="id", budget=(1.0, 0.0))
    (leaf,) = curator.prepare(
        Request(f"SELECT COUNT(*) AS n FROM t WHERE s {words}", contribution=1)
    ).plan.leaves
    rows = curator._backend.run(release_statement(leaf).tree).to_pylist()
    assert sum(row["n0"] for row in rows) == leaf.measures["m0"].sensitivity_steps


def per_unit(aggregate: str, seed: int, wild: bool = False) -> tuple[list[Any], list[Any]]:
    """An aggregate for each unit: as it is planned, and as DuckDB computes the same SQL."""
    sql = f"SELECT user_id, {aggregate} AS z FROM visits GROUP BY user_id"
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = rewrite(parse(sql).tree, world)
    assert isinstance(tree, exp.Select)
    planned = select_rows(tree, world).sql.sql("duckdb")
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", tables_from(seed, wild)["visits"])
        return [
            [
                row[1]
                for row in sorted(engine.execute(text).fetchall(), key=lambda row: (row[0] is None, row[0]))
            ]
            for text in (planned, re.sub(r", contribution_bounds_per_row => \([^)]*\)", "", sql))
        ]  # type: ignore[return-value]


@pytest.mark.parametrize(
    "aggregate",
    [
        "COUNT(*)",
        "COUNT(x)",
        "COUNT(DISTINCT cat)",
        "COUNT_IF(x > 2)",
        "SUM(x)",
        "AVG(x)",
        "SUM(f)",
        "AVG(f)",
        "MIN(x)",
        "MAX(x)",
        "MIN(f)",
        "MAX(grp)",
        "MIN(b)",
        "MAX(b)",
        "MIN(d)",
        "MAX(ts)",
        "SUM(x) FILTER (WHERE b)",
        "COUNT(*) FILTER (WHERE x > 0)",
        "MAX(x) - MIN(x)",
        "COUNT(*) + user_id",
        "SUM(x * 2)",
        "COUNT(DISTINCT x) FILTER (WHERE b)",
        "AVG(f) FILTER (WHERE b)",
        "SUM(x, contribution_bounds_per_row => (-5, 20))",
        "CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END",
    ],
)
@pytest.mark.parametrize("seed", [3, 7])
def test_an_aggregate_of_one_unit_is_exact(aggregate: str, seed: int) -> None:
    planned, plain = per_unit(aggregate, seed)
    assert len(planned) == len(plain)
    for one, two in zip(planned, plain, strict=True):
        assert one == two or math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)


def fields_of(sql: str, mode: str = "user") -> Relation:
    world = World(catalog_of(mode), public_fields(engine_of(mode)))
    tree = rewrite(parse(sql).tree, world)
    assert isinstance(tree, exp.Select)
    return select_rows(tree, world)


def test_facts_of_aggregates_are_those_of_any_number_of_rows() -> None:
    fields = fields_of(
        "SELECT user_id, COUNT(*) AS n, COUNT_IF(b) AS i, SUM(x) AS s, AVG(x) AS a, MIN(x) AS l, "
        "MAX(cat) AS h, MAX(b) AS t FROM visits GROUP BY 1"
    ).fields
    facts = {name: (field.kind, field.low, field.high, field.nullable) for name, field in fields.items()}
    assert facts["n"] == facts["i"] == ("integer", 0, None, False)
    assert facts["s"] == ("integer", None, None, True) and facts["a"] == ("float", -5, 20, True)
    assert facts["l"] == ("integer", -5, 20, True) and facts["h"][3] is True and fields["h"].values is None
    assert facts["t"] == ("boolean", None, None, True) and all(field.weight == 1 for field in fields.values())


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
            (
                "A sub-query that aggregates private rows must group by the protected unit; to aggregate "
                "over people, do it in the outermost SELECT."
            ),
        ),
        ("SELECT COUNT(*) AS n FROM visits", "must group by the protected unit"),
        (
            "SELECT DISTINCT user_id, COUNT(*) AS n FROM visits GROUP BY user_id",
            "DISTINCT together with aggregates is not possible here; use GROUP BY alone.",
        ),
        ("SELECT user_id, x FROM visits GROUP BY user_id", "x must be in GROUP BY or inside an aggregate."),
        (
            "SELECT user_id, SUM(user_id) AS s FROM visits GROUP BY 1",
            "SUM of user_id inside a sub-query needs bounds on its values",
        ),
        (
            "SELECT user_id, MEDIAN(x) AS m FROM visits GROUP BY 1",
            "is not possible inside a sub-query per unit; use COUNT, SUM, AVG, MIN or MAX there.",
        ),
        (
            "SELECT user_id, COUNT(DISTINCT x, f) AS m FROM visits GROUP BY 1",
            "COUNT(DISTINCT ...) takes one column here.",
        ),
        (
            "SELECT user_id, SUM(x, contribution_bounds_per_group => (0, 1)) AS s FROM visits GROUP BY 1",
            "Inside a sub-query per unit only SUM and AVG take bounds, and per row",
        ),
        (
            "SELECT user_id, MIN(x, contribution_bounds_per_row => (0, 1)) AS s FROM visits GROUP BY 1",
            "only SUM and AVG take bounds",
        ),
        ("SELECT user_id, COUNT(x, f) AS s FROM visits GROUP BY 1", "takes one column here."),
        ("SELECT user_id, SUM(t) AS s FROM visits GROUP BY 1", "SUM needs numbers, but t is of type text."),
        ("SELECT user_id FROM visits GROUP BY user_id HAVING COUNT(*)", "HAVING needs a condition"),
        (
            "SELECT user_id, SUM(f, contribution_bounds_per_row => (0, 1e61)) AS s FROM visits GROUP BY 1",
            "The bounds of f are too wide for SUM; narrow them.",
        ),
    ],
)
def test_what_is_not_of_one_unit_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        fields_of(sql)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0, MOST_BOUND, ""),
        (0, MOST_BOUND * 2, "too wide"),
        (-MOST_BOUND * 2, 0, "too wide"),
        (0, 1 / MOST_BOUND, ""),
        (0, 0.5 / MOST_BOUND, "too close to zero"),
        (0, 0, ""),
    ],
)
def test_bounds_are_those_whose_squares_float64_holds(low: float, high: float, said: str) -> None:
    if said:
        with pytest.raises(QueryError, match=said):
            check_bounds(low, high, "x", "SUM")
    else:
        check_bounds(low, high, "x", "SUM")


@given(st.floats() | st.none(), st.floats(-9, 9), st.floats(-9, 9))
def test_a_clamped_value_is_inside_its_bounds_and_null_stays_null(
    value: float | None, one: float, two: float
) -> None:
    low, high = min(one, two), max(one, two)
    sql = clamped(Typed(exp.column("x"), "float", low, high)).sql("duckdb")
    ((result,),) = duckdb.execute(f"SELECT {sql} FROM (SELECT ?::DOUBLE AS x)", [value]).fetchall()
    assert result is None if value is None or math.isnan(value) else result == min(max(value, low), high)


def test_keys_are_those_of_group_by_or_of_distinct() -> None:
    def keys(sql: str) -> list[str]:
        tree = parse(sql).tree
        assert isinstance(tree, exp.Select)
        return [key.sql() for key in group_keys(tree)]

    assert keys("SELECT a, COUNT(*) FROM t GROUP BY a, b") == ["a", "b"]
    assert keys("SELECT a, b AS c, COUNT(*) FROM t GROUP BY ALL") == ["a", "b"]
    assert keys("SELECT DISTINCT a, b + 1 AS c FROM t") == ["a", "b + 1"]
    assert (
        keys("SELECT COUNT(*) FROM t")
        == keys("SELECT DISTINCT COUNT(*) FROM t")
        == keys("SELECT a FROM t")
        == []
    )
