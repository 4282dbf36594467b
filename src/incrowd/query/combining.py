"""Putting expressions side by side: numbers in one arithmetic, both sides of a comparison in one kind.

Engines add casts of their own where kinds differ, and some of those raise on some rows. Here every cast is
written out, in its never-raising form.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from incrowd.catalog.types import NUMERIC, TIMES, Kind
from incrowd.errors import QueryError
from incrowd.query.grammar import from_text
from incrowd.query.typed import Typed, double, guarded


def as_float(typed: Typed, where: str, *, copy: bool = True) -> Typed:
    """A number as float64, so that arithmetic overflows to infinity and never to an error.

    Without `copy` its tree becomes part of the result, which keeps the planning of long chains linear.
    """
    if typed.kind == "null":
        return typed.but(sql=exp.cast(exp.null(), "DOUBLE"), kind="float", size=0)
    if typed.kind == "boolean":
        whole = None if typed.values is None else tuple(int(value) for value in typed.values)
        cases = [
            exp.If(this=exp.paren(typed.sql.copy()), true=double(1.0)),
            exp.If(this=exp.Not(this=exp.paren(typed.sql.copy())), true=double(0.0)),
        ]
        sql = exp.cast(exp.Case(ifs=cases), "DOUBLE")
        return typed.but(sql=sql, kind="integer", low=0.0, high=1.0, values=whole, size=1)
    if typed.kind not in NUMERIC:
        raise QueryError(f"{where} needs numbers, but {typed.said} is of type {typed.kind}.")
    if isinstance(typed.sql, exp.Cast) and typed.sql.to.this == exp.DataType.Type.DOUBLE:
        return typed
    return typed.but(sql=exp.cast(typed.sql, "DOUBLE", copy=copy), integral=False)


def in_calendar(typed: Typed, first: str = "0001-01-01", last: str = "9999-12-31") -> Typed:
    """A date or timestamp, or NULL if it is not between two days.

    Engines raise on casts beyond the ends of their calendars, which differ. The default ends are those of
    Python, which reads the answers.
    """
    ends = (exp.cast(exp.Literal.string(day), typed.kind.upper()) for day in (first, last))
    after, before = (
        test(this=typed.sql.copy(), expression=end)
        for test, end in zip((exp.GTE, exp.LTE), ends, strict=True)
    )
    return typed.but(sql=guarded(exp.And(this=after, expression=before), typed.sql), nullable=True)


def as_timestamp(typed: Typed) -> Typed:
    """A date or timestamp as a timestamp; NULL where a date leaves the calendar."""
    if typed.kind == "timestamp":
        return typed
    sql = exp.cast(in_calendar(typed).sql, "TIMESTAMP")
    limits = None
    if typed.limits is not None:
        limits = (as_moment(typed.limits[0]), as_moment(typed.limits[1]))
    return typed.but(
        sql=sql, kind="timestamp", values=None, nullable=typed.nullable or limits is None, limits=limits
    )


def as_moment(day: dt.date) -> dt.datetime:
    """A date, or a timestamp, as a timestamp."""
    return day if isinstance(day, dt.datetime) else dt.datetime(day.year, day.month, day.day)


def comparable(left: Typed, right: Typed, where: str) -> tuple[Typed, Typed]:
    """Both sides of a comparison in one kind. A constant text beside a date is read as a date."""
    kinds = {left.kind, right.kind}
    if kinds == {"float"} or (kinds == {"integer"} and left.integral != right.integral):
        # Declared decimals and floats are one kind here, and two types in the engine.
        return as_float(left, where), as_float(right, where)
    if "null" in kinds or len(kinds) == 1:
        return left, right
    if kinds <= NUMERIC:
        return as_float(left, where), as_float(right, where)
    if kinds <= TIMES:
        return as_timestamp(left), as_timestamp(right)
    for one, other, flip in ((left, right, False), (right, left, True)):
        if one.kind == "text" and isinstance(one.sql, exp.Literal) and other.kind in TIMES:
            short = other.kind == "date" and len(one.sql.name) <= 10
            target: Kind = "date" if short else "timestamp"
            read = one.but(sql=from_text(one.sql, target), kind=target, values=None, nullable=True)
            fixed = other if short else as_timestamp(other)
            return (fixed, read) if flip else (read, fixed)
    raise QueryError(
        f"{where} compares {left.said}, which is of type {left.kind}, with {right.said}, which is of type "
        f"{right.kind}; CAST one of them."
    )


def truth(sql: exp.Expr, *parts: Typed) -> Typed:
    """The facts of a truth value; it may be NULL if one of `parts` may be."""
    return Typed(sql, "boolean", 0, 1, any(part.nullable for part in parts), (False, True))


def unite(parts: list[Typed], where: str) -> tuple[Typed, list[exp.Expr]]:
    """The facts of an expression that takes the value of one of `parts`, and the SQL of all in one type."""
    known = [part for part in parts if part.kind != "null"]
    if not known:
        return parts[0], [part.sql for part in parts]
    kinds = {part.kind for part in known}
    if len(kinds) > 1 and not kinds <= NUMERIC:
        raise QueryError(
            f"The branches of {where} are of different types ({', '.join(sorted(kinds))}); CAST them to one."
        )
    kind: Kind = known[0].kind if len(kinds) == 1 else "float"
    # Whole numbers too: one branch may be a column and the next an expression in float64.
    sqls = [as_float(part, where).sql if kind in NUMERIC else part.sql for part in parts]
    values: tuple[Any, ...] | None = None
    if all(part.values is not None for part in known):
        values = tuple(dict.fromkeys(value for part in known for value in part.values or ()))
    lows = [part.low for part in known if part.low is not None]
    highs = [part.high for part in known if part.high is not None]
    low = min(lows) if len(lows) == len(known) else None
    high = max(highs) if len(highs) == len(known) else None
    nullable = any(part.nullable for part in parts)
    size = max(part.size for part in known)
    return Typed(sqls[0], kind, low, high, nullable, values, size=size, wide=hull_of(known)), sqls


def hull_of(parts: Sequence[Typed]) -> tuple[float, float] | None:
    """The ends that hold for each of several numbers; None if one of them has none."""
    reaches = [part.reach for part in parts]
    known = [reach for reach in reaches if reach is not None]
    if not known or len(known) < len(reaches):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
