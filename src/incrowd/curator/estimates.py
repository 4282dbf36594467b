"""From noisy measures to the columns that were asked, with intervals. Arithmetic on released numbers is free.

An interval at confidence c is computed from a box: each of the k measures behind a column lies within its
half-width at confidence 1 - (1 - c)/k, so by the union bound all of them do with probability c, and
interval arithmetic carries the box through the formula. That is conservative for ratios and exact for a
single sum. Averages have intervals of their own (`ratios`), and spreads where counts are large (`moments`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.curator import jumps, regressions
from incrowd.curator.contribution import UNEVEN
from incrowd.query import Aggregate, Measure

Floats = NDArray[np.float64]
MOST_FACTOR = 4.0
"""Sums are scaled up by at most this."""
_SHARES = 48
"""For more groups than this, half-widths are computed for so many shares of the total, and rounded up."""


@dataclass(frozen=True)
class Span:
    """An estimate per group between a low and a high end."""

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def around(cls, value: Floats, halfwidth: Floats | float) -> Span:
        """The interval of one noisy number."""
        return cls(value, value - halfwidth, value + halfwidth)

    def __add__(self, other: Span | float) -> Span:
        if isinstance(other, Span):
            return Span(self.value + other.value, self.low + other.low, self.high + other.high)
        return Span(self.value + other, self.low + other, self.high + other)

    def __neg__(self) -> Span:
        return Span(-self.value, -self.high, -self.low)

    def __sub__(self, other: Span) -> Span:
        return self + -other

    def __mul__(self, other: Span) -> Span:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Span(self.value * other.value, np.minimum.reduce(corners), np.maximum.reduce(corners))

    def per(self, count: Span) -> Span:
        """Divided by a number of rows, taken as at least 1."""
        rows = Span(*(np.maximum(rows, 1.0) for rows in (count.value, count.low, count.high)))
        corners = [a / b for a in (self.low, self.high) for b in (rows.low, rows.high)]
        return Span(self.value / rows.value, np.minimum.reduce(corners), np.maximum.reduce(corners))

    def squared(self) -> Span:
        """The square, which is tighter than the product with itself."""
        ends = np.stack((self.low**2, self.high**2))
        least = np.where((self.low <= 0) & (self.high >= 0), 0.0, ends.min(axis=0))
        return Span(self.value**2, least, ends.max(axis=0))

    def root(self) -> Span:
        """The square root of what is not negative."""
        return Span(*(np.sqrt(np.maximum(number, 0.0)) for number in (self.value, self.low, self.high)))

    def within(self, low: float, high: float) -> Span:
        """Clamped into what is possible."""
        return Span(*(np.clip(number, low, high) for number in (self.value, self.low, self.high)))


@dataclass(frozen=True)
class Factor:
    """Scales sums under a cap C up to what they would be under the generous cap G.

    small, large: the noisy totals under C and under G, in values, with the standard deviations of their
    noise. cut_squares: an estimate of the sum over units of the squares of what C cuts off. largest_cut: the
    most that it cuts off one unit; 0 if no unit loses much more than the others.
    """

    small: float
    large: float
    small_deviation: float
    large_deviation: float
    cut_squares: float
    largest_cut: float = 0.0

    @property
    def value(self) -> float:
        """The ratio of the totals: at least 1, and at most what scaling may do."""
        return min(self._ratio, MOST_FACTOR)

    @property
    def _ratio(self) -> float:
        return max(self.large / self._least_small, 1.0)

    @property
    def _least_small(self) -> float:
        return max(self.small, self.small_deviation, 1e-300)

    @property
    def _safe_small(self) -> float:
        """The total under C, less a deviation of its noise.

        With noises l and e of the totals, F - F_true = (l - F e) / (small - e): the true total counts.
        """
        return max(self.small - self.small_deviation, self.small_deviation, 1e-300)

    def scaled(self, sums: Floats, halfwidth: float, confidence: float) -> Span:
        """Sums of groups, scaled. The interval is about the sums under G.

        A group with the share p of the total loses p of what is cut, give or take: by chance, with a
        variance of p times the squares of all cuts (a unit's rows may all be in one group; `jumps`), and
        systematically, by at most UNEVEN of its part. Where the factor is less than the ratio of the totals,
        the interval reaches as far as that ratio.
        """
        size = np.abs(sums)
        share = np.clip(size / self._safe_small, 0.25 / max(len(sums), 1), 1.0)
        noise = -self.value * halfwidth / math.log1p(-confidence)
        if len(share) > _SHARES:
            steps = np.geomspace(share.min(), share.max() * (1 + 1e-9), _SHARES)
            chance = self._reach(steps, noise, confidence)[np.searchsorted(steps, share)]
        else:
            chance = self._reach(share, noise, confidence)
        systematic = UNEVEN * (self.value - 1) + self._ratio - self.value
        half = chance + systematic * size
        return Span(self.value * sums, self.value * sums - half, self.value * sums + half)

    def _reach(self, share: Floats, noise: float, confidence: float) -> Floats:
        """How far groups with these shares of the total may be off by chance, with noise of this scale."""
        spread = math.hypot(self.large_deviation, self.value * self.small_deviation) * share
        # The tail of all that is taken as that of Laplace noise, a little widened: it is a mixture.
        widened = 1.04 / math.sqrt(2) * spread
        squares = share * self.cut_squares
        if not self.largest_cut:
            widened = np.hypot(widened, 1.04 / math.sqrt(2) * np.sqrt(squares))
            return jumps.reach(np.hypot(noise, widened), np.zeros_like(share), 0.0, confidence)
        rates = squares / self.largest_cut**2
        return jumps.reach(np.hypot(noise, widened), rates, self.largest_cut, confidence)


def column(aggregate: Aggregate, measures: Mapping[str, Measure], spans: Mapping[str, Span]) -> Span:
    """The estimate of one aggregate from the spans of its measures."""
    parts = [spans[name] for name in aggregate.measures]
    facts = [measures[name] for name in aggregate.measures]
    if aggregate.kind in ("count", "sum"):
        return _total(parts[0], aggregate, facts[0]).within(*aggregate.between)
    if aggregate.kind in ("slope", "intercept"):
        first, second, squares, cross, count = parts
        means = first.per(count), second.per(count)
        variance = _variance(first, squares, count, facts[2])
        sloping = regressions.slope(cross.per(count) - means[0] * means[1], variance)
        return sloping if aggregate.kind == "slope" else regressions.intercept(sloping, means, facts)
    if aggregate.kind == "sxx":
        total, squares, count = parts
        return regressions.sum_of_squares(_variance(total, squares, count, facts[1]), count)
    if aggregate.kind == "sxy":
        first, second, cross, count = parts
        covariance = cross.per(count) - first.per(count) * second.per(count)
        return regressions.sum_of_squares(covariance, count)
    if aggregate.kind == "var":
        total, squares, count = parts
        most = facts[1].high
        variance = _variance(total, squares, count, facts[1])
        variance = _unbiased(variance, count, aggregate.sample).within(0.0, 2 * most)
        return variance.root() if aggregate.root else variance
    if aggregate.kind == "covar":
        first, second, cross, count = parts
        most = facts[2].high
        covariance = cross.per(count) - first.per(count) * second.per(count)
        return _unbiased(covariance, count, aggregate.sample).within(-2 * most, 2 * most)
    first, second, squares_one, squares_two, cross, count = parts
    covariance = cross.per(count) - first.per(count) * second.per(count)
    spread = (
        _variance(first, squares_one, count, facts[2]) * _variance(second, squares_two, count, facts[3])
    ).root()
    safe = Span(*(np.maximum(number, 1e-12) for number in (spread.value, spread.low, spread.high)))
    corners = [a / b for a in (covariance.low, covariance.high) for b in (safe.low, safe.high)]
    return Span(covariance.value / safe.value, np.minimum.reduce(corners), np.maximum.reduce(corners)).within(
        -1.0, 1.0
    )


def _total(total: Span, aggregate: Aggregate, fact: Measure) -> Span:
    """A sum or count. What cannot be negative has no interval below zero, except down to its estimate.

    The estimate itself stays as noise made it, so that sums of estimates are not biased.
    """
    low, high = total.low, total.high
    if fact.low >= 0:
        low = np.maximum(low, np.minimum(total.value, 0.0))
        high = np.maximum(high, 0.0)
    if not aggregate.whole:
        return Span(total.value, low, high)
    value = np.round(total.value)
    return Span(value, np.minimum(np.ceil(low - 1e-9), value), np.maximum(np.floor(high + 1e-9), value))


def _variance(total: Span, squares: Span, count: Span, fact: Measure) -> Span:
    """The mean of squares less the square of the mean, both around the centre of the bounds."""
    return ((squares.per(count) + fact.centre) - total.per(count).squared()).within(0.0, fact.high)


def _unbiased(moment: Span, count: Span, sample: bool) -> Span:
    """A mean over n rows times n / (n - 1), for a sample."""
    if not sample:
        return moment
    rows = Span(*(np.maximum(rows, 2.0) for rows in (count.value, count.low, count.high)))
    one = np.ones_like(rows.value)
    return moment * Span(rows.value / (rows.value - 1), one, rows.low / (rows.low - 1))
