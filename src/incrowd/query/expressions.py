"""Row expressions in total form: whatever the data holds, no expression of a bounded plan can raise.

An error that depends on a row is a leak, so every construct is on a list with its never-raising version:
casts become TRY_CAST, divisions by zero NULL, numbers are computed in float64 (which overflows to infinity,
not to an error), logarithms and roots of wrong arguments NULL. What is not on the list is refused. The same
walk derives kind, range and possible values (`Typed`).

Everything here is a function of one row, so it moves no more than that row's unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions import FUNCTIONS
from incrowd.query.sql import DIALECT, number
from incrowd.query.typed import NUMBERS, TIMES, Kind, Lookup, Typed

_RANDOM = (exp.Rand, exp.Randn, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Uuid)
_CASTS: dict[exp.DataType.Type, tuple[Kind, str]] = {
    **{
        each: ("integer", "BIGINT")
        for each in (
            exp.DataType.Type.INT,
            exp.DataType.Type.BIGINT,
            exp.DataType.Type.SMALLINT,
            exp.DataType.Type.TINYINT,
        )
    },
    **{
        each: ("float", "DOUBLE")
        for each in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.DECIMAL)
    },
    **{each: ("text", "TEXT") for each in (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)},
    exp.DataType.Type.BOOLEAN: ("boolean", "BOOLEAN"),
    exp.DataType.Type.DATE: ("date", "DATE"),
    exp.DataType.Type.TIMESTAMP: ("timestamp", "TIMESTAMP"),
}


def total(node: exp.Expression, lookup: Lookup) -> Typed:
    """`node` in total form, with what is known of it."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(node, lookup)
    if isinstance(node, exp.Window):
        raise QueryError("Window functions over private rows are not possible; aggregate with GROUP BY first.")
    if isinstance(node, exp.AggFunc):
        raise QueryError(f"{node.sql(DIALECT)} is an aggregate inside a row's expression; aggregate in SELECT or HAVING.")
    if isinstance(node, exp.Subquery | exp.Exists | exp.Select):
        raise QueryError("A sub-query inside an expression over private rows is not possible; join a public table instead.")
    if isinstance(node, _RANDOM):
        raise QueryError(f"{node.sql(DIALECT)} gives another value each time; write a constant instead.")
    function = FUNCTIONS.get(type(node))
    if function is not None:
        return function(node, [total(each, lookup) for each in _arguments(node)])
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql(DIALECT)
    raise QueryError(f"{name} is not among the expressions that are safe over private rows; write it with CASE, arithmetic, text or date functions.")


def _arguments(node: exp.Expression) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    for value in node.args.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expression) and not isinstance(each, exp.Var | exp.DataType):
                found.append(each)
    return found


def _column(node: exp.Expression, lookup: Lookup) -> Typed:
    assert isinstance(node, exp.Column)
    return lookup(node)


def _literal(node: exp.Expression, lookup: Lookup) -> Typed:
    value = number(node)
    if value is None:
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise QueryError(f"The number {node.sql(DIALECT)} is too large.")
        return Typed(node.copy(), "text", nullable=False, values=(node.name,))
    whole = value.is_integer() and abs(value) < 2**53 and "." not in node.sql() and "e" not in node.sql().lower()
    kind: Kind = "integer" if whole else "float"
    shown: Any = int(value) if whole else value
    return Typed(node.copy(), kind, value, value, False, (shown,))


def _neg(node: exp.Expression, lookup: Lookup) -> Typed:
    if number(node) is not None:
        return _literal(node, lookup)
    inner = as_float(total(node.this, lookup), "-")
    low = None if inner.high is None else -inner.high
    high = None if inner.low is None else -inner.low
    return Typed(exp.Neg(this=exp.paren(inner.sql)), inner.kind, low, high, inner.nullable)


def _null(node: exp.Expression, lookup: Lookup) -> Typed:
    return Typed(exp.null(), "null", values=())


def _boolean(node: exp.Expression, lookup: Lookup) -> Typed:
    return Typed(node.copy(), "boolean", 0, 1, False, (bool(node.this),))


def _paren(node: exp.Expression, lookup: Lookup) -> Typed:
    inner = total(node.this, lookup)
    return inner.but(sql=exp.paren(inner.sql))


def as_float(typed: Typed, where: str) -> Typed:
    """A number as float64, so that arithmetic overflows to infinity and never to an error."""
    if typed.kind == "null":
        return typed.but(sql=exp.cast(exp.null(), "DOUBLE"), kind="float")
    if typed.kind == "boolean":
        return typed.but(sql=exp.cast(typed.sql, "DOUBLE"), kind="integer", low=0.0, high=1.0, values=None)
    if typed.kind not in NUMBERS:
        raise QueryError(f"{where} needs numbers, but {typed.sql.sql(DIALECT)} is of type {typed.kind}.")
    if isinstance(typed.sql, exp.Cast) and typed.sql.to.this == exp.DataType.Type.DOUBLE:
        return typed
    return typed.but(sql=exp.cast(typed.sql, "DOUBLE"))


def _interval(
    operation: Callable[[float, float], float], left: Typed, right: Typed
) -> tuple[float | None, float | None]:
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return None, None
    corners = [operation(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    if any(not math.isfinite(each) for each in corners):
        return None, None
    return min(corners), max(corners)


def _arithmetic(node: exp.Expression, lookup: Lookup) -> Typed:
    symbol = {"Add": "+", "Sub": "-", "Mul": "*"}[type(node).__name__]
    left = as_float(total(node.this, lookup), symbol)
    right = as_float(total(node.expression, lookup), symbol)
    operation: Callable[[float, float], float] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
    }[symbol]
    low, high = _interval(operation, left, right)
    if low == left.low and high == left.high and left.sql == right.sql and symbol == "*":
        low = max(low or 0.0, 0.0)
    kind: Kind = "integer" if left.kind == right.kind == "integer" else "float"
    return Typed(type(node)(this=left.sql, expression=right.sql), kind, low, high, left.nullable or right.nullable)


def _divide(node: exp.Expression, lookup: Lookup) -> Typed:
    left = as_float(total(node.this, lookup), "/")
    right = as_float(total(node.expression, lookup), "/")
    sql: exp.Expression = exp.Div(
        this=left.sql, expression=exp.Nullif(this=right.sql, expression=_zero()), typed=False, safe=False
    )
    apart = right.bounded and (right.low or 0) > 0 or right.bounded and (right.high or 0) < 0
    low, high = _interval(lambda a, b: a / b, left, right) if apart else (None, None)
    if isinstance(node, exp.IntDiv):
        sql = exp.Floor(this=sql)
        low = None if low is None else math.floor(low)
        high = None if high is None else math.floor(high)
    kind: Kind = "integer" if isinstance(node, exp.IntDiv) else "float"
    return Typed(sql, kind, low, high, True if not apart else left.nullable or right.nullable)


def _zero() -> exp.Expression:
    return exp.cast(exp.Literal.number("0"), "DOUBLE")


def _mod(node: exp.Expression, lookup: Lookup) -> Typed:
    left = as_float(total(node.this, lookup), "%")
    right = as_float(total(node.expression, lookup), "%")
    # a - b * trunc(a / b): the remainder without an engine's own modulo, which may raise on zero.
    quotient = exp.Div(this=left.sql.copy(), expression=exp.Nullif(this=right.sql.copy(), expression=_zero()))
    whole = exp.func("TRUNC", quotient, dialect=DIALECT)
    sql = exp.Sub(this=left.sql, expression=exp.Mul(this=right.sql, expression=whole))
    bound = None
    if right.bounded:
        bound = max(abs(right.low or 0), abs(right.high or 0))
    low = None if bound is None else (0.0 if (left.low or -1) >= 0 else -bound)
    kind: Kind = "integer" if left.kind == right.kind == "integer" else "float"
    return Typed(exp.paren(sql), kind, low, bound, True)


def comparable(left: Typed, right: Typed, where: str) -> tuple[Typed, Typed]:
    """Two sides of a comparison in one kind; text beside a date is read as a date where it is one."""
    kinds = {left.kind, right.kind}
    if "null" in kinds or len(kinds) == 1:
        return left, right
    if kinds <= NUMBERS | {"boolean"} and "boolean" not in kinds:
        return as_float(left, where), as_float(right, where)
    if kinds <= TIMES:
        return _as_timestamp(left), _as_timestamp(right)
    for one, other, flip in ((left, right, False), (right, left, True)):
        if one.kind == "text" and isinstance(one.sql, exp.Literal) and other.kind in TIMES:
            target = "DATE" if other.kind == "date" and len(one.sql.name) <= 10 else "TIMESTAMP"
            cast = one.but(sql=exp.TryCast(this=one.sql, to=exp.DataType.build(target)), kind=other.kind, values=None)
            fixed = _as_timestamp(other) if target == "TIMESTAMP" else other
            return (fixed, cast) if flip else (cast, fixed)
    raise QueryError(
        f"{where} compares {left.sql.sql(DIALECT)}, which is of type {left.kind}, with "
        f"{right.sql.sql(DIALECT)}, which is of type {right.kind}; CAST one of them."
    )


def _as_timestamp(typed: Typed) -> Typed:
    return typed.but(sql=exp.TryCast(this=typed.sql, to=exp.DataType.build("TIMESTAMP")), kind="timestamp")


def _compare(node: exp.Expression, lookup: Lookup) -> Typed:
    left, right = comparable(total(node.this, lookup), total(node.expression, lookup), node.sql(DIALECT))
    return _truth(type(node)(this=left.sql, expression=right.sql), left, right)


def _truth(sql: exp.Expression, *parts: Typed) -> Typed:
    return Typed(sql, "boolean", 0, 1, any(each.nullable for each in parts), (False, True))


def condition(node: exp.Expression, lookup: Lookup, where: str) -> Typed:
    """`node` in total form, as a truth value."""
    typed = total(node, lookup)
    if typed.kind not in ("boolean", "null"):
        raise QueryError(f"{where} needs a condition, but {node.sql(DIALECT)} is of type {typed.kind}.")
    return typed


def _connect(node: exp.Expression, lookup: Lookup) -> Typed:
    left = condition(node.this, lookup, "AND/OR")
    right = condition(node.expression, lookup, "AND/OR")
    return _truth(type(node)(this=exp.paren(left.sql), expression=exp.paren(right.sql)), left, right)


def _not(node: exp.Expression, lookup: Lookup) -> Typed:
    inner = condition(node.this, lookup, "NOT")
    return _truth(exp.Not(this=exp.paren(inner.sql)), inner)


def _is(node: exp.Expression, lookup: Lookup) -> Typed:
    inner = total(node.this, lookup)
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise QueryError(f"{node.sql(DIALECT)} is not understood; use IS NULL, IS TRUE or =.")
    return Typed(exp.Is(this=exp.paren(inner.sql), expression=node.expression.copy()), "boolean", 0, 1, False, (False, True))


def _between(node: exp.Expression, lookup: Lookup) -> Typed:
    both = exp.And(
        this=exp.GTE(this=node.this, expression=node.args["low"]),
        expression=exp.LTE(this=node.this, expression=node.args["high"]),
    )
    inner = total(both, lookup)
    return inner.but(sql=exp.paren(inner.sql))


def _in(node: exp.Expression, lookup: Lookup) -> Typed:
    if node.args.get("query") or node.args.get("unnest") or not node.expressions:
        raise QueryError("IN needs a list of values here; join a public table instead of a sub-query.")
    subject = total(node.this, lookup)
    sides = [comparable(subject, total(each, lookup), "IN") for each in node.expressions]
    return _truth(exp.In(this=sides[0][0].sql, expressions=[right.sql for _, right in sides]), subject)


def _like(node: exp.Expression, lookup: Lookup) -> Typed:
    subject, pattern = total(node.this, lookup), total(node.expression, lookup)
    if subject.kind != "text" or not isinstance(pattern.sql, exp.Literal):
        raise QueryError(f"{node.sql(DIALECT)} needs text on the left and a constant pattern on the right.")
    if pattern.sql.name.endswith("\\"):
        raise QueryError("A LIKE pattern must not end in a backslash.")
    return _truth(type(node)(this=subject.sql, expression=pattern.sql), subject)


def unite(parts: list[Typed], where: str) -> Typed:
    """The facts of an expression that is one of several (its sql is that of the first)."""
    known = [each for each in parts if each.kind != "null"]
    if not known:
        return parts[0]
    kinds = {each.kind for each in known}
    if len(kinds) > 1 and not kinds <= NUMBERS:
        raise QueryError(f"The branches of {where} are of different types ({', '.join(sorted(kinds))}); CAST them to one.")
    kind: Kind = known[0].kind if len(kinds) == 1 else "float"
    ends = all(each.bounded for each in known)
    values: tuple[Any, ...] | None = None
    if all(each.values is not None for each in known):
        values = tuple(dict.fromkeys(value for each in known for value in each.values or ()))
    low = min(each.low or 0.0 for each in known) if ends else None
    high = max(each.high or 0.0 for each in known) if ends else None
    return Typed(parts[0].sql, kind, low, high, any(each.nullable for each in parts), values)


def _case(node: exp.Expression, lookup: Lookup) -> Typed:
    subject = node.this
    branches = []
    for each in node.args["ifs"]:
        test = each.this if subject is None else exp.EQ(this=subject, expression=each.this)
        branches.append((condition(test, lookup, "CASE WHEN"), total(each.args["true"], lookup)))
    default = total(node.args["default"], lookup) if node.args.get("default") else _null(node, lookup)
    facts = unite([each for _, each in branches] + [default], "CASE")
    sql = exp.Case(
        ifs=[exp.If(this=test.sql, true=each.sql) for test, each in branches],
        default=default.sql,
    )
    return facts.but(sql=sql)


def _if(node: exp.Expression, lookup: Lookup) -> Typed:
    default = node.args.get("false") or exp.null()
    return _case(exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=default), lookup)


def _cast(node: exp.Expression, lookup: Lookup) -> Typed:
    inner = total(node.this, lookup)
    target = _CASTS.get(node.args["to"].this)
    if target is None:
        raise QueryError(f"CAST to {node.args['to'].sql(DIALECT)} is not possible here; use BIGINT, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP.")
    kind, name = target
    keeps = inner.kind in NUMBERS | {"boolean"} and kind in NUMBERS
    sql = exp.TryCast(this=inner.sql, to=exp.DataType.build(name))
    low, high = (inner.low, inner.high) if keeps else (None, None)
    if keeps and kind == "integer" and inner.kind == "float" and low is not None and high is not None:
        low, high = math.floor(low), math.ceil(high)
    nullable = inner.nullable or not (keeps and kind == "float" or kind == "text")
    return Typed(sql, kind, low, high, nullable)


_HANDLERS: dict[type[exp.Expression], Callable[[exp.Expression, Lookup], Typed]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Neg: _neg,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Div: _divide,
    exp.IntDiv: _divide,
    exp.Mod: _mod,
    **{each: _compare for each in (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)},
    exp.And: _connect,
    exp.Or: _connect,
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
