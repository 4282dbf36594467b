"""Dates and timestamps moved by intervals and days, and the days between two dates.

As in DuckDB, a date moved by days is a date, one moved by an interval is a timestamp, and a difference of
dates is a number of days. A difference of timestamps is an interval, which is no number: engines print it
and take it apart in ways of their own. So it is compared with constant intervals and taken apart by EXTRACT
(`between`), and refused anywhere else.

Where a result leaves the years 1 to 9999 it is NULL. The test that guards this is about the time that is
moved and constants (`spans.movable`), or about the number of the resulting day, so nothing raises beyond
it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.casts import as_whole
from incrowd.query.combining import as_moment, in_calendar
from incrowd.query.moments import FIRST_DAY, LAST_DAY, date_of, day_number, days_between, whole
from incrowd.query.spans import Interval, Span, movable, moved
from incrowd.query.typed import Typed, guarded, literal, said

_MOST_DAYS = 10_000_000
"""No two days of the calendar are as far apart."""


def by_interval(node: exp.Expr, time: Typed, interval: Interval, count: Typed | None) -> Typed:
    """A date or timestamp plus an interval, as a timestamp; `count` is what the interval is multiplied
    with."""
    if time.kind not in TIMES:
        raise QueryError(
            f"{said(node)} moves {time.said}, which is of type {time.kind}, by an interval; CAST it AS DATE "
            "or TIMESTAMP."
        )
    span = interval.span
    if count is not None:
        return _by_count(node, time, span, count)
    if span.mixed:
        raise QueryError(f"{said(node)} goes forward and back at once; add one interval after the other.")
    ends = movable(span)
    if ends is None:
        return Typed(exp.cast(exp.null(), "TIMESTAMP"), "timestamp")
    first, last = ends
    if time.kind == "date" and first != as_moment(first.date()):
        first += dt.timedelta(days=1)
    low, high = (end.date() if time.kind == "date" else end for end in (first, last))
    inside = exp.And(
        this=exp.GTE(this=time.sql.copy(), expression=literal(low)),
        expression=exp.LTE(this=time.sql.copy(), expression=literal(high)),
    )
    start = exp.cast(time.sql.copy(), "TIMESTAMP") if time.kind == "date" else time.sql.copy()
    limits = _moved_limits(time.limits, span)
    shifted = guarded(inside, _added(start, span))
    return Typed(shifted, "timestamp", nullable=time.nullable or limits is None, limits=limits)


def _moved_limits(limits: tuple[Any, Any] | None, span: Span) -> tuple[Any, Any] | None:
    if limits is None:
        return None
    low, high = (moved(as_moment(end), span) for end in limits)
    return None if low is None or high is None else (low, high)


def _added(time: exp.Expr, span: Span) -> exp.Expr:
    """The time plus months, then days, then microseconds, as engines do."""
    for count, unit in ((span.months, "MONTH"), (span.days, "DAY"), (span.micros, "MICROSECOND")):
        if count:
            interval = exp.Interval(this=exp.Literal.string(str(abs(count))), unit=exp.var(unit))
            time = (exp.Add if count > 0 else exp.Sub)(this=time, expression=interval)
    return exp.paren(time)


def _by_count(node: exp.Expr, time: Typed, span: Span, count: Typed) -> Typed:
    """A date moved by a number of days that differs from row to row."""
    if span.months or span.micros:
        raise QueryError(
            f"{said(node)} moves by months or hours whose number is no constant; use days or a constant."
        )
    if time.kind != "date":
        raise QueryError(
            f"{said(node)} moves a timestamp by days whose number is no constant; CAST {time.said} AS DATE."
        )
    day = by_days(node, time, count, span.days)
    limits = None if day.limits is None else (as_moment(day.limits[0]), as_moment(day.limits[1]))
    return day.but(sql=exp.cast(day.sql, "TIMESTAMP"), kind="timestamp", limits=limits)


def by_days(node: exp.Expr, day: Typed, count: Typed, each: int = 1) -> Typed:
    """A date plus a number of days, each of which counts for so many."""
    if day.kind != "date":
        raise QueryError(
            f"{said(node)} adds a number to {day.said}, which is of type {day.kind}; add an interval, such "
            "as INTERVAL '7 days', or CAST it AS DATE."
        )
    if count.kind != "integer":
        raise QueryError(f"{said(node)} needs a whole number of days, which {count.said} is not; ROUND it.")
    constant = count.constant
    if constant is not None:
        return _by_constant(day, int(constant) * each)
    number = as_whole(count)
    few = exp.And(
        this=exp.GTE(this=number.copy(), expression=whole(-_MOST_DAYS)),
        expression=exp.LTE(this=number.copy(), expression=whole(_MOST_DAYS)),
    )
    steps: exp.Expr = (
        exp.Mul(this=guarded(few, number), expression=whole(each)) if each != 1 else guarded(few, number)
    )
    start = day_number(in_calendar(day))
    limits = _days_later(day.limits, count, each)
    sql = date_of(exp.paren(exp.Add(this=start, expression=steps)))
    return Typed(sql, "date", nullable=day.nullable or count.nullable or limits is None, limits=limits)


def _by_constant(day: Typed, count: int) -> Typed:
    """A date plus a constant number of days."""
    ends = movable(Span(days=count))
    if ends is None:
        return Typed(exp.cast(exp.null(), "DATE"), "date")
    inside = in_calendar(day, *(str(end.date()) for end in ends))
    limits = _moved_limits(day.limits, Span(days=count))
    days = None if limits is None else (limits[0].date(), limits[1].date())
    sql = inside.sql
    assert isinstance(sql, exp.Case)
    test = sql.args["ifs"][0].this
    added = exp.Add(this=day.sql.copy(), expression=exp.cast(exp.Literal.string(str(count)), "INT"))
    return Typed(guarded(test, exp.paren(added)), "date", nullable=day.nullable or days is None, limits=days)


def _days_later(limits: tuple[Any, Any] | None, count: Typed, each: int) -> tuple[Any, Any] | None:
    if limits is None or count.low is None or count.high is None:
        return None
    steps = sorted((int(count.low) * each, int(count.high) * each))
    epoch = dt.date(1970, 1, 1)
    ends = [(limit - epoch).days + step for limit, step in zip(limits, steps, strict=True)]
    if ends[0] < FIRST_DAY or ends[1] > LAST_DAY:
        return None
    return epoch + dt.timedelta(days=ends[0]), epoch + dt.timedelta(days=ends[1])


def apart(node: exp.Expr, end: Typed, start: Typed) -> Typed:
    """The days from one date to another, as end - start."""
    if end.kind != "date" or start.kind != "date":
        raise QueryError(
            f"{said(node)} is an interval, which is no number; write DATE_DIFF('day', {start.said}, "
            f"{end.said}), or EXTRACT(EPOCH FROM {said(node)})."
        )
    sql = days_between(in_calendar(start).sql, in_calendar(end).sql)
    low = high = None
    if start.limits is not None and end.limits is not None:
        low = float((end.limits[0] - start.limits[1]).days)
        high = float((end.limits[1] - start.limits[0]).days)
    nullable = start.nullable or end.nullable
    return Typed(sql, "integer", low, high, nullable, integral=True, size=64)


def moves(node: exp.Expr, left: Typed, right: Typed) -> Typed:
    """A sum or difference of which at least one side is a date or timestamp."""
    if isinstance(node, exp.Sub):
        if left.kind in TIMES and right.kind in TIMES:
            return apart(node, left, right)
        if right.kind in TIMES:
            raise QueryError(f"{said(node)} takes a date from a number; write the date first.")
        return by_days(node, left, right, -1)
    if left.kind in TIMES and right.kind in TIMES:
        raise QueryError(f"{said(node)} adds two dates; subtract them, or use DATE_DIFF.")
    return by_days(node, left, right) if left.kind in TIMES else by_days(node, right, left)
