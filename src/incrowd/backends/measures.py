"""Values on their grids, as SQL: a measure's value in whole steps, the cell of a histogram, a unit's weight.

Each text here is an integer whatever the row holds, and none can raise: what is clamped is clamped before
it is cast.
"""

from __future__ import annotations

import math
from dataclasses import replace

from incrowd.query import Measure
from incrowd.query.sql import DIALECT

KEY_MASS = 1024
"""A unit gives its groups this much key weight in all, in whole numbers: one with more groups gives none."""
MOST = 2**62
MOST_RELEASED = 2**61
CENSUS_BITS = 20
"""In a census, the largest value of one row is 2^20 steps."""
CENSUS_CELLS = 46
_PAIR_BITS = 50


def integer(value: int) -> str:
    """An integer of 64 bits."""
    return f"CAST({value} AS BIGINT)"


def _real(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def present_in(measure: Measure) -> str | None:
    """The condition under which a measure counts a row; None where it always does."""
    return None if measure.present is None else measure.present.sql(DIALECT)


def _where(measure: Measure, text: str) -> str:
    present = None if measure.absent_if_null and not measure.tested else present_in(measure)
    return text if present is None else f"CASE WHEN {present} THEN {text} END"


def steps_of(measure: Measure, exponent: int) -> str:
    """The measure's value on one row, in steps of 2^exponent; NULL where it is not there.

    Rounding to the nearest step moves no value past the clamped ends rounded up: floating-point subtraction,
    scaling by a power of two and FLOOR are monotone. Half a step is added before scaling, so that no value
    vanishes below float64, where some engines raise; scaling is exact, so the order makes no difference.
    """
    assert measure.value is not None
    value = measure.value.sql(DIALECT)
    centre = "" if measure.centre == 0 else f" - {_real(measure.centre)}"
    scale, half = (_real(math.ldexp(part, power)) for part, power in ((1.0, -exponent), (0.5, exponent)))
    inside = f"CAST(FLOOR((({value}){centre} + {half}) * {scale}) AS BIGINT)"
    low, high = measure.low, measure.high
    if measure.level == "pair":
        # The pair's sum is what is bounded; a row only has to fit into the integer.
        widest = math.ldexp(1.0, _PAIR_BITS + exponent)
        low, high = -widest, widest
    below, above = (integer(_grid(end - measure.centre, exponent)) for end in (low, high))
    # NULL and NaN pass none of the tests: engines order NaN above infinity.
    clamped = (
        f"CASE WHEN {value} < {_real(low)} THEN {below} WHEN {value} <= {_real(high)} THEN {inside} "
        f"WHEN {value} <= CAST('Infinity' AS DOUBLE) THEN {above} END"
    )
    return _where(measure, clamped)


def _grid(value: float, exponent: int) -> int:
    return math.floor(math.ldexp(value, -exponent) + 0.5)


def cell_of(measure: Measure) -> str:
    """The cell of a quantile's histogram that a row falls into; NULL where its value is not there."""
    assert measure.value is not None
    value = f"({measure.value.sql(DIALECT)})"
    width = (measure.high - measure.low) / measure.buckets
    low, high, last = _real(measure.low), _real(measure.high), integer(measure.buckets - 1)
    # One cell is added before the division and taken off again, so that nothing vanishes below float64.
    cells = f"CAST(FLOOR(({value} - {low} + {_real(width)}) / {_real(width)}) AS BIGINT) - {integer(1)}"
    inside = f"LEAST({cells}, {last})"
    cell = (
        f"CASE WHEN {value} < {low} THEN {integer(0)} WHEN {value} < {high} THEN {inside} "
        f"WHEN {value} <= CAST('Infinity' AS DOUBLE) THEN {last} END"
    )
    return _where(measure, cell)


def pair_value(measure: Measure, column: str, exponent: int) -> str:
    """The sum of a unit's rows in one group, clamped into the measure's bounds, in steps."""
    low, high = (_grid(end, exponent) for end in (measure.low, measure.high))
    summed = f"COALESCE(SUM({column}), 0)"
    inside = f"CASE WHEN {summed} < {low} THEN {low} WHEN {summed} > {high} THEN {high} ELSE {summed} END"
    return f"CAST({inside} AS BIGINT)"


def weight_of(column: str, signed: bool) -> str:
    """The sum of absolute values; NULL beyond 2^62, where a unit counts for nothing."""
    summed = f"COALESCE(SUM({f'ABS({column})' if signed else column}), 0)"
    return f"CASE WHEN {summed} <= CAST({MOST} AS HUGEINT) THEN CAST({summed} AS BIGINT) END"


def unit_sum(column: str) -> str:
    """What a unit's rows sum to; NULL beyond 2^62."""
    summed = f"COALESCE(SUM({column}), 0)"
    bound = f"CAST({MOST} AS HUGEINT)"
    return f"CASE WHEN {summed} <= {bound} AND {summed} >= -{bound} THEN CAST({summed} AS BIGINT) END"


def counted(text: str) -> str:
    """A sum as BIGINT, clamped to what mechanisms take: a contraction, so no sensitivity grows."""
    bound = f"CAST({MOST_RELEASED} AS HUGEINT)"
    inside = f"WHEN {text} < -{bound} THEN -{bound} ELSE COALESCE({text}, 0) END"
    return f"CAST(CASE WHEN {text} > {bound} THEN {bound} {inside} AS BIGINT)"


def capped_sum(weight: str, cap: int) -> str:
    """The total of units' weights, each up to a cap; a weight of NULL is beyond every cap."""
    c = integer(cap)
    return counted(f"SUM(CASE WHEN {weight} <= {c} THEN {weight} ELSE {c} END)")


def weight_cap(measure: Measure, cap: float | None = None) -> int:
    """A cap in the units that weights are counted in: steps, rows, or groups."""
    given = measure.cap if cap is None else cap
    if measure.weighing == "own" and measure.value is not None:
        return max(1, math.ceil(math.ldexp(given or 0.0, -measure.exponent)))
    return replace(measure, cap=given).rows_cap


def census_exponent(measure: Measure) -> int:
    """The grid of a census: the largest value of one row is 2^20 steps; rows and groups are counted as they
    are.
    """
    if measure.value is None or measure.weighing == "rows":
        return 0
    return math.ceil(math.log2(max(measure.limit, 2.0**-900))) - CENSUS_BITS
