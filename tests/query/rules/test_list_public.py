"""x IN (SELECT ...): a list of public values is a test of one row; other lists are refused."""

from __future__ import annotations

import duckdb
import pytest

from incrowd.errors import QueryError
from tests.backends.houses import cities, plan_of, tables_from


@pytest.mark.parametrize(
    "test",
    [
        "city IN (SELECT city FROM cities)",
        "city IN (SELECT city FROM cities WHERE size > 1)",
        "x IN (SELECT size FROM cities)",
        "x IN (SELECT size + 1 AS z FROM cities)",
        "x + 1 IN (SELECT size FROM cities)",
        (
            "city IN (SELECT city FROM cities WHERE city IN (SELECT c.city FROM cities AS c WHERE "
            "c.region = 'west'))"
        ),
        "f IN (SELECT size FROM cities)",
        "cat IN (SELECT MAX(size) AS m FROM cities GROUP BY region)",
    ],
)
def test_a_row_passes_if_its_value_is_in_the_list(test: str) -> None:
    (leaf,) = plan_of(f"SELECT COUNT(*) AS n FROM visits WHERE {test}", "user").leaves
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", tables_from(3, wild=False)["visits"])
        engine.register("cities", cities())
        ((expected,),) = engine.execute(f"SELECT COUNT(*) FROM visits WHERE {test}").fetchall()
        assert len(engine.execute(leaf.rows.sql("duckdb")).fetchall()) == expected


def test_null_in_the_list_makes_no_miss_unknown() -> None:
    (leaf,) = plan_of(
        (
            "SELECT COUNT(*) AS n FROM visits WHERE NOT city IN (SELECT city FROM cities WHERE size > 1 "
            "OR size IS NULL)"
        ),
        "user",
    ).leaves
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", tables_from(3, wild=False)["visits"])
        engine.register("cities", cities().slice(1))
        engine.execute(
            "CREATE TABLE expected AS SELECT COUNT(*) AS n FROM visits WHERE city NOT IN (SELECT "
            "city FROM cities WHERE city IS NOT NULL)"
        )
        assert engine.execute("SELECT n FROM expected").fetchone() == (
            len(engine.execute(leaf.rows.sql("duckdb")).fetchall()),
        )


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("city IN (SELECT city, region FROM cities)", "The sub-query of IN must give one column."),
        (
            "city IN (SELECT region FROM cities UNION SELECT city FROM cities)",
            "write it as one, or as several",
        ),
        (
            "city IN (SELECT size FROM cities)",
            "IN compares city, which is of type text, with cities.size, which is of type integer",
        ),
        (
            "city IN (SELECT c.city FROM cities AS c ORDER BY c.size LIMIT 2)",
            "LIMIT over private rows is not possible",
        ),
    ],
)
def test_a_list_that_is_not_public_or_not_one_column_is_refused(test: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(f"SELECT COUNT(*) AS n FROM visits WHERE {test}", "user")
    assert said in str(refusal.value)
