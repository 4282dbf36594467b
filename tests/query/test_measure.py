"""Measures: their grids, their sensitivities, and which of them shrink alike."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.query.measure import STEPS, WIDEST, Measure

ENDS = st.floats(-(2.0**190), 2.0**190, allow_subnormal=False).filter(
    lambda end: end == 0 or abs(end) > 2.0**-190
)
CAPS = st.floats(2.0**-190, 2.0**190)
X = exp.column("x")


def sum_of(low: float, high: float, cap: float | None = None, **changes: object) -> Measure:
    made = Measure("m", "row", "own", None, X, low, high, whole=False)
    made = replace(made, **changes)  # type: ignore[arg-type]
    return made if cap is None else made.capped(cap)


@given(ENDS, ENDS, CAPS)
@example(0.0, 1.0, 1.0)
@example(0.0, 1.0, 2.0**30)
def test_a_sum_that_weighs_its_own_size_spans_2_to_the_30_steps(one: float, two: float, cap: float) -> None:
    measure = sum_of(min(one, two), max(one, two), cap)
    assert measure.sensitivity == cap
    assert 2**29 < measure.sensitivity_steps <= 2**30
    assert cap <= measure.sensitivity_steps * measure.step < cap + measure.step
    assert -cap <= measure.low <= measure.high <= cap
    assert measure.limit == max(abs(measure.low), abs(measure.high)) <= cap
    assert measure.step == 2.0**measure.exponent


@given(ENDS, ENDS, st.integers(1, 2**20))
def test_a_sum_that_weighs_its_rows_moves_by_rows_times_limit(one: float, two: float, rows: int) -> None:
    low, high = min(one, two), max(one, two)
    measure = sum_of(low, high, weighing="rows", centre=(low + high) / 2).capped(float(rows))
    assert (measure.low, measure.high) == (low, high)
    assert measure.sensitivity == rows * measure.limit
    assert measure.limit <= high / 2 - low / 2 + 2 * math.ulp(max(abs(low), abs(high)))
    assert measure.sensitivity_steps == rows * measure.limit_steps
    assert measure.limit_steps < 2**31 and measure.sensitivity_steps <= 2**STEPS + rows
    assert measure.limit_steps * measure.step >= measure.limit


@given(st.integers(-(2**31), 2**31), st.integers(-(2**31), 2**31), st.integers(1, 2**33))
@example(0, 2**28, WIDEST)
@example(0, 2**28, WIDEST + 1)
@example(0, 2**30, 2**31)
@example(0, 2**29, 2**32)
def test_whole_numbers_keep_a_step_of_one_while_products_fit(one: int, two: int, cap: int) -> None:
    measure = sum_of(min(one, two), max(one, two), float(cap), whole=True)
    fits = cap <= WIDEST and cap * measure.limit < 2**61
    if cap > 2**STEPS:
        assert (measure.exponent == 0) is fits
    assert sum_of(min(one, two), max(one, two), float(cap)).exponent == math.ceil(math.log2(cap)) - STEPS
    assert measure.sensitivity_steps * measure.limit_steps < 2**63


def test_a_centre_between_whole_numbers_needs_finer_steps() -> None:
    wide = sum_of(0, 2**20, weighing="rows", whole=True, centre=2.0**19)
    assert wide.capped(2.0**12).exponent == 0
    assert replace(wide, centre=2.0**19 + 0.5).capped(2.0**12).exponent == 2
    assert wide.capped(2.0).exponent == -10


@given(st.integers(1, 2**40))
def test_counts_have_steps_of_at_most_one(rows: int) -> None:
    count = Measure("m", "row", "rows", None, None, 0, 1).capped(float(rows))
    assert count.limit == 1.0 and count.sensitivity == rows
    assert count.exponent == min(math.ceil(math.log2(rows)) - STEPS, 0)
    assert count.sensitivity_steps == rows * count.limit_steps
    assert count.limit_steps == round(1 / count.step)
    cells = Measure("m", "row", "rows", None, X, 5, 90, buckets=9).capped(float(rows))
    assert (cells.limit, cells.exponent) == (1.0, count.exponent)


@given(st.integers(1, 2**30), st.integers(1, 2**12))
def test_pairs_in_l2_weigh_their_root(cap: int, pairs: int) -> None:
    measure = Measure("m", "pair", "own", None, None, 0, 1, norm=2).capped(float(cap))
    assert measure.sensitivity == math.sqrt(cap)
    share = math.floor(measure.limit_steps * math.sqrt(min(1.0, cap / pairs)))
    assert pairs * share**2 <= measure.sensitivity_steps**2 or (pairs > cap and share <= 1)
    assert measure.sensitivity_steps == math.isqrt(cap * measure.limit_steps**2) + 1


def test_a_cap_below_one_row_is_one_row() -> None:
    count = Measure("m", "row", "rows", None, None, 0, 1)
    assert count.capped(0.5).rows_cap == 1 and count.capped(2.9).rows_cap == 2
    assert sum_of(0, 0, 2.0**-500).cap_steps >= 1 and sum_of(0, 0, 1.0).limit_steps == 1
    assert count.capped(3.0).low == 0 and count.capped(3.0).high == 1


def test_measures_that_shrink_alike_share_a_key() -> None:
    count = Measure("m0", "row", "rows", None, None, 0, 1)
    own_count = Measure("m1", "row", "own", None, None, 0, 1)
    mean = Measure("m2", "row", "rows", None, X, 0, 9)
    total = Measure("m3", "row", "own", None, X, 0, 9)
    assert count.weigh_key == own_count.weigh_key == mean.weigh_key != total.weigh_key
    assert replace(count, present=X).weigh_key != count.weigh_key
    others = [
        replace(total, low=1),
        replace(total, high=8),
        replace(total, centre=1),
        replace(total, value=exp.column("y")),
    ]
    assert (
        len({total.weigh_key, replace(total, level="pair").weigh_key, *(other.weigh_key for other in others)})
        == 6
    )
    assert Measure("p", "pair", "own", None, None, 0, 1).weigh_key != own_count.weigh_key
