"""Aggregates as measures: their sums answer the aggregate, and no row exceeds the bounds of any of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.houses import tables_from
from tests.query.asked import ENGINE, estimate, measures_of, summed

AGGREGATES = [
    *(
        "COUNT(*)",
        "COUNT(x)",
        "COUNT(f)",
        "COUNT_IF(x > 2)",
        "SUM(x)",
        "SUM(f)",
        "AVG(x)",
        "AVG(f)",
        "SUM(x + f)",
        "AVG(x * 2)",
        "SUM(b)",
        "AVG(b)",
    ),
    *(
        "VAR_POP(x)",
        "VAR_SAMP(f)",
        "VARIANCE(f)",
        "STDDEV(x)",
        "STDDEV_POP(f)",
        "STDDEV_SAMP(x)",
        "COVAR_POP(x, f)",
        "COVAR_SAMP(x, f)",
        "CORR(x, f)",
    ),
    *(
        "SUM(x) FILTER (WHERE f > 0)",
        "AVG(f) FILTER (WHERE x > 0)",
        "COUNT(*) FILTER (WHERE x IS NULL)",
        "VAR_POP(f) FILTER (WHERE b)",
        "COVAR_POP(x, f) FILTER (WHERE b)",
    ),
    *("COUNT_IF(x > 2) FILTER (WHERE b)", "COUNT(x) FILTER (WHERE f > 0)", "SUM(CASE WHEN b THEN x END)"),
]


@pytest.mark.parametrize("aggregate", AGGREGATES)
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6))
def test_the_measures_of_an_aggregate_give_its_value(aggregate: str, seed: int) -> None:
    ENGINE.register("visits", tables_from(seed, wild=False)["visits"])
    plain = aggregate.replace("(b)", "(CAST(b AS INTEGER))")
    ((expected,),) = ENGINE.execute(f"SELECT {plain} FROM visits").fetchall()
    answer = estimate(aggregate)
    if expected is None or (isinstance(expected, float) and math.isnan(expected)):
        assert answer is None or answer == 0
    elif answer is not None:
        # A root of nearly nothing is far larger than what is left of it by rounding: squares are compared.
        power = 2 if "STDDEV" in aggregate else 1
        assert math.isclose(answer**power, expected**power, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("seed", range(3))
def test_wild_rows_stay_within_the_bounds_of_every_measure(aggregate: str, seed: int) -> None:
    ENGINE.register("visits", tables_from(seed, wild=True)["visits"])
    for measure in measures_of(aggregate):
        total, rows = summed(measure)
        assert abs(total) <= rows * measure.limit * (1 + 1e-9)
        assert not math.isnan(total)
