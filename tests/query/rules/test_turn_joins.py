"""Joins in other words: the turned tree gives what DuckDB gives for the question as it was."""

from __future__ import annotations

import duckdb
import pytest

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules import RULES
from incrowd.query.rules.turn_joins import turn_joins
from incrowd.query.sql import DIALECT
from tests.backends.houses import catalog_of, cities, engine_of, plan_of, public_fields, tables_from


def turned(sql: str) -> str:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = parse(sql).tree
    for rule in RULES[: RULES.index(turn_joins) + 1]:
        tree = rule(tree, world)
    return tree.sql(DIALECT).replace('"', "")


SAME = {
    "FROM visits v, steps s WHERE v.user_id = s.user_id AND v.x > s.m": "ON v.user_id = s.user_id WHERE v.x",
    "FROM visits v CROSS JOIN steps s WHERE s.user_id = v.user_id": "JOIN steps AS s ON s.user_id",
    "FROM cities c, visits v, steps s WHERE c.city = v.city AND s.user_id = v.user_id": "JOIN visits AS v ON",
    "FROM (visits v JOIN cities c ON v.city = c.city) JOIN steps s USING (user_id)": "FROM visits AS v JOIN",
    "FROM ((visits v JOIN steps s USING (user_id)))": "FROM visits AS v JOIN",
    (
        "FROM visits v JOIN (steps s JOIN cities c ON c.size = s.m) ON v.user_id = s.user_id"
    ): "JOIN steps AS s ON v.user_id = s.user_id JOIN cities AS c ON c.size = s.m",
    "FROM visits v RIGHT JOIN steps s ON v.user_id = s.user_id": "FROM steps AS s LEFT JOIN visits AS v",
    "FROM visits RIGHT JOIN steps USING (user_id) WHERE user_id > 1": "WHERE steps.user_id > 1",
    "FROM visits LEFT JOIN steps USING (user_id) WHERE user_id > 1": "WHERE visits.user_id > 1",
    (
        "FROM visits FULL JOIN steps USING (user_id) WHERE user_id > 1"
    ): "WHERE COALESCE(visits.user_id, steps.user_id) > 1",
    (
        "FROM visits v, steps s FULL JOIN cities c ON c.size = s.m WHERE v.user_id = s.user_id"
    ): "WHERE v.user_id = s.user_id",
}


@pytest.mark.parametrize(("source", "there"), SAME.items())
def test_turned_joins_have_the_same_rows(source: str, there: str) -> None:
    sql = f"SELECT COUNT(*) AS n, SUM(x) AS s {source}"
    after = turned(sql)
    assert there in after
    for seed in range(6):
        with duckdb.connect(":memory:") as engine:
            for name, table in {**tables_from(seed, wild=True), "cities": cities()}.items():
                engine.register(name, table)
            assert engine.execute(after).fetchall() == engine.execute(sql).fetchall(), (seed, after)


def test_the_coalesce_of_another_select_stays() -> None:
    inner = "(SELECT COALESCE(a.user_id, b.user_id) AS u FROM visits a FULL JOIN steps b USING (user_id))"
    sql = f"SELECT COUNT(*) FROM visits a LEFT JOIN steps b USING (user_id) WHERE a.x IN {inner}"
    assert "COALESCE(a.user_id, b.user_id)" in turned(sql)


def test_outer_joins_in_parentheses_are_refused_with_what_to_write() -> None:
    sql = "SELECT COUNT(*) FROM visits v LEFT JOIN (steps s JOIN cities c ON c.size = s.m) ON {}.user_id = {}"
    with pytest.raises(QueryError, match="write the others as a sub-query"):
        plan_of(sql.format("v", "s.user_id"), "user")
    remedy = sql.replace("(steps", "(SELECT s.user_id FROM steps").replace("s.m)", "s.m) AS q")
    assert plan_of(remedy.format("v", "q.user_id"), "user").leaves


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("cities AS c LEFT JOIN visits AS v ON v.city = c.city", True),
        ("visits AS v RIGHT JOIN cities AS c ON v.city = c.city", True),
        ("visits AS v FULL JOIN cities AS c ON v.city = c.city", True),
        ("cities AS c FULL JOIN visits AS v ON v.city = c.city", True),
        ("cities AS c JOIN visits AS v ON v.city = c.city", False),
        ("cities AS c RIGHT JOIN visits AS v ON v.city = c.city", False),
        ("visits AS v LEFT JOIN cities AS c ON v.city = c.city", False),
        ("visits AS v RIGHT JOIN steps AS c ON v.user_id = c.user_id", False),
    ],
)
def test_a_note_says_that_public_rows_without_a_match_are_not_counted(source: str, said: bool) -> None:
    notes = [plan_of(f"SELECT COUNT({what}) AS n FROM {source}", "user").notes for what in ("*", "v.x")]
    assert bool(notes[0]) is said and not notes[1]
    assert not said or notes[0][0].startswith("Rows of c that match nobody's rows are about nobody")
