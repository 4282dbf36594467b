"""The line that fits best: its slope and intercept, and the sums of squares around both means.

The sums are about deviations from centres, c of x and d of y. With means u and v of the deviations, the slope
is the covariance over the variance of x, and the intercept d + v less the slope times c + u. A slope needs a
variance that is known to be above zero: where it is not, it may be anything, and is taken as 0, for a ratio
of noise is worse than a flat line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from incrowd.query import Measure

if TYPE_CHECKING:
    from incrowd.curator.estimates import Span


def sum_of_squares(variance: Span, count: Span) -> Span:
    """REGR_SXX: the variance times the number of rows."""
    return variance * count.within(0.0, np.inf)


def slope(covariance: Span, variance: Span) -> Span:
    """REGR_SLOPE."""
    sure = variance.low > 0
    safe = type(variance)(
        *(np.where(sure, end, 1.0) for end in (variance.value, variance.low, variance.high))
    )
    corners = [a / b for a in (covariance.low, covariance.high) for b in (safe.low, safe.high)]
    return type(variance)(
        np.where(sure, covariance.value / safe.value, 0.0),
        np.where(sure, np.minimum.reduce(corners), -np.inf),
        np.where(sure, np.maximum.reduce(corners), np.inf),
    )


def intercept(sloping: Span, means: Sequence[Span], facts: Sequence[Measure]) -> Span:
    """REGR_INTERCEPT, from the means of the deviations of x and y."""
    (x, y), (c, d) = means, (fact.centre for fact in facts[:2])
    known = np.isfinite(sloping.low) & np.isfinite(sloping.high)
    finite = type(sloping)(
        sloping.value, np.where(known, sloping.low, 0.0), np.where(known, sloping.high, 0.0)
    )
    met = (y + d) - finite * (x + c)
    return type(met)(met.value, np.where(known, met.low, -np.inf), np.where(known, met.high, np.inf))
