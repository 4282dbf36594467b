"""Bins: expressions that fall into few values because their column has declared bounds.

FLOOR(x / 10), x // 10, CAST(t AS DATE), DATE_TRUNC('month', t), YEAR(t): all values are known from the
bounds, so they are public, and the ones that are empty are shown too. A row outside the bounds is in no bin.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.combining import as_moment
from incrowd.query.expressions import total
from incrowd.query.functions.times import TIMES as TIME_FUNCTIONS
from incrowd.query.functions.times import unit_of
from incrowd.query.spans import FIRST, LAST, interval_in
from incrowd.query.truncating import FINE, MONTHS, STEPS, starts
from incrowd.query.typed import Field, Lookup, Typed

MOST_BINS = 100_000
"""The most values that bins may have to be public."""
_ROUNDED = (exp.Floor, exp.Ceil, exp.Trunc, exp.Round, exp.IntDiv, exp.Cast)


def bins_of(node: exp.Expr, lookup: Lookup, field: Callable[[exp.Column], Field]) -> Field | None:
    """The values of an expression that makes bins; None for any other, and where there are too many."""
    if _about_times(node, field):
        try:
            typed = total(node, lookup)
        except QueryError:
            # A difference of timestamps has a meaning only in the expression around it, which makes the bins.
            return None
        return _times(node, typed, lookup) if typed.kind in TIMES else _listed(typed)
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


def _listed(typed: Typed) -> Field | None:
    """The values of a part of a date, as far as bounds limit them."""
    if typed.values is None or len(typed.values) > MOST_BINS:
        return None
    return Field(typed.kind, typed.low, typed.high, typed.nullable, typed.values)


def _about_times(node: exp.Expr, field: Callable[[exp.Column], Field]) -> bool:
    """True if an expression computes with dates, as far as its outermost step shows."""
    if isinstance(node, exp.Cast):
        return bool(node.to.this == exp.DataType.Type.DATE)
    if type(node) in TIME_FUNCTIONS:
        return True
    if not isinstance(node, exp.Add | exp.Sub):
        return False
    inner = node.this.unnest()
    if isinstance(inner, exp.Column):
        return field(inner).kind in TIMES
    return isinstance(inner, exp.Cast) or interval_in(node.expression) is not None


def _times(node: exp.Expr, typed: Typed, lookup: Lookup) -> Field | None:
    """The days, or longer units, of a time with bounds."""
    if typed.limits is None:
        return None
    low, high = (as_moment(end) for end in typed.limits)
    cut = isinstance(node, exp.TimestampTrunc | exp.DateTrunc)
    unit = unit_of(node) if cut else "DAY"
    if low < FIRST or high > LAST or (typed.kind == "timestamp" and not cut):
        return None
    if unit in FINE and total(node.this, lookup).kind == "date":
        unit = "DAY"
    if unit not in MONTHS and (high - low) / STEPS[unit] >= MOST_BINS:
        return None
    moments = starts(unit, low, high)
    values = tuple(start.date() if typed.kind == "date" else start for start in moments)
    return Field(typed.kind, None, None, typed.nullable, values)
