"""SQL for values on their grids: a measure's value in whole steps, the cell of a histogram, a unit's weight.

Each expression here is an integer whatever the row holds, and none can raise: values are clamped before they
are cast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from incrowd.backends.trees import (
    applied,
    cast,
    chosen,
    count,
    integer,
    joined,
    number,
    own,
    quotient,
    total_of,
    wide,
)
from incrowd.query import Measure
from incrowd.query.graded_cells import Band
from incrowd.query.typed import double

KEY_MASS = 1024
"""The key weight of a unit over all its groups, in whole numbers. A unit with more groups gives none."""
MOST = 2**62
MOST_RELEASED = 2**61
CENSUS_BITS = 20
"""In a census, the largest value of one row is 2^20 steps."""
CENSUS_CELLS = 46
BALL_BITS = 6
"""In a census of a ball, a weight of 1 is 2^6 steps."""
_PAIR_BITS = 50


def _where(measure: Measure, node: exp.Expr) -> exp.Expr:
    present = None if measure.absent_if_null and not measure.tested else measure.present
    return node if present is None else chosen((present.copy(), node))


def steps_of(measure: Measure, exponent: int) -> exp.Expr:
    """The measure's value on one row, in steps of 2^exponent; NULL if it is absent.

    Rounding to the nearest step moves no value past the clamped ends rounded up: floating-point subtraction,
    scaling by a power of two and FLOOR are monotone. Half a step is added before scaling, so that no value
    vanishes below float64, where some engines raise; scaling is exact, so the order makes no difference.
    """
    low, high = measure.low, measure.high
    if measure.level == "pair":
        # The bound holds for the pair's sum; a row only has to fit into the integer.
        widest = math.ldexp(1.0, _PAIR_BITS + exponent)
        low, high = measure.centre - widest, measure.centre + widest
    ends = [_grid(end - measure.centre, exponent) for end in (low, high)]
    return _steps_between(measure, math.ldexp(1.0, exponent), (low, high), (ends[0], ends[1]))


def joint_steps(measure: Measure, step: float) -> exp.Expr:
    """The value of a ball's measure on one row in steps of any size, within 2^50; NULL if it is absent."""
    widest = math.ldexp(step, _PAIR_BITS)
    low, high = max(measure.low, measure.centre - widest), min(measure.high, measure.centre + widest)
    ends = [math.floor((end - measure.centre) / step + 0.5) for end in (low, high)]
    return _steps_between(measure, step, (low, high), (ends[0], ends[1]))


def one_in_steps(step: float) -> int:
    """What a row adds to the count of a ball in steps of any size, within 2^50."""
    return min(math.floor((1.0 + step / 2) * (1 / step)), 1 << _PAIR_BITS)


def _steps_between(
    measure: Measure, step: float, ends: tuple[float, float], steps: tuple[int, int]
) -> exp.Expr:
    """A row's centred value in the nearest whole number of steps; beyond the ends, what they are in steps."""
    assert measure.value is not None
    value = measure.value.copy()
    centred = value if measure.centre == 0 else joined(exp.Sub, value, double(measure.centre))
    nearest = joined(exp.Mul, joined(exp.Add, centred, double(step / 2)), double(1 / step))
    inside = cast(exp.Floor(this=nearest), exp.DType.BIGINT)
    # NULL and NaN pass none of the tests: engines order NaN above infinity.
    clamped = chosen(
        (joined(exp.LT, value, double(ends[0])), integer(steps[0])),
        (joined(exp.LTE, value, double(ends[1])), inside),
        (joined(exp.LTE, value, double(math.inf)), integer(steps[1])),
    )
    return _where(measure, clamped)


def share_of(weight: exp.Expr, cap: int, root: bool = False) -> exp.Expr:
    """The fraction of a unit that counts: 1 up to the cap, then cap / weight, or the root of that.

    NULL if the weight is NULL. Division and square root are correctly rounded on every engine.
    """
    most = integer(cap)
    part: exp.Expr = quotient(cast(most, exp.DType.DOUBLE), weight)
    part = exp.Sqrt(this=part) if root else part
    whole = cast(number(1), exp.DType.DOUBLE)
    return chosen((joined(exp.LTE, weight, most), whole), (joined(exp.GT, weight, most), part))


def _grid(value: float, exponent: int) -> int:
    return math.floor(math.ldexp(value, -exponent) + 0.5)


def cell_of(measure: Measure) -> exp.Expr:
    """The cell of a quantile's histogram into which a row falls; NULL if its value is absent."""
    assert measure.value is not None
    value = measure.value.copy()
    if measure.bands:
        return _where(measure, _cell_in_bands(value, measure.bands))
    width = (measure.high - measure.low) / measure.buckets
    low, high, last = double(measure.low), double(measure.high), integer(measure.buckets - 1)
    # One cell is added before the division and subtracted afterwards, so that nothing vanishes below float64.
    raised = joined(exp.Add, joined(exp.Sub, value, low), double(width))
    cells = cast(exp.Floor(this=quotient(raised, double(width))), exp.DType.BIGINT)
    least = exp.Least(this=joined(exp.Sub, cells, integer(1)), expressions=[own(last)], ignore_nulls=True)
    cell = chosen(
        (joined(exp.LT, value, low), integer(0)),
        (joined(exp.LT, value, high), least),
        (joined(exp.LTE, value, double(math.inf)), last),
    )
    return _where(measure, cell)


def _cell_in_bands(value: exp.Expr, bands: Sequence[Band]) -> exp.Expr:
    """The cell of a number in bands: a test for each band, and equal cells inside it."""
    tests: list[tuple[exp.Expr, exp.Expr]] = [(joined(exp.LT, value, double(bands[0].start)), integer(0))]
    first = 0
    for band in bands:
        last = integer(first + band.cells - 1)
        # As above: nothing vanishes. What is rounded up at the end of a band stays in its last cell.
        raised = joined(exp.Add, joined(exp.Sub, value, double(band.start)), double(band.width))
        cells = cast(exp.Floor(this=quotient(raised, double(band.width))), exp.DType.BIGINT)
        place = joined(exp.Add, cells, integer(first - 1))
        cell = exp.Least(this=place, expressions=[own(last)], ignore_nulls=True)
        tests.append((joined(exp.LT, value, double(band.end)), cell))
        first += band.cells
    tests.append((joined(exp.LTE, value, double(math.inf)), integer(first - 1)))
    return chosen(*tests)


def pair_value(measure: Measure, column: exp.Expr, exponent: int) -> exp.Expr:
    """The value of a unit's rows in one group, pooled and clamped into the measure's bounds, in steps."""
    low, high = (number(_grid(end - measure.centre, exponent)) for end in (measure.low, measure.high))
    summed = total_of(column) if measure.pooled != "mean" else _mean_of(column)
    if measure.pooled != "total":
        summed = chosen((joined(exp.GT, count(column), number(0)), summed))
    below, above = joined(exp.LT, summed, low), joined(exp.GT, summed, high)
    return cast(chosen((below, low), (above, high), default=summed), exp.DType.BIGINT)


def _mean_of(column: exp.Expr) -> exp.Expr:
    """The average of whole numbers of up to 2^50, rounded towards zero.

    A sum beyond 2^62 counts as that: it takes 2^12 rows that are far outside of every bound, and then the
    average of fewer than 2^32 rows is outside as well.
    """
    summed, most, rows = total_of(column), wide(MOST), count(column)
    least = applied(exp.Neg, most)
    below, above = joined(exp.LT, summed, least), joined(exp.GT, summed, most)
    inside = cast(chosen((below, least), (above, most), default=summed), exp.DType.BIGINT)
    divisor = chosen((joined(exp.GT, rows, number(0)), rows), default=number(1))
    return joined(exp.IntDiv, inside, divisor)


def weight_of(column: exp.Expr, signed: bool) -> exp.Expr:
    """The sum of absolute values; NULL beyond 2^62, and then the unit counts for nothing."""
    summed = total_of(applied(exp.Abs, column) if signed else column)
    return chosen((joined(exp.LTE, summed, wide(MOST)), cast(summed, exp.DType.BIGINT)))


def unit_sum(column: exp.Expr) -> exp.Expr:
    """The sum of a unit's rows; NULL beyond 2^62."""
    summed, bound = total_of(column), wide(MOST)
    inside = joined(exp.And, joined(exp.LTE, summed, bound), joined(exp.GTE, summed, applied(exp.Neg, bound)))
    return chosen((inside, cast(summed, exp.DType.BIGINT)))


def counted(node: exp.Expr) -> exp.Expr:
    """A sum as BIGINT, clamped to the range of mechanisms. Clamping contracts, so no sensitivity grows."""
    bound = wide(MOST_RELEASED)
    low = applied(exp.Neg, bound)
    inside = applied(exp.Coalesce, node, number(0))
    above, below = joined(exp.GT, node, bound), joined(exp.LT, node, low)
    return cast(chosen((above, bound), (below, low), default=inside), exp.DType.BIGINT)


def capped_sum(weight: exp.Expr, cap: int) -> exp.Expr:
    """The total of units' weights, each limited to a cap. A weight of NULL is beyond every cap."""
    most = integer(cap)
    return counted(exp.Sum(this=chosen((joined(exp.LTE, weight, most), weight), default=most)))


def weight_cap(measure: Measure, cap: float | None = None) -> int:
    """A cap in the unit of the weights: steps, rows or groups."""
    limit = measure.cap if cap is None else cap
    if measure.weighs_values:
        return max(1, math.ceil(math.ldexp(limit or 0.0, -measure.exponent)))
    return replace(measure, cap=limit).rows_cap


def census_exponent(measure: Measure) -> int:
    """The grid of a census: the largest value of one row is 2^20 steps. Rows and groups have steps of 1.

    A weight of 1 in a ball is 2^6 steps.
    """
    if measure.ball:
        return -BALL_BITS
    if not measure.weighs_values:
        return 0
    return math.ceil(math.log2(max(measure.limit_of_row, 2.0**-900))) - CENSUS_BITS
