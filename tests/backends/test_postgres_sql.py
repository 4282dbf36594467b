"""Statements in PostgreSQL's words: answered with any name, any constant and any pattern."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incrowd.backends.postgres import Postgres
from incrowd.catalog.loading import check
from incrowd.errors import QueryError
from incrowd.query import bound, parse
from tests import servers
from tests.backends.parsing import tree
from tests.backends.postgres_neighbours import check_neighbours, facts, hostile, visits


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with servers.postgres().database() as url:
        yield url


A = "a" * 70
LONG_NAMES = [
    f"SELECT COUNT(*) AS n FROM (SELECT person, x AS {A}1, x + 1 AS {A}2 FROM visits) WHERE {A}1 < {A}2",
    f"SELECT {A}2, COUNT(*) AS n FROM (SELECT person, note AS {A}1, grp AS {A}2 FROM visits) GROUP BY {A}2",
    f"SELECT COUNT(*) AS n FROM visits AS {A}1 JOIN visits AS {A}2 ON {A}1.person = {A}2.person",
    f"WITH {A}1 AS (SELECT * FROM visits), {A}2 AS (SELECT * FROM {A}1) SELECT COUNT(*) AS n FROM {A}2",
]
NULLS = [
    "SELECT COUNT_IF(NULL) AS n FROM visits",
    "SELECT COUNT(*) FILTER (WHERE NULL) AS n, SUM(x) FILTER (WHERE NULL) AS s FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE NULL",
    "SELECT SUM(CASE WHEN NULL THEN x ELSE 1 END) AS n FROM visits WHERE NOT (x = NULL) OR NULL IN (1, NULL)",
    "SELECT n, COUNT(*) FROM (SELECT person, COUNT_IF(NULL) AS n FROM visits GROUP BY person) GROUP BY n",
    "SELECT COUNT(*) AS n FROM (SELECT person FROM visits GROUP BY person HAVING NULL)",
]


@pytest.mark.parametrize("sql", [*LONG_NAMES, *NULLS])
def test_long_names_and_bare_nulls_are_answered(database: str, sql: str) -> None:
    visits(database, "text", "'ann'", "'bob'")
    check_neighbours(database, facts(database), [hostile("'eve'")], [sql])


def test_a_table_may_have_a_long_name(database: str) -> None:
    visits(database, "text", "'ann'")
    plain = facts(database).model_dump()
    plain["tables"] = {A + "1": plain["tables"]["visits"]}
    engine = Postgres(check(plain))
    assert engine.run(tree(f"SELECT COUNT(*) AS n FROM {A}1")).to_pylist() == [{"n": 5}]
    engine.close()


def test_a_pattern_that_only_matching_rows_run_deep_in_is_refused(database: str) -> None:
    """With 50,000 signs the server runs out of stack on a row that matches, and answers without it."""
    visits(database, "text", "'ann'", "'bob'")
    catalog, add = facts(database), [hostile("'eve'", "repeat('a', 200000)", 1)]
    check_neighbours(
        database, catalog, add, [f"SELECT COUNT(*) AS n FROM visits WHERE note LIKE '{'%a' * 100}'"]
    )
    for many in (101, 50_000):
        with pytest.raises(QueryError, match="at most 100"):
            bound(parse(f"SELECT COUNT(*) FROM visits WHERE note ILIKE '{'%a' * many}'"), catalog)


def test_constant_text_does_not_follow_the_servers_locale(database: str) -> None:
    visits(database, "text", "'ann'")
    engine = Postgres(facts(database))
    asked = "SELECT UPPER('i') AS u, 'a' < 'B' AS v, 'a' IN ('B', 'a') AS w, note < 'a' AS z FROM visits"
    told = engine.statement(tree(asked))
    assert "UPPER('i' COLLATE \"C\")" in told and "'a' COLLATE \"C\" < 'B' COLLATE \"C\"" in told
    assert "\"note\" < 'a' AS" in told
    engine.close()
