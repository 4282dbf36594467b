"""The least noise for a plan within a budget: one monotone solve on the curve.

A plan is a function from an amount of noise to a guarantee whose cost falls as the noise grows, such as
`lambda noise: gaussian(1 / noise) * 12 + laplace(0.5 / noise) * 3`. Only guarantees are evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from incrowd.errors import IncrowdError, InvalidInput
from incrowd.privacy.amounts import (
    Real,
    read_float,
    read_probability,
)
from incrowd.privacy.guarantee import (
    Guarantee,
    read_guarantee,
)

RELATIVE_TOLERANCE = 1e-9


def calibrate(
    plan: Callable[[float], Guarantee], epsilon: Real, delta: Real = 0.0, *, start: float = 1.0
) -> float:
    """The least noise (to a relative 1e-9, on the safe side) with which the plan is (epsilon, delta)-DP.

    >>> from incrowd.privacy import gaussian
    >>> sigma = calibrate(lambda noise: gaussian(1 / noise) * 100, 1.0, 1e-6)
    >>> (gaussian(1 / sigma) * 100).epsilon(1e-6) <= 1.0, round(sigma, 3)
    (True, 42.247)
    """
    target = read_float(epsilon, "epsilon")
    slack = read_probability(delta, "delta")
    start = read_float(start, "start")
    if not 1e-30 <= start <= 1e30:
        raise InvalidInput("start must be an amount of noise between 1e-30 and 1e+30.")
    if not callable(plan):
        raise InvalidInput("plan must be a function from an amount of noise to a guarantee.")

    def excess(noise: float) -> float:
        """The log of how far the plan's epsilon lies above the target."""
        try:
            guarantee = plan(noise)
        except IncrowdError:
            raise
        except Exception as error:
            raise InvalidInput(
                "plan must be a function from an amount of noise, a float, to a guarantee; it raised "
                f"{type(error).__name__} instead."
            ) from error
        reached = read_guarantee(guarantee).epsilon(slack)
        if reached > target:
            return math.log(reached) - math.log(target) if target else math.inf
        return min(-1e-300, math.log(reached) - math.log(target)) if reached and target else -math.inf

    low = high = float(start)
    value_low = value_high = excess(high)
    while value_high > 0:
        low, value_low = high, value_high
        high *= 4
        value_high = excess(high)
        if high > 1e30:
            raise InvalidInput(
                f"No noise brings this plan within epsilon {float(target):g} and delta {float(slack):g}: "
                "raise the budget, or check that its thresholds leave some delta."
            )
    while value_low <= 0:
        high, value_high = low, value_low
        low /= 4
        value_low = excess(low)
        if low < 1e-30:
            return high
    return _shrink(excess, (math.log(low), value_low), (math.log(high), value_high))


def _shrink(excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> float:
    """Illinois on the log of the noise, kept honest by bisection; the safe end is the answer."""
    (left, over), (right, under) = low, high
    pull = 0
    for turn in range(200):
        if right - left <= RELATIVE_TOLERANCE:
            break
        middle = (left + right) / 2
        if turn % 4 < 3 and math.isfinite(over) and math.isfinite(under):
            middle = left + (right - left) * over / (over - under)
            edge = RELATIVE_TOLERANCE / 4
            middle = min(max(middle, left + edge), right - edge)
        value = excess(math.exp(middle))
        if value > 0:
            left, over, under = middle, value, under / 2 if pull > 0 else under
            pull = 1
        else:
            right, under, over = middle, value, over / 2 if pull < 0 else over
            pull = -1
    return math.exp(right) * (1 + 1e-15)
