"""The mean of one column, within bounds that are given or searched for.

Theorem. Let t be a value's place in its range [centre - radius, centre + radius], clamped to [-1, 1], and let
U = 2^23. The mechanism releases sums of whole numbers over the records with discrete Laplace noise. The mean,
centre + radius (mean of t), is post-processing.

- *With bounds given* it releases the sums of round(U (1 + t) / 2) and of U minus that. One more record adds
  exactly U in L1. The difference of the two is the sum of U t, their sum is U times the count.
- *In a range that was searched for* t is around 0 on average, so the count hardly matters. It releases the
  sums of round(U t) and of U / 8, which move by at most U + U / 8 in L1.
- *Where records are replaced* their number is public. It releases the sum of round(U t), which moves by at
  most 2 U.

Each record is rounded before anything is added, in whole numbers, so no sum depends on its order.

Accuracy. `halfwidth` bounds the error of the noise and of rounding. In standard deviation the noise is

    2 to 2.9 radius / (epsilon n)   with bounds given,
    1.6 radius / (0.6 epsilon n)    in a range that was searched for,
    2.9 radius / (epsilon n)        where records are replaced.

Rounding moves a record, and so the mean, by up to radius / U (half of that where U t is rounded), because all
records may be rounded the same way. A search leaves out about `PrivateRange.beyond` records, and each of them
may lose its excess over the range: for heavy tails give bounds.

Let S be the sum of t, let m = S / n, and let the noisy sum and count be S + z + r and n + c, where r is due
to rounding. The noisy mean is off by (z + r - m c) / (n + c). With bounds given, z = (x - y) / U and
c = (x + y) / U for the noise x and y of the two sums. So |z - m c| = |x (1 - m) - y (1 + m)| / U, which is at
most 2 / U times the larger of |x| and |y|.
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
from incrowd.privacy import Guarantee

UNIT = 2**23
COUNT = UNIT // 8


@dataclass(frozen=True, eq=False, repr=False)
class Mean(RangedColumn):
    """Releases the mean of numbers, one per unit.

    Give `low` and `high` where they are known without looking at the data; otherwise `share` of epsilon pays
    for the search of a range. Under the relation "replace" the number of records is public.

    >>> from incrowd.noise import SeededSource
    >>> ages = list(range(18, 91)) * 100
    >>> round(Mean(epsilon=1.0).release(ages, source=SeededSource(2)))
    54
    >>> round(Mean(epsilon=1.0, low=0, high=120).release(ages, source=SeededSource(2)))
    54
    """

    @cached_property
    def noise(self) -> Laplace:
        """The noise on every sum."""
        reach = 2 * UNIT
        if self.relation == "add-remove":
            reach = UNIT + COUNT if self.ranges is None else UNIT
        return Laplace(self.statistic_epsilon, sensitivity=reach)

    @property
    def noise_privacy(self) -> Guarantee:
        """What the noise on the sums guarantees."""
        return self.noise.privacy

    def release(self, value: Any, source: Source | None = None) -> float:
        """The mean of a list of numbers."""
        numbers = read_column(value, "Mean", self.relation != "add-remove")
        (centre, radius), *_ = self.ranges or [self.search.release(numbers, source)]  # type: ignore[union-attr]
        noisy: list[int] = self.noise.release(self.sums(numbers, centre, radius), source).tolist()
        total, count = noisy[0] / UNIT, float(max(1, numbers.size))
        if self.relation == "add-remove" and self.ranges:
            total, count = (noisy[0] - noisy[1]) / UNIT, max(1.0, (noisy[0] + noisy[1]) / UNIT)
        elif self.relation == "add-remove":
            count = max(1.0, noisy[1] / COUNT)
        return centre + radius * min(1.0, max(-1.0, total / count))

    def sums(self, numbers: Floats, centre: float, radius: float) -> list[int]:
        """The whole numbers that are released with noise."""
        places = within(numbers, centre, radius)
        if self.relation == "add-remove" and self.ranges:
            upper = int(np.rint((1 + places) / 2 * UNIT).astype(np.int64).sum())
            return [upper, UNIT * numbers.size - upper]
        total = int(np.rint(places * UNIT).astype(np.int64).sum())
        return [total, COUNT * numbers.size] if self.relation == "add-remove" else [total]

    def halfwidth(self, confidence: Number, records: int, radius: Number | None = None) -> float:
        """The error with this confidence, for so many records in a range of this radius.

        Noise and the rounding of every record are counted, clamping is not. With bounds given the radius is
        known, and the float rounding of the answer is counted too.
        """
        n = counted(records, "records")
        wide = self._radius(radius)
        centre = self.ranges[0][0] if self.ranges else 0.0
        last = (abs(centre) + wide) * 2.0**-50
        if self.relation != "add-remove":
            noise = int(self.noise.halfwidth(confidence))
            return wide * (noise / n + HALF) / UNIT * (1 + 1e-12) + last
        noise = int(self.noise.halfwidth(confidence, 2))
        # How far the sum less its share in the count's error may be off by noise, the count, and a record.
        moved, count, rounded = 2 * noise / UNIT, 2 * noise / UNIT, 2 * HALF / UNIT
        if self.search:
            moved, count, rounded = noise / UNIT + noise / COUNT, noise / COUNT, HALF / UNIT
        if count >= n:
            return math.inf
        return wide * (moved + n * rounded) / (n - count) * (1 + 1e-12) + last
