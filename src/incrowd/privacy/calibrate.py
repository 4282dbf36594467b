"""The least noise for a plan within a budget: one monotone solve on the curve.

A plan is a function from an amount of noise to a guarantee whose cost falls as the noise grows, such as
`lambda noise: gaussian(1 / noise) * 12 + laplace(0.5 / noise) * 3`. Only guarantees are evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from incrowd.errors import InvalidInput
from incrowd.privacy.amounts import Real, read_amount, read_probability
from incrowd.privacy.guarantee import Guarantee

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
    target = read_amount(epsilon, "epsilon")
    slack = read_probability(delta, "delta")
    if not (isinstance(start, (int, float)) and start > 0 and math.isfinite(start)):
        raise InvalidInput("start must be a positive amount of noise.")

    def excess(noise: float) -> float:
        """Above 0 where the plan costs too much: differences of log delta, or of epsilon where delta is 0."""
        guarantee = plan(noise)
        if slack == 0:
            return guarantee.epsilon() - float(target) if guarantee.epsilon() > target else -1e-300
        found = guarantee.delta(target)
        return math.log(found) - math.log(slack) if found > 0 else -700.0

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
    return _bisect(excess, (math.log(low), value_low), (math.log(high), value_high))


def _bisect(excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> float:
    """Regula falsi on the log of the noise, kept honest by bisection; the safe end is the answer."""
    stale = 0
    while high[0] - low[0] > RELATIVE_TOLERANCE:
        span = high[0] - low[0]
        if stale < 2 and math.isfinite(low[1]) and high[1] > -600:
            share = low[1] / (low[1] - high[1])
            # A step just past the root shrinks the bracket from the other side.
            middle = low[0] + span * min(max(share * (1 + 1e-3) + 1e-9, 1e-6), 1 - 1e-6)
        else:
            middle, stale = low[0] + span / 2, 0
        value = excess(math.exp(middle))
        if value > 0:
            low = middle, value
        else:
            high = middle, value
        stale = stale + 1 if high[0] - low[0] > span / 2 else 0
    return math.exp(high[0]) * (1 + 1e-15)
