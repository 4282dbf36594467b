"""Minimum and maximum, and what to ask instead.

There is no good private maximum. One person can set it, and a guarantee says that one person hardly matters.
An epsilon-private answer that follows the largest value when it is there keeps a probability of at least
e^(-epsilon) of being just as large when it is not. So no answer can be close to every true maximum.

What can be had is the value that only a few records exceed. `Maximum` releases that: the point with `beyond`
records above it, found by the exponential mechanism over ranks. The default of `beyond` is the least number
that keeps the answer within the data with 95% confidence, 2 ln(20 * points) / epsilon. With fewer, the noise
wanders towards the upper bound.

Theorem. The target rank is max(0, n - beyond) for the maximum and min(n, beyond) for the minimum. Adding a
record raises both a rank and the target by 0 or 1, so their difference moves by at most 1. Replacing one
keeps the target and moves ranks by at most 1. So D = 1 in the exponential mechanism: rate epsilon / 2,
epsilon-bounded-range.

Advice: to know how far values go, ask for a high quantile (0.99), or for the least power of two that all but
a few stay below. To clamp a sum, choose the bound that loses little, not one that loses nothing.
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
from incrowd.mechanisms.additive.grid import Grid
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    confidence_level,
    counted,
)
from incrowd.mechanisms.selection import ranks
from incrowd.mechanisms.selection.quantile import Interval, interval
from incrowd.noise import Source
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, bounded_range


@dataclass(frozen=True, eq=False, repr=False)
class Maximum(Mechanism):
    """Releases a value that about `beyond` records exceed, between `low` and `high`.

    >>> m = Maximum(epsilon=1.0, low=0, high=120)
    >>> m.records_beyond
    16
    """

    epsilon: Number
    _: KW_ONLY
    low: Number
    high: Number
    beyond: int | None = None
    grid: Number | Grid | None = None

    def __post_init__(self) -> None:
        _ = self.records_beyond

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return ranks.rank_epsilon(self.epsilon)

    @cached_property
    def interval(self) -> Interval:
        """The lattice points from low to high."""
        return interval(self.low, self.high, self.grid)

    @property
    def rate(self) -> Fraction:
        """The weight of one rank."""
        return self.exact_epsilon / 2

    @cached_property
    def records_beyond(self) -> int:
        """How many records should lie beyond the released value: `beyond`, or the default."""
        if self.beyond is not None:
            return counted(self.beyond, "beyond", least=0)
        return math.ceil(math.log(20 * self.interval.points) / float(self.rate))

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees, whether records are added, removed or replaced."""
        return bounded_range(self.exact_epsilon)

    def target(self, n: int) -> Fraction:
        """The rank wanted among n records."""
        return Fraction(max(0, counted(n, "n", least=0) - self.records_beyond))

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The released value for a list of numbers, one per unit."""
        steps = np.sort(self.interval.steps(value, type(self).__name__, public=False))
        point = ranks.draw(
            steps, self.target(steps.size), self.rate, self.interval.low, self.interval.high, source=source
        )
        return self.interval.value(point)

    def probabilities(self, values: Any) -> NDArray[np.float64]:
        """The probability of every lattice point from low to high, on a small lattice."""
        if self.interval.points > 10**7:
            raise InvalidInput("probabilities are listed for at most 10 million grid points.")
        steps = self.interval.steps(values, type(self).__name__, public=False)
        return ranks.masses(steps, self.target(steps.size), self.rate, self.interval.low, self.interval.high)

    def halfwidth(self, confidence: Number) -> float:
        """How many ranks the released value may be off, with this confidence."""
        failure = 1 - confidence_level(confidence)
        return math.log(self.interval.points / failure) / float(self.rate) * (1 + 1e-12)


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Maximum):
    """Releases a value that about `beyond` records lie below, between `low` and `high`."""

    def target(self, n: int) -> Fraction:
        """The rank wanted among n records."""
        return Fraction(min(counted(n, "n", least=0), self.records_beyond))
