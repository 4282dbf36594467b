"""DESCRIBE and the like: what is declared, as a table, for every way of writing them."""

from __future__ import annotations

import duckdb
import pytest

from incrowd.errors import QueryError
from incrowd.query import Description, description
from incrowd.query.ownership import World
from tests.backends.houses import catalog_of, engine_of, public_fields

WORLD = World(catalog_of("user"), public_fields(engine_of("user")))


def rows_of(said: Description | None) -> list[tuple[object, ...]]:
    assert said is not None
    with duckdb.connect() as engine:
        return engine.execute(said.query.sql("duckdb")).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE visits",
        "desc Visits;",
        'DESCRIBE main."visits"',
        "DESCRIBE TABLE visits -- all of it",
        "SHOW COLUMNS FROM visits",
    ],
)
def test_a_table_is_described_by_what_is_declared(sql: str) -> None:
    rows = rows_of(description(sql, WORLD))
    assert rows == rows_of(description("DESCRIBE visits", WORLD))
    table = catalog_of("user").tables["visits"]
    assert {row[0] for row in rows} == set(table.columns)
    assert [row[0] for row in rows if row[3] == "unit"] == [table.unit.column if table.unit else None]


def test_a_summary_has_the_declared_ends_and_nothing_of_the_rows() -> None:
    described = {row[0]: row for row in rows_of(description("DESCRIBE visits", WORLD))}
    for name, kind, low, high, *_ in rows_of(description("SUMMARIZE visits", WORLD)):
        assert (kind, low, high) == (described[name][1], *described[name][4:6])


def test_tables_are_listed_with_whom_they_protect() -> None:
    rows = rows_of(description("SHOW TABLES;", WORLD))
    assert [row[0] for row in rows] == list(WORLD.catalog.tables)
    assert {row[1] for row in rows} == {"private", "public"}
    assert all((row[2] is None) == (row[1] == "public") for row in rows)


def test_limit_0_has_columns_and_no_rows() -> None:
    said = description("SELECT * FROM visits LIMIT 0", WORLD)
    assert rows_of(said) == [] and said is not None
    assert list(said.columns) == list(WORLD.catalog.tables["visits"].columns)
    some = description("SELECT X, city FROM visits LIMIT 0", WORLD)
    assert some is not None and list(some.columns) == ["X", "city"] and rows_of(some) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visits",
        "SELECT * FROM visits LIMIT 1",
        "SELECT COUNT(*) FROM visits LIMIT 0",
        "SELECT * FROM visits WHERE x > 1 LIMIT 0",
        "SELECT * FROM visits, steps LIMIT 0",
        "DESCRIBE SELECT 1",
        "DESCRIBE visits visits",
        "SHOW",
        "DESCRIBE",
        "EXPLAIN SELECT 1",
        "",
        "'",
        None,
        b"SHOW TABLES",
    ],
)
def test_every_other_statement_is_no_such_question(sql: object) -> None:
    assert description(sql, WORLD) is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DESCRIBE visit", "There is no table visit in the catalog, perhaps you mean visits."),
        ("SELECT citi FROM visits LIMIT 0", "There is no column citi, perhaps you mean city."),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        description(sql, WORLD)
