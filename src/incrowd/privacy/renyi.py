"""Renyi divergences of a plan and the tight way from them to (epsilon, delta).

With c = alpha - 1 and K(c) = log E_P exp(c * loss) = c * D_alpha, every c > 0 gives the bound
delta(epsilon) <= exp(K(c) - c epsilon) c^c / (c + 1)^(c + 1)   (Canonne, Kamath, Steinke 2020, Prop. 12),
because (1 - e^-v)_+ <= e^(c v) * max over v of e^(-c v)(1 - e^-v). Any c is safe, so a search over a grid is
enough. This bound covers what has no pair (zCDP events) and is the zCDP column of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from incrowd.privacy import conversions, events, ranges, transforms
from incrowd.privacy.amounts import LEAST, float_up
from incrowd.privacy.transforms import Floats

Cumulant = Callable[[Floats], Floats]
"""K as a function of an array of c."""

_GRID = np.geomspace(1e-4, 1e8, 601)
_MOST = 1e15
"""Beyond this epsilon or number of steps a moment is not computed."""
ROUNDING = 2.0**-49
"""Room for the floating-point error of a handful of operations, relative to the largest operand."""


def event_cumulant(event: events.Event, c: Floats) -> Floats:
    """An upper bound on K(c) of one event, its mass of delta set aside."""
    rho = conversions.rho(event)
    if isinstance(event, events.Gaussian):
        return float_up(event.mu**2 / 2) * c * (c + 1) * (1 + ROUNDING)
    best = np.full_like(c, np.inf) if rho is None else float_up(rho) * c * (c + 1) * (1 + ROUNDING)
    epsilon = conversions.pure_epsilon(event)
    if epsilon is not None:
        best = np.minimum(best, c * float_up(epsilon) * (1 + ROUNDING))
    bounded = transforms.bounded_part(event)
    if isinstance(event, events.BoundedRange) and event.epsilon < _MOST:
        best = np.minimum(best, ranges.cumulant(event.epsilon, c))
    if bounded is not None and max(bounded[0], bounded[2]) < _MOST:
        exact = c * bounded[0] + np.log(transforms.reduced_moment(*bounded, c))
        best = np.minimum(best, exact + ROUNDING * (1 + c * bounded[0]))
    return best


def cumulant(counts: dict[events.Event, int], c: Floats) -> Floats:
    """An upper bound on K(c) of a composed plan."""
    total = np.zeros_like(c)
    for event, count in counts.items():
        total = total + float_up(Fraction(count)) * event_cumulant(event, c)
    return total * (1 + ROUNDING)


def log_peak(c: Floats) -> Floats:
    """log(c^c / (c + 1)^(c + 1))."""
    return -c * np.log1p(1 / c) - np.log1p(c)


def delta_bound(curve: Cumulant, epsilon: float) -> float:
    """The least delta over all orders at which the plan is (epsilon, delta)-DP by its moments."""

    def exponent(c: Floats) -> Floats:
        return curve(c) - c * epsilon + log_peak(c)

    value = _least(exponent)
    return min(1.0, math.exp(min(0.0, value)) * (1 + 1e-12) + (LEAST if value > -math.inf else 0.0))


def epsilon_bound(curve: Cumulant, delta: float) -> float:
    """The least epsilon over all orders at which the plan is (epsilon, delta)-DP by its moments."""

    def epsilon(c: Floats) -> Floats:
        return (curve(c) + log_peak(c) - math.log(delta)) / c

    value = _least(epsilon)
    return max(0.0, value + abs(value) * 1e-13 + 1e-15)


def _least(function: Cumulant) -> float:
    """The least value seen on a grid refined around its best point."""
    grid = _GRID
    for _ in range(3):
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.nan_to_num(function(grid), nan=np.inf, posinf=np.inf)
        best = int(np.argmin(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        least = float(values[best])
        grid = np.geomspace(low, high, 41)
    return least


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho (rounded down) for which rho-zCDP implies (epsilon, delta)-DP; delta in (0, 1).

    For a fixed c the condition is linear in rho, so the answer is a maximum over c, and every c is safe.
    """

    def least(c: Floats) -> Floats:
        return -(math.log(delta) - log_peak(c) + c * epsilon) / (c * (c + 1))

    value = -_least(least)
    return max(0.0, value - abs(value) * 1e-12)
