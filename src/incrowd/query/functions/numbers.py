"""Functions of numbers: float64 in, float64 out, NULL where they are not defined."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

from sqlglot import exp

from incrowd.catalog.types import Kind
from incrowd.errors import QueryError
from incrowd.query.functions.powers import exponential
from incrowd.query.functions.signature import Function, as_number, name_of, one, whole_constant
from incrowd.query.magnitude import multiplied, rounded
from incrowd.query.typed import Typed, double, guarded

_MOST_BUCKETS = 1_000


def _map(value: float | None, function: Callable[[float], float]) -> float | None:
    return None if value is None else function(value)


def _rounding(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_number(node, arguments[0])
    if isinstance(node, exp.Round | exp.Trunc) and len(arguments) == 2:
        digits = max(-18, min(18, whole_constant(node, arguments[1], "The number of digits")))
        return rounded_at(value, digits, type(node))
    one(node, arguments)
    rounding = _ROUNDINGS[type(node)]
    low, high = (_map(end, rounding) for end in (value.low, value.high))
    wide = None if value.wide is None else (rounding(value.wide[0]), rounding(value.wide[1]))
    sql = type(node)(this=value.sql)
    return Typed(sql, "integer", low, high, value.nullable, size=value.size, wide=wide)


def _half_away(value: float) -> float:
    """To the nearest whole number, halves away from zero, as engines round."""
    return math.copysign(math.floor(abs(value) + 0.5), value)


_ROUNDINGS: dict[type[exp.Expr], Callable[[float], float]] = {
    exp.Floor: math.floor,
    exp.Ceil: math.ceil,
    exp.Trunc: math.trunc,
    exp.Round: _half_away,
}


def rounded_at(value: Typed, digits: int, how: type[exp.Expr] = exp.Round) -> Typed:
    """Rounded or cut off at a decimal place: scaled, made whole (halves away from zero), scaled back."""
    power = Typed(double(10.0 ** abs(digits)), "float", size=60)
    value, power, size = multiplied(value, power)
    there, back = (exp.Mul, exp.Div) if digits >= 0 else (exp.Div, exp.Mul)
    scaled = _scaled(there, exp.paren(value.sql), power)
    sql = exp.paren(_scaled(back, how(this=scaled), power))
    slack = 10.0**-digits
    low, high = _map(value.low, lambda v: v - slack), _map(value.high, lambda v: v + slack)
    kind: Kind = "float" if digits > 0 else "integer"
    wide = None if value.wide is None else (value.wide[0] - slack, value.wide[1] + slack)
    return Typed(sql, kind, low, high, value.nullable, size=size + power.size, wide=wide)


def _scaled(operation: type[exp.Expr], sql: exp.Expr, power: Typed) -> exp.Expr:
    flags = {"typed": False, "safe": False} if operation is exp.Div else {}
    return operation(this=sql, expression=power.sql.copy(), **flags)


def _abs(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_number(node, one(node, arguments))
    low = high = None
    if value.low is not None and value.high is not None:
        ends = sorted((abs(value.low), abs(value.high)))
        low, high = (0.0 if value.low <= 0 <= value.high else ends[0]), ends[1]
    most = None if value.wide is None else max(map(abs, value.wide))
    wide = None if most is None else (0.0, most)
    return Typed(exp.Abs(this=value.sql), value.kind, low, high, value.nullable, size=value.size, wide=wide)


def _sign(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_number(node, one(node, arguments))
    sql = exp.Case(
        ifs=[
            exp.If(this=test(this=value.sql.copy(), expression=double(0.0)), true=double(result))
            for test, result in ((exp.LT, -1.0), (exp.EQ, 0.0), (exp.LTE, 1.0))
        ]
    )
    # The last test is against infinity: NaN, which engines order above it, has no sign.
    sql.args["ifs"][2].this.set("expression", double(math.inf))
    return Typed(sql, "integer", -1, 1, value.nullable or value.kind == "float", (-1, 0, 1), size=1)


def _width_bucket(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """WIDTH_BUCKET(x, low, high, n): 0 below, 1 to n between, n + 1 from `high` on; NaN is in none."""
    if len(arguments) != 4:
        raise QueryError("WIDTH_BUCKET takes a number, two bounds and a number of buckets.")
    value = as_number(node, arguments[0])
    low, high = (argument.constant for argument in arguments[1:3])
    count = whole_constant(node, arguments[3], "The number of buckets")
    if low is None or high is None or not low < high:
        raise QueryError("The bounds of WIDTH_BUCKET must be two constants, the lower one first.")
    if not 1 <= count <= _MOST_BUCKETS:
        raise QueryError(f"WIDTH_BUCKET makes 1 to {_MOST_BUCKETS} buckets here; use FLOOR for more.")
    edges = [low + (high - low) * place / count for place in range(count)] + [high]
    tests: list[exp.Expr] = [exp.LT(this=value.sql.copy(), expression=double(edge)) for edge in edges]
    tests.append(exp.LTE(this=value.sql.copy(), expression=double(math.inf)))
    sql = exp.Case(ifs=[exp.If(this=test, true=double(float(place))) for place, test in enumerate(tests)])
    first = 0 if value.low is None else bisect.bisect_right(edges, value.low)
    last = count + 1 if value.high is None else bisect.bisect_right(edges, value.high)
    nullable = value.nullable or arguments[0].kind == "float"
    return Typed(sql, "integer", first, last, nullable, tuple(range(first, last + 1)), size=11)


def _defined_above_zero(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """LN, LOG and SQRT: NULL where they are not defined."""
    root = isinstance(node, exp.Sqrt)
    if len(arguments) > (2 if isinstance(node, exp.Log) else 1):
        raise QueryError(f"{name_of(node)} takes one number.")
    value = as_number(node, arguments[-1])
    above = value.high is None or value.high > 0 or (root and value.high == 0)
    if not above and value.sql.find(exp.Column) is None:
        # The engines' proofs narrow what columns hold by a test, and no constants.
        return Typed(exp.cast(exp.Null(), exp.DType.DOUBLE), "float", nullable=True, size=1)
    test = (exp.GTE if root else exp.GT)(this=value.sql.copy(), expression=double(0.0))
    function: Callable[[float], float] = math.sqrt if root else math.log
    divisor = 1.0
    inner: exp.Expr = exp.Sqrt(this=value.sql) if root else rounded(exp.Ln(this=value.sql))
    if isinstance(node, exp.Log):
        # One argument is base 10 in SQL; the natural logarithm is the one that every engine has.
        base = 10.0 if len(arguments) == 1 else arguments[0].constant or 0.0
        if base <= 0 or base == 1:
            raise QueryError("The base of LOG must be a positive constant other than 1.")
        divisor = math.log(base)
        inner = exp.Div(this=inner, expression=double(divisor), typed=False, safe=False)
    low = high = None
    sure = value.low is not None and (value.low > 0 or (root and value.low >= 0))
    if sure and value.low is not None and value.high is not None:
        ends = sorted((function(value.low) / divisor, function(value.high) / divisor))
        slack = 1e-9 if root else 1e-6 * (1 + abs(ends[0]) + abs(ends[1]))
        low, high = ends[0] - slack, ends[1] + slack
    size = value.size // 2 + 1 if root else 200
    return Typed(guarded(test, inner), "float", low, high, not sure or value.nullable, size=size)


def _exp(node: exp.Expr, arguments: list[Typed]) -> Typed:
    return exponential(as_number(node, one(node, arguments)))


NUMBERS: dict[type[exp.Expr], Function] = {
    exp.Floor: _rounding,
    exp.Ceil: _rounding,
    exp.Round: _rounding,
    exp.Trunc: _rounding,
    exp.Abs: _abs,
    exp.Sign: _sign,
    exp.WidthBucket: _width_bucket,
    exp.Ln: _defined_above_zero,
    exp.Log: _defined_above_zero,
    exp.Sqrt: _defined_above_zero,
    exp.Exp: _exp,
}
