"""PostgreSQL's dialect. Its casts and arithmetic raise where other engines return NULL, infinity or zero.

The cases that the planner does not rule out are ruled out here.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.backends.translation import (
    Dialect,
    bit_count,
    call,
    case,
    cased,
    number,
    reads_float,
    within_int64,
)
from incrowd.errors import BackendError

_Type = exp.DataType.Type


def _type(node: exp.Expr) -> exp.Expr:
    if node.this == _Type.INT128:
        return exp.DataType.build("DECIMAL(39, 0)", dialect="postgres")
    return node


def _try_cast(node: exp.Expr) -> exp.Expr:
    """A cast guarded by CASE, so that it cannot raise. PostgreSQL rounds halves to even, as it should."""
    to = node.args["to"]
    plain = exp.Cast(this=node.this.copy(), to=to.copy())
    if reads_float(node):
        return case((within_int64(node.this), plain))
    if to.this == _Type.DATE:
        return case((_exists(node.this), plain))
    if to.this in (_Type.TIMESTAMP, _Type.TIMESTAMPNTZ):
        return case((_exists(call("LEFT", node.this, number(10))), plain))
    if to.this in (_Type.BIGINT, _Type.DOUBLE):
        return plain
    raise BackendError(f"A cast to {to.sql()} is not known on PostgreSQL.")


def _exists(text: exp.Expr) -> exp.Expr:
    """SQL that tests that a text YYYY-MM-DD, with a month from 1 to 12, names a day of the calendar."""
    year, month, day = (
        exp.cast(call("SUBSTR", text, number(start), number(length)), "INT")
        for start, length in ((1, 4), (6, 2), (9, 2))
    )

    def divides(by: int) -> exp.Expr:
        return exp.EQ(this=call("MOD", year, number(by)), expression=number(0))

    leap = exp.or_(divides(400), exp.and_(divides(4), exp.not_(divides(100))))
    february = case((leap, number(29)), default=number(28))
    short = exp.In(this=month.copy(), expressions=[number(month) for month in (4, 6, 9, 11)])
    last = case(
        (exp.EQ(this=month.copy(), expression=number(2)), february), (short, number(30)), default=number(31)
    )
    return exp.and_(
        exp.GTE(this=year.copy(), expression=number(1)), exp.LTE(this=day.copy(), expression=last)
    )


def _matches(node: exp.Expr) -> exp.Expr:
    pattern = exp.Literal.string(f"^({node.expression.name})$")
    return exp.paren(exp.RegexpLike(this=node.this.copy(), expression=pattern))


def _round(node: exp.Expr) -> exp.Expr:
    """Round to the nearest whole number, halves away from zero. Infinity and NaN stay as they are."""
    value = exp.paren(node.this)
    down, up = (kind(this=value.copy()) for kind in (exp.Floor, exp.Ceil))
    half = exp.cast(exp.Literal.string("0.5"), "DOUBLE")
    above = exp.Sub(this=value.copy(), expression=down.copy())
    below = exp.Sub(this=up.copy(), expression=value.copy())
    positive = case((exp.GTE(this=above, expression=half), up), default=down)
    negative = case((exp.GTE(this=below, expression=half.copy()), down), default=up)
    return case((exp.GTE(this=value.copy(), expression=number(0)), positive), default=negative)


def _plain_division(node: exp.Expr) -> exp.Expr:
    """Plain / without sqlglot's own guards: division of floats, or of 64-bit integers towards zero."""
    return exp.Div(this=node.this.copy(), expression=node.expression.copy(), typed=True, safe=False)


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = exp.Literal.string(node.args["unit"].name.lower())
    # A bare date would become a timestamp of the session's time zone.
    return call("DATE_TRUNC", unit, exp.cast(node.this, "TIMESTAMP"))


def _extract(node: exp.Expr) -> exp.Expr:
    """A part of a date, rounded down: PostgreSQL's seconds have a fraction."""
    part = {"DAYOFWEEK": "DOW"}.get(node.name.upper(), node.name.upper())
    return exp.Floor(this=exp.Extract(this=exp.var(part), expression=node.expression.copy()))


def _days(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Sub(this=node.this.copy(), expression=node.expression.copy()))


def _contains(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.GT(this=call("STRPOS", node.this, node.expression), expression=number(0)))


def _bit_count(node: exp.Expr) -> exp.Expr:
    """BIT_COUNT, the one function that statements call by its name; PostgreSQL's counts bit strings alone."""
    (inner,) = bit_count(node, "PostgreSQL").expressions
    return call("BIT_COUNT", exp.cast(inner, "BIT(64)", dialect="postgres"))


_C = exp.to_identifier("C", quoted=True)
_TEXTS = (
    *(exp.If, exp.Case, exp.Coalesce, exp.DPipe, exp.Nullif, exp.Paren, exp.Upper, exp.Lower, exp.Trim),
    *(exp.Substring, exp.Left, exp.Right, exp.Replace),
)
"""Constructs that make text of constants."""


def _literal(node: exp.Expr) -> exp.Expr:
    """A constant that becomes a text of its own is compared by code points, not by the server's locale."""
    if node.is_string and (isinstance(node.parent, _TEXTS) or _beside_constants(node)):
        return exp.Collate(this=node.copy(), expression=_C.copy())
    return node


def _beside_constants(node: exp.Expr) -> bool:
    """True if a constant is compared only with constants."""
    parent = node.parent
    if not isinstance(parent, exp.Predicate):
        return False
    sides = [side.this if isinstance(side, exp.Collate) else side for side in parent.iter_expressions()]
    return all(isinstance(side, exp.Literal) for side in sides)


def _cast(node: exp.Expr) -> exp.Expr:
    if node.args["to"].this in (_Type.TEXT, _Type.VARCHAR):
        return exp.Collate(this=node.copy(), expression=_C.copy())
    return node


def _same(node: exp.Expr) -> exp.Expr:
    return node


DIALECT = Dialect(
    "postgres",
    {
        exp.DataType: _type,
        exp.Cast: _cast,
        exp.Literal: _literal,
        exp.TryCast: _try_cast,
        exp.RegexpFullMatch: _matches,
        exp.RegexpLike: lambda node: exp.paren(node.copy()),
        exp.Round: _round,
        exp.Div: _plain_division,
        exp.IntDiv: _plain_division,
        exp.Lower: cased,
        exp.Upper: cased,
        exp.Trim: lambda node: call("BTRIM", node.this, node.expression),
        exp.Anonymous: _bit_count,
        exp.Contains: _contains,
        exp.StrPosition: lambda node: call("STRPOS", node.this, node.args["substr"]),
        exp.SplitPart: _same,
        exp.StartsWith: lambda node: call("STARTS_WITH", node.this, node.expression),
        exp.Extract: _extract,
        exp.TimestampTrunc: _truncate,
        exp.DateTrunc: _truncate,
        exp.DateDiff: _days,
        **dict.fromkeys((exp.Floor, exp.Ceil, exp.Trunc, exp.Sum, exp.Window, exp.RowNumber), _same),
    },
    longest_name=63,
)
