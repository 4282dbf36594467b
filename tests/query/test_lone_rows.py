"""The note about public rows that match nobody: said where rows are counted, and nowhere else."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.backends import release_statement
from incrowd.curator.request import Request
from incrowd.query import parse
from incrowd.query.lone_rows import lone_rows
from incrowd.query.ownership import World
from incrowd.query.rules import rewrite
from tests.backends.houses import catalog_of, engine_of, public_fields

NOTE = (
    "Rows of {} that match nobody's rows are about nobody and are not counted: COUNT(*) is about 0 there, "
    "where plain SQL says 1."
)


def noted(sql: str) -> tuple[str, ...]:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    return lone_rows(rewrite(parse(sql).tree, world), world)


@pytest.mark.parametrize(
    "joined",
    [
        "cities AS c LEFT JOIN visits AS v ON c.city = v.city",
        "visits AS v RIGHT JOIN cities AS c ON c.city = v.city",
        "cities AS c FULL JOIN visits AS v ON c.city = v.city",
        "visits AS v FULL JOIN cities AS c ON c.city = v.city",
    ],
)
@pytest.mark.parametrize("count", ["COUNT(*)", "COUNT(1)"])
def test_public_rows_kept_without_a_match_are_noted_where_rows_are_counted(joined: str, count: str) -> None:
    assert noted(f"SELECT c.region, {count} AS n FROM {joined} GROUP BY c.region") == (NOTE.format("c"),)


def test_a_table_without_an_alias_is_called_by_its_own_name() -> None:
    sql = "SELECT COUNT(*) AS n FROM cities LEFT JOIN visits ON cities.city = visits.city"
    assert noted(sql) == (NOTE.format("cities"),)


@pytest.mark.parametrize(
    "joined",
    [
        "cities AS c JOIN visits AS v ON c.city = v.city",
        "visits AS v LEFT JOIN cities AS c ON c.city = v.city",
        "cities AS c RIGHT JOIN visits AS v ON c.city = v.city",
        "visits AS v FULL JOIN steps AS c ON c.user_id = v.user_id",
        "cities AS c LEFT JOIN cities AS v ON c.city = v.city",
    ],
)
def test_joins_that_keep_no_public_row_beside_private_ones_are_not_noted(joined: str) -> None:
    assert noted(f"SELECT COUNT(*) AS n FROM {joined}") == ()


@pytest.mark.parametrize("aggregate", ["COUNT(v.x)", "SUM(v.x)", "COUNT(DISTINCT v.user_id)"])
def test_aggregates_of_a_private_column_are_not_noted(aggregate: str) -> None:
    """They skip NULL, so plain SQL adds nothing for a public row without a match either."""
    assert noted(f"SELECT {aggregate} AS n FROM cities AS c LEFT JOIN visits AS v ON c.city = v.city") == ()


def test_each_public_item_before_the_private_one_is_named_once() -> None:
    half = (
        "SELECT COUNT(*) AS n FROM cities AS c JOIN cities AS e ON c.region = e.region "
        "LEFT JOIN visits AS v ON c.city = v.city"
    )
    assert noted(half) == (NOTE.format("c"), NOTE.format("e"))
    assert noted(f"{half} UNION ALL {half}") == noted(half)


def test_a_join_of_released_numbers_is_not_noted() -> None:
    """The private table below is aggregated already: the rows outside are numbers, not people's rows."""
    released = "SELECT city, COUNT(*) AS m FROM visits GROUP BY city"
    sql = f"SELECT COUNT(*) AS n FROM cities AS c LEFT JOIN ({released}) AS r ON c.city = r.city"
    assert noted(sql) == ()


def test_the_note_says_what_is_counted() -> None:
    """Of three public rows one has no match: plain SQL counts it once, the release not at all."""
    t, c = pa.table({"id": [1, 2, 3], "k": ["a", "a", "b"]}), pa.table({"k": ["a", "b", "nowhere"]})
    sql = "SELECT COUNT(*) AS n FROM c LEFT JOIN t ON c.k = t.k"
    with duckdb.connect() as engine:
        assert engine.execute(sql).fetchall() == [(4,)]
    curator = Curator.from_tables(t=t, c=c, public=["c"], unit="id", budget=(1.0, 0.0))
    (leaf,) = curator.prepare(Request(sql, contribution=1)).plan.leaves
    counted = curator._backend.run(release_statement(leaf).tree).to_pylist()
    assert sum(row["n0"] for row in counted) == 3 * leaf.measures["m0"].sensitivity_steps
