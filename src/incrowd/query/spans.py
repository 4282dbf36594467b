"""Intervals as they are written: INTERVAL '1 month', INTERVAL (n) DAY, 3 * INTERVAL '1 day', TO_DAYS(n).

An interval is months, days and microseconds, which are not multiples of each other: a month has 28 to 31
days. It is added in this order, as engines do, and a day that the month does not have becomes the month's
last.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from dataclasses import dataclass

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.typed import said

FIRST, LAST = dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24)
"""Between these, moving or truncating a time by less than a week never leaves the years 1 to 9999."""


@dataclass(frozen=True)
class Span:
    """A length of time."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def times(self, count: int) -> Span:
        """The length so many times."""
        return Span(self.months * count, self.days * count, self.micros * count)

    def __add__(self, other: Span) -> Span:
        return Span(self.months + other.months, self.days + other.days, self.micros + other.micros)

    @property
    def normal(self) -> int:
        """Its microseconds, a month taken as 30 days: so engines compare intervals."""
        return (self.months * 30 + self.days) * 86_400_000_000 + self.micros

    @property
    def mixed(self) -> bool:
        """True if it goes forward and back."""
        return min(self.months, self.days, self.micros) < 0 < max(self.months, self.days, self.micros)


@dataclass(frozen=True)
class Interval:
    """An interval of a question: a span, and what it is multiplied with if that is no constant."""

    span: Span
    count: exp.Expr | None = None


_HOUR = 3_600_000_000
_MOST = 10**15
_UNITS: dict[str, Span] = {
    "microsecond": Span(0, 0, 1),
    "millisecond": Span(0, 0, 1_000),
    "second": Span(0, 0, 1_000_000),
    "minute": Span(0, 0, 60_000_000),
    "hour": Span(0, 0, _HOUR),
    "day": Span(0, 1),
    "week": Span(0, 7),
    "month": Span(1),
    "quarter": Span(3),
    "year": Span(12),
    "decade": Span(120),
    "century": Span(1_200),
    "millennium": Span(12_000),
}
_SAME = {
    **{"us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "secs": "second"},
    **{"min": "minute", "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "d": "day", "w": "week"},
    **{"mon": "month", "mons": "month", "y": "year", "yr": "year", "yrs": "year"},
    **{"centuries": "century", "millenia": "millennium", "millennia": "millennium"},
    **{"microseconds": "microsecond", "milliseconds": "millisecond"},
}
_MADE = {
    **{"to_years": "year", "to_quarters": "quarter", "to_months": "month", "to_weeks": "week"},
    **{"to_days": "day", "to_hours": "hour", "to_minutes": "minute", "to_seconds": "second"},
    **{"to_milliseconds": "millisecond", "to_microseconds": "microsecond", "to_decades": "decade"},
}
_PART = re.compile(r"\s*([+-]?\d{1,18})\s*([a-z]+)\s*")


def unit_named(name: str) -> str:
    """The unit of time that a word stands for; the word itself if it is none.

    >>> unit_named("DAYS"), unit_named("mons"), unit_named("fortnight")
    ('day', 'month', 'fortnight')
    """
    word = fold(name)
    word = _SAME.get(word, word)
    return word[:-1] if word.endswith("s") and word[:-1] in _UNITS else word


def interval_in(node: exp.Expr) -> Interval | None:
    """The interval that an expression is written as; None for anything else.

    >>> from sqlglot import parse_one
    >>> interval_in(parse_one("-(2 * INTERVAL '1 month 3 days')", read="duckdb"))
    Interval(span=Span(months=-2, days=-6, micros=0), count=None)
    """
    if isinstance(node, exp.Paren):
        return interval_in(node.this)
    if isinstance(node, exp.Neg):
        inner = interval_in(node.this)
        return None if inner is None else Interval(inner.span.times(-1), inner.count)
    if isinstance(node, exp.Mul):
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            inner = interval_in(one)
            if inner is not None:
                return _multiplied(inner, other, node)
        return None
    if isinstance(node, exp.ToDays):
        return _multiplied(Interval(_UNITS["day"]), node.this, node)
    if isinstance(node, exp.Anonymous) and fold(str(node.this)) in _MADE and len(node.expressions) == 1:
        return _multiplied(Interval(_UNITS[_MADE[fold(str(node.this))]]), node.expressions[0], node)
    return _written(node) if isinstance(node, exp.Interval) else None


def _written(node: exp.Interval) -> Interval:
    unit, amount = node.args.get("unit"), node.this
    if amount is None or (unit is not None and not isinstance(unit, exp.Var)):
        raise QueryError(f"{said(node)} is not understood; write it as INTERVAL '3 days'.")
    if unit is None:
        return Interval(_read(amount.name, node) if isinstance(amount, exp.Literal) else _refused(node))
    named = unit_named(unit.name)
    if named not in _UNITS:
        raise QueryError(f"{said(node)} has no unit that is known; use {', '.join(_UNITS)}.")
    return _multiplied(Interval(_UNITS[named]), amount, node)


def _read(text: str, node: exp.Expr) -> Span:
    """The span that a text such as '1 year 2 months' spells."""
    span, place = Span(), 0
    lower = fold(text)
    while place < len(lower) or place == 0:
        part = _PART.match(lower, place)
        if part is None or unit_named(part[2]) not in _UNITS:
            return _refused(node)
        span, place = span + _UNITS[unit_named(part[2])].times(_modest(int(part[1]), node)), part.end()
    return span


def _refused(node: exp.Expr) -> Span:
    raise QueryError(
        f"{said(node)} is not understood; write whole numbers of {', '.join(_UNITS)}, "
        "as in INTERVAL '3 days'."
    )


def _multiplied(interval: Interval, count: exp.Expr, node: exp.Expr) -> Interval:
    whole = _whole(count)
    if whole is not None:
        return Interval(interval.span.times(_modest(whole, node)), interval.count)
    if isinstance(count.unnest(), exp.Literal) or interval.count is not None:
        _refused(node)
    return Interval(interval.span, count.unnest())


def _whole(node: exp.Expr) -> int | None:
    """A constant whole number, as a number or as text."""
    if isinstance(node, exp.Paren):
        return _whole(node.this)
    if isinstance(node, exp.Neg):
        inner = _whole(node.this)
        return None if inner is None else -inner
    text = node.name if isinstance(node, exp.Literal) else ""
    return int(text) if re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text, re.ASCII) else None


def _modest(count: int, node: exp.Expr) -> int:
    if abs(count) > _MOST:
        raise QueryError(f"{said(node)} is longer than any calendar; write a shorter one.")
    return count


def moved(moment: dt.datetime, span: Span) -> dt.datetime | None:
    """A moment moved by a span; None if it leaves the years 1 to 9999.

    >>> moved(dt.datetime(2024, 1, 31), Span(months=1, days=1))
    datetime.datetime(2024, 3, 1, 0, 0)
    """
    months = moment.year * 12 + moment.month - 1 + span.months
    if not 12 <= months < 120_000:
        return None
    year, month = divmod(months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    try:
        return moment.replace(year=year, month=month + 1, day=day) + dt.timedelta(
            days=span.days, microseconds=span.micros
        )
    except (OverflowError, ValueError):
        return None


def movable(span: Span) -> tuple[dt.datetime, dt.datetime] | None:
    """The first and last moment that a span, all forward or all back, keeps inside the calendar; None if
    none.

    Between them the result lies in the years 1 to 9999: moving is monotonic, and moving an end back and forth
    misses it by at most the three days that a month may be shorter, and both ends leave a week.
    """
    back = Span(span.months, 0, 0).times(-1)
    ends = []
    for end in (FIRST, LAST):
        there: dt.datetime | None = moved(end, Span(0, -span.days, -span.micros))
        there = None if there is None else moved(there, back)
        outside = (span.normal > 0) == (end is FIRST)
        if there is None and not outside:
            return None
        ends.append(end if there is None else min(max(there, FIRST), LAST))
    return (ends[0], ends[1]) if ends[0] <= ends[1] else None
