"""Private group keys: which groups may be shown.

Two ways. Where the question asks for the number of units of each group, that number decides, with its own
noise and nothing else spent (`Leaf.shown_by`). Otherwise the weights of keys are bought for it.

The weights of keys. A unit that appears in m groups gives each of them the same weight, in whole numbers of a
mass M = 1024: a unit in more than M groups gives none, and a group whose weight is 0 is treated as absent.
Each other group's weight gets noise and is shown if the result reaches T. With d = 1 (or 2 where units are
replaced):

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

Counts that decide. A unit in m groups counts for w(m) in each of them, with a cap C on its groups:

  L1   w(m) = min(1, C / m), at most C in all; truncated Laplace noise of bound K, shown above K. That is
       post-processing of a release that is (epsilon, delta)-private as it is: `TruncatedLaplace` has the
       theorem. A group that nobody is in could not be shown, and units in many groups need no rule.
  L2   w(m) = min(1, sqrt(C / m)), a vector of length at most sqrt(C); Gaussian noise, shown from T on, if the
       exact number is above 0. The theorem above holds with this w, for m up to a bound M. A unit in more
       groups counts 0 in each. It must not count where others are either: a light unit that makes a group a
       candidate would then reveal a number that heavy units have made large. M is public: at least 2,048,
       since T grows with sqrt(log M) only.

Other sums of the same groups have their own lines. Over the groups that both neighbours have, they are
released beside the counts, and which of them are shown is post-processing; over the others, nothing at all
is shown but for delta. What a unit in more than M groups adds to other sums shows in groups of others only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.backends.statement import KEY_MASS
from incrowd.query import Measure

EXACT_GROUPS = 4096
"""Up to so many groups of a unit, each number of them is tried; beyond, numbers within 1% of each other."""
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
    return _least(lambda height: delta_of(height, tail, norm, most_groups), delta, distance)


def count_threshold_for(tail: Tail, delta: Fraction, distance: int, count: Measure) -> int:
    """The least T, in steps, for a count in L2 that decides which groups are shown."""
    return _least(lambda height: count_delta_of(height, tail, count), delta, distance)


def _least(delta_at: Callable[[int], float], delta: Fraction, distance: int) -> int:
    target = float(delta) / distance * (1 - 1e-9)
    low, high = 0, 1
    while delta_at(high) > target:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_at(middle) <= target else (middle, high)
    return high


def delta_of(threshold: int, tail: Tail, norm: int = 1, most_groups: int = KEY_MASS) -> float:
    """delta(T), rounded up by a part in 10^9 against the rounding of this computation."""
    groups = np.arange(1, min(most_groups, KEY_MASS) + 1)
    weights = KEY_MASS // groups if norm == 1 else np.floor(KEY_MASS / np.sqrt(groups)).astype(np.int64)
    return _worst(tail(threshold - weights), groups)


def count_delta_of(threshold: int, tail: Tail, count: Measure) -> float:
    """delta(T) for a count in L2, at most.

    Numbers of groups from a to b are taken as b groups of the weight in a. One step covers the engine's
    rounding of the root.
    """
    least, most = _numbers_of_groups(count.most_groups)
    shrunk = np.minimum(1.0, np.sqrt(count.rows_cap / least))
    weights = np.floor(count.limit_steps * shrunk).astype(np.int64) + 1
    return _worst(tail(threshold - weights), most)


def _numbers_of_groups(most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ranges that hold every number of groups from 1 to `most`: their first and their last."""
    single = np.arange(1, min(most, EXACT_GROUPS) + 1, dtype=np.float64)
    if most <= EXACT_GROUPS:
        return single, single
    steps = math.ceil(math.log(most / EXACT_GROUPS) / math.log(1.01)) + 1
    edges = np.ceil(np.geomspace(EXACT_GROUPS, most, steps + 1))
    edges[-1] = most
    return np.append(single, edges[:-1]), np.append(single, edges[1:])


def _worst(chance: NDArray[np.float64], groups: NDArray[np.int64] | NDArray[np.float64]) -> float:
    hidden = groups * np.log1p(-np.minimum(chance, 1 - 1e-16))
    return float((-np.expm1(hidden)).max()) * (1 + 1e-9)
