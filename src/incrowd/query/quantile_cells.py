"""MEDIAN, quantiles, MIN and MAX: their ranks, and the cells of the histogram that answers them."""

from __future__ import annotations

import datetime as dt
import math

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.sql import number

BUCKETS = 65_536
"""The most cells of a histogram."""
GROUPED = 4_096
"""The most cells of each group's: each group is looked at by itself."""
EXTREME = 0.01
"""MIN and MAX are answered as this quantile and its mirror image."""
_NARROWEST = 1e-250


def ranks_of(node: exp.Expr, label: str) -> tuple[float, ...]:
    """The ranks, between 0 and 1."""
    if isinstance(node, exp.Median):
        return (0.5,)
    if isinstance(node, exp.Min | exp.Max):
        return (EXTREME if isinstance(node, exp.Min) else 1 - EXTREME,)
    asked = node.args.get("quantile") or node.args.get("expression")
    if isinstance(asked, exp.Array | exp.Tuple):
        function = label.partition("(")[0]
        raise QueryError(
            f"{label} needs a constant rank, or ranks in square brackets, as in {function}(x, [0.25, 0.75]): "
            "together they cost as one."
        )
    rank = None if asked is None else number(asked)
    if rank is None or not 0 <= rank <= 1:
        raise QueryError(f"{label} needs a constant rank between 0 and 1.")
    return (rank,)


def note_of(node: exp.Expr, label: str) -> str:
    """What an answer says about MIN and MAX; nothing for other quantiles."""
    if not isinstance(node, exp.Min | exp.Max):
        return ""
    side = "below" if isinstance(node, exp.Min) else "above"
    return (
        f"{label} is answered as the value that {EXTREME:.0%} of the rows lie {side}: one person alone "
        "decides the true one."
    )


def seconds_or_days(limit: dt.date) -> float:
    """A bound of a date in days, and of a timestamp in seconds, since 1970.

    >>> seconds_or_days(dt.date(1970, 1, 3)), seconds_or_days(dt.datetime(1970, 1, 2, 1))
    (2.0, 90000.0)
    """
    if isinstance(limit, dt.datetime):
        return float((limit.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1))
    return float((limit - dt.date(1970, 1, 1)).days)


def cells_of(low: float, high: float, whole: bool, most: int = BUCKETS) -> tuple[float, float, int]:
    """The range of a histogram and the number of its equal cells; one cell per whole number if they are few.

    >>> cells_of(17, 90, True), cells_of(0.0, 1.0, False)
    ((17, 91, 74), (0.0, 1.0, 65536))
    """
    if whole:
        low, high = math.floor(low), math.ceil(high)
        if high - low < most:
            return low, high + 1, int(high - low) + 1
    if not (high - low) / most > _NARROWEST:
        # A constant: any range that holds it will do.
        high = low + max(abs(low), 1.0) * 1e-9
    return low, high, most
