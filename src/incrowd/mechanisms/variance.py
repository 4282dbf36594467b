"""The variance, with or without bounds given.

Theorem. Let t be a value's place in its range, clamped to [-1, 1] as in `Mean`. Release three sums of whole
numbers over the records with discrete Laplace noise: U t, 7 U t^2 and 7 U (1 - t^2), U = 2^20, each rounded
so that the last two add up to 7 U. A record more changes them by at most U + 7 U in L1, as squares and
their complements share one budget; and they give the count for nothing, which a shifted square with a count
beside it would not. Where records are replaced the number is public, and the first two sums alone move by
at most 2 U + 7 U. The variance is radius^2 (mean of t^2 - (mean of t)^2), post-processing; it does not
depend on the centre.

Accuracy: about 1.6 radius^2 / (epsilon n) in standard deviation (`halfwidth`), plus what clamping loses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.mechanisms.laplace import Laplace
from incrowd.mechanisms.mean import budgeted_range
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import Number, amount, float_above, positive, whole
from incrowd.mechanisms.private_range import Floats, PrivateRange, read_column, within
from incrowd.mechanisms.relations import Relation, relation_named
from incrowd.noise import Source
from incrowd.privacy import Guarantee

UNIT = 2**20
SQUARE = 7 * UNIT


@dataclass(frozen=True, init=False)
class Variance(Mechanism):
    """Releases the variance (mean squared distance from the mean) of numbers, one per unit.

    Give `low` and `high` where they are known without looking at the data; otherwise `share` of epsilon
    finds a range. For the standard deviation take the root: `Variance(1.0).then(math.sqrt)`.

    >>> from incrowd.noise import SeededSource
    >>> ages = list(range(18, 91)) * 100
    >>> 400 < Variance(epsilon=1.0).release(ages, source=SeededSource(2)) < 490  # 444
    True
    """

    exact_epsilon: Fraction
    range: PrivateRange | None
    bounds: tuple[float, float] | None
    noise: Laplace
    relation: Relation

    def __init__(
        self,
        epsilon: Number,
        *,
        low: Number | None = None,
        high: Number | None = None,
        relation: Relation = "add-remove",
        share: Number = Fraction(2, 5),
    ) -> None:
        total = amount(epsilon, "epsilon")
        found, bounds, left = budgeted_range("Variance", total, low, high, relation_named(relation), share)
        reach = UNIT + SQUARE if relation == "add-remove" else 2 * UNIT + SQUARE
        for name, value in (
            ("exact_epsilon", total),
            ("range", found),
            ("bounds", bounds),
            ("noise", Laplace(left, sensitivity=reach)),
            ("relation", relation),
        ):
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> float:
        """The claimed epsilon."""
        return float_above(self.exact_epsilon)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees, the search for a range included."""
        return self.noise.privacy if self.range is None else self.range.privacy + self.noise.privacy

    def release(self, value: Any, source: Source | None = None) -> float:
        """The variance of a list of numbers."""
        numbers = read_column(value, "Variance")
        centre, radius = self.bounds or self.range.release(numbers, source)  # type: ignore[union-attr]
        noisy: list[int] = self.noise.release(self.sums(numbers, centre, radius), source).tolist()
        count = max(1.0, (noisy[1] + noisy[2]) / SQUARE) if len(noisy) == 3 else max(1, numbers.size)
        square = min(1.0, max(0.0, noisy[1] / SQUARE / count))
        return radius**2 * max(0.0, square - (noisy[0] / UNIT / count) ** 2)

    def sums(self, numbers: Floats, centre: float, radius: float) -> list[int]:
        """The whole numbers that are released with noise."""
        places = within(numbers, centre, radius)
        first = int(np.rint(places * UNIT).astype(np.int64).sum())
        second = int(np.rint(places**2 * SQUARE).astype(np.int64).sum())
        return [first, second] + ([SQUARE * numbers.size - second] if self.relation == "add-remove" else [])

    def halfwidth(self, confidence: Number, records: int, radius: Number | None = None) -> float:
        """The error of the noise with this confidence, for so many records in a range of this radius.

        With bounds given the radius is known. Clamping is not counted.
        """
        n = whole(records, "records")
        wide = self.bounds[1] if radius is None and self.bounds else float(positive(radius, "radius"))
        sums = 3 if self.relation == "add-remove" else 2
        each = int(self.noise.halfwidth(confidence, sums))
        # How far the count may be off, then the mean square and the mean.
        off = 2 * each / SQUARE if sums == 3 else 0.0
        if off >= n:
            return math.inf
        square = (each / SQUARE + off) / (n - off)
        mean = (each / UNIT + off) / (n - off)
        return wide**2 * (square + 2 * mean + mean**2) * (1 + 1e-12)
