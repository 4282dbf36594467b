"""Sub-queries in expressions: the joins that take their place give what plain SQL gives, NULLs and all."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from incrowd.query import bound, parse
from incrowd.query.ownership import World
from incrowd.query.rules import RULES
from incrowd.query.rules.join_sub_queries import join_sub_queries
from incrowd.query.sql import DIALECT
from tests.backends.houses import catalog_of, cities, engine_of, plan_of, public_fields
from tests.sweep import sized

TESTS = (
    "v.user_id IN (SELECT user_id FROM steps WHERE m > 3)",
    "v.user_id NOT IN (SELECT s.user_id FROM steps AS s WHERE s.m > 3 OR s.w > 0.5)",
    "v.user_id = ANY (SELECT user_id FROM steps)",
    "v.user_id <> ALL (SELECT user_id FROM steps WHERE m = 0)",
    "EXISTS (SELECT 1 FROM steps AS s WHERE s.user_id = v.user_id)",
    "NOT EXISTS (SELECT * FROM steps AS s WHERE v.user_id = s.user_id AND s.m = v.x)",
    "EXISTS (SELECT 1 FROM steps AS s WHERE s.user_id = v.user_id AND s.day > v.day ORDER BY s.m LIMIT 1)",
    "NOT EXISTS (SELECT 1 FROM steps AS s WHERE s.user_id = v.user_id AND (s.m > v.x OR v.f IS NULL))",
    "EXISTS (SELECT s.day FROM steps AS s WHERE s.user_id = v.user_id GROUP BY s.day HAVING COUNT(*) > 1)",
    "EXISTS (SELECT 1 FROM steps AS s WHERE s.user_id = v.user_id HAVING COUNT(*) < 2)",
    "EXISTS (SELECT COUNT(*) FROM steps AS s WHERE s.user_id = v.user_id)",
    "v.user_id IN (SELECT user_id FROM visits GROUP BY user_id HAVING COUNT(*) >= 3)",
    "v.user_id NOT IN (SELECT user_id FROM steps GROUP BY ALL)",
    "(v.user_id, v.x) IN (SELECT user_id, m FROM steps)",
    "(v.user_id, v.x) NOT IN (SELECT user_id, m FROM steps)",
    "(v.user_id, v.x, v.day) NOT IN (SELECT user_id, m, day FROM steps)",
    "v.x IN (SELECT m FROM steps AS s WHERE s.user_id = v.user_id)",
    "v.x NOT IN (SELECT m FROM steps AS s WHERE s.user_id = v.user_id)",
    "v.x NOT IN (SELECT m FROM steps AS s WHERE s.user_id = v.user_id AND s.day < v.day)",
    "v.x NOT IN (SELECT MAX(m) FROM steps AS s WHERE s.user_id = v.user_id GROUP BY s.day)",
    "v.x IN (SELECT MAX(m) FROM steps AS s WHERE s.user_id = v.user_id)",
    "v.x > (SELECT MAX(m) FROM steps AS s WHERE s.user_id = v.user_id)",
    "(SELECT COUNT(*) FROM steps AS s WHERE s.user_id = v.user_id) = 0",
    "(SELECT COUNT(m) + 1 FROM steps AS s WHERE s.user_id = v.user_id AND s.day <= v.day) = v.x",
    "(SELECT SUM(m) + COUNT(*) FROM steps AS s WHERE s.user_id = v.user_id HAVING COUNT(*) < 3) > 4",
    "(SELECT COUNT(*) FILTER (WHERE m > 0) FROM steps AS s WHERE s.user_id = v.user_id) = 1",
    (
        "v.user_id IN (SELECT s.user_id FROM steps AS s WHERE s.m > (SELECT MIN(x) FROM visits AS w WHERE "
        "w.user_id = s.user_id))"
    ),
    "EXISTS (SELECT 1 FROM visits AS w WHERE w.user_id = v.user_id AND w.day < v.day AND w.city <> v.city)",
    "EXISTS (SELECT 1 FROM cities AS c WHERE c.city = v.city AND c.size > 2)",
    "NOT EXISTS (SELECT 1 FROM cities AS c WHERE c.city = v.city AND c.size > v.x)",
    "v.x IN (SELECT size FROM cities AS c WHERE c.city = v.city)",
    "v.x > (SELECT MIN(size) FROM cities)",
    "v.x > (SELECT size FROM cities WHERE region = 'north')",
    "(SELECT MAX(region) FROM cities AS c WHERE c.city = v.city) = 'west'",
    "EXISTS (SELECT 1 FROM cities WHERE size > 3)",
    "CASE WHEN v.user_id IN (SELECT user_id FROM steps) THEN v.x > 3 ELSE v.b END",
    (
        "(v.x > 3 OR v.user_id IN (SELECT user_id FROM steps)) AND NOT v.x IN (SELECT m FROM steps AS s "
        "WHERE s.user_id = v.user_id)"
    ),
)
QUESTIONS = (
    "SELECT COUNT(*) AS n, SUM(v.x) AS s FROM visits AS v WHERE {}",
    "SELECT w.test, COUNT(*) AS n FROM (SELECT user_id, {} AS test FROM visits AS v) AS w GROUP BY 1",
    "SELECT COUNT(*) FILTER (WHERE {}) AS n FROM (SELECT user_id, x, f, b, day, city FROM visits) AS v",
    "SELECT {} AS test, COUNT(*) AS n FROM visits AS v GROUP BY 1",
    "SELECT COUNT(*) AS n, COUNT(c.size) AS s FROM visits AS v JOIN cities AS c ON v.city = c.city WHERE {}",
)


def column(rng: random.Random, values: list[Any], rows: int) -> list[Any]:
    return [rng.choice(values) for _ in range(rows)]


def house(seed: int) -> dict[str, pa.Table]:
    """Skewed tables with NULLs in every column but the unit's."""
    rng = random.Random(seed)
    many, other = rng.choice([0, 2, 12]), rng.choice([0, 1, 8])
    units = [1] * rng.choice([1, 5]) + [2, 3]
    visits = {
        "user_id": column(rng, units, many),
        "day": column(rng, [5, 7, 8, None], many),
        "x": column(rng, [0, 3, 4, 9, None], many),
        "f": column(rng, [0.5, 1.0, None], many),
        "b": column(rng, [True, False, None], many),
        "city": column(rng, ["bonn", "trier", "ulm", None], many),
    }
    steps = {
        "user_id": column(rng, [*units, 4], other),
        "day": column(rng, [5, 7, None], other),
        "m": column(rng, [0, 3, 9, None], other),
        "w": column(rng, [0.25, 1.0, None], other),
    }
    kinds = {"f": pa.float64(), "w": pa.float64(), "b": pa.bool_(), "city": pa.string()}
    tables = {
        name: pa.table({key: pa.array(rows, kinds.get(key, pa.int64())) for key, rows in columns.items()})
        for name, columns in (("visits", visits), ("steps", steps))
    }
    return {**tables, "cities": cities()}


def before_and_after(sql: str) -> tuple[str, str]:
    """A question before and after the rule; those before it are applied to both."""
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = parse(sql).tree
    for rule in RULES[: RULES.index(join_sub_queries)]:
        tree = rule(tree, world)
    return tree.sql(DIALECT), join_sub_queries(tree.copy(), world).sql(DIALECT)


@pytest.mark.parametrize("test", TESTS)
def test_joins_give_what_the_sub_queries_gave(test: str) -> None:
    engine = duckdb.connect()
    # DuckDB itself does not know a sub-query inside a sub-query again in GROUP BY.
    shapes = [before_and_after(question.format(test)) for question in QUESTIONS[: 3 + ("AS w" not in test)]]
    for before, after in shapes:
        assert before != after, "nothing was rewritten"
    for seed in range(sized(8, 200)):
        for name, table in house(seed).items():
            engine.register(name, table)
        for before, after in shapes:
            told = [sorted(engine.execute(sql).fetchall(), key=repr) for sql in (before, after)]
            assert told[0] == told[1], (seed, after)


@pytest.mark.parametrize("test", TESTS)
def test_every_sub_query_is_planned(test: str) -> None:
    for question in QUESTIONS:
        (leaf,) = plan_of(question.format(test), "user").leaves
        assert leaf.units == ("u0",)


def test_a_value_that_has_two_rows_is_null_where_plain_sql_would_raise() -> None:
    _, after = before_and_after(
        "SELECT COUNT((SELECT m FROM steps AS s WHERE s.user_id = v.user_id)) AS n FROM visits AS v"
    )
    engine = duckdb.connect()
    engine.execute("CREATE TABLE visits AS SELECT UNNEST([1, 2, 3]) AS user_id, 0 AS x")
    engine.execute("CREATE TABLE steps AS SELECT UNNEST([1, 1, 2]) AS user_id, 7 AS m")
    assert engine.execute(after).fetchone() == (1,)


def test_a_sub_query_multiplies_no_rows_so_that_a_declared_number_of_rows_stays() -> None:
    joined = "SELECT COUNT(*) FROM visits AS v JOIN steps AS s ON s.user_id = v.user_id"
    tested = "SELECT COUNT(*) FROM visits AS v WHERE v.user_id IN (SELECT user_id FROM steps)"
    catalog = catalog_of("user")
    visits = catalog.tables["visits"].model_copy(update={"contribution": 4})
    tables = {**catalog.tables, "visits": visits}
    declared = catalog.model_copy(update={"tables": tables})
    caps = [
        bound(parse(sql), declared, public_fields(engine_of("user"))).leaves[0].measures["m0"].cap
        for sql in (joined, tested)
    ]
    assert caps == [None, 4.0]
