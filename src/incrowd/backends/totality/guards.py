"""The facts that follow for the expressions in a condition, if the condition holds or if it does not.

A test of CASE that is true excludes NULL on both sides. One that is not true may be NULL, so a fact about one
side follows only if the other side is never NULL. Engines order NaN above infinity, so x <= c excludes NaN
and x >= c does not. Whole numbers and floats are compared in float64, where a bound on one is no exact bound
on the other, so nothing follows from such a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from sqlglot import exp

from incrowd.backends.totality.values import NUMBERS, TIMES, Kind, Number, Value

Fact = tuple[exp.Expr, Value]
"""An expression, and the values it can have once the outcome of the condition is known."""
Evaluate = Callable[[exp.Expr], Value]
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def facts(test: exp.Expr, holds: bool, evaluate: Evaluate) -> Iterator[Fact]:
    """The facts that follow from a test that is true (`holds`), or that is false or NULL."""
    if isinstance(test, exp.Paren):
        yield from facts(test.this, holds, evaluate)
    elif isinstance(test, exp.And if holds else exp.Or):
        yield from facts(test.this, holds, evaluate)
        yield from facts(test.expression, holds, evaluate)
    elif isinstance(test, exp.Not) and holds:
        yield from facts(test.this, False, evaluate)
    elif isinstance(test, exp.Between) and holds:
        for kind, end in ((exp.GTE, "low"), (exp.LTE, "high")):
            yield from _compared(kind, test.this, test.args[end], evaluate, True)
    elif type(test) in _MIRRORED:
        asked = type(test) if holds else _NEGATED.get(type(test))
        if asked is not None:
            yield from _compared(asked, test.this, test.expression, evaluate, holds)


def _compared(
    kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, evaluate: Evaluate, holds: bool
) -> Iterator[Fact]:
    one, two = evaluate(left), evaluate(right)
    if not _exact(one, two):
        return
    if holds or not two.null:
        yield left, _beside(one, kind, two)
    if holds or not one.null:
        yield right, _beside(two, _MIRRORED[kind], one)


def _exact(one: Value, two: Value) -> bool:
    """True if the engine compares both values exactly, without rounding either."""
    if one.kind is two.kind:
        return one.kind in NUMBERS or one.kind in TIMES
    return {one.kind, two.kind} == {Kind.INTEGER, Kind.NUMERIC}


def _beside(value: Value, kind: type[exp.Expr], bound: Value) -> Value:
    """The values for which the comparison `value kind bound` can be true."""
    narrowed = value
    discrete = (value.kind is Kind.INTEGER and bound.kind is Kind.INTEGER) or value.kind in TIMES
    if kind in (exp.LT, exp.LTE, exp.EQ):
        # NaN is above all numbers: x < y excludes it, and x <= y if y is not NaN.
        narrowed = narrowed.but(nan=narrowed.nan and bound.nan and kind is not exp.LT)
        if not (bound.above or bound.nan):
            high = -math.inf if bound.empty else bound.high
            if kind is exp.LT:
                high = _next(high, -1, discrete)
            narrowed = narrowed.but(above=False, high=min(narrowed.high, high))
        elif kind is exp.LT and not bound.nan:
            narrowed = narrowed.but(above=False)
    if kind in (exp.GT, exp.GTE, exp.EQ):
        if not bound.below:
            if not bound.empty:
                low = _next(bound.low, 1, discrete) if kind is exp.GT else bound.low
                narrowed = narrowed.but(below=False, low=max(narrowed.low, low))
                if kind is exp.GT and bound.low == 0:
                    narrowed = narrowed.but(zero=False)
            else:
                # The bound is infinity or NaN.
                narrowed = narrowed.but(below=False, low=math.inf)
        elif kind is exp.GT:
            narrowed = narrowed.but(below=False)
        if kind is exp.EQ:
            narrowed = narrowed.but(nan=narrowed.nan and bound.nan)
    if kind is exp.LT and bound.high == 0 and not (bound.above or bound.nan):
        narrowed = narrowed.but(zero=False)
    return narrowed


def _next(end: Number, step: int, discrete: bool) -> Number:
    """The number next to an end. Decimals have no next number, so their end stays."""
    if discrete:
        return end + step
    return math.nextafter(end, step * math.inf) if isinstance(end, float) else end
