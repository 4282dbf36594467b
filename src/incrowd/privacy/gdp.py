"""The Gaussian pair N(mu, 1) against N(0, 1): its exact delta(epsilon), both ways, rounded outwards.

delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)   (Balle, Wang 2018, Theorem 8)

The two terms nearly cancel, so they are taken as phi(a) (R(-a) - R(b)) with a = mu/2 - epsilon/mu,
b = mu/2 + epsilon/mu and the Mills ratio R(x) = Phi(-x)/phi(x), using e^epsilon phi(b) = phi(a). For small mu
the difference is the integral of -R' = 1 - x R(x) over [-a, b], an interval of length mu.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.privacy.amounts import (
    LEAST,
    Real,
    read_float,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def delta(mu: float, epsilon: float) -> float:
    """An upper bound on delta(epsilon) of mu-GDP, above the truth by a relative 1e-10 at most.

    >>> round(delta(1.0, 1.0), 6)
    0.126937
    """
    if mu <= 0:
        return 0.0
    a, b = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    if a < -38.6:
        return LEAST  # delta <= Phi(a) < 5e-324
    if a > 5:
        from scipy.special import ndtr

        # Nothing cancels here: Phi(a) is near 1 and the other term is below phi(a).
        return min(1.0, float(ndtr(a)) * (1 + 1e-14) - math.exp(-a * a / 2) * _mills(b) / _ROOT * (1 - 1e-10))
    if mu <= 1:
        x = -a + mu * (_NODES + 1) / 2
        slope = 1 - x * _mills_array(x)
        difference = float(mu / 2 * (_WEIGHTS @ slope))
        # 1 - x R(x) loses about x^2 of its relative accuracy; it stays above 1/(x^2 + 3).
        error = 1e-14 * (1 + b * b)
    else:
        difference = _mills(-a) - _mills(b)
        error = 1e-15 * (_mills(-a) + _mills(b)) / difference
    error += 4e-16 * (a * a + abs(a) * (epsilon / mu + mu)) + 1e-14
    return min(1.0, math.exp(-a * a / 2) / _ROOT * difference * (1 + error) + 4 * LEAST)


_ROOT = math.sqrt(2 * math.pi)


def _mills_array(
    x: NDArray[np.float64],
) -> NDArray[np.float64]:
    from scipy.special import erfcx

    values: NDArray[np.float64] = erfcx(x / math.sqrt(2)) * math.sqrt(math.pi / 2)
    return values


def _mills(x: float) -> float:
    from scipy.special import erfcx

    return float(erfcx(x / math.sqrt(2))) * math.sqrt(math.pi / 2)


def epsilon(mu: float, target: float) -> float:
    """The least epsilon (rounded up) with delta(epsilon) <= target; target in (0, 1).

    >>> round(epsilon(1.0, 1e-6), 5)
    4.88655
    """
    if delta(mu, 0.0) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while delta(mu, high) > target:
        low, high = high, 2 * high
        if math.isinf(high):
            return high
    return _bisect(lambda e: delta(mu, e) <= target, low, high)


def largest_mu(eps: float, target: float) -> float:
    """The largest mu (rounded down) with which mu-GDP implies (eps, target)-DP."""
    low, high = 0.0, 1.0
    while delta(high, eps) <= target:
        low, high = high, 2 * high
    return -_bisect(lambda negative: delta(-negative, eps) <= target, -high, -low)


def _bisect(good: Callable[[float], bool], low: float, high: float) -> float:
    """The last float seen for which a monotone test, false at `low` and true at `high`, is true."""
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-14 * abs(high):
            break
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def least_sigma(eps: Real, target: Real, sensitivity: Real = 1) -> float:
    """The least standard deviation (rounded up) that makes Gaussian noise (eps, target)-DP, any eps >= 0.

    The analytic calibration of Balle and Wang (2018), in any dimension; the sensitivity is in L2.
    """
    inner, failure = read_float(eps, "epsilon"), read_float(target, "delta")
    if not 0 < failure < 1 or inner > 1e15:
        raise InvalidInput(
            "Gaussian noise needs a delta strictly between 0 and 1, and an epsilon below 1e+15."
        )
    mu = largest_mu(inner * (1 - 2.0**-50), failure * (1 - 2.0**-50))
    return read_float(sensitivity, "sensitivity") / mu * (1 + 1e-15)
