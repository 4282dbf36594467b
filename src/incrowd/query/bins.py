"""Bins: expressions that fall into few values because their column has declared bounds.

FLOOR(x / 10), x // 10, CAST(t AS DATE), DATE_TRUNC('month', t), YEAR(t): all values are known from the
bounds, so they are public, and the ones that are empty are shown too. A row outside the bounds is in no bin.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.catalog.types import TIMES, Kind
from incrowd.query.expressions import total
from incrowd.query.typed import Field, Lookup, Typed

MOST_BINS = 100_000
"""The most values that bins may have to be public."""
FIRST, LAST = dt.datetime(1, 1, 8), dt.datetime(9999, 12, 24)
"""Between these, truncating a time is never NULL."""
_ROUNDED = (exp.Floor, exp.Ceil, exp.Trunc, exp.Round, exp.IntDiv, exp.Cast)
_STEPS: dict[str, dt.timedelta] = {
    "MINUTE": dt.timedelta(minutes=1),
    "HOUR": dt.timedelta(hours=1),
    "DAY": dt.timedelta(days=1),
    "WEEK": dt.timedelta(weeks=1),
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def bins_of(node: exp.Expr, lookup: Lookup, field: Callable[[exp.Column], Field]) -> Field | None:
    """The values of an expression that makes bins; None for any other, and where there are too many."""
    column = _column_in(node)
    if column is not None and field(column).kind in TIMES:
        return _times(node, field(column))
    if isinstance(node, _ROUNDED) and not (isinstance(node, exp.Round) and node.args.get("decimals")):
        return _whole(total(node, lookup))
    return None


def _whole(typed: Typed) -> Field | None:
    """Every whole number between the bounds of an expression."""
    low, high = typed.low, typed.high
    if typed.kind != "integer" or low is None or high is None or not high - low < MOST_BINS:
        return None
    values = tuple(range(math.ceil(low), math.floor(high) + 1))
    return Field("integer", low, high, typed.nullable, values)


def _column_in(node: exp.Expr) -> exp.Column | None:
    """The column that a function of times is about, if it is about a column."""
    inner = node.expression if isinstance(node, exp.Extract) else node.this
    return inner if isinstance(inner, exp.Column) else None


def _times(node: exp.Expr, field: Field) -> Field | None:
    """The bins of a date or timestamp with bounds."""
    if field.limits is None:
        return None
    low, high = (_as_time(end) for end in field.limits)
    if low < FIRST or high > LAST:
        return None
    if isinstance(node, exp.Year) or (isinstance(node, exp.Extract) and fold(node.name) == "year"):
        return Field("integer", low.year, high.year, field.nullable, tuple(range(low.year, high.year + 1)))
    if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DATE:
        return _stepped("date", "DAY", low, high, field.nullable)
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = fold(str(node.args["unit"].name)).upper()
        fine = unit in ("HOUR", "MINUTE")
        kind: Kind = "date" if field.kind == "date" and not fine else "timestamp"
        return _stepped(kind, "DAY" if field.kind == "date" and fine else unit, low, high, field.nullable)
    return None


def _as_time(value: Any) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)


def _stepped(kind: Kind, unit: str, low: dt.datetime, high: dt.datetime, nullable: bool) -> Field | None:
    """The starts of all units from the one that holds `low` to the one that holds `high`."""
    if unit not in _STEPS and unit not in _MONTHS:
        return None
    if unit in _STEPS and (high - low) / _STEPS[unit] >= MOST_BINS:
        return None
    starts = list(_starts(unit, low, high))
    values = tuple(start.date() if kind == "date" else start for start in starts)
    return Field(kind, None, None, nullable, values)


def _starts(unit: str, low: dt.datetime, high: dt.datetime) -> Iterator[dt.datetime]:
    if unit in _MONTHS:
        months = _MONTHS[unit]
        for number in range(
            (low.year * 12 + low.month - 1) // months, (high.year * 12 + high.month - 1) // months + 1
        ):
            yield dt.datetime(number * months // 12, number * months % 12 + 1, 1)
        return
    start = low.replace(second=0, microsecond=0)
    if unit != "MINUTE":
        start = start.replace(minute=0)
    if unit in ("DAY", "WEEK"):
        start = start.replace(hour=0)
    if unit == "WEEK":
        start -= dt.timedelta(days=start.weekday())
    while start <= high:
        yield start
        start += _STEPS[unit]
