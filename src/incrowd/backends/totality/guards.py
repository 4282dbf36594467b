"""What a condition says about the expressions in it, once it is known to hold, or not to hold.

A test of CASE that is true excludes NULL on both sides; one that is not true may be NULL, so it says
something only if the other side is never NULL. Engines order NaN above infinity, so x <= c excludes it and
x >= c does not. Whole numbers and floats are compared in float64, where a bound on one is no exact bound on
the other: nothing follows from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from sqlglot import exp

from incrowd.backends.totality.values import NUMBERS, TIMES, Kind, Number, Value

Fact = tuple[exp.Expr, Value]
"""An expression, and what its values are where the condition holds."""
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
    """What follows from a test that is true (`holds`), or that is false or NULL."""
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
    """Whether both are compared as what they are."""
    if one.kind is two.kind:
        return one.kind in NUMBERS or one.kind in TIMES
    return {one.kind, two.kind} == {Kind.INTEGER, Kind.NUMERIC}


def _beside(value: Value, kind: type[exp.Expr], bound: Value) -> Value:
    """The values of which `value kind bound` can hold."""
    found = value
    discrete = (value.kind is Kind.INTEGER and bound.kind is Kind.INTEGER) or value.kind in TIMES
    if kind in (exp.LT, exp.LTE, exp.EQ):
        # NaN is above all numbers: x < y excludes it, and x <= y if y is not NaN.
        found = found.but(nan=found.nan and bound.nan and kind is not exp.LT)
        if not (bound.above or bound.nan):
            high = -math.inf if bound.empty else bound.high
            if kind is exp.LT:
                high = _next(high, -1, discrete)
            found = found.but(above=False, high=min(found.high, high))
        elif kind is exp.LT and not bound.nan:
            found = found.but(above=False)
    if kind in (exp.GT, exp.GTE, exp.EQ):
        if not bound.below:
            if not bound.empty:
                low = _next(bound.low, 1, discrete) if kind is exp.GT else bound.low
                found = found.but(below=False, low=max(found.low, low))
                if kind is exp.GT and bound.low == 0:
                    found = found.but(zero=False)
            else:
                # The bound is infinity or NaN.
                found = found.but(below=False, low=math.inf)
        elif kind is exp.GT:
            found = found.but(below=False)
        if kind is exp.EQ:
            found = found.but(nan=found.nan and bound.nan)
    if kind is exp.LT and bound.high == 0 and not (bound.above or bound.nan):
        found = found.but(zero=False)
    return found


def _next(end: Number, step: int, discrete: bool) -> Number:
    """The number next to an end, for types that have one."""
    if discrete:
        return end + step
    return math.nextafter(end, step * math.inf) if isinstance(end, float) else end
