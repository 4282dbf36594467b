"""Private group keys: which groups may be shown.

A unit that appears in m groups gives each of them floor(M / m) of weight, M = 1024, so at most M in all;
one in more than M groups gives none. A group whose weight is 0 is treated as absent. Each other group's
weight gets discrete Laplace noise of scale b = d M / epsilon (d = 1, or 2 where units are replaced) and is
shown if the result reaches T.

Theorem. Over groups that both of two neighbours have, the weights differ by at most d M in L1: epsilon-DP.
A neighbour with one unit more has at most M further groups: if the unit is in m groups, at most m of them
are its own, each of weight floor(M / m). The probability that any of these is shown is at most

    delta(T) = max over m in 1..M of 1 - (1 - P(X >= T - floor(M / m)))^m,   X discrete Laplace of scale b.

Let F be the event that none is shown, and E any set of outputs.
- From the larger to the smaller: P(E) <= P(E and F) + delta <= e^epsilon P'(E) + delta.
- From the smaller to the larger: P'(E) = e^epsilon-close to P(E | F), and P(E) >= P(E | F)(1 - delta), so
  P'(E)(1 - delta) <= e^epsilon P(E), hence P'(E) <= e^epsilon P(E) + delta.
- Replacing a unit meets both: delta doubles, so T is computed for delta / 2. What else is released per
  shown group is covered by its own lines: on F, both neighbours release it for the same groups.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from incrowd.backends.statement import KEY_MASS


def threshold_for(epsilon: Fraction, delta: Fraction, distance: int, most_groups: int = KEY_MASS) -> int:
    """The least T for which delta(T) stays within `delta`, rounded up."""
    target = float(delta) / distance * (1 - 1e-9)
    low, high = 0, 1
    while delta_of(high, epsilon, distance, most_groups) > target:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if delta_of(middle, epsilon, distance, most_groups) <= target else (middle, high)
        )
    return high


def delta_of(threshold: int, epsilon: Fraction, distance: int, most_groups: int = KEY_MASS) -> float:
    """delta(T), rounded up by a part in 10^9 against the rounding of this computation."""
    rate = float(epsilon) / (distance * KEY_MASS)
    groups = np.arange(1, min(most_groups, KEY_MASS) + 1)
    gap = threshold - KEY_MASS // groups
    ratio = math.exp(-rate)
    # P(X >= k) = r^k / (1 + r) for k >= 1, and 1 - r^(1 - k) / (1 + r) below.
    above = np.exp(-rate * np.maximum(gap, 1)) / (1 + ratio)
    below = 1 - np.exp(-rate * np.maximum(1 - gap, 0)) / (1 + ratio)
    tail = np.where(gap >= 1, above, below)
    shown = -np.expm1(groups * np.log1p(-np.minimum(tail, 1 - 1e-16)))
    return float(shown.max()) * (1 + 1e-9)
