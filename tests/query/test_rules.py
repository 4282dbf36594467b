"""Each rule beside its fixture: questions with what they become (=>) or why they are refused (!!)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules import RULES, rewrite
from incrowd.query.rules.inline_ctes import inline_ctes
from incrowd.query.sql import DIALECT
from tests.backends.houses import catalog_of, engine_of, public_fields

FIXTURES = Path(__file__).parents[1] / "fixtures"


def cases() -> Iterator[tuple[int, str, str, str]]:
    for place, rule in enumerate(RULES):
        lines = (FIXTURES / f"{rule.__name__}.sql").read_text(encoding="utf-8").splitlines()
        question = ""
        for line in lines:
            if line.startswith(("=> ", "!! ")):
                yield place, question, line[:2], line[3:]
            elif line and not line.startswith("--"):
                question = line


@pytest.mark.parametrize(("place", "question", "verdict", "expected"), list(cases()))
def test_a_rule_rewrites_or_refuses_as_its_fixture_says(
    place: int, question: str, verdict: str, expected: str
) -> None:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = parse(question).tree
    if verdict == "=>":
        assert RULES[place](tree, world).sql(DIALECT) == expected
    else:
        with pytest.raises(QueryError) as refusal:
            RULES[place](tree, world)
        assert expected in str(refusal.value)


def test_names_that_double_at_each_step_are_refused_before_memory_is_gone() -> None:
    parts = ["a0 AS (SELECT x FROM visits)"]
    parts += [
        f"a{i} AS (SELECT l.x FROM a{i - 1} AS l JOIN a{i - 1} AS r ON l.x = r.x)" for i in range(1, 40)
    ]
    tree = parse(f"WITH {', '.join(parts)} SELECT COUNT(*) FROM a39").tree
    with pytest.raises(QueryError, match="too large"):
        inline_ctes(tree, World(catalog_of("user"), {}))


def test_the_rules_are_applied_one_after_the_other() -> None:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = rewrite(parse("WITH q AS (SELECT x FROM visits) SELECT COUNT(*) FROM q").tree, world)
    assert tree.sql(DIALECT).startswith('SELECT COUNT(*) AS "count" FROM (SELECT "visits"."x" AS "x"')
