"""REGR_* are made of the sums of COVAR and CORR, over the rows in which both values are present."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.houses import tables_from
from tests.query.asked import ENGINE, assert_refused, leaf_of, summed

KINDS = {
    "REGR_SLOPE(f, x)": ("slope", 5),
    "REGR_INTERCEPT(f, x)": ("intercept", 5),
    "REGR_R2(f, x)": ("r2", 6),
    "REGR_SXX(f, x)": ("sxx", 3),
    "REGR_SYY(f, x)": ("sxx", 3),
    "REGR_SXY(f, x)": ("sxy", 4),
    "REGR_AVGX(f, x)": ("avg", 2),
    "REGR_AVGY(f, x)": ("avg", 2),
    "REGR_COUNT(f, x)": ("count", 1),
    "CORR(f, x)": ("corr", 6),
    "COVAR_POP(f, x)": ("covar", 4),
}


def value_of(aggregate: str) -> float | None:
    """An aggregate from its measures, by the textbook's formulas."""
    leaf = leaf_of(aggregate)
    (column,) = leaf.aggregates
    measures = [leaf.measures[name] for name in column.measures]
    sums = [summed(measure)[0] for measure in measures]
    n = sums[-1]
    if n < 2:
        return None
    if column.kind == "count":
        return n
    if column.kind == "avg":
        return measures[0].centre + sums[0] / n
    if column.kind == "sxx":
        return sums[1] + n * measures[1].centre - sums[0] ** 2 / n
    if column.kind == "sxy":
        return sums[2] - sums[0] * sums[1] / n
    squares = sums[2] / n + measures[2].centre - (sums[0] / n) ** 2
    cross = sums[-2] / n - sums[0] * sums[1] / n**2
    if column.kind == "r2":
        other = sums[3] / n + measures[3].centre - (sums[1] / n) ** 2
        return None if min(squares, other) < 1e-9 else cross**2 / (squares * other)
    if squares < 1e-9:
        return None
    slope = cross / squares
    return (
        slope
        if column.kind == "slope"
        else measures[1].centre + sums[1] / n - slope * (measures[0].centre + sums[0] / n)
    )


@pytest.mark.parametrize(("aggregate", "kind", "measures"), [(key, *value) for key, value in KINDS.items()])
def test_each_is_made_of_these_sums(aggregate: str, kind: str, measures: int) -> None:
    (column,) = leaf_of(aggregate).aggregates
    assert (column.kind, len(column.measures)) == (kind, measures)


@pytest.mark.parametrize("aggregate", [key for key in KINDS if key.startswith("REGR")])
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_the_sums_give_its_value(aggregate: str, seed: int) -> None:
    ENGINE.register("visits", tables_from(seed, wild=False)["visits"])
    ((expected,),) = ENGINE.execute(f"SELECT {aggregate} FROM visits").fetchall()
    answer = value_of(aggregate)
    if answer is not None and expected is not None and not math.isnan(expected):
        assert math.isclose(answer, expected, rel_tol=1e-7, abs_tol=1e-7)


def test_all_of_a_line_share_their_sums() -> None:
    leaf = leaf_of("REGR_SLOPE(f, x) + REGR_INTERCEPT(f, x) + REGR_SXX(f, x) + REGR_AVGY(f, x)")
    assert len(leaf.measures) == 5


def test_a_row_counts_where_both_are_present() -> None:
    (column,) = leaf_of("REGR_AVGX(f, x)").aggregates
    for name in column.measures:
        present = leaf_of("REGR_AVGX(f, x)").measures[name].present
        assert present is not None and "f" in present.sql() and "x" in present.sql()


def test_bounds_are_refused() -> None:
    assert_refused("REGR_SLOPE(f, x, contribution_bounds_per_row => (0, 1))", "takes")
