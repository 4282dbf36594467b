"""What lies between two dates or timestamps: DATE_DIFF, TIMESTAMPDIFF, AGE and parts of a difference.

Each engine has functions of its own for this, which count in ways of their own. Here everything is computed
from the numbers of days and the parts of both times, as 64-bit integers, so that it is the same everywhere:

    DATE_DIFF('month', a, b)      the months that begin after a, up to b, as DuckDB counts
    TIMESTAMPDIFF(MONTH, a, b)    the whole months from a to b
    EXTRACT(YEAR FROM AGE(b, a))  the whole years from a to b
    EXTRACT(EPOCH FROM b - a)     the seconds from a to b, with fractions if one is a timestamp
    b - a > INTERVAL '3 days'     compared in microseconds, a month taken as 30 days, as engines do

All are functions of one row, so they move no more than that row's unit. Both times are tested once to lie in
the years 1 to 9999, and the result is NULL where one does not: then no part of it can raise or overflow.
"""

from __future__ import annotations

import datetime as dt
import math

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.moments import as_date, clock, days_between, micros_between, part, whole
from incrowd.query.ordinals import (
    MICROS,
    MONTHS,
    UNITS,
    minus,
    ordinal,
    ordinal_of,
    plus,
    quotient,
    times,
)
from incrowd.query.spans import unit_named
from incrowd.query.typed import ENUMERABLE, Typed, double, guarded, literal, said

_FIRST, _LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
_INNER = {"HOUR": ("HOUR", "DAY"), "MINUTE": ("MINUTE", "HOUR"), "SECOND": ("SECOND", "MINUTE")}
_AGED = ("YEAR", "MONTH")


def unit_asked(node: exp.Expr, name: str) -> str:
    """The unit that a word names; QueryError if there is none like it."""
    unit = unit_named(name).upper()
    if unit not in UNITS:
        raise QueryError(f"{said(node)} counts no unit that is known; use {', '.join(UNITS)}.")
    return unit


def boundaries(node: exp.Expr, unit: str, start: Typed, end: Typed) -> Typed:
    """DATE_DIFF: how many units begin after the start, up to the end; negative if the end comes first.

    Weeks are seven days here, wherever they begin, as in DuckDB.
    """
    _both_times(node, start, end)
    if unit in ("DAY", "WEEK"):
        count = quotient(days_between(as_date(start), as_date(end)), 7 if unit == "WEEK" else 1)
    else:
        count = minus(ordinal(unit, end), ordinal(unit, start))
        if MICROS.get(unit, MICROS["DAY"]) < MICROS["DAY"]:
            days = days_between(as_date(start), as_date(end))
            count = plus(times(days, MICROS["DAY"] // MICROS[unit]), count)
    low, high = _reach(unit, start, end)
    return _counted(count, start, end, low, high)


def elapsed(node: exp.Expr, unit: str, start: Typed, end: Typed) -> Typed:
    """TIMESTAMPDIFF: the whole units from the start to the end; negative if the end comes first."""
    _both_times(node, start, end)
    if unit in MONTHS:
        count = quotient(_whole_months(start, end), MONTHS[unit])
    else:
        count = quotient(micros_between(start, end), MICROS[unit])
    low, high = _reach(unit, start, end)
    if low is not None and high is not None:
        # As many units as begin, or one fewer, whichever way it is counted.
        low, high = low - (low > 0), high + (high < 0)
    return _counted(count, start, end, low, high)


def age(node: exp.Expr, unit: str, end: Typed, start: Typed) -> Typed:
    """EXTRACT(YEAR FROM AGE(end, start)), and of MONTH the months beyond whole years."""
    if unit not in _AGED:
        raise QueryError(
            f"{said(node)} is not possible here: of AGE only YEAR and MONTH can be taken; write "
            f"DATE_DIFF('day', {start.said}, {end.said}), or EXTRACT(EPOCH FROM {end.said} - {start.said})."
        )
    if unit == "YEAR":
        return elapsed(node, unit, start, end)
    _both_times(node, start, end)
    months = _whole_months(start, end)
    rest = minus(months, times(quotient(months.copy(), 12), 12))
    return _counted(rest, start, end, -11.0, 11.0)


def part_of_difference(node: exp.Expr, unit: str, end: Typed, start: Typed) -> Typed:
    """EXTRACT(EPOCH FROM end - start), or the days, hours, minutes or seconds of the interval."""
    if unit == "EPOCH":
        return seconds_between(node, start, end)
    if unit == "DAY":
        return elapsed(node, unit, start, end)
    if unit not in _INNER:
        raise QueryError(
            f"{said(node)} is not possible here; use EPOCH, DAY, HOUR, MINUTE or SECOND, or "
            f"DATE_DIFF('month', {start.said}, {end.said}) for longer units."
        )
    _both_times(node, start, end)
    unit, outer = _INNER[unit]
    micros, size = micros_between(start, end), MICROS[outer]
    rest = minus(micros, times(quotient(micros.copy(), size), size))
    most = float(size // MICROS[unit] - 1)
    return _counted(quotient(rest, MICROS[unit]), start, end, -most, most)


def seconds_between(node: exp.Expr, start: Typed, end: Typed) -> Typed:
    """The seconds from the start to the end: whole ones between dates, with fractions between timestamps."""
    _both_times(node, start, end)
    low, high = _reach("MICROSECOND", start, end)
    if start.kind == end.kind == "date":
        days = times(days_between(as_date(start), as_date(end)), 86_400)
        ends = (None if bound is None else bound / 1e6 for bound in (low, high))
        return _counted(days, start, end, *ends)
    seconds = exp.Div(
        this=exp.cast(micros_between(start, end), "DOUBLE"), expression=double(1e6), typed=False, safe=False
    )
    low, high = (None if bound is None else bound / 1e6 for bound in (low, high))
    facts = _counted(exp.paren(seconds), start, end, low, high)
    return facts.but(kind="float", integral=False, values=None, size=40)


def against_interval(node: exp.Expr, end: Typed, start: Typed, micros: int) -> tuple[Typed, Typed]:
    """Both sides of (end - start) > INTERVAL '3 days', in microseconds."""
    _both_times(node, start, end)
    low, high = _reach("MICROSECOND", start, end)
    difference = _counted(micros_between(start, end), start, end, low, high)
    if abs(micros) >= 2**62:
        raise QueryError(f"{said(node)} compares with an interval longer than any calendar; shorten it.")
    known = Typed(whole(micros), "integer", micros, micros, False, (micros,), integral=True, size=64)
    return difference, known


def _both_times(node: exp.Expr, *sides: Typed) -> None:
    for side in sides:
        if side.kind not in TIMES:
            raise QueryError(
                f"{said(node)} needs two dates, but {side.said} is of type {side.kind}; CAST it AS DATE or "
                "TIMESTAMP."
            )


def _whole_months(start: Typed, end: Typed) -> exp.Expr:
    """The whole months from the start to the end: one fewer than begin, where the last is not over.

    A month is over when the day and the time of day are reached again, as PostgreSQL's and DuckDB's AGE have
    it: from January 31 to February 29 there is none.
    """
    months = minus(ordinal("MONTH", end), ordinal("MONTH", start))
    before, after = (plus(times(part("DAY", side), MICROS["DAY"]), clock(side)) for side in (start, end))

    later, earlier = (
        exp.And(
            this=sign(this=months.copy(), expression=whole(0)), expression=exp.LT(this=one, expression=two)
        )
        for sign, one, two in ((exp.GT, after, before), (exp.LT, before.copy(), after.copy()))
    )
    steps = [exp.If(this=later, true=whole(-1)), exp.If(this=earlier, true=whole(1))]
    return plus(months, exp.paren(exp.Case(ifs=steps, default=whole(0))))


def _reach(unit: str, start: Typed, end: Typed) -> tuple[float | None, float | None]:
    """The fewest and the most units that begin between two times."""
    if start.limits is None or end.limits is None:
        return None, None
    if unit == "WEEK":
        low, high = _reach("DAY", start, end)
        return (None if low is None else math.trunc(low / 7)), (
            None if high is None else math.trunc(high / 7)
        )
    (first, last), (early, late) = end.limits, start.limits
    return (
        float(ordinal_of(unit, first) - ordinal_of(unit, late)),
        float(ordinal_of(unit, last) - ordinal_of(unit, early)),
    )


def _counted(count: exp.Expr, start: Typed, end: Typed, low: float | None, high: float | None) -> Typed:
    """A number that is computed from two times inside the calendar; NULL where one is outside."""
    tests = [test for side in (start, end) for test in _inside(side)]
    sql = count
    if tests:
        both = tests[0]
        for test in tests[1:]:
            both = exp.And(this=both, expression=test)
        sql = guarded(both, count)
    nullable = start.nullable or end.nullable or start.limits is None or end.limits is None
    values = None
    if low is not None and high is not None and high - low < ENUMERABLE:
        values = tuple(range(math.ceil(low), math.floor(high) + 1))
    return Typed(sql, "integer", low, high, nullable, values, integral=True, size=64)


def _inside(side: Typed) -> list[exp.Expr]:
    """The tests that a time is in the calendar; none of a constant, which is."""
    if isinstance(side.sql, exp.Cast) and isinstance(side.sql.this, exp.Literal):
        return []
    first, last = literal(_FIRST), literal(_LAST)
    if side.kind == "timestamp":
        first, last = (exp.cast(end.this, "TIMESTAMP") for end in (first, last))
    return [
        exp.GTE(this=side.sql.copy(), expression=first),
        exp.LTE(this=side.sql.copy(), expression=last),
    ]
