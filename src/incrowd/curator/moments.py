"""The interval of a variance, covariance or correlation: how far the noise of its sums moves it.

Let f be the estimate from noisy sums x_1..x_k with independent noises of deviations d_j. To first order it is
off by the sum of g_j e_j, with e_j the noises in deviations and g_j = (f(x + d_j) - f(x - d_j)) / 2 the slope
over one deviation. That sum has the deviation |g|, and reaches no further than one Laplace or normal noise of
that deviation would: q |g| at a confidence, q the larger of both points. What f curves over one deviation,
h_j = f(x + d_j) - 2 f(x) + f(x - d_j), moves it by h_j e_j^2 / 2 more, taken as q^2 |h_j| / 2 for all j.

That holds where counts are far above their noise, by FAR of its deviations, and where f is not clamped into
what is possible, a variance at 0 or a correlation at 1, where it has no slope, and, for the slope of a line,
where the variance of x is FAR above its noise too. Elsewhere the interval is that of the box around all sums
(`estimates`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from incrowd.curator.estimates import Floats, Span, column
from incrowd.query import Aggregate, Measure

FAR = 8.0
_ONE_DEVIATION = 0.76
"""A confidence at which noise reaches a little more than one deviation."""
_ANYTHING = Span(*(np.array([end]) for end in (0.0, -np.inf, np.inf)))


def interval(
    aggregate: Aggregate,
    measures: Mapping[str, Measure],
    sums: Mapping[str, Floats],
    deviations: Mapping[str, Floats | float],
    box: Span,
    confidence: float,
) -> Span:
    """The estimate of an aggregate with its interval; `box` is the estimate with the box's interval."""
    if aggregate.root:
        # A root has no slope at zero: the interval is that of the variance, and its ends' roots.
        squared = Span(*(number**2 for number in (box.value, box.low, box.high)))
        plain = replace(aggregate, root=False)
        return interval(plain, measures, sums, deviations, squared, confidence).root()

    def estimate(name: str = "", by: Floats | float = 0.0) -> Floats:
        moved = {key: value + (by if key == name else 0.0) for key, value in sums.items()}
        return column(
            aggregate, measures, {key: Span.around(value, 0.0) for key, value in moved.items()}
        ).value

    middle, point = estimate(), _point(confidence)
    slopes, curves = np.zeros_like(middle), np.zeros_like(middle)
    for name in aggregate.measures:
        above, below = estimate(name, deviations[name]), estimate(name, -deviations[name])
        slopes += ((above - below) / 2) ** 2
        curves += np.abs(above - 2 * middle + below)
    half = point * np.sqrt(slopes) + point**2 / 2 * curves
    count = aggregate.measures[-1]
    clamped = {"var": middle <= 0, "corr": np.abs(middle) >= 1}.get(
        aggregate.kind, np.zeros(len(middle), bool)
    )
    sure = (sums[count] > FAR * deviations[count]) & ~clamped
    if aggregate.kind in ("slope", "intercept"):
        sure &= _varies(aggregate, measures, sums, deviations)
        middle = np.where(sure, middle, box.value)
    low, high = (np.where(sure, middle + side * half, end) for side, end in ((-1, box.low), (1, box.high)))
    return Span(middle, np.maximum(low, box.low), np.minimum(high, box.high))


def _varies(
    aggregate: Aggregate,
    measures: Mapping[str, Measure],
    sums: Mapping[str, Floats],
    deviations: Mapping[str, Floats | float],
) -> NDArray[np.bool_]:
    """Where the variance that a slope divides by is far above its noise."""
    total, _, squares, _, count = aggregate.measures
    plain = replace(aggregate, kind="var", measures=(total, squares, count))
    exact = column(plain, measures, {name: Span.around(sums[name], 0.0) for name in plain.measures})
    noise = interval(plain, measures, sums, deviations, _ANYTHING, _ONE_DEVIATION)
    return np.asarray(exact.value > FAR * (noise.high - noise.value))


@functools.lru_cache
def _point(confidence: float) -> float:
    """How many deviations noise reaches."""
    from scipy.special import ndtri

    return max(float(ndtri((1 + confidence) / 2)), -math.log1p(-confidence) / math.sqrt(2))
