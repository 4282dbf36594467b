"""Functions that shift or scale their argument: DEGREES, RADIANS, PI, LOG1P, EXPM1."""

from __future__ import annotations

import math

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions.powers import exponential
from incrowd.query.functions.signature import Function, as_number, one
from incrowd.query.magnitude import added, multiplied, rounded
from incrowd.query.typed import Typed, double, guarded


def _angle(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_number(node, one(node, arguments))
    factor = 180 / math.pi if isinstance(node, exp.Degrees) else math.pi / 180
    left, right, size = multiplied(value, Typed(double(factor), "float", factor, factor, False, size=7))
    sql = exp.paren(exp.Mul(this=exp.paren(left.sql), expression=right.sql))
    low, high = (None if end is None else end * factor for end in (value.low, value.high))
    return Typed(sql, "float", low, high, value.nullable, size=size)


def _pi(node: exp.Expr, arguments: list[Typed]) -> Typed:
    if arguments:
        raise QueryError("PI takes no argument, as in PI().")
    return Typed(double(math.pi), "float", math.pi, math.pi, False, (math.pi,), size=2)


def _plus(value: Typed, constant: float) -> Typed:
    other = Typed(double(constant), "float", constant, constant, False, size=1)
    left, right, size = added(value, other)
    low, high = (None if end is None else end + constant for end in (value.low, value.high))
    sql = exp.paren(exp.Add(this=exp.paren(left.sql), expression=right.sql))
    return Typed(sql, "float", low, high, value.nullable, size=size)


def logarithm_plus_one(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """LOG1P(x): LN(1 + x); NULL from -1 down."""
    value = _plus(as_number(node, one(node, arguments)), 1.0)
    test = exp.GT(this=value.sql.copy(), expression=double(0.0))
    sure = value.low is not None and value.low > 0
    low = high = None
    if value.low is not None and value.high is not None and value.low > 0:
        low, high = math.log(value.low), math.log(value.high)
        slack = 1e-6 * (1 + abs(low) + abs(high))
        low, high = low - slack, high + slack
    sql = guarded(test, rounded(exp.Ln(this=value.sql.copy())))
    return Typed(sql, "float", low, high, not sure or value.nullable, size=200)


def exponential_less_one(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """EXPM1(x): EXP(x) - 1."""
    return _plus(exponential(as_number(node, one(node, arguments))), -1.0)


SCALES: dict[type[exp.Expr], Function] = {exp.Degrees: _angle, exp.Radians: _angle, exp.Pi: _pi}
