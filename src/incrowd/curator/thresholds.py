"""Private group keys: which groups may be shown.

A unit that appears in m groups gives each of them the same weight, in whole numbers of a mass M = 1024: a
unit in more than M groups gives none, and a group whose weight is 0 is treated as absent. Each other group's
weight gets noise and is shown if the result reaches T. Two ways, d = 1 (or 2 where units are replaced):

  L1   weight floor(M / m), at most M in all; discrete Laplace noise of scale d M / epsilon
  L2   weight floor(M / sqrt(m)), a vector of length at most M; Gaussian noise of scale d M / mu

(Where each row is a unit of its own, in one group, the optimal `PartitionSelection` is used instead.)
In L2 a unit in many groups counts for sqrt(m) times as much, which is what daily or hourly groups need.

Theorem. Split the groups of the larger of two neighbours into those that both have and those that only the
extra unit makes appear: at most m of them if it is in m groups, each of that unit's weight alone. Noise
is independent, so the release is a pair of independent releases. Over the common groups it is epsilon-DP
(mu-GDP): the weights differ by at most d M in L1 (L2). Over the others it shows nothing at all with
probability at least 1 - delta(T), which is what the smaller neighbour always does, so the two differ by at
most delta(T) in total variation:

    delta(T) = max over m in 1..M of 1 - (1 - P(X >= T - weight(m)))^m

The whole is the composition of the two. Where a unit is replaced, each neighbour has groups of its own, and
two total variations add: T is computed for delta / 2. What else is released per shown group is covered by
its own lines, for the groups that both neighbours show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.backends.statement import KEY_MASS

Tail = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""An upper bound of P(X >= k) for each k."""


def laplace_tail(scale: float) -> Tail:
    """P(X >= k) of discrete Laplace noise: r^k / (1 + r) for k >= 1, and 1 - r^(1 - k) / (1 + r) below."""
    ratio = math.exp(-1 / scale)

    def tail(k: NDArray[np.int64]) -> NDArray[np.float64]:
        above = np.exp(-np.maximum(k, 1) / scale) / (1 + ratio)
        below = 1 - np.exp(-np.maximum(1 - k, 0) / scale) / (1 + ratio)
        return np.where(k >= 1, above, below)

    return tail


def gaussian_tail(scale: float) -> Tail:
    """For the released, rounded Gaussian noise: P(X >= k) <= P(N(0, scale^2) >= k - 1).

    A discrete Gaussian exceeds the continuous one by less than a step of its own grid (Canonne, Kamath,
    Steinke 2020, Proposition 25), and rounding adds half of one.
    """
    from scipy.special import log_ndtr

    def tail(k: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.exp(log_ndtr(-(k - 1) / scale))

    return tail


def threshold_for(
    tail: Tail, delta: Fraction, distance: int, norm: int = 1, most_groups: int = KEY_MASS
) -> int:
    """The least T for which delta(T) stays within `delta`, rounded up."""
    target = float(delta) / distance * (1 - 1e-9)
    low, high = 0, 1
    while delta_of(high, tail, norm, most_groups) > target:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(middle, tail, norm, most_groups) <= target else (middle, high)
    return high


def delta_of(threshold: int, tail: Tail, norm: int = 1, most_groups: int = KEY_MASS) -> float:
    """delta(T), rounded up by a part in 10^9 against the rounding of this computation."""
    groups = np.arange(1, min(most_groups, KEY_MASS) + 1)
    weights = KEY_MASS // groups if norm == 1 else np.floor(KEY_MASS / np.sqrt(groups)).astype(np.int64)
    chance = np.minimum(tail(threshold - weights), 1 - 1e-16)
    return float((-np.expm1(groups * np.log1p(-chance))).max()) * (1 + 1e-9)
