"""SQL for balls: measures over the same rows, whose sums are bounded together (`Measure.ball`).

    pairs    z: the unit's sum of each measure in each group, in steps, clamped
    shares   t: the norm of all of the unit's z, or its square; the share that counts: 1, or S / t

In L2 the norm is that of z in coarser steps, each rounded up, so that squares of up to 2^22 numbers are
added as whole numbers of 64 bits: no engine rounds them, and a sum does not depend on the order of its rows.
The norm comes out too large, by at most one coarse step for each number, and never too small. A unit whose
norm is above 4 S is measured in steps that are coarser still. All of a unit's numbers shrink by one factor,
however large they are: clamped one by one, a sum and its count would make no average.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from incrowd.backends.builder import PAIRS, SHARES, Builder
from incrowd.backends.measures import BALL_BITS, joint_steps, one_in_steps, share_of, weight_of
from incrowd.backends.trees import (
    applied,
    cast,
    chosen,
    column,
    count,
    integer,
    joined,
    number,
    total_of,
    wide,
)
from incrowd.query import Measure
from incrowd.query.measure import BALL

_CLAMP = 2**54
"""Beyond 2^24 S, a number is clamped."""
_COARSE = 2**12
"""In L2, a coarse step in steps: a unit of norm up to 4 S has at most 2^20 of them."""
_COARSEST = 2**26
"""The same for units of a larger norm: z has at most 2^28 of them."""
_HEAVY = (4 * BALL // _COARSE) ** 2
"""The square, in coarse steps, of a norm of 4 S."""
_CENSUS_CLAMP = 2**28
"""Squares of up to 64 measures of a pair are added in 64 bits."""
BALL_CELLS = 31
"""The cells of a census in L2: squares of norms are compared, and they are at most 2^62."""


def ball_sums(builder: Builder, measures: Sequence[Measure]) -> dict[str, exp.Expr]:
    """For each measure of a ball, what is summed over pairs that are joined with their unit's share."""
    sums = [_pair_sum(builder, measure, measure.step, _CLAMP) for measure in measures]
    if measures[0].norm == 1:
        weight = column(builder.shares.name(_norm(sums)))
        share = builder.factors.name(share_of(weight, BALL))
    else:
        weight, heavy = (
            column(builder.shares.name(_square_norm(sums, coarse))) for coarse in (_COARSE, _COARSEST)
        )
        share = builder.factors.name(_share_l2(weight, heavy))
    return {
        measure.name: cast(
            exp.Trunc(this=joined(exp.Mul, column(name, PAIRS), column(share, SHARES))), exp.DType.BIGINT
        )
        for measure, name in zip(measures, sums, strict=True)
    }


def ball_weight(builder: Builder, measures: Sequence[Measure]) -> str:
    """The column of `shares` that holds what a unit weighs in a census: its norm, in L2 the norm's square."""
    sums = [
        _pair_sum(builder, measure, measure.scale * 2.0**-BALL_BITS, _CENSUS_CLAMP) for measure in measures
    ]
    return builder.shares.name(_norm(sums) if measures[0].norm == 1 else _square_norm(sums, 1))


def _pair_sum(builder: Builder, measure: Measure, step: float, most: int) -> str:
    """The column of `pairs` that holds a unit's sum in a group, clamped; 0 where there is none."""
    if not measure.factors:
        return builder.pairs.name(_row_count(builder, measure, one_in_steps(step), most))
    row = builder.rows.name(joint_steps(measure, step))
    summed, largest = total_of(column(row)), wide(most)
    least = applied(exp.Neg, largest)
    below, above = joined(exp.LT, summed, least), joined(exp.GT, summed, largest)
    inside = chosen((below, least), (above, largest), default=summed)
    return builder.pairs.name(cast(inside, exp.DType.BIGINT))


def _row_count(builder: Builder, measure: Measure, one: int, most: int) -> exp.Expr:
    """The number of rows in which a count counts, in steps, clamped: cheaper than a sum of ones."""
    flag = None if measure.present is None else builder.rows.name(measure.present.copy())
    rows = count() if flag is None else count(chosen((column(flag), number(1))))
    few = joined(exp.LTE, rows, integer(most // max(one, 1)))
    return chosen((few, joined(exp.Mul, rows, integer(one))), default=integer(most if one else 0))


def _norm(sums: Sequence[str]) -> exp.Expr:
    return weight_of(_added([applied(exp.Abs, column(name)) for name in sums]), False)


def _square_norm(sums: Sequence[str], coarse: int) -> exp.Expr:
    """The square of a norm, in coarse steps; above `_HEAVY` if a number alone is."""
    squares = []
    for name in sums:
        size: exp.Expr = applied(exp.Abs, column(name))
        if coarse > 1:
            size = joined(exp.IntDiv, joined(exp.Add, size, integer(coarse - 1)), integer(coarse))
        if coarse == _COARSE:
            most = integer(4 * BALL // coarse + 1)
            size = chosen((joined(exp.LTE, size, most), size), default=most)
        squares.append(joined(exp.Mul, size, size))
    return weight_of(_added(squares), False)


def _share_l2(weight: exp.Expr, heavy: exp.Expr) -> exp.Expr:
    """The part of a unit that counts, from the squares of its norm in both coarse steps."""
    fine, rough = (
        share_of(square, (BALL // coarse) ** 2, root=True)
        for square, coarse in ((weight, _COARSE), (heavy, _COARSEST))
    )
    most = integer(_HEAVY)
    return chosen((joined(exp.LTE, weight, most), fine), (joined(exp.GT, weight, most), rough))


def _added(terms: Sequence[exp.Expr]) -> exp.Expr:
    total, *others = terms
    for term in others:
        total = joined(exp.Add, total, term)
    return total
