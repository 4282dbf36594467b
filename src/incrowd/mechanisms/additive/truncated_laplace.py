"""Laplace noise that never exceeds a bound K: counts and the keys that may be named, in one release.

Theorem (for one key Desfontaines, Voss, Gipson, Mandayam 2022; here for vectors). Let f return whole numbers.
Between neighbours it moves by at most s in L1, and by at most w <= K in any coordinate. f + Z, with
independent P(Z = z) proportional to exp(-|z| / b) for |z| <= K and 0 beyond, b = s / epsilon, is
(epsilon, delta)-differentially private for

    delta = (s / w) p(w),   p(w) = P(Z > K - w) = (q^(K + 1 - w) - q^(K + 1)) / (1 + q - 2 q^(K + 1)),

with q = exp(-1 / b).

Proof. Let the neighbours' values be x and x + d. An outcome y that both can have has mass functions whose
ratio is exp of a sum of |y_i - x_i| - |y_i - x_i - d_i| over b, which is at most s / b: every coordinate has
the same constant. An outcome of x + d that x cannot have is further than K from x in some coordinate i, and
that has the probability p(|d_i|). p is convex on [0, K] and p(0) = 0, so p(|d_i|) <= |d_i| / w p(w), and
these sum to at most (s / w) p(w).

Unknown keys. A coordinate that is 0 never exceeds K. So let there be a coordinate for every key that could
exist, and name those whose noisy number exceeds K: that is post-processing of the release, and the keys that
nobody has need not be drawn. How many keys a unit is in does not matter, only its sum over them. For one key
per unit the chance that a key is named is about that of the optimal `PartitionSelection`, at the same epsilon
and delta, and here the count comes with it.

Conditions: s and w are in whole steps; the noise has exactly this law: it is drawn again where it is beyond
K, which takes no longer for one value than for another. K is at least b, so that at most one draw in two or
three is thrown away.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import INTEGERS, add_saturating
from incrowd.mechanisms.additive.laplace import MOST_STEPS
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    counted,
    delta_amount,
    failure_each,
    float_below,
)
from incrowd.noise import Source, discrete_laplace
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, approximate


@dataclass(frozen=True, eq=False, repr=False)
class TruncatedLaplace(Mechanism):
    """Releases whole numbers with noise of at most `bound`; what exceeds `bound` may be named.

    `sensitivity` is the largest L1 distance between neighbours, `largest` the most that one coordinate moves
    (by default as much as all of them).

    >>> m = TruncatedLaplace(epsilon=0.1, delta=1e-6)
    >>> m.bound, m.halfwidth(0.95), m.noise_scale
    (109, 30, 10.0)
    >>> m.release({"flu": 4000, "a rare one": 1}["a rare one"]) <= 110
    True
    """

    epsilon: Number
    delta: Number
    _: KW_ONLY
    sensitivity: int = 1
    largest: int | None = None

    def __post_init__(self) -> None:
        if counted(self.sensitivity, "sensitivity") < self._largest:
            raise InvalidInput(
                "largest must not exceed the sensitivity: no coordinate moves more than all do."
            )
        if self.scale_in_steps > MOST_STEPS:
            raise InvalidInput(
                f"Laplace noise of scale {self.noise_scale:.3g} is too wide (beyond 2**50 steps): use a "
                "coarser unit or a larger epsilon."
            )
        _ = self.bound

    @property
    def _largest(self) -> int:
        return counted(self.sensitivity if self.largest is None else self.largest, "largest")

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return amount(self.epsilon, "epsilon")

    @cached_property
    def exact_delta(self) -> Fraction:
        """Delta as a fraction."""
        return delta_amount(self.delta)

    @cached_property
    def scale_in_steps(self) -> Fraction:
        """The exact scale b."""
        return counted(self.sensitivity, "sensitivity") / self.exact_epsilon

    @property
    def noise_scale(self) -> float:
        """The scale b of the noise."""
        return float(self.scale_in_steps)

    @cached_property
    def bound(self) -> int:
        """K: the least bound for which delta suffices, rounded up by a part in 10^9.

        With y = q^(K + 1), (s / w) p(w) <= delta if and only if y (q^-w - 1 + 2 c) <= c (1 + q), where
        c = delta w / s.
        """
        b = self.noise_scale
        share = float_below(self.exact_delta * self._largest / self.sensitivity)
        grown = math.expm1(min(self._largest / b, 700.0)) + 2 * share
        least = b * (math.log(grown) - math.log(share) - math.log1p(math.exp(-1 / b)))
        if self._largest / b > 700:
            least = self._largest + b * (-math.log(share))
        return max(self._largest, math.ceil(b), math.ceil(least * (1 + 1e-9) - 1))

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees."""
        return approximate(self.exact_epsilon, self.exact_delta)

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The value (a whole number or an array of them) plus independent noise in every coordinate."""
        steps = INTEGERS.steps(value, "TruncatedLaplace")
        noise = np.zeros(steps.size, dtype=np.int64)
        left = np.arange(steps.size)
        while left.size:
            drawn = np.atleast_1d(discrete_laplace(self.scale_in_steps, size=left.size, source=source))
            inside = np.abs(drawn) <= self.bound
            noise[left[inside]] = drawn[inside]
            left = left[~inside]
        return INTEGERS.values(add_saturating(steps, noise.reshape(steps.shape)))

    def halfwidth(self, confidence: Number, count: int = 1) -> int:
        """The least h, or a little more, such that the noise stays within h with this confidence.

        P(|Z| > h) = (2 q^(h + 1) - 2 q^(K + 1)) / (1 + q - 2 q^(K + 1)). `count` numbers are covered jointly.
        """
        failure = failure_each(confidence, counted(count, "count"))
        b = self.noise_scale
        ratio, cut = math.exp(-1 / b), math.exp(-(self.bound + 1) / b)
        wanted = failure * (1 + ratio - 2 * cut) / 2 + cut
        # Outward by a part in 10^12, far above the rounding of these few operations.
        return min(self.bound, max(0, math.ceil(-math.log(wanted) * b * (1 + 1e-12) - 1)))

    def pmf(self, outcome: Any, value: Any = 0) -> Any:
        """The probability that one released number equals `outcome` when the truth is `value`."""
        apart: NDArray[np.int64] = np.abs(
            INTEGERS.steps(outcome, "TruncatedLaplace") - INTEGERS.steps(value, "TruncatedLaplace")
        )
        b = self.noise_scale
        ratio, cut = math.exp(-1 / b), math.exp(-(self.bound + 1) / b)
        mass = np.exp(-apart / b) * -math.expm1(-1 / b) / (1 + ratio - 2 * cut)
        return np.where(apart <= self.bound, mass, 0.0)[()]
