"""Casts that no value can make raise, and that every engine computes alike.

Engines round where others cut off, print floats differently, and read text each in its own way. TRY_CAST
stands for two things only: `nearest`, float64 to the nearest whole number, halves to the even one; and text
that has passed its grammar (`grammar`).
"""

from __future__ import annotations

import math

from sqlglot import exp

from incrowd.catalog.types import NUMERIC, SQL_TYPES, TIMES, Kind
from incrowd.errors import QueryError
from incrowd.query.combining import as_float, as_timestamp, in_calendar
from incrowd.query.grammar import from_text, read
from incrowd.query.typed import Typed, double


def nearest(sql: exp.Expr) -> exp.Expr:
    """A float as the nearest 64-bit integer, halves to the even one; NULL beyond.

    >>> nearest(exp.column("x")).sql("duckdb")
    'TRY_CAST(CAST(x AS DOUBLE) AS BIGINT)'
    """
    held = isinstance(sql, exp.Cast) and sql.to.this == exp.DataType.Type.DOUBLE
    return exp.TryCast(this=sql if held else exp.cast(sql, "DOUBLE"), to=exp.DataType.build("BIGINT"))


def as_whole(typed: Typed) -> exp.Expr:
    """A whole number as a 64-bit integer."""
    return typed.sql if typed.integral else nearest(typed.sql)


def cast(inner: Typed, kind: Kind) -> Typed:
    """`inner` as another kind."""
    if inner.kind == "null":
        return Typed(exp.cast(exp.null(), SQL_TYPES[kind]), kind)
    if kind in TIMES and isinstance(inner.sql, exp.Literal):
        day = read(inner.sql.name, kind)
        limits = None if day is None else (day, day)
        return Typed(from_text(inner.sql, kind), kind, nullable=limits is None, limits=limits)
    if inner.kind == "text" and kind != "text":
        # 40 digits on either side and two of the exponent: 10^139 < 2^462.
        sizes = {"integer": 64, "float": 462}
        return Typed(from_text(inner.sql, kind), kind, integral=kind == "integer", size=sizes.get(kind, 1074))
    if kind in NUMERIC and inner.kind in NUMERIC | {"boolean"}:
        return _number(inner, kind)
    if kind == "boolean" and inner.kind in NUMERIC:
        test = exp.NEQ(this=exp.paren(as_float(inner, "CAST").sql), expression=double(0.0))
        return Typed(exp.paren(test), "boolean", 0, 1, inner.nullable, (False, True))
    if kind == "text":
        return inner if inner.kind == "text" else Typed(_to_text(inner), "text", nullable=inner.nullable)
    if kind in TIMES and inner.kind in TIMES:
        if kind == inner.kind:
            return inner
        if kind == "timestamp":
            return as_timestamp(inner)
        limits = None if inner.limits is None else (inner.limits[0].date(), inner.limits[1].date())
        nullable = inner.nullable or limits is None
        return Typed(exp.cast(in_calendar(inner).sql, "DATE"), "date", nullable=nullable, limits=limits)
    if kind == inner.kind:
        return inner
    raise QueryError(f"{inner.said} is of type {inner.kind}, which CAST cannot make a {kind}; leave it out.")


def _number(inner: Typed, kind: Kind) -> Typed:
    value = as_float(inner, "CAST")
    if kind == "float":
        return value.but(kind="float", integral=False)
    if inner.kind == "integer":
        return inner.but(sql=as_whole(inner), integral=True, size=64)
    if inner.kind == "boolean":
        return value.but(sql=nearest(value.sql), integral=True)
    low = None if value.low is None else float(math.floor(value.low))
    high = None if value.high is None else float(math.ceil(value.high))
    return Typed(nearest(value.sql), "integer", low, high, True, integral=True, size=64)


def _to_text(inner: Typed) -> exp.Expr:
    if inner.kind == "float":
        raise QueryError(
            f"{inner.said} is a float, which engines print in different ways; ROUND it before the CAST to "
            "text."
        )
    if inner.kind == "integer":
        return exp.cast(as_whole(inner), "TEXT")
    return exp.cast(in_calendar(inner).sql if inner.kind in TIMES else exp.paren(inner.sql), "TEXT")
