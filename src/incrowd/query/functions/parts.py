"""Parts of a date or timestamp: EXTRACT, DATE_PART, YEAR(d) and the like, NULL outside the calendar.

Engines agree on the parts of `_PLAIN`. The others are computed from these and from numbers of days, so that
they are the same everywhere: ISO years and weekdays, days of the year, decades, seconds since 1970.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.catalog.types import TIMES as TIME_KINDS
from incrowd.errors import QueryError
from incrowd.query.combining import as_timestamp, in_calendar
from incrowd.query.differences import seconds_between
from incrowd.query.functions.signature import Function, name_of, one
from incrowd.query.moments import EPOCH, as_date, days_between, part, whole
from incrowd.query.ordinals import plus, quotient, times
from incrowd.query.spans import FIRST, LAST, unit_named
from incrowd.query.sql import DIALECT
from incrowd.query.typed import Typed, literal

_PLAIN: dict[str, tuple[int, int]] = {
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
_RANGES = {"ISODOW": (1, 7), "DOY": (1, 366)}
PARTS = (*_PLAIN, *_RANGES, "ISOYEAR", "YEARWEEK", "DECADE", "CENTURY", "MILLENNIUM", "EPOCH")
"""The parts that may be asked for."""
_SAME = {
    **{"DAYOFWEEK": "DOW", "WEEKDAY": "DOW", "DAYOFMONTH": "DAY", "DAYOFYEAR": "DOY", "ISOWEEK": "WEEK"},
    **{"WEEKOFYEAR": "WEEK", "DAYOFWEEKISO": "ISODOW", "DAYOFWEEK_ISO": "ISODOW", "TIMETOUNIX": "EPOCH"},
    **{"YEAROFWEEKISO": "ISOYEAR", "YEAROFWEEK": "ISOYEAR", "EPOCH_SECOND": "EPOCH"},
}
CLOCK = frozenset({"HOUR", "MINUTE", "SECOND"})


def inside_calendar(node: exp.Expr, typed: Typed) -> Typed:
    """A date or timestamp inside the calendar; NULL outside."""
    if typed.kind not in TIME_KINDS:
        raise QueryError(
            f"{name_of(node)} needs a date, but {typed.said} is of type {typed.kind}; CAST it AS DATE."
        )
    # A week from the ends: truncating must not leave the calendar.
    return in_calendar(typed, str(FIRST.date()), str(LAST.date())).but(nullable=typed.nullable)


def start_of(unit: str, value: Typed) -> exp.Expr:
    """The first day of the year, month or week that a time inside the calendar lies in."""
    call = exp.func("DATE_TRUNC", exp.Literal.string(unit), value.sql.copy(), dialect=DIALECT)
    return exp.cast(call, "DATE")


def part_named(word: str) -> str:
    """The part that a word names, in capitals; the word itself if it is none.

    >>> part_named("dayofyear"), part_named("years"), part_named("fortnight")
    ('DOY', 'YEAR', 'FORTNIGHT')
    """
    name = fold(word).upper()
    return _SAME.get(name) or unit_named(name).upper()


def part_of(node: exp.Expr, name: str, value: Typed) -> Typed:
    """A part of a date or timestamp that is inside the calendar."""
    asked = part_named(name)
    if asked == "EPOCH":
        start = Typed(literal(EPOCH), "date", nullable=False, limits=(EPOCH, EPOCH))
        return seconds_between(node, start, value)
    if asked in _PLAIN:
        if value.kind == "date" and asked in CLOCK:
            value = as_timestamp(value)
        sql = part(asked, value)
    elif asked in _DERIVED:
        sql = _DERIVED[asked](value)
    else:
        raise QueryError(f"EXTRACT of {name.upper()} is not possible here; use {', '.join(PARTS)}.")
    low, high = _PLAIN.get(asked) or _RANGES.get(asked) or (0, 999_953)
    known = asked in _PLAIN or asked in _RANGES
    if asked in _OF_LIMITS:
        known = value.limits is not None
        if value.limits is not None:
            low, high = (_OF_LIMITS[asked](end) for end in value.limits)
    values = tuple(range(low, high + 1)) if known and asked != "YEARWEEK" else None
    return Typed(sql, "integer", low, high, value.nullable, values, integral=True, size=64)


def _iso_weekday(value: Typed) -> exp.Expr:
    day = part("DOW", value)
    sunday = exp.EQ(this=day.copy(), expression=whole(0))
    return exp.paren(exp.Case(ifs=[exp.If(this=sunday, true=whole(7))], default=day))


def _iso_year(value: Typed) -> exp.Expr:
    """The year of the week's Thursday."""
    thursday = exp.Add(this=start_of("WEEK", value), expression=exp.cast(exp.Literal.string("3"), "INT"))
    return exp.cast(exp.Extract(this=exp.var("YEAR"), expression=exp.paren(thursday)), "BIGINT")


def _day_of_year(value: Typed) -> exp.Expr:
    return plus(days_between(start_of("YEAR", value), as_date(value)), whole(1))


def _years(by: int, more: int) -> Callable[[Typed], exp.Expr]:
    return lambda value: quotient(plus(part("YEAR", value), whole(more)), by)


_DERIVED: dict[str, Callable[[Typed], exp.Expr]] = {
    "ISODOW": _iso_weekday,
    "DOY": _day_of_year,
    "ISOYEAR": _iso_year,
    "YEARWEEK": lambda value: plus(times(_iso_year(value), 100), part("WEEK", value)),
    "DECADE": _years(10, 0),
    "CENTURY": _years(100, 99),
    "MILLENNIUM": _years(1000, 999),
}
_OF_LIMITS: dict[str, Callable[[dt.date], int]] = {
    "YEAR": lambda end: end.year,
    "ISOYEAR": lambda end: end.isocalendar()[0],
    "YEARWEEK": lambda end: end.isocalendar()[0] * 100 + end.isocalendar()[1],
    "DECADE": lambda end: end.year // 10,
    "CENTURY": lambda end: (end.year + 99) // 100,
    "MILLENNIUM": lambda end: (end.year + 999) // 1000,
}


def part_asked(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """The part that a node takes, by name, and what it takes it of; None for any other node."""
    if isinstance(node, exp.Extract):
        return node.name, node.expression
    if isinstance(node, exp.Anonymous):
        name, given = str(node.this).upper(), node.expressions
        if name in ("DATE_PART", "DATEPART") and len(given) == 2 and isinstance(given[0], exp.Literal):
            return given[0].name, given[1]
        return (name, given[0]) if name in _NAMED and len(given) == 1 else None
    return (type(node).__name__, node.this) if type(node) in _TAKING else None


def _extract(node: exp.Expr, arguments: list[Typed]) -> Typed:
    asked = part_asked(node)
    assert asked is not None
    return part_of(node, asked[0], inside_calendar(node, one(node, arguments)))


def date_part(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """DATE_PART('year', d), the same as EXTRACT(YEAR FROM d)."""
    if len(arguments) != 2 or not isinstance(arguments[0].sql, exp.Literal):
        raise QueryError("DATE_PART takes a constant part and a date, as in DATE_PART('year', d).")
    return part_of(node, arguments[0].sql.name, inside_calendar(node, arguments[1]))


def named_part(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """ISOYEAR(d) and others that the parser has no node for."""
    return part_of(node, name_of(node), inside_calendar(node, one(node, arguments)))


_NAMED = frozenset({"ISOYEAR", "YEARWEEK", "DECADE", "CENTURY", "MILLENNIUM", "WEEKDAY"})
NAMED_PARTS: dict[str, Function] = {
    "DATEPART": date_part,
    "DATE_PART": date_part,
    **dict.fromkeys(_NAMED, named_part),
}
"""Parts by the names of functions that the parser has no node for."""
_TAKING: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfWeek, exp.DayOfMonth),
        *(exp.DayOfYear, exp.DayOfWeekIso, exp.YearOfWeekIso, exp.Hour, exp.Minute, exp.Second),
        exp.TimeToUnix,
    }
)
PART_NODES: dict[type[exp.Expr], Function] = dict.fromkeys((exp.Extract, *_TAKING), _extract)
