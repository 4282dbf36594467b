"""Aggregates that the parser takes for functions are seen as aggregates, with their bounds."""

from __future__ import annotations

import pytest
from sqlglot import exp

from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.per_unit import is_aggregating
from incrowd.query.rules.name_aggregates import NAMES, name_aggregates
from incrowd.query.sql import bounds_of
from tests.backends.houses import catalog_of, plan_of

WORLD = World(catalog_of("user"), {})


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_of_them_makes_a_select_aggregate(name: str) -> None:
    tree = parse(f"SELECT {name.lower()}(x) FROM visits").tree
    assert isinstance(tree, exp.Select) and not is_aggregating(tree)
    named = name_aggregates(tree, WORLD)
    assert isinstance(named, exp.Select) and is_aggregating(named)


def test_bounds_stay_with_the_aggregate() -> None:
    tree = parse("SELECT MEAN(x, contribution_bounds_per_row => (0, 5)) FROM visits").tree
    node = name_aggregates(tree, WORLD).find(exp.AnonymousAggFunc)
    bounds = bounds_of(node) if node is not None else None
    assert bounds is not None and (bounds.low, bounds.high) == (0, 5)


def test_over_released_numbers_they_are_the_engines_own() -> None:
    plan = plan_of("SELECT MAD(n) AS m FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)", "user")
    assert "MAD(" in plan.outer.sql("duckdb")
