"""The variance of one column, within bounds that are given or searched for.

Theorem. Let t be a value's place in its range, clamped to [-1, 1] as in `Mean`, and let U = 2^20.

- *Records are added or removed.* Release three sums of whole numbers over the records with discrete Laplace
  noise: w U t, (8 - w) U t^2 and (8 - w) U (1 - t^2), each rounded so that the last two add up to (8 - w) U.
  One more record changes them by at most 8 U in L1, because squares and their complements share one budget;
  and together these two give the count for nothing. In a range that was searched for, t is around 0 on
  average and w = 1; with bounds given w = 4. The variance, radius^2 (mean of t^2 - (mean of t)^2), is
  post-processing.
- *Records are replaced* and their number n is public. In a range that was searched for, release the first two
  sums, which move by at most 2 w U + (8 - w) U. With bounds given, release n (sum of y^2) - (sum of y)^2 for
  the whole numbers y = round(U t). That is n^2 U^2 times the variance of t, and it moves by at most
  (n - 1) (2 U)^2 (`sensitivity.covariance`; the y lie in an interval of length 2 U). It is floored onto
  multiples of 2^k first, which can add one of them.

Accuracy. In standard deviation the noise is

    about 1.6 radius^2 / (0.6 epsilon n)   in a range that was searched for,
    2.9 to 7 radius^2 / (epsilon n)        with bounds given,
    5.7 radius^2 / (epsilon n)             where records are replaced within bounds.

Rounding loses up to half a step of every record in every sum, and all of them may be rounded the same way;
`halfwidth` counts noise and rounding. Clamping loses more, which it does not count. Of the noise x and y of
the last two sums, the mean square s takes x (1 - s) - y s, at most the larger of the two. Rounding y moves a
standard deviation by at most 1 / (2 U) (triangle inequality), and so a variance of at most 1 by at most
(2 + 1 / (2 U)) / (2 U).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.mechanisms.additive.laplace import Laplace
from incrowd.mechanisms.additive.ranged import HALF, RangedColumn
from incrowd.mechanisms.parameters import counted
from incrowd.mechanisms.records import Floats, read_column
from incrowd.mechanisms.selection.private_range import within
from incrowd.noise import Source
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, laplace

UNIT = 2**20
WHOLE = 8 * UNIT
STEPS = 2**30


@dataclass(frozen=True, eq=False, repr=False)
class Variance(RangedColumn):
    """Releases the variance (mean squared distance from the mean) of numbers, one per unit.

    Give `low` and `high` where they are known without looking at the data; otherwise `share` of epsilon pays
    for the search of a range. For the standard deviation take the root: `Variance(1.0).then(math.sqrt)`.

    >>> from incrowd.noise import SeededSource
    >>> ages = list(range(18, 91)) * 100
    >>> 400 < Variance(epsilon=1.0).release(ages, source=SeededSource(2)) < 490  # 444
    True
    """

    @property
    def first(self) -> int:
        """The w U of the theorem: the weight of t in the sums."""
        return UNIT if self.ranges is None else 4 * UNIT

    @cached_property
    def noise(self) -> Laplace | None:
        """The noise on every sum; None where one number is released, whose sensitivity depends on n.

        That number is released by `exactly`.
        """
        if self.ranges is not None and self.relation != "add-remove":
            return None
        reach = WHOLE if self.relation == "add-remove" else WHOLE + self.first
        return Laplace(self.statistic_epsilon, sensitivity=reach)

    @property
    def noise_privacy(self) -> Guarantee:
        """What the noise on the sums guarantees."""
        return laplace(self.exact_epsilon, STEPS) if self.noise is None else self.noise.privacy

    def release(self, value: Any, source: Source | None = None) -> float:
        """The variance of a list of numbers."""
        numbers = read_column(value, "Variance", self.relation != "add-remove")
        (centre, radius), *_ = self.ranges or [self.search.release(numbers, source)]  # type: ignore[union-attr]
        if self.noise is None:
            return radius**2 * self.exactly(numbers, centre, radius, source)
        noisy: list[int] = self.noise.release(self.sums(numbers, centre, radius), source).tolist()
        square = WHOLE - self.first
        count = max(1.0, (noisy[1] + noisy[2]) / square) if len(noisy) == 3 else float(max(1, numbers.size))
        mean = noisy[0] / self.first / count
        return radius**2 * max(0.0, min(1.0, max(0.0, noisy[1] / square / count)) - mean**2)

    def sums(self, numbers: Floats, centre: float, radius: float) -> list[int]:
        """The whole numbers that are released with noise of one scale."""
        places, square = within(numbers, centre, radius), WHOLE - self.first
        first = int(np.rint(places * self.first).astype(np.int64).sum())
        second = int(np.rint(places**2 * square).astype(np.int64).sum())
        return [first, second] + ([square * numbers.size - second] if self.relation == "add-remove" else [])

    def exactly(self, numbers: Floats, centre: float, radius: float, source: Source | None = None) -> float:
        """The variance of t over a public number of records, released as one number."""
        n = int(numbers.size)
        if n < 2:
            return 0.0  # and that is public
        steps, shift = scatter(numbers, centre, radius)
        noisy = int(Laplace(self.exact_epsilon, sensitivity=STEPS).release(steps, source))
        return min(1.0, max(0.0, noisy * shift / (n * UNIT) ** 2))

    def halfwidth(self, confidence: Number, records: int, radius: Number | None = None) -> float:
        """The error with this confidence, for so many records in a range of this radius.

        Noise and the rounding of every record are counted, clamping is not. With bounds given the radius is
        known.
        """
        n = counted(records, "records")
        wide = self._radius(radius)
        if self.noise is None:
            one = Laplace(self.exact_epsilon, sensitivity=STEPS).halfwidth(confidence)
            error, rounded = (int(one) + 1) * step_of(n) / (n * UNIT) ** 2, HALF / UNIT
            return wide**2 * (error + rounded * (2 + rounded)) * (1 + 1e-12) if n > 1 else 0.0
        sums = 3 if self.relation == "add-remove" else 2
        noise = int(self.noise.halfwidth(confidence, sums))
        # How far the count may be off, then the mean square and the mean.
        off = 2 * noise / (WHOLE - self.first) if sums == 3 else 0.0
        if off >= n:
            return math.inf
        square = (noise + n * HALF) / (WHOLE - self.first) / (n - off)
        mean = ((noise + n * HALF) / self.first + off) / (n - off)
        return wide**2 * (square + 2 * mean + mean**2) * (1 + 1e-12)


def step_of(n: int) -> int:
    """The length of a step, with which (n - 1) (2 U)^2 is STEPS - 1 steps at most."""
    return -(-(n - 1) * (2 * UNIT) ** 2 // (STEPS - 1))


def scatter(numbers: Floats, centre: float, radius: float) -> tuple[int, int]:
    """n (sum of y^2) - (sum of y)^2 in whole steps, and the length of a step; n is public.

    Two such numbers at most (STEPS - 1) steps apart are at most STEPS apart when floored.
    """
    whole_numbers = np.rint(within(numbers, centre, radius) * UNIT).astype(np.int64)
    n, total = whole_numbers.size, int(whole_numbers.sum())
    # In parts whose sums of squares, each below 2^40, fit into 64 bits.
    parts = np.array_split(whole_numbers, n // 2**20 + 1)
    exact = n * sum(int((part * part).sum()) for part in parts) - total**2
    return exact // step_of(n), step_of(n)
