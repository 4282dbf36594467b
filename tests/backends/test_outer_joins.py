"""Outer joins and set operations have the same integers on every engine, whoever matches whom."""

from __future__ import annotations

import pytest

from incrowd.backends import release_statement
from tests.backends.engines import ENGINES
from tests.backends.houses import capped, plan_of, tables_from
from tests.backends.test_engines import furnish, same
from tests.sweep import sized

QUESTIONS = (
    (
        "SELECT v.grp, COUNT(*), SUM(s.m) FROM visits AS v FULL JOIN steps AS s ON v.user_id = s.user_id AND "
        "s.m > v.x AND v.b GROUP BY 1"
    ),
    (
        "SELECT s.m, COUNT(*), COUNT(DISTINCT w.user_id) FROM visits AS v JOIN visits AS w ON v.user_id = "
        "w.user_id RIGHT JOIN steps AS s ON w.user_id = s.user_id AND w.x > s.m GROUP BY 1"
    ),
    "SELECT c.region, COUNT(v.x) FROM cities AS c FULL JOIN visits AS v ON v.city = c.city GROUP BY 1",
    (
        "SELECT q.f, COUNT(*), COUNT(DISTINCT q.user_id) FROM (SELECT user_id, f, d FROM visits UNION SELECT "
        "user_id, x, ts FROM visits EXCEPT ALL SELECT user_id, m, NULL FROM steps) AS q GROUP BY 1"
    ),
    (
        "SELECT q.t, COUNT(*) FROM (SELECT t FROM visits UNION ALL SELECT grp FROM visits UNION ALL SELECT "
        "NULL FROM steps) AS q GROUP BY 1"
    ),
    "SELECT COUNT(*) FROM (SELECT user_id, t FROM visits INTERSECT SELECT user_id, grp FROM visits) AS q",
)


@pytest.mark.parametrize("engine", ENGINES)
def test_joins_and_set_operations_have_the_same_integers(engine: str) -> None:
    for seed in range(1 if engine.startswith("spark") else sized(4, 40)):
        furnish(engine, "user", tables_from(seed + 3, wild=True))
        for question in QUESTIONS[: 1 if engine == "spark connect" else None]:
            (leaf,) = plan_of(question, "user").leaves
            same(engine, "user", release_statement(capped(leaf, 2, 5)[0]))
