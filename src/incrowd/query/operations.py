"""Arithmetic of two numbers in total form: + - * / // and %, with the ends of what they give.

Numbers are computed in float64 and kept where no engine overflows (`magnitude`); a division by zero is NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from sqlglot import exp

from incrowd.catalog.types import Kind
from incrowd.errors import QueryError
from incrowd.query.combining import as_float
from incrowd.query.magnitude import LARGEST, added, multiplied, tame
from incrowd.query.typed import Typed, double, said

_OPERATIONS: dict[type[exp.Expr], tuple[str, Callable[[float, float], float]]] = {
    exp.Add: ("+", lambda a, b: a + b),
    exp.Sub: ("-", lambda a, b: a - b),
    exp.Mul: ("*", lambda a, b: a * b),
}


def _interval(
    operation: Callable[[float, float], float], left: Typed, right: Typed
) -> tuple[float | None, float | None]:
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return None, None
    corners = [operation(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    if any(not math.isfinite(corner) for corner in corners):
        return None, None
    return min(corners), max(corners)


def _wide(
    operation: Callable[[float, float], float], left: Typed, right: Typed
) -> tuple[float, float] | None:
    """The ends that take the place of bounds, of a number computed from two."""
    one, two = left.reach, right.reach
    if one is None or two is None or (left.bounded and right.bounded):
        return None
    sides = (left.but(low=one[0], high=one[1]), right.but(low=two[0], high=two[1]))
    low, high = _interval(operation, *sides)
    return None if low is None or high is None else (low, high)


def negated(value: Typed) -> Typed:
    """-value."""
    inner = as_float(value, "-")
    low = None if inner.high is None else -inner.high
    high = None if inner.low is None else -inner.low
    wide = None if inner.wide is None else (-inner.wide[1], -inner.wide[0])
    sql = exp.Neg(this=exp.paren(inner.sql))
    return Typed(sql, inner.kind, low, high, inner.nullable, size=inner.size, wide=wide)


def combined(node: exp.Expr, left: Typed, right: Typed) -> Typed:
    """left + right, left - right or left * right; both are numbers."""
    symbol, operation = _OPERATIONS[type(node)]
    left = as_float(left, symbol, copy=False)
    right = as_float(right, symbol, copy=False)
    left, right, size = (multiplied if symbol == "*" else added)(left, right)
    low, high = _interval(operation, left, right)
    if symbol == "*" and low is not None and left.sql == right.sql:
        low = max(low, 0.0)
    kind: Kind = "integer" if left.kind == right.kind == "integer" else "float"
    sql = type(node)(this=left.sql, expression=right.sql)
    wide = _wide(operation, left, right)
    return Typed(sql, kind, low, high, left.nullable or right.nullable, size=size, wide=wide)


def quotient(node: exp.Expr, left: Typed, right: Typed) -> Typed:
    """left / right, NULL where right is 0; `//` cuts off what follows the point."""
    whole = isinstance(node, exp.IntDiv)
    left = as_float(left, "/", copy=False)
    right = as_float(right, "/", copy=False)
    if whole and not left.kind == right.kind == "integer":
        raise QueryError(f"{said(node)} needs whole numbers; use FLOOR(a / b).")
    left, right, size = multiplied(left, right)
    sql: exp.Expr = exp.Div(
        this=left.sql, expression=exp.Nullif(this=right.sql, expression=double(0.0)), typed=False, safe=False
    )
    apart = right.bounded and ((right.low or 0) > 0 or (right.high or 0) < 0)
    low, high = _interval(operator.truediv, left, right) if apart else (None, None)
    wide = _wide(operator.truediv, left, right) if apart else None
    if whole:
        sql = exp.Trunc(this=sql)
        low, high = (None if end is None else math.trunc(end) for end in (low, high))
    kind: Kind = "integer" if whole else "float"
    nullable = not apart or left.nullable or right.nullable
    return Typed(sql, kind, low, high, nullable, size=size, wide=wide)


def remainder(left: Typed, right: Typed) -> Typed:
    """left % right, with the sign of left; NULL where right is 0."""
    left = as_float(left, "%")
    right = as_float(right, "%")
    if left.size + 2 * right.size > LARGEST:
        left, right = tame(left), tame(right)
    size = left.size + 2 * right.size + 53
    # a - b * trunc(a / b): the remainder without an engine's own modulo, which may raise on zero.
    quotient = exp.Div(
        this=left.sql.copy(),
        expression=exp.Nullif(this=right.sql.copy(), expression=double(0.0)),
        typed=False,
        safe=False,
    )
    sql = exp.Sub(this=left.sql, expression=exp.Mul(this=right.sql, expression=exp.Trunc(this=quotient)))
    kind: Kind = "integer" if left.kind == right.kind == "integer" else "float"
    low = high = None
    if right.low is not None and right.high is not None:
        most = max(abs(right.low), abs(right.high)) - (1 if kind == "integer" else 0)
        most = max(most, 0.0)
        low = 0.0 if left.low is not None and left.low >= 0 else -most
        high = 0.0 if left.high is not None and left.high <= 0 else most
    apart = right.bounded and ((right.low or 0) > 0 or (right.high or 0) < 0)
    values = None
    if kind == "integer" and low is not None and high is not None and high - low <= 100:
        # Few remainders are a public domain; they are sure where float64 holds the operands exactly.
        small = left.bounded and max(abs(left.low or 0), abs(left.high or 0)) < 2**53
        values = tuple(range(int(low), int(high) + 1)) if small else None
    nullable = not apart or left.nullable or right.nullable
    return Typed(exp.paren(sql), kind, low, high, nullable, values, size=size)
