"""A PostgreSQL database with and without one unit: the same success, the same columns, and no number that
moves further than its sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from incrowd.backends import release_statement
from incrowd.backends.postgres import Postgres
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.query import Contribution, bound, parse
from tests.backends.houses import check_sensitivity, run

QUESTIONS = (
    "SELECT grp, COUNT(*) AS n FROM visits GROUP BY grp",
    "SELECT COUNT(DISTINCT person) AS n FROM visits",
    "SELECT grp, SUM(x) AS s, COUNT(DISTINCT person) AS n FROM visits GROUP BY grp",
    "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
    "SELECT COUNT(*) AS n FROM visits WHERE note = 'flu' OR UPPER(note) LIKE 'FL%' OR TRIM(note) = 'a'",
    "SELECT k, COUNT(*) AS n FROM (SELECT person, MAX(note) AS k FROM visits GROUP BY person) GROUP BY k",
)


def facts(url: str, person: str = "text", table: str = "visits", **columns: Mapping[str, Any]) -> Catalog:
    """A table of visits with some columns declared otherwise."""
    declared = {
        "person": {"type": person},
        "grp": {"type": "text", "domain": ["a", "b"]},
        "x": {"type": "integer", "bounds": [0, 10]},
        "note": {"type": "text"},
        **columns,
    }
    return check(
        {
            "sources": {"db": {"url": url}},
            "tables": {"visits": {"table": f"public.{table}", "unit": "person", "columns": declared}},
            "budget": {"epsilon": 10.0, "delta": 1e-3},
        }
    )


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as owner:
        for statement in statements:
            owner.execute(statement.encode())


def visits(url: str, person: str, *people: str, note: str = "text", x: str = "integer") -> None:
    """A new table in which each person has five rows of group a."""
    kind = "SELECT relkind FROM pg_class WHERE oid = to_regclass('public.visits')"
    with psycopg.connect(url) as owner:
        row = owner.execute(kind.encode()).fetchone()
    execute(url, "DROP VIEW visits" if row == ("v",) else "DROP TABLE IF EXISTS visits CASCADE")
    execute(url, "DROP TABLE IF EXISTS later CASCADE")
    execute(url, f"CREATE TABLE visits (person {person}, grp text, x {x}, note {note})")
    for name in people:
        execute(url, f"INSERT INTO visits SELECT {name}, 'a', 1, 'flu' FROM generate_series(1, 5)")


def hostile(person: str, note: str = "'flu'", rows: int = 500) -> str:
    """One more unit, with so many rows of group b that whoever is taken for the same unit vanishes from a."""
    return f"INSERT INTO visits SELECT {person}, 'b', 2, {note} FROM generate_series(1, {rows})"


def check_neighbours(
    url: str, catalog: Catalog, add: Iterable[str], questions: Iterable[str] = QUESTIONS, rows: float = 1.0
) -> None:
    """Ask before and after the statements `add`, which put one unit in; open the database each time."""
    runs = []
    for statements in ((), tuple(add)):
        execute(url, *statements)
        engine = Postgres(catalog)
        results = []
        for sql in questions:
            (leaf,) = bound(parse(sql), catalog, None, Contribution(rows=rows, groups=1.0)).leaves
            results.append((leaf, run(engine, release_statement(leaf))))
        engine.close()
        runs.append(results)
    for (leaf, before), (_, after) in zip(*runs, strict=True):
        check_sensitivity(leaf, {}, before, after)
