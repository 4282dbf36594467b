"""A number of different values, from two noisy counts of them: under a generous cap, and under a cap of 1.

Let F be the count in which a unit counts for at most C values, and f that in which it counts for 1. Neither
exceeds the number of values, and f <= F. F is what is stated. Each count lies within its half-width at the
confidence 1 - (1 - c) / 2, so both do with probability c, and then F is at least either low end, and at most
its own high end. The estimate is f, whose noise is C times narrower, unless F is above it by more than noise:
then units have values that nobody else has, and F is the estimate.
"""

from __future__ import annotations

import numpy as np

from incrowd.curator.estimates import Floats, Span

_BEYOND = 2.0
"""In deviations of the noise of F: f stands for F unless F is above it by more."""


def combined(
    generous: Floats,
    narrow: Floats,
    halfwidths: tuple[float, float],
    deviation: float,
    between: tuple[float, float],
) -> Span:
    """The number of values per group, whole, with its interval."""
    reach, near = halfwidths
    low, high = np.maximum(generous - reach, narrow - near), generous + reach
    value = np.where(generous - narrow > _BEYOND * deviation, generous, narrow)
    # Where the ends have crossed, which the confidence allows for, the narrow count is the surer one.
    high = np.maximum(high, low)
    value = np.round(np.clip(np.clip(value, low, high), *between))
    low, high = (np.clip(end, *between) for end in (np.ceil(low - 1e-9), np.floor(high + 1e-9)))
    return Span(value, np.minimum(low, value), np.maximum(high, value))
