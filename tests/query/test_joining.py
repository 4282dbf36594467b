"""Outer joins: what is counted without noise is what DuckDB counts over rows that belong to somebody."""

from __future__ import annotations

import duckdb
import pytest

from incrowd.backends.statement import release_statement
from incrowd.query import Leaf
from tests.backends.houses import capped, check_leaf, cities, engine_of, furnish, plan_of, run, tables_from

KEPT = "v.user_id = s.user_id AND v.x > s.m"
VISITORS = "(SELECT user_id, MAX(x) AS x FROM visits GROUP BY user_id)"
WALKERS = "(SELECT user_id, MIN(m) AS m FROM steps GROUP BY user_id)"
SOURCES = (
    f"visits AS v RIGHT JOIN steps AS s ON {KEPT}",
    f"visits AS v FULL JOIN steps AS s ON {KEPT}",
    "visits AS v FULL JOIN steps AS s USING (user_id)",
    (
        "visits AS v JOIN visits AS w ON v.user_id = w.user_id RIGHT JOIN steps AS s ON w.user_id = "
        "s.user_id AND w.x > s.m"
    ),
    f"{VISITORS} AS v FULL JOIN {WALKERS} AS s ON {KEPT}",
    f"{VISITORS} AS v RIGHT JOIN {WALKERS} AS s ON {KEPT}",
    "cities AS s LEFT JOIN visits AS v ON v.city = s.city AND v.x > 3",
    "visits AS v FULL JOIN cities AS s ON v.city = s.city",
    "cities AS s FULL JOIN visits AS v ON v.city = s.city",
)


def count(leaf: Leaf) -> int:
    """The first count of a leaf without groups, before noise."""
    bounded, _ = capped(leaf, 21, 0)
    statement = release_statement(bounded)
    numbers = run(engine_of("user"), statement)
    (name, *_) = leaf.aggregates[0].measures
    return sum(
        int(sum(numbers.values.get((index, place), {}).values()) * 2.0 ** bounded.measures[name].exponent)
        for index, part in enumerate(statement.parts)
        for place, column in enumerate(part.columns)
        if column == name
    )


def check_count(sql: str, wild: bool = True) -> None:
    """The rows that belong to somebody are counted as in plain SQL, in several houses."""
    (leaf,) = plan_of(sql, "user", rows=1000, groups=1000).leaves
    for seed in range(8):
        tables = tables_from(seed, wild=wild)
        furnish(engine_of("user"), tables)
        with duckdb.connect(":memory:") as engine:
            for name, table in tables.items():
                engine.register(name, table.filter(table.column("user_id").is_valid()))
            engine.register("cities", cities())
            assert (count(leaf),) == engine.execute(sql).fetchone(), seed


@pytest.mark.parametrize("source", SOURCES)
def test_rows_that_belong_to_somebody_are_counted_as_in_plain_sql(source: str) -> None:
    counted = "v.x" if "cities" in source else "*"
    check_count(f"SELECT COUNT({counted}) AS n FROM {source}")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("asked", ["COUNT(*)", "s.m, SUM(v.x), COUNT(DISTINCT v.user_id)"])
def test_one_unit_moves_the_numbers_by_no_more_than_is_stated(source: str, asked: str) -> None:
    asked = asked.replace("s.m", "s.region") if "cities" in source else asked
    group = " GROUP BY 1" if "," in asked else ""
    (leaf,) = plan_of(f"SELECT {asked} FROM {source}{group}", "user").leaves
    for seed in range(3):
        check_leaf(leaf, "user", "add-remove", tables_from(seed, wild=True), 1, 1, most=4)


def test_one_row_per_unit_on_both_sides_may_become_two_in_a_full_join() -> None:
    needs_weights = [
        plan_of(f"SELECT COUNT(*) FROM {source}", "user").leaves[0].units for source in SOURCES[4:6]
    ]
    assert needs_weights == [("u0",), ()]


def test_public_keys_all_appear_whoever_matches() -> None:
    sql = (
        "SELECT c.city, COUNT(v.x) AS n FROM cities AS c LEFT JOIN visits AS v ON v.city = c.city GROUP BY 1"
    )
    (leaf,) = plan_of(sql, "user").leaves
    assert leaf.public
