"""Schemas in front of tables: with or without one, a question is the same question."""

from __future__ import annotations

import pytest

from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules import rewrite
from tests.backends.houses import catalog_of, engine_of, public_fields

WORLD = World(catalog_of("user"), public_fields(engine_of("user")))


@pytest.mark.parametrize(
    ("qualified", "plain"),
    [
        ('SELECT COUNT(*) FROM "MAIN"."Visits"', "SELECT COUNT(*) FROM visits"),
        (
            "SELECT visits.visits.city, COUNT(*) FROM visits.visits GROUP BY visits.visits.city",
            "SELECT city, COUNT(*) FROM visits GROUP BY city",
        ),
        # The part of WITH is another table than the one under a schema, which it hides.
        (
            "WITH visits AS (SELECT x FROM main.visits) SELECT COUNT(*) FROM visits",
            "SELECT COUNT(*) FROM (SELECT x FROM visits) AS visits",
        ),
    ],
)
def test_a_question_under_a_schema_is_the_question_without_it(qualified: str, plain: str) -> None:
    assert rewrite(parse(qualified).tree, WORLD).sql() == rewrite(parse(plain).tree, WORLD).sql()


def test_a_table_under_a_schema_is_no_part_of_with() -> None:
    tree = rewrite(parse("WITH visits AS (SELECT 1 AS x) SELECT x FROM main.visits").tree, WORLD)
    assert [table.name for table in tree.find_all(type(tree.args["from_"].this))] == ["visits"]
