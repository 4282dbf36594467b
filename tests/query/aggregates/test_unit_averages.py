"""Averages of units' averages, as GoogleSQL's clause means them: how they are bounded and weighed."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.query import Leaf
from tests.backends.houses import plan_of

WITH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1{}) "
PER_GROUP, PER_ROW = "contribution_bounds_per_group => (0, 4)", "contribution_bounds_per_row => (0, 4)"


def leaf_of(aggregate: str, options: str = "", tail: str = " GROUP BY cat", mode: str = "user") -> Leaf:
    (leaf,) = plan_of(f"{WITH.format(options)}{aggregate} AS z FROM visits{tail}", mode).leaves
    return leaf


def facts(leaf: Leaf) -> list[Any]:
    return [
        (measure.level, measure.weighing, measure.pooled, measure.low, measure.high, measure.centre)
        for name in leaf.aggregates[0].measures
        for measure in [leaf.measures[name]]
    ]


@pytest.mark.parametrize(
    ("aggregate", "bounds"),
    [
        ("AVG(x)", (-5, 20, 7.5)),
        ("AVG(f)", (-2.5, 7.5, 2.5)),
        (f"AVG(x, {PER_GROUP})", (0, 4, 2)),
        (f"AVG(x, {PER_ROW})", (0, 4, 2)),
        ("AVG(x) FILTER (WHERE f > 0)", (-5, 20, 7.5)),
    ],
)
def test_in_the_clause_an_average_is_of_each_units_own(aggregate: str, bounds: tuple[float, ...]) -> None:
    leaf = leaf_of(aggregate)
    assert facts(leaf) == [("pair", "rows", "mean", *bounds), ("pair", "own", "total", 0, 1, 0)]
    assert "is the average of each unit's own average in the group." in leaf.aggregates[0].note


def test_bounds_per_group_mean_that_without_the_clause_too() -> None:
    (leaf,) = plan_of(f"SELECT AVG(x, {PER_GROUP}) AS z FROM visits GROUP BY cat", "user").leaves
    assert facts(leaf)[0] == ("pair", "rows", "mean", 0, 4, 2)


@pytest.mark.parametrize(
    ("aggregate", "options", "mode"),
    [
        ("AVG(x)", ", max_rows_contributed=3", "user"),
        ("AVG(x)", "", "row"),
        (f"AVG(x, {PER_GROUP})", "", "row"),
    ],
)
def test_rows_are_averaged_where_they_are_limited_or_are_units(
    aggregate: str, options: str, mode: str
) -> None:
    leaf = leaf_of(aggregate, options, mode=mode)
    assert [fact[:3] for fact in facts(leaf)] == [("row", "rows", "total")] * 2 and not leaf.aggregates[
        0
    ].note


def test_spreads_sums_and_sub_queries_stay_what_they_were() -> None:
    assert {fact[2] for fact in facts(leaf_of("VAR_POP(x)"))} == {"total"}
    (leaf,) = plan_of(
        WITH.format("")
        + "AVG(q.a) AS z FROM (SELECT user_id, AVG(x) AS a FROM visits GROUP BY user_id) AS q",
        "user",
    ).leaves
    assert facts(leaf)[0][0] == "row"


def test_the_sum_and_its_count_share_a_cap_with_the_number_of_units() -> None:
    leaf = leaf_of("COUNT(DISTINCT user_id) AS n, AVG(y)".replace("y", "COALESCE(x, 0)"))
    assert len(leaf.uncapped) == 1 and next(iter(leaf.uncapped.values())).value is None
    assert leaf_of("AVG(x)", ", max_groups_contributed=3").uncapped == {}
    assert [measure.cap for measure in leaf_of("AVG(x)", tail="").measures.values()] == [1, 1]


def test_both_are_bounded_in_the_same_norm() -> None:
    for measure in leaf_of("AVG(x)", ", max_groups_contributed=9").in_l2().measures.values():
        assert measure.norm == 2
        assert measure.sensitivity == pytest.approx(3 * measure.limit)


@pytest.mark.parametrize(
    ("aggregate", "pooled"),
    [
        ("SUM(x, contribution_bounds_per_group => (2, 3))", "present"),
        ("SUM(x, contribution_bounds_per_group => (-3, -2))", "present"),
        ("SUM(x, contribution_bounds_per_group => (0, 3))", "total"),
        ("SUM(x, contribution_bounds_per_group => (-2, 3))", "total"),
        ("COUNT(x, contribution_bounds_per_group => (2, 3))", "total"),
    ],
)
def test_a_unit_without_a_value_adds_nothing_to_a_sum_and_the_lower_bound_to_a_count(
    aggregate: str, pooled: str
) -> None:
    assert facts(leaf_of(aggregate))[0][2] == pooled


def test_what_is_pooled_otherwise_is_another_question() -> None:
    prints = {
        plan_of(f"SELECT {aggregate} AS z FROM visits GROUP BY cat", "user").fingerprint
        for aggregate in (
            f"AVG(x, {PER_GROUP})",
            f"AVG(x, {PER_ROW})",
            f"SUM(x, {PER_GROUP})",
            "SUM(x, contribution_bounds_per_group => (1, 4))",
        )
    }
    assert len(prints) == 4
