"""Rules for dates and timestamps in the years 1 to 9999. Engines raise at the ends of their own calendars."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from incrowd.backends.totality.values import (
    DAY,
    TIMES,
    Kind,
    Value,
    calendar_only,
    integer,
    no_value,
    numeric,
    time,
)
from incrowd.backends.totality.walk import Environment, NotTotalError, Rule, Walk, parts_of

_PARTS = {
    "YEAR": (1, 9999),
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DOW": (0, 7),
    "DAYOFWEEK": (0, 7),
    "HOUR": (0, 23),
    "MINUTE": (0, 59),
    "SECOND": (0, 60),
    "MICROSECOND": (0, 60_999_999),
}
_CLOCK = ("HOUR", "MINUTE", "SECOND", "MICROSECOND")
_TRUNCATED = {
    "YEAR": 366,
    "QUARTER": 92,
    "MONTH": 31,
    "WEEK": 7,
    "DAY": 1,
    "HOUR": 1,
    "MINUTE": 1,
    "SECOND": 1,
}
"""The largest number of days that a truncation goes back."""
_FIRST_MONDAY = (dt.date(1, 1, 1) - dt.date(1970, 1, 1)).days
_SPARK_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.WeekOfYear: "WEEK",
    exp.Day: "DAY",
    exp.DayOfWeek: "DOW",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}


def _moment(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    value = walk.value(node, known)
    if value.kind not in TIMES:
        raise NotTotalError(node, "it is no date")
    if not calendar_only(value):
        raise NotTotalError(node, "it may leave the calendar")
    return value


def _part(node: exp.Expr, name: str) -> tuple[int, int]:
    if name not in _PARTS:
        raise NotTotalError(node)
    return _PARTS[name]


def _extracted(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    value = _moment(walk, node.expression, known)
    low, high = _part(node, node.name.upper())
    if node.name.upper() in _CLOCK and value.kind is Kind.DATE:
        raise NotTotalError(node, "a date has no such part")
    return numeric(low, high) if walk.engine.name == "postgres" else integer(64, low, high)


def _part_function(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    _moment(walk, inner, known)
    return integer(32, *_PARTS[_SPARK_PARTS[type(node)]])


def _truncated(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """DATE_TRUNC never leaves the calendar, whose first day is the first of a year, a month and a week."""
    parts_of(node, "this", "unit")
    value = _moment(walk, node.this, known)
    back = _TRUNCATED.get(node.args["unit"].name.upper())
    if back is None:
        raise NotTotalError(node)
    if value.empty:
        return no_value(time(Kind.TIMESTAMP))
    unit = DAY if value.kind is Kind.DATE else 1
    low, high = int(value.low) * unit - back * DAY, int(value.high) * unit
    first = _FIRST_MONDAY * DAY
    return time(Kind.TIMESTAMP).but(low=max(low, first), high=high, below=False, above=False)


def _days_between(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """DATE_DIFF('day', x, y) of dates."""
    parts_of(node, "this", "expression", "unit", "date_part_boundary")
    if node.args.get("unit") is not None and node.args["unit"].name.upper() != "DAY":
        raise NotTotalError(node)
    for side in (node.this, node.expression):
        inner = side.this if isinstance(side, exp.TsOrDsToDate) else side
        if _moment(walk, inner, known).kind is not Kind.DATE:
            raise NotTotalError(node, "it is no difference of dates")
    return integer(64 if walk.engine.name == "duckdb" else 32, -(4 * 10**6), 4 * 10**6)


def _in_utc(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """x AT TIME ZONE 'UTC' of a timestamp with a zone."""
    parts_of(node, "this", "zone")
    zone = node.args["zone"]
    if not (zone.is_string and zone.name == "UTC" and walk.value(node.this, known).form in _ZONED):
        raise NotTotalError(node, "its zone is not known")
    return time(Kind.TIMESTAMP)


def _tried(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """TRY, only around AT TIME ZONE 'UTC': without TRY, DuckDB's result may leave the calendar."""
    parts_of(node, "this")
    if not isinstance(node.this, exp.AtTimeZone):
        raise NotTotalError(node)
    return _in_utc(walk, node.this, known)


def _from_days(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """DATE_FROM_UNIX_DATE: each 32-bit number is a day."""
    parts_of(node, "this")
    value = walk.value(node.this, known)
    if value.kind is not Kind.INTEGER or value.bits > 32:
        raise NotTotalError(node, "it is no number of days")
    return time(Kind.DATE)


def _microsecond(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """UNIX_MICROS: a timestamp is held as such a number."""
    parts_of(node, "this")
    value = walk.value(node.this, known)
    if value.kind is not Kind.TIMESTAMP:
        raise NotTotalError(node, "it is no timestamp")
    return integer(64)


_ZONED = frozenset({"timestamp with time zone", "timestamptz", "timestamptz_ns"})
MOMENTS: dict[type[exp.Expr], Rule] = {
    exp.Extract: _extracted,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _days_between,
}
DUCKDB_MOMENTS: dict[type[exp.Expr], Rule] = {exp.Try: _tried}
POSTGRES_MOMENTS: dict[type[exp.Expr], Rule] = {exp.AtTimeZone: _in_utc}
SPARK_MOMENTS: dict[type[exp.Expr], Rule] = {
    **dict.fromkeys(_SPARK_PARTS, _part_function),
    exp.DateFromUnixDate: _from_days,
    exp.UnixMicros: _microsecond,
}
