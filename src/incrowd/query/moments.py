"""Dates and timestamps as whole numbers, and back.

A day is its number since 1970, and a timestamp the microseconds since then, both as 64-bit integers. Every
engine has one calendar (the Gregorian one, also before 1582) between the years 1 and 9999, so these numbers
are the same everywhere, and so is whatever is computed from them. All functions here expect times inside
the calendar, or NULL (`inside_calendar`).
"""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from incrowd.query.combining import as_moment
from incrowd.query.sql import DIALECT
from incrowd.query.typed import Typed, guarded, literal

EPOCH = dt.date(1970, 1, 1)
FIRST_DAY, LAST_DAY = (dt.date(1, 1, 1) - EPOCH).days, (dt.date(9999, 12, 31) - EPOCH).days
DAY = 86_400_000_000
"""The microseconds of a day."""


def whole(value: int) -> exp.Expr:
    """A whole number of 64 bits."""
    return literal(value)


def days_between(start: exp.Expr, end: exp.Expr) -> exp.Expr:
    """The days from one date to another, as a 64-bit integer."""
    call = exp.func("DATE_DIFF", exp.Literal.string("day"), start, end, dialect=DIALECT)
    return exp.cast(call, "BIGINT")


def as_date(value: Typed) -> exp.Expr:
    """The day of a date or timestamp."""
    return value.sql.copy() if value.kind == "date" else exp.cast(value.sql.copy(), "DATE")


def part(name: str, value: Typed) -> exp.Expr:
    """A part of a date or timestamp, as every engine has it, as a 64-bit integer."""
    return exp.cast(exp.Extract(this=exp.var(name), expression=value.sql.copy()), "BIGINT")


def day_number(value: Typed) -> exp.Expr:
    """The days since 1970."""
    return days_between(literal(EPOCH), as_date(value))


def clock(value: Typed) -> exp.Expr:
    """The microseconds since midnight."""
    if value.kind == "date":
        return whole(0)
    hours = exp.Mul(this=part("HOUR", value), expression=whole(3_600_000_000))
    minutes = exp.Mul(this=part("MINUTE", value), expression=whole(60_000_000))
    return exp.paren(
        exp.Add(this=exp.Add(this=hours, expression=minutes), expression=part("MICROSECOND", value))
    )


def seconds_of_day(value: Typed) -> exp.Expr:
    """The whole seconds since midnight."""
    if value.kind == "date":
        return whole(0)
    hours = exp.Mul(this=part("HOUR", value), expression=whole(3_600))
    minutes = exp.Mul(this=part("MINUTE", value), expression=whole(60))
    return exp.paren(exp.Add(this=exp.Add(this=hours, expression=minutes), expression=part("SECOND", value)))


def micros_between(start: Typed, end: Typed) -> exp.Expr:
    """The microseconds from one time to another."""
    days = exp.Mul(this=days_between(as_date(start), as_date(end)), expression=whole(DAY))
    if start.kind == end.kind == "date":
        return exp.paren(days)
    clocks = exp.paren(exp.Sub(this=clock(end), expression=clock(start)))
    return exp.paren(exp.Add(this=days, expression=clocks))


def date_of(number: exp.Expr) -> exp.Expr:
    """The date of a day's number, a 64-bit integer; NULL outside the years 1 to 9999."""
    within = exp.And(
        this=exp.GTE(this=number.copy(), expression=whole(FIRST_DAY)),
        expression=exp.LTE(this=number.copy(), expression=whole(LAST_DAY)),
    )
    day = exp.Add(this=literal(EPOCH), expression=exp.cast(number.copy(), "INT"))
    return guarded(within, exp.paren(day))


def number_of(moment: dt.date) -> float:
    """A date in days, a timestamp in seconds since 1970."""
    if isinstance(moment, dt.datetime):
        return (moment - as_moment(EPOCH)) / dt.timedelta(seconds=1)
    return float((moment - EPOCH).days)
