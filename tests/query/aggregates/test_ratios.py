"""Weighted averages and ratios: two sums that are bounded together, whatever the rows hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.query import Centre
from incrowd.query.measure import ROWS_PER_NORM
from tests.backends.houses import tables_from
from tests.query.asked import ENGINE, assert_refused, leaf_of, summed

RATIOS = ["WEIGHTED_AVG(f, n)", "WAVG(x, ABS(f))", "SUM(f) / SUM(n)", "SUM(x) / SUM(ABS(f) + 1)"]


def test_a_weighted_average_of_people_is_one_ball() -> None:
    leaf = leaf_of("WEIGHTED_AVG(f, n)")
    total, weight = leaf.measures.values()
    assert total.ball and total.ball == weight.ball
    assert (total.factors, weight.factors, total.raw, weight.raw) == (("x0", "x1"), ("x0",), True, True)
    assert leaf.aggregates[0].between == (-2.5, 7.5)


def test_where_rows_are_declared_both_sums_shrink_by_rows() -> None:
    leaf = leaf_of("WEIGHTED_AVG(f, n)", rows=4)
    total, weight = leaf.measures.values()
    assert total.weighing == weight.weighing == "rows" and total.weigh_key == weight.weigh_key
    assert (total.high, weight.high, total.offset) == (2.0**40 * 5, 2.0**40, 2.5)


def test_a_row_of_the_usual_weight_counts_like_a_row() -> None:
    leaf = leaf_of("WEIGHTED_AVG(f, n)")
    centred = leaf.with_centres({"x0": Centre(90.0, 20.0), "x1": Centre(1.0, 0.5)})
    total, weight = centred.measures.values()
    assert (weight.scale, total.scale, total.offset) == (ROWS_PER_NORM * 100, 100 * 0.5, 1.0)
    assert (total.low, total.high) == (-(2.0**40) * 6.5, 2.0**40 * 6.5)
    assert weight.centre == total.centre == 0


@pytest.mark.parametrize("aggregate", RATIOS)
@pytest.mark.parametrize("rows", [None, 3])
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_wild_rows_stay_within_the_bounds_of_both_sums(aggregate: str, rows: int | None, seed: int) -> None:
    ENGINE.register("visits", tables_from(seed, wild=True)["visits"])
    leaf = leaf_of(aggregate, **({} if rows is None else {"rows": rows}))
    leaf = leaf.with_centres({name: Centre(value.low, 1e-3) for name, value in leaf.values.items()})
    for measure in leaf.measures.values():
        assert measure.value is not None
        values = ENGINE.execute(f"SELECT {measure.value.sql('duckdb')} FROM visits").fetchall()
        total, many = summed(measure)
        assert not math.isnan(total) and abs(total) <= many * measure.limit * (1 + 1e-9)
        if len(measure.factors) == 2:
            there = [value for (value,) in values if value is not None]
            assert all(abs(value) <= measure.high * (1 + 1e-12) for value in there), "products are clamped"


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("WEIGHTED_AVG(f, x)", "needs weights that are not negative: write GREATEST(x, 0) for them."),
        ("WEIGHTED_AVG(f)", "takes a value and its weight"),
        ("WEIGHTED_AVG(f, n, contribution_bounds_per_row => (0, 1))", "no contribution bounds"),
        ("WEIGHTED_AVG(f, LENGTH(t))", "Write LEAST(GREATEST(LENGTH(t), 0), 1) in its place"),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)


def test_the_remedy_for_negative_weights_works() -> None:
    assert leaf_of("WEIGHTED_AVG(f, GREATEST(x, 0))").aggregates[0].kind == "ratio"


def test_what_a_ratio_may_be_follows_from_the_sum_above() -> None:
    assert leaf_of("SUM(n) / SUM(ABS(f))").aggregates[0].between == (0.0, math.inf)
    assert leaf_of("SUM(f) / SUM(n)").aggregates[0].between == (-math.inf, math.inf)
    assert leaf_of("SUM(-n) / SUM(ABS(f))").aggregates[0].between == (-math.inf, 0.0)
