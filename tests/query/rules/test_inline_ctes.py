"""WITH is put in place: the tree without it means the same, by DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules.inline_ctes import MOST_NODES, inline_ctes
from tests.backends.houses import catalog_of

WORLD = World(catalog_of("user"), {})


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT x FROM visits) SELECT x FROM a",
        (
            "WITH a AS (SELECT x FROM visits), b AS (SELECT x + 1 AS x FROM a) SELECT SUM(b.x) FROM b "
            "JOIN a ON a.x = b.x"
        ),
        "WITH A AS (SELECT x FROM visits) SELECT a.x FROM a",
        "SELECT x FROM (WITH a AS (SELECT x FROM visits) SELECT x FROM a) AS q",
        "WITH a AS (SELECT 1 AS x) SELECT x FROM (WITH a AS (SELECT x FROM visits) SELECT x FROM a) AS q",
        "WITH steps AS (SELECT x FROM visits) SELECT COUNT(*) FROM steps",
        "WITH a AS (SELECT x FROM visits) SELECT z.x FROM a AS z WHERE z.x > 2",
        "WITH a AS (WITH b AS (SELECT x FROM visits) SELECT x FROM b) SELECT x FROM a",
        "WITH a AS (SELECT x FROM visits) SELECT x FROM a UNION ALL SELECT x FROM steps",
        "WITH a AS MATERIALIZED (SELECT x FROM visits) SELECT x FROM a",
        "WITH visits AS (SELECT x FROM steps) SELECT x FROM visits",
    ],
)
def test_the_tree_without_with_means_the_same(sql: str) -> None:
    tree = inline_ctes(parse(sql).tree, WORLD)
    assert "WITH " not in tree.sql("duckdb").upper()
    with duckdb.connect(":memory:") as engine:
        for part in (
            "visits AS SELECT i AS x, i % 3 AS y FROM RANGE(9) AS r(i)",
            "steps AS SELECT i AS x FROM RANGE(4) AS r(i)",
        ):
            engine.execute(f"CREATE TABLE {part}")
        assert sorted(engine.execute(tree.sql("duckdb")).fetchall()) == sorted(engine.execute(sql).fetchall())


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "WITH RECURSIVE a AS (SELECT 1 AS x) SELECT x FROM a",
            "WITH RECURSIVE is not possible; write the steps out as sub-queries.",
        ),
        (
            "WITH a(z) AS (SELECT x FROM visits) SELECT z FROM a",
            "Name the columns of a inside its SELECT, with AS.",
        ),
        (
            "WITH a AS (SELECT 1 AS x), A AS (SELECT 2 AS x) SELECT x FROM a",
            "Two parts of WITH are called A; rename one.",
        ),
        (
            "WITH a AS (SELECT x FROM visits) SELECT x FROM a TABLESAMPLE 5%",
            "a is used with a modifier that is not possible here; leave it out.",
        ),
        (
            "WITH a AS (SELECT x FROM visits) SELECT z FROM a AS b(z)",
            "Name the columns of b inside its SELECT, with AS.",
        ),
    ],
)
def test_what_has_no_place_to_go_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        inline_ctes(parse(sql).tree, WORLD)
    assert str(refusal.value) == said


def test_names_that_the_rule_holds_apart_are_two_names() -> None:
    tree = inline_ctes(
        parse(
            'WITH "straße" AS (SELECT 1 AS x), "strasse" AS (SELECT 2 AS x) SELECT s.x FROM "STRASSE" AS s'
        ).tree,
        WORLD,
    )
    assert "2 AS x" in tree.sql() and "1 AS x" not in tree.sql()


def test_a_question_grows_to_the_limit_and_no_further() -> None:
    def doubled(times: int) -> str:
        parts = ["a0 AS (SELECT x FROM visits)"] + [
            f"a{i} AS (SELECT l.x FROM a{i - 1} AS l JOIN a{i - 1} AS r ON l.x = r.x)"
            for i in range(1, times)
        ]
        return f"WITH {', '.join(parts)} SELECT COUNT(*) FROM a{times - 1}"

    small = inline_ctes(parse(doubled(6)).tree, WORLD)
    assert sum(1 for _ in small.walk()) <= MOST_NODES
    with pytest.raises(QueryError, match=r"The question is too large; ask it in smaller parts\."):
        inline_ctes(parse(doubled(14)).tree, WORLD)
