"""Aggregates under other names are the ones that they are, and some are computed from others."""

from __future__ import annotations

import pytest

from tests.backends.houses import plan_of
from tests.query.asked import assert_refused

BOUNDED = "contribution_bounds_per_row => (0, 3)"
SAME = [
    ("MEAN(x)", "AVG(x)"),
    ("FAVG(x) FILTER (WHERE b)", "AVG(x) FILTER (WHERE b)"),
    ("KAHAN_SUM(f)", "SUM(f)"),
    ("STD(x)", "STDDEV(x)"),
    ("VAR(x)", "VARIANCE(x)"),
    ("APPROX_MEDIAN(x)", "MEDIAN(x)"),
    ("APPROX_PERCENTILE(x, 0.9)", "QUANTILE_CONT(x, 0.9)"),
    ("MAX(DISTINCT x)", "MAX(x)"),
    ("MEAN(x, contribution_bounds_per_row => (0, 3))", "AVG(x, contribution_bounds_per_row => (0, 3))"),
    ("APPROX_COUNT_DISTINCT(user_id)", "COUNT(DISTINCT user_id)"),
    ("COUNT_DISTINCT(user_id) FILTER (WHERE b)", "COUNT(DISTINCT user_id) FILTER (WHERE b)"),
    ("GEOMEAN(LEAST(GREATEST(x, 1), 9))", "EXP(AVG(LN(LEAST(GREATEST(x, 1), 9))))"),
    ("QUANTILE_CONT(x, [0.25, 0.5])", "[QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.5)]"),
    ("QUANTILE_DISC(x, [0.5]) FILTER (WHERE b)", "[QUANTILE_DISC(x, 0.5) FILTER (WHERE b)]"),
    ("APPROX_PERCENTILE(x, [0.9, 0.1])", "[QUANTILE_CONT(x, 0.9), QUANTILE_CONT(x, 0.1)]"),
    ("APPROX_QUANTILE(x, [0.9])", "[QUANTILE_CONT(x, 0.9)]"),
    (
        "PERCENTILE_CONT([0.25, 0.9]) WITHIN GROUP (ORDER BY x DESC)",
        "[QUANTILE_CONT(x, 0.75), QUANTILE_CONT(x, 0.1)]",
    ),
    (
        f"QUANTILE_CONT(x, [0.1, 0.2], {BOUNDED})",
        f"[QUANTILE_CONT(x, 0.1, {BOUNDED}), QUANTILE_CONT(x, 0.2, {BOUNDED})]",
    ),
    ("QUANTILE_CONT(x, 0.9 ORDER BY x DESC)", "QUANTILE_CONT(x, 0.1)"),
    ("QUANTILE_DISC(x, [0.9] ORDER BY x)", "[QUANTILE_DISC(x, 0.9)]"),
    ("SEM(x)", "STDDEV_SAMP(x) / SQRT(COUNT(x))"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_are_one_question(one: str, other: str) -> None:
    first, second = (plan_of(f"SELECT {aggregate} AS z FROM visits", "user") for aggregate in (one, other))
    assert first.fingerprint == second.fingerprint
    assert first.outer.sql("duckdb") == second.outer.sql("duckdb")


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("GEOMEAN(x)", "GEOMEAN(x) needs a lower bound above zero: write GEOMEAN(GREATEST(x, 1)), say."),
        ("GEOMEAN(x, contribution_bounds_per_row => (1, 5))", "takes no contribution bounds; put LEAST"),
        ("MEAN(x, f)", "MEAN(x, f) takes one column here."),
        ("APPROX_PERCENTILE(x)", "APPROX_PERCENTILE(x) takes two arguments here."),
        ("QUANTILE_CONT(x, [])", "QUANTILE_CONT(x, []) needs 1 to 1000 constant ranks between 0 and 1, as"),
        ("QUANTILE_CONT(x, [0.5, f])", "needs 1 to 1000 constant ranks between 0 and 1, as in [0.25, "),
        ("QUANTILE_CONT(x, [0.5, 2])", "QUANTILE_CONT(x, 2) needs a constant rank between 0 and 1."),
        ("QUANTILE_CONT(x, [[0.5]])", "QUANTILE_CONT(x, [[0.5]]) needs 1 to 1000 constant ranks"),
        ("QUANTILE_CONT(x, 0.5 ORDER BY f)", "orders by something else; write ORDER BY x in it."),
        ("MEAN(t)", "AVG needs numbers, but t is of type text."),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_question(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)


def test_the_remedy_for_a_geometric_mean_works() -> None:
    (aggregate,) = plan_of("SELECT GEOMEAN(GREATEST(x, 1)) AS g FROM visits", "user").leaves[0].aggregates
    assert aggregate.kind == "avg"


def test_an_aggregate_under_another_name_is_called_what_was_written() -> None:
    (aggregate,) = plan_of("SELECT MEAN(x) AS g FROM visits", "user").leaves[0].aggregates
    assert aggregate.label == "MEAN(x)"
