"""Functions of dates and timestamps, NULL outside the years 1 to 9999.

Engines raise on arithmetic near the ends of their calendars, and differ on infinite dates: both are kept
out by a guard.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.catalog.types import TIMES as TIME_KINDS
from incrowd.catalog.types import Kind
from incrowd.errors import QueryError
from incrowd.query.combining import as_moment, as_timestamp, in_calendar
from incrowd.query.functions.signature import Function, name_of, one
from incrowd.query.spans import FIRST, LAST, unit_named
from incrowd.query.sql import DIALECT
from incrowd.query.truncating import FINE, UNITS, truncated
from incrowd.query.typed import Typed, double

_PARTS: dict[str, tuple[int, int]] = {
    "YEAR": (1, 9999),
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DOW": (0, 6),
    "HOUR": (0, 23),
    "MINUTE": (0, 59),
    "SECOND": (0, 59),
}
_SAME = {"DAYOFWEEK": "DOW", "DAYOFMONTH": "DAY", "WEEKDAY": "DOW"}
CLOCK = frozenset({"HOUR", "MINUTE", "SECOND"})


def inside_calendar(node: exp.Expr, typed: Typed) -> Typed:
    """A date or timestamp inside the calendar; NULL outside."""
    if typed.kind not in TIME_KINDS:
        raise QueryError(
            f"{name_of(node)} needs a date, but {typed.said} is of type {typed.kind}; CAST it AS DATE."
        )
    # A week from the ends: truncating must not leave the calendar.
    return in_calendar(typed, str(FIRST.date()), str(LAST.date())).but(nullable=typed.nullable)


def part_of(name: str, value: Typed) -> Typed:
    """A part of a date or timestamp that is inside the calendar."""
    asked = _SAME.get(name, name)
    if asked not in _PARTS:
        raise QueryError(f"EXTRACT of {name} is not possible here; use {', '.join(_PARTS)}.")
    if value.kind == "date" and asked in CLOCK:
        value = as_timestamp(value)
    sql = exp.cast(exp.Extract(this=exp.var(asked), expression=value.sql), "BIGINT")
    low, high = _PARTS[asked]
    known = True
    if asked == "YEAR":
        known = value.limits is not None
        low, high = (low, high) if value.limits is None else (end.year for end in value.limits)
    values = tuple(range(low, high + 1)) if known else None
    return Typed(sql, "integer", low, high, value.nullable, values, integral=True, size=64)


def _extract(node: exp.Expr, arguments: list[Typed]) -> Typed:
    name = fold(node.name).upper() if isinstance(node, exp.Extract) else type(node).__name__.upper()
    return part_of(name, inside_calendar(node, one(node, arguments)))


def date_part(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """DATE_PART('year', d), the same as EXTRACT(YEAR FROM d)."""
    if len(arguments) != 2 or not isinstance(arguments[0].sql, exp.Literal):
        raise QueryError("DATE_PART takes a constant part and a date, as in DATE_PART('year', d).")
    return part_of(fold(arguments[0].sql.name).upper(), inside_calendar(node, arguments[1]))


def unit_of(node: exp.Expr) -> str:
    """The unit that a truncation or a difference names, such as MONTH."""
    unit = node.args.get("unit")
    return unit_named(str(unit.name)).upper() if unit is not None else "DAY"


def _truncate(node: exp.Expr, arguments: list[Typed]) -> Typed:
    unit = unit_of(node)
    if unit not in UNITS:
        raise QueryError(f"DATE_TRUNC to {unit} is not possible here; use {', '.join(UNITS)}.")
    # The parser puts the unit first where it knows that a date is truncated.
    value = inside_calendar(node, arguments[-1])
    call = exp.func("DATE_TRUNC", exp.Literal.string(unit), value.sql, dialect=DIALECT)
    kind: Kind = "date" if value.kind == "date" and unit not in FINE else "timestamp"
    limits = None
    if value.limits is not None:
        ends = (truncated(as_moment(end), unit) for end in value.limits)
        low, high = (end.date() if kind == "date" else end for end in ends)
        limits = (low, high)
    return Typed(exp.cast(call, kind.upper()), kind, nullable=value.nullable, limits=limits)


def _days_between(node: exp.Expr, arguments: list[Typed]) -> Typed:
    unit = unit_of(node)
    if unit != "DAY":
        raise QueryError("DATE_DIFF counts days here; divide for other units.")
    end, start = (inside_calendar(node, day) for day in arguments[:2])
    days = [exp.cast(day.sql, "DATE") for day in (start, end)]
    call = exp.func("DATE_DIFF", exp.Literal.string("day"), *days, dialect=DIALECT)
    nullable = start.nullable or end.nullable
    return Typed(exp.cast(call, "BIGINT"), "integer", nullable=nullable, integral=True, size=64)


def since_1970(value: Typed) -> Typed:
    """The whole days of a date, or seconds of a timestamp, since 1970; NULL outside the years 1 to 9999."""
    inside = in_calendar(value, str(FIRST.date()), str(LAST.date()))
    start = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
    call = exp.func(
        "DATE_DIFF", exp.Literal.string("day"), start, exp.cast(inside.sql, "DATE"), dialect=DIALECT
    )
    number: exp.Expr = exp.cast(call, "DOUBLE")
    if value.kind == "timestamp":
        number = exp.Mul(this=number, expression=double(86_400.0))
        for part, seconds in (("HOUR", 3_600.0), ("MINUTE", 60.0), ("SECOND", 1.0)):
            more = exp.Mul(
                this=exp.cast(part_of(part, inside).sql.copy(), "DOUBLE"), expression=double(seconds)
            )
            number = exp.Add(this=number, expression=more)
        number = exp.paren(number)
    return Typed(number, "integer", nullable=True, said=value.said)


TIMES: dict[type[exp.Expr], Function] = {
    **dict.fromkeys(
        (
            exp.Extract,
            exp.Year,
            exp.Quarter,
            exp.Month,
            exp.Week,
            exp.Day,
            exp.DayOfWeek,
            exp.DayOfMonth,
            exp.Hour,
            exp.Minute,
            exp.Second,
        ),
        _extract,
    ),
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.DateDiff: _days_between,
}
