"""The functions that may be applied to private rows, each in its total (never-raising) form.

A function takes the parsed node and its arguments, already total, and gives the total call with what is known
of its result. To add one: prove that no argument makes any engine raise, or guard the call with CASE.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.sql import DIALECT, number
from incrowd.query.typed import NUMBERS, TIMES, Kind, Typed

Function = Callable[[exp.Expression, list[Typed]], Typed]

_PARTS: dict[str, tuple[float, float] | None] = {
    "YEAR": None,
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DAYOFWEEK": (0, 6),
    "DOW": (0, 6),
    "HOUR": (0, 23),
    "MINUTE": (0, 59),
    "SECOND": (0, 60),
}
_TRUNCATIONS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"}
LONGEST_TEXT = 1_000_000


def _name(node: exp.Expression) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()


def _number(node: exp.Expression, typed: Typed) -> Typed:
    if typed.kind not in NUMBERS | {"null"}:
        raise QueryError(f"{_name(node)} needs a number, but {typed.sql.sql(DIALECT)} is of type {typed.kind}.")
    return typed.but(sql=exp.cast(typed.sql, "DOUBLE"))


def _text(node: exp.Expression, typed: Typed) -> Typed:
    if typed.kind not in ("text", "null"):
        raise QueryError(f"{_name(node)} needs text, but {typed.sql.sql(DIALECT)} is of type {typed.kind}; CAST it AS TEXT.")
    return typed


def _time(node: exp.Expression, typed: Typed) -> Typed:
    if typed.kind not in TIMES:
        raise QueryError(f"{_name(node)} needs a date, but {typed.sql.sql(DIALECT)} is of type {typed.kind}; CAST it AS DATE.")
    # Engines raise on date arithmetic near the ends of their calendars, and on infinite dates.
    first, last = (exp.cast(exp.Literal.string(day), "DATE") for day in ("0001-01-08", "9999-12-24"))
    test = exp.And(
        this=exp.GTE(this=typed.sql.copy(), expression=first), expression=exp.LTE(this=typed.sql.copy(), expression=last)
    )
    return typed.but(sql=_guarded(test, typed.sql))


def _constant(node: exp.Expression, typed: Typed, what: str) -> int:
    value = number(typed.sql)
    if value is None or not value.is_integer() or abs(value) > LONGEST_TEXT:
        raise QueryError(f"{what} of {_name(node)} must be a constant whole number.")
    return int(value)


def _guarded(test: exp.Expression, sql: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=test, true=sql)])


def _map(value: float | None, function: Callable[[float], float]) -> float | None:
    return None if value is None else function(value)


def _rounding(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _number(node, arguments[0])
    if isinstance(node, exp.Floor | exp.Ceil) and len(arguments) > 1:
        raise QueryError(f"{_name(node)} takes one number.")
    if isinstance(node, exp.Round) and len(arguments) > 1:
        digits = max(-18, min(18, _constant(node, arguments[1], "The number of digits")))
        places = exp.Literal.number(str(abs(digits)))
        sql: exp.Expression = exp.Round(this=value.sql, decimals=exp.Neg(this=places) if digits < 0 else places)
        slack = 10.0**-digits
        low, high = _map(value.low, lambda v: v - slack), _map(value.high, lambda v: v + slack)
        return Typed(sql, "float" if digits > 0 else "integer", low, high, value.nullable)
    sql = type(node)(this=value.sql)
    return Typed(sql, "integer", _map(value.low, math.floor), _map(value.high, math.ceil), value.nullable)


def _abs(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _number(node, arguments[0])
    low = high = None
    if value.low is not None and value.high is not None:
        ends = sorted((abs(value.low), abs(value.high)))
        low, high = (0.0 if value.low <= 0 <= value.high else ends[0]), ends[1]
    return Typed(exp.Abs(this=value.sql), value.kind, low, high, value.nullable)


def _sign(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _number(node, arguments[0])
    zero = exp.Literal.number("0")
    sql = exp.Case(
        ifs=[
            exp.If(this=exp.GT(this=value.sql, expression=zero), true=exp.Literal.number("1")),
            exp.If(this=exp.LT(this=value.sql.copy(), expression=zero.copy()), true=exp.Neg(this=exp.Literal.number("1"))),
            exp.If(this=exp.EQ(this=value.sql.copy(), expression=zero.copy()), true=zero.copy()),
        ]
    )
    return Typed(sql, "integer", -1, 1, True, (-1, 0, 1))


def _positive_only(node: exp.Expression, arguments: list[Typed]) -> Typed:
    """LN, LOG and SQRT: NULL where they are not defined."""
    value = _number(node, arguments[-1])
    test_class = exp.GTE if isinstance(node, exp.Sqrt) else exp.GT
    test = test_class(this=value.sql.copy(), expression=exp.Literal.number("0"))
    function: Callable[[float], float] = math.sqrt if isinstance(node, exp.Sqrt) else math.log
    divisor = 1.0
    inner: exp.Expression = exp.Sqrt(this=value.sql) if isinstance(node, exp.Sqrt) else exp.Ln(this=value.sql)
    if isinstance(node, exp.Log):
        # One argument is base 10 in SQL; the natural logarithm is the one that every engine computes alike.
        base = 10.0 if len(arguments) == 1 else number(arguments[0].sql) or 0.0
        if base <= 0 or base == 1:
            raise QueryError("The base of LOG must be a positive constant other than 1.")
        divisor = math.log(base)
        inner = exp.Div(this=inner, expression=exp.cast(exp.Literal.string(repr(divisor)), "DOUBLE"))
    low = high = None
    if value.low is not None and value.high is not None and (value.low > 0 or isinstance(node, exp.Sqrt) and value.low >= 0):
        ends = sorted((function(value.low) / divisor, function(value.high) / divisor))
        low, high = ends[0] - 1e-9, ends[1] + 1e-9
    sure = low is not None and not value.nullable
    return Typed(_guarded(test, inner), "float", low, high, not sure)


def _exp(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _number(node, arguments[0])
    test = exp.LT(this=value.sql.copy(), expression=exp.Literal.number("700"))
    high = None if value.high is None or value.high >= 700 else math.exp(value.high) * (1 + 1e-9)
    return Typed(_guarded(test, exp.Exp(this=value.sql)), "float", 0.0 if high is not None else None, high, True)


def _power(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _number(node, arguments[0])
    exponent = number(arguments[1].sql)
    if exponent not in (1, 2, 3, 4):
        raise QueryError("POWER takes a constant exponent of 1, 2, 3 or 4; use SQRT, EXP and LN for others.")
    count = int(exponent)
    sql: exp.Expression = value.sql
    for _ in range(count - 1):
        sql = exp.Mul(this=sql, expression=value.sql.copy())
    low = high = None
    if value.low is not None and value.high is not None:
        ends = sorted((value.low**count, value.high**count))
        low, high = (0.0 if count % 2 == 0 and value.low <= 0 <= value.high else ends[0]), ends[1]
    return Typed(exp.paren(sql), value.kind, low, high, value.nullable)


def _extremum(node: exp.Expression, arguments: list[Typed]) -> Typed:
    """LEAST and GREATEST: how an analyst clamps. NULL if any is NULL, on every engine."""
    first = arguments[0]
    if first.kind in TIMES and all(each.kind == first.kind for each in arguments):
        return Typed(type(node)(this=first.sql, expressions=[each.sql for each in arguments[1:]]), first.kind)
    numbers = [_number(node, each) for each in arguments]
    lows = [each.low for each in numbers]
    highs = [each.high for each in numbers]
    known_lows = [each for each in lows if each is not None]
    known_highs = [each for each in highs if each is not None]
    if isinstance(node, exp.Least):
        high = min(known_highs, default=None)
        low = min(known_lows) if len(known_lows) == len(lows) else None
        better: type[exp.Binary] = exp.LTE
    else:
        low = max(known_lows, default=None)
        high = max(known_highs) if len(known_highs) == len(highs) else None
        better = exp.GTE
    sql = numbers[0].sql
    for each in numbers[1:]:
        test = better(this=sql.copy(), expression=each.sql)
        other = exp.If(this=exp.Not(this=exp.Is(this=sql.copy(), expression=exp.null())), true=each.sql.copy())
        sql = exp.Case(ifs=[exp.If(this=test, true=sql), other])
    kind: Kind = "integer" if all(each.kind == "integer" for each in numbers) else "float"
    return Typed(sql, kind, low, high, any(each.nullable for each in numbers))


def _coalesce(node: exp.Expression, arguments: list[Typed]) -> Typed:
    from incrowd.query.expressions import unite  # the two walk each other's trees

    facts = unite(arguments, "COALESCE")
    sql = exp.Coalesce(this=arguments[0].sql, expressions=[each.sql for each in arguments[1:]])
    return facts.but(sql=sql, nullable=all(each.nullable for each in arguments))


def _nullif(node: exp.Expression, arguments: list[Typed]) -> Typed:
    from incrowd.query.expressions import comparable

    left, right = comparable(arguments[0], arguments[1], "NULLIF")
    return left.but(sql=exp.Nullif(this=left.sql, expression=right.sql), nullable=True)


def _text_to_text(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _text(node, arguments[0])
    if len(arguments) > 1:
        raise QueryError(f"{_name(node)} takes one text here.")
    return Typed(type(node)(this=value.sql), "text", nullable=value.nullable)


def _length(node: exp.Expression, arguments: list[Typed]) -> Typed:
    return Typed(exp.Length(this=_text(node, arguments[0]).sql), "integer", 0, None, arguments[0].nullable)


def _slice(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _text(node, arguments[0])
    places = [_constant(node, each, "The place") for each in arguments[1:]]
    if any(place < 0 for place in places) or isinstance(node, exp.Substring) and places[0] < 1:
        raise QueryError(f"{_name(node)} counts from 1 here, and takes no negative lengths.")
    texts = [exp.Literal.number(str(place)) for place in places]
    if isinstance(node, exp.Substring):
        sql: exp.Expression = exp.Substring(this=value.sql, start=texts[0], length=texts[1] if len(texts) > 1 else None)
    else:
        sql = type(node)(this=value.sql, expression=texts[0])
    return Typed(sql, "text", nullable=value.nullable)


def _concat(node: exp.Expression, arguments: list[Typed]) -> Typed:
    parts = [_text(node, each) for each in arguments]
    sql = parts[0].sql
    for each in parts[1:]:
        sql = exp.DPipe(this=sql, expression=each.sql, safe=True)
    # CONCAT skips NULLs in some engines and not in others; here, as with ||, NULL makes NULL.
    return Typed(exp.paren(sql), "text", nullable=any(each.nullable for each in parts))


def _replace(node: exp.Expression, arguments: list[Typed]) -> Typed:
    value = _text(node, arguments[0])
    if len(arguments) != 3 or any(not isinstance(each.sql, exp.Literal) or not each.sql.is_string for each in arguments[1:]):
        raise QueryError("REPLACE takes a text and two constant texts.")
    if len(arguments[2].sql.name) > max(len(arguments[1].sql.name), 1) or not arguments[1].sql.name:
        raise QueryError("REPLACE must not make the text longer, so that no row can exhaust memory.")
    sql = exp.Replace(this=value.sql, expression=arguments[1].sql, replacement=arguments[2].sql)
    return Typed(sql, "text", nullable=value.nullable)


def _text_test(node: exp.Expression, arguments: list[Typed]) -> Typed:
    left, right = _text(node, arguments[0]), _text(node, arguments[1])
    sql = type(node)(this=left.sql, expression=right.sql)
    return Typed(sql, "boolean", 0, 1, left.nullable or right.nullable, (False, True))


def _part(name: str, value: Typed) -> Typed:
    span = _PARTS[name]
    unit = "DOW" if name == "DAYOFWEEK" else name
    sql = exp.cast(exp.Extract(this=exp.var(unit), expression=value.sql), "BIGINT")
    if span is None:
        return Typed(sql, "integer", nullable=value.nullable)
    low, high = int(span[0]), int(span[1])
    return Typed(sql, "integer", low, high, value.nullable, tuple(range(low, high + 1)))


def _date_part(node: exp.Expression, arguments: list[Typed]) -> Typed:
    name = node.name.upper() if isinstance(node, exp.Extract) else type(node).__name__.upper()
    if name not in _PARTS:
        raise QueryError(f"EXTRACT of {name} is not possible here; use {', '.join(_PARTS)}.")
    return _part(name, _time(node, arguments[-1]))


def _truncate(node: exp.Expression, arguments: list[Typed]) -> Typed:
    unit = str(node.args["unit"].name).upper()
    if unit not in _TRUNCATIONS:
        raise QueryError(f"DATE_TRUNC to {unit} is not possible here; use {', '.join(sorted(_TRUNCATIONS))}.")
    value = _time(node, arguments[0])
    if value.kind == "date" and unit not in ("HOUR", "MINUTE"):
        call = exp.func("DATE_TRUNC", exp.Literal.string(unit), value.sql, dialect=DIALECT)
        return Typed(exp.TryCast(this=call, to=exp.DataType.build("DATE")), "date", nullable=value.nullable)
    call = exp.func("DATE_TRUNC", exp.Literal.string(unit), value.sql, dialect=DIALECT)
    return Typed(exp.TryCast(this=call, to=exp.DataType.build("TIMESTAMP")), "timestamp", nullable=value.nullable)


def _days_between(node: exp.Expression, arguments: list[Typed]) -> Typed:
    unit = str(node.args["unit"].name).upper() if node.args.get("unit") else "DAY"
    if unit != "DAY":
        raise QueryError("DATE_DIFF counts days here; divide for other units.")
    end, start = (_time(node, each) for each in arguments[:2])
    days = [exp.TryCast(this=each.sql, to=exp.DataType.build("DATE")) for each in (start, end)]
    call = exp.func("DATE_DIFF", exp.Literal.string("day"), *days, dialect=DIALECT)
    return Typed(call, "integer", nullable=start.nullable or end.nullable)


FUNCTIONS: dict[type[exp.Expression], Function] = {
    exp.Floor: _rounding,
    exp.Ceil: _rounding,
    exp.Round: _rounding,
    exp.Trunc: _rounding,
    exp.Abs: _abs,
    exp.Sign: _sign,
    exp.Ln: _positive_only,
    exp.Log: _positive_only,
    exp.Sqrt: _positive_only,
    exp.Exp: _exp,
    exp.Pow: _power,
    exp.Least: _extremum,
    exp.Greatest: _extremum,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Lower: _text_to_text,
    exp.Upper: _text_to_text,
    exp.Trim: _text_to_text,
    exp.Length: _length,
    exp.Substring: _slice,
    exp.Left: _slice,
    exp.Right: _slice,
    exp.DPipe: _concat,
    exp.Concat: _concat,
    exp.Replace: _replace,
    exp.StartsWith: _text_test,
    exp.Contains: _text_test,
    **{
        each: _date_part
        for each in (exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.Hour, exp.Minute, exp.Second)
    },
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.DateDiff: _days_between,
}
