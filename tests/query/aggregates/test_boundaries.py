"""APPROX_QUANTILES(x, n): the boundaries of n parts, all from one histogram."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from tests.backends.houses import plan_of


def test_the_boundaries_are_ranks_of_one_histogram() -> None:
    plan = plan_of("SELECT APPROX_QUANTILES(x, 4) AS q FROM visits", "user")
    (leaf,) = plan.leaves
    ranks = [rank for aggregate in leaf.aggregates for rank in aggregate.quantiles]
    assert len(leaf.measures) == 1 and ranks[1:4] == [0.25, 0.5, 0.75] and len(ranks) == 5
    assert plan.outer.sql("duckdb") == 'SELECT [a0, a1, a2, a3, a4] AS "q" FROM released_0'


def test_bounds_and_filters_hold_for_all_of_them() -> None:
    asked = "ANON_QUANTILES(x, 2 CLAMPED BETWEEN 1 AND 9)"
    (leaf,) = plan_of(f"SELECT WITH ANONYMIZATION OPTIONS(epsilon=1) {asked} AS q FROM visits", "user").leaves
    (measure,) = leaf.measures.values()
    assert (measure.low, len(leaf.aggregates)) == (1, 3)
    (leaf,) = plan_of("SELECT APPROX_QUANTILES(x, 2) FILTER (WHERE b) AS q FROM visits", "user").leaves
    assert len(leaf.measures) == 1


@pytest.mark.parametrize("parts", ["0", "2.5", "x", "1001", "-1"])
def test_the_number_of_parts_is_whole_and_not_too_large(parts: str) -> None:
    with pytest.raises(QueryError, match="needs the number of parts, a whole number from 1 to 1000"):
        plan_of(f"SELECT APPROX_QUANTILES(x, {parts}) AS q FROM visits", "user")
