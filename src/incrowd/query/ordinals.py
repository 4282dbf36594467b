"""Times as the number of their unit: which month, week or second since an origin, in SQL and in Python.

The number grows with the time, so the bounds of a difference follow from the bounds of both times. Everything
is computed from 64-bit integers and stays far below their ends: the finest unit counts less than 2^59
microseconds between the years 1 and 9999.
"""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from incrowd.query.combining import as_moment
from incrowd.query.moments import DAY, EPOCH, clock, part, seconds_of_day, whole
from incrowd.query.typed import Typed

YEARS = {"YEAR": 1, "DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1_000}
"""Units of whole years, and how many years they have."""
MONTHS = {"MONTH": 1, "QUARTER": 3, **{unit: 12 * years for unit, years in YEARS.items()}}
"""Units of whole months, and how many months they have."""
MICROS = {
    **{"WEEK": 7 * DAY, "DAY": DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000},
    **{"MILLISECOND": 1_000, "MICROSECOND": 1},
}
"""Units of one length, and how many microseconds they have."""
UNITS = (*reversed(YEARS), "QUARTER", "MONTH", *MICROS)
"""The units, from the longest to the shortest."""


def quotient(number: exp.Expr, by: int) -> exp.Expr:
    """A whole number divided by a constant, towards zero."""
    return number if by == 1 else exp.paren(exp.IntDiv(this=exp.paren(number), expression=whole(by)))


def plus(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    """The sum of two whole numbers."""
    return exp.paren(exp.Add(this=one, expression=two))


def minus(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    """The difference of two whole numbers."""
    return exp.paren(exp.Sub(this=one, expression=two))


def times(number: exp.Expr, by: int) -> exp.Expr:
    """A whole number times a constant."""
    return number if by == 1 else exp.paren(exp.Mul(this=number, expression=whole(by)))


def ordinal(unit: str, value: Typed) -> exp.Expr:
    """The number of the month, quarter or year of a time; of units shorter than a day, within its day."""
    if unit in YEARS:
        return quotient(part("YEAR", value), YEARS[unit])
    if unit in ("MONTH", "QUARTER"):
        return plus(times(part("YEAR", value), 12 // MONTHS[unit]), part(unit, value))
    if value.kind == "date":
        return whole(0)
    if unit == "HOUR":
        return part("HOUR", value)
    if unit == "MINUTE":
        return plus(times(part("HOUR", value), 60), part("MINUTE", value))
    return seconds_of_day(value) if unit == "SECOND" else quotient(clock(value), MICROS[unit])


def ordinal_of(unit: str, moment: dt.date) -> int:
    """The number of the unit that a moment lies in, counted through from one day to the next.

    >>> [ordinal_of(unit, dt.date(2024, 3, 1)) for unit in ("YEAR", "CENTURY", "QUARTER", "DAY")]
    [2024, 20, 8097, 19783]
    """
    if unit in YEARS:
        return moment.year // YEARS[unit]
    if unit == "MONTH":
        return moment.year * 12 + moment.month
    if unit == "QUARTER":
        return moment.year * 4 + (moment.month + 2) // 3
    since = as_moment(moment) - as_moment(EPOCH)
    return since // dt.timedelta(microseconds=MICROS[unit])
