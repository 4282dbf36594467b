"""Rules for dates and timestamps that are moved: by a constant interval, or by a number of days.

Engines raise where the result leaves their own calendars, which all hold the years 1 to 9999: a result is
proven only inside these.
"""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from incrowd.backends.totality.values import Kind, Value, calendar_only, no_value, time
from incrowd.backends.totality.walk import Environment, NotTotalError, Walk, parts_of
from incrowd.query.spans import Span, moved

_UNITS = {"MONTH": Span(months=1), "DAY": Span(days=1), "MICROSECOND": Span(micros=1)}
_EPOCH = dt.datetime(1970, 1, 1)
_MOST = 10**18


def shifted(walk: Walk, node: exp.Expr, known: Environment) -> Value | None:
    """The values of x + INTERVAL 'n' UNIT, of x - INTERVAL 'n' UNIT, or of a date plus days; None for
    others."""
    interval = node.expression.unnest()
    if isinstance(interval, exp.Interval):
        return _by_interval(walk, node, interval, known)
    if isinstance(node, exp.Add):
        value = walk.value(node.this, known)
        if value.kind is Kind.DATE:
            return _by_days(node, value, walk.value(node.expression, known))
    return None


def _by_interval(walk: Walk, node: exp.Expr, interval: exp.Interval, known: Environment) -> Value:
    parts_of(interval, "this", "unit")
    value = walk.value(node.this, known)
    if value.kind is not Kind.TIMESTAMP or not calendar_only(value):
        raise NotTotalError(node, "it moves what may leave the calendar")
    unit, count = _UNITS.get(interval.args["unit"].name.upper()), interval.this
    if (
        unit is None
        or not (isinstance(count, exp.Literal) and count.name.isdigit())
        or int(count.name) > _MOST
    ):
        raise NotTotalError(node, "its interval is not known")
    if value.empty:
        return no_value(time(Kind.TIMESTAMP))
    span = unit.times(int(count.name) if isinstance(node, exp.Add) else -int(count.name))
    ends = [moved(_EPOCH + dt.timedelta(microseconds=int(end)), span) for end in (value.low, value.high)]
    if ends[0] is None or ends[1] is None:
        raise NotTotalError(node, "it may leave the calendar")
    low, high = ((end - _EPOCH) // dt.timedelta(microseconds=1) for end in ends if end is not None)
    return value.but(low=low, high=high, tiny=0, zero=True)


def _by_days(node: exp.Expr, value: Value, days: Value) -> Value:
    if days.kind is not Kind.INTEGER or days.bits > 32:
        raise NotTotalError(node, "it adds no number of days")
    if value.empty or days.empty:
        return no_value(time(Kind.DATE))
    result = time(Kind.DATE).but(
        low=int(value.low) + int(days.low),
        high=int(value.high) + int(days.high),
        below=False,
        above=False,
        null=value.null or days.null,
    )
    if value.infinite or not calendar_only(result):
        raise NotTotalError(node, "it may leave the calendar")
    return result
