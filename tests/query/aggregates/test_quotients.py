"""Quotients of sums are averages where they are, and mean what DuckDB says they mean."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.houses import plan_of, tables_from
from tests.query.asked import ENGINE, estimate, leaf_of, summed

AVERAGES = [
    "SUM(x) / COUNT(*)",
    "SUM(x) / COUNT(x)",
    "SUM(x) * 1.0 / COUNT(*)",
    "CAST(SUM(f) AS DOUBLE) / NULLIF(COUNT(*), 0)",
    "(SUM(x)) / (COUNT(*))",
    "COUNT_IF(x > 2) / COUNT(*)",
    "COUNT(*) FILTER (WHERE x > 2) / COUNT(*)",
    "COUNT(f) / COUNT(*)",
    "SUM(CASE WHEN b THEN 1 ELSE 0 END) / COUNT(*)",
    "SUM(x) FILTER (WHERE b) / COUNT(*)",
    "SUM(x) FILTER (WHERE b) / COUNT(*) FILTER (WHERE b)",
    "SUM(x) FILTER (WHERE b AND f > 0) / COUNT(*) FILTER (WHERE f > 0)",
    "COUNT_IF(x > 2) FILTER (WHERE b) / COUNT(*) FILTER (WHERE b)",
]
NOT = [
    "SUM(x) / COUNT(DISTINCT user_id)",
    "SUM(x) // COUNT(*)",
    "SUM(x) / SUM(f)",
    "COUNT(*) / COUNT(*)",
    "SUM(x) / 3",
    "3 / COUNT(*)",
    "AVG(x) / COUNT(*)",
    "SUM(x, contribution_bounds_per_group => (0, 5)) / COUNT(*)",
    "SUM(x, contribution_bounds_per_row => (0, 5)) / COUNT(*)",
]


@pytest.mark.parametrize("quotient", AVERAGES)
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_the_average_is_the_quotient(quotient: str, seed: int) -> None:
    (aggregate,) = leaf_of(quotient).aggregates
    assert aggregate.kind == "avg"
    ENGINE.register("visits", tables_from(seed, wild=False)["visits"])
    ((expected,),) = ENGINE.execute(f"SELECT {quotient} FROM visits").fetchall()
    answer = estimate(quotient)
    if expected is None or math.isnan(expected):
        assert answer is None or answer == 0
    elif answer is not None:
        assert math.isclose(answer, expected, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("quotient", NOT)
def test_other_quotients_stay_what_they_are(quotient: str) -> None:
    kinds = {aggregate.kind for aggregate in leaf_of(quotient).aggregates}
    assert kinds <= {"count", "sum"} or quotient.startswith("AVG")


@pytest.mark.parametrize(
    ("quotient", "weighted"),
    [
        ("SUM(x * n) / SUM(n)", True),
        ("SUM(n * x) / NULLIF(SUM(n), 0)", True),
        ("SUM((x) * n) FILTER (WHERE b) / SUM(n) FILTER (WHERE b)", True),
        ("SUM(x * n) FILTER (WHERE b) / SUM(n)", False),
        ("SUM(x) / SUM(n)", False),
        ("SUM(x) FILTER (WHERE b) / COUNT(*) FILTER (WHERE f > 0)", False),
        ("SUM(x) / COUNT(f)", False),
        ("COUNT(f) / SUM(n)", False),
    ],
)
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_other_sums_over_sums_that_are_not_negative_are_ratios(
    quotient: str, weighted: bool, seed: int
) -> None:
    leaf = leaf_of(quotient)
    (aggregate,) = leaf.aggregates
    measures = [leaf.measures[name] for name in aggregate.measures]
    assert aggregate.kind == "ratio" and bool(measures[0].offset) == weighted
    ENGINE.register("visits", tables_from(seed, wild=False)["visits"])
    ((expected,),) = ENGINE.execute(f"SELECT {quotient} FROM visits").fetchall()
    above, below = (summed(measure)[0] for measure in measures)
    if expected is not None and not math.isnan(expected) and below:
        assert math.isclose(measures[0].offset + above / below, expected, rel_tol=1e-9, abs_tol=1e-6)


def test_constants_multiply_the_average() -> None:
    plan = plan_of("SELECT 100.0 * COUNT_IF(x > 2) / COUNT(*) AS share FROM visits", "user")
    (aggregate,) = plan.leaves[0].aggregates
    assert aggregate.kind == "avg"
    assert plan.outer.sql("duckdb") == 'SELECT (a0 * 100.0) AS "share" FROM released_0'


def test_both_sums_that_are_asked_for_anyway_give_the_quotient_for_nothing() -> None:
    plan = plan_of("SELECT SUM(x) AS s, COUNT(*) AS n, SUM(x) / COUNT(*) AS mean FROM visits", "user")
    assert [aggregate.kind for aggregate in plan.leaves[0].aggregates] == ["sum", "count"]
    one = plan_of("SELECT SUM(x) AS s, SUM(x) / COUNT(*) AS mean FROM visits", "user")
    assert [aggregate.kind for aggregate in one.leaves[0].aggregates] == ["sum", "avg"]


def test_having_and_order_by_read_the_same_average() -> None:
    plan = plan_of(
        "SELECT cat, SUM(x) / COUNT(*) AS mean FROM visits GROUP BY cat HAVING SUM(x) / COUNT(*) > 2 "
        "ORDER BY SUM(x) / COUNT(*)",
        "user",
    )
    assert len(plan.leaves[0].aggregates) == 1


def test_bounds_that_are_written_go_with_the_average_where_nothing_else_is_needed() -> None:
    bounded = "SUM(x, contribution_bounds_per_row => (0, 5)) / COUNT(x)"
    assert leaf_of(bounded) == leaf_of(bounded)
    (aggregate,) = leaf_of(bounded).aggregates
    assert (aggregate.kind, leaf_of(bounded).measures[aggregate.measures[0]].high) == ("avg", 5)


def test_it_is_called_what_the_user_wrote() -> None:
    assert leaf_of("SUM(x) / COUNT(*)").aggregates[0].label == "SUM(x) / COUNT(*)"
