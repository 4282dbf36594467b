"""Private quantiles over a bounded interval, one or several at once.

Theorem (Smith 2011, on a lattice). Let the utility of a point be minus its distance in rank from q n (see
`mechanisms.selection.ranks`). Adding a record x changes (records below t) - q n by 1 - q where x < t and by
-q elsewhere, and likewise (records at or below t) - q n. So no utility moves by more than D = max(q, 1 - q),
which is 1/2 for the median. Replacing a record keeps n and moves no rank by more than 1: D = 1. The
exponential mechanism with rate epsilon / (2 D) over all lattice points is therefore epsilon-bounded-range.

Several quantiles (Kaplan, Schnapp, Stemmer 2022). Release the middle one, t. Split the data at t. Go on with
the lower quantiles in the lower part, between low and t, and with the upper ones in the upper part; so the
answers are in order by construction. On each of the L = ceil(log2(m + 1)) levels a record is in one part
only, so adding or removing it changes one choice per level: L times (epsilon / L)-bounded-range. Replacing a
record can change two parts, each by max(q, 1 - q): there D = 2 max(q, 1 - q).

A value that many records share could not be split at the right rank. So every record gets TIE_BITS random
bits after its value, and so do the points of the lattice; the bits are dropped at the end. Records that are
still equal to t go up or down by independent fair coins. Bits and coins are drawn without looking at anybody
and count as an earlier answer.

Accuracy: with probability 1 - beta the released point is within ln(points / beta) / rate of the wanted rank.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import INTEGERS, LIMIT, Grid, Steps, at_exponent, lattice_of
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import confidence_level, is_whole_type, log2_floor
from incrowd.mechanisms.records import read_records
from incrowd.mechanisms.selection import ranks
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.noise import Source, bernoulli, uniform
from incrowd.noise.readings import (
    Number,
    binary,
    decimal,
    plain,
    shown,
)
from incrowd.privacy import Guarantee, bounded_range
from incrowd.privacy.amounts import read_probability

TIE_BITS = 12  # how finely the records that share a value are told apart, by chance, among several quantiles
FINEST = 32  # the default grid has about 2^32 points between the bounds


@dataclass(frozen=True)
class Interval:
    """The lattice points from low to high, and how values are brought there."""

    grid: Grid
    low: int
    high: int

    def steps(self, values: Any, owner: str, public: bool) -> Steps:
        """Every value floored onto the grid and clamped to the interval; infinities are clamped too.

        Missing values are left out, or count as 0 where the number of records is `public`.
        """
        array = read_records(values, owner, public)
        if array.dtype.kind != "O":
            return self._one_kind(array, owner)
        whole = np.array([type(item) is int for item in array], dtype=np.bool_)
        steps = np.empty(array.size, dtype=np.int64)
        steps[whole] = self._one_kind(read_records(array[whole].tolist(), owner, public), owner)
        steps[~whole] = self._one_kind(array[~whole].astype(np.float64), owner)
        return steps

    def _one_kind(self, array: NDArray[Any], owner: str) -> Steps:
        """The steps of an array of integers or of floats without NaN."""
        if array.dtype.kind == "f":
            ends = (float(self.low * self.grid.step), float(self.high * self.grid.step))
            return np.clip(self.grid.floor(np.clip(array, *ends)), self.low, self.high)
        return np.clip(self.grid.steps(array, owner), self.low, self.high)

    @property
    def points(self) -> int:
        """How many lattice points there are."""
        return self.high - self.low + 1

    @property
    def span(self) -> Fraction:
        """The distance from low to high."""
        return (self.high - self.low) * self.grid.step

    def value(self, point: int) -> Any:
        """A lattice point as a number."""
        return self.grid.values(np.asarray(point, dtype=np.int64))


def interval(low: Number, high: Number, grid: Number | Grid | None) -> Interval:
    """The lattice between two bounds: integers when both are whole and no grid is given, else reals."""
    least, most = binary(low, "low"), binary(high, "high")
    if least >= most:
        raise InvalidInput(f"low must be below high, but they are {shown(low)} and {shown(high)}.")
    if grid is None:
        both = is_whole_type(low) and is_whole_type(high)
        points = INTEGERS if both else at_exponent(log2_floor((most - least) / 2**FINEST))
    else:
        points = lattice_of(grid, low, 0)
    first, last = math.floor(least / points.step), math.floor(most / points.step)
    if max(abs(first), abs(last)) > LIMIT // 2 or last - first >= 2**53:
        raise InvalidInput("The interval from low to high holds too many grid points: give a coarser grid.")
    return Interval(points, first, last)


@dataclass(frozen=True, eq=False, repr=False)
class Quantile(Mechanism):
    """Releases the value below which a share q of the records lies; a list of shares gives a list of values.

    `low` and `high` must be known without looking at the data; values outside are clamped. Bounds written as
    integers release integers (and floor reals), others release reals on a grid of about 2^32 points (or the
    grid given).

    >>> from incrowd.noise import SeededSource
    >>> ages = list(range(18, 90)) * 20
    >>> Quantile(epsilon=1.0, low=0, high=120).release(ages, source=SeededSource(0))
    53
    >>> Quantile(1.0, q=[0.25, 0.5, 0.75], low=0, high=120).release(ages, source=SeededSource(0)).tolist()
    [35, 54, 71]
    """

    epsilon: Number
    _: KW_ONLY
    q: Number | Sequence[Number] = 0.5
    low: Number
    high: Number
    relation: Relation = "add-remove"
    grid: Number | Grid | None = None

    def __post_init__(self) -> None:
        relation_named(self.relation)
        if not self.shares:
            raise InvalidInput("q must hold at least one share such as 0.5.")
        if any(a >= b for a, b in itertools.pairwise(self.shares)):
            raise InvalidInput("q must list its shares in increasing order, each once.")
        _ = self.exact_epsilon, self.interval

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """The epsilon of all shares together, as a fraction."""
        return ranks.rank_epsilon(self.epsilon)

    @property
    def single(self) -> bool:
        """Whether one share was given, and not a list of them."""
        q = plain(self.q)
        return not isinstance(q, Sequence | np.ndarray) or isinstance(q, str | bytes)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """The shares wanted, each as the decimal that was written, to six digits."""
        return tuple(_share(share) for share in ([self.q] if self.single else self.q))  # type: ignore[union-attr]

    @cached_property
    def interval(self) -> Interval:
        """The lattice points from low to high."""
        return interval(self.low, self.high, self.grid)

    @property
    def levels(self) -> int:
        """How many choices one record takes part in: ceil(log2(m + 1)) for m shares."""
        return len(self.shares).bit_length()

    @property
    def privacy(self) -> Guarantee:
        """What the release of all shares together guarantees."""
        return bounded_range(self.exact_epsilon / self.levels) * self.levels

    @property
    def tie_bits(self) -> int:
        """How many random bits follow every value: none for a single share, where nothing is split."""
        if len(self.shares) == 1:
            return 0
        size = max(abs(self.interval.low), abs(self.interval.high) + 1).bit_length()
        return max(0, min(TIE_BITS, 53 - self.interval.points.bit_length(), 61 - size))

    def rate(self, share: Fraction) -> Fraction:
        """The weight of one rank in a choice of this share among its part of the data."""
        share = read_probability(share, "share")
        spread = max(share, 1 - share)
        if self.relation != "add-remove":
            spread = Fraction(1) if len(self.shares) == 1 else 2 * spread
        return self.exact_epsilon / self.levels / (2 * spread)

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The quantile of a list of numbers (one per unit), or an array of them in increasing order."""
        steps = self.interval.steps(value, "Quantile", self.relation != "add-remove")
        points: dict[Fraction, int] = {}
        low, high = self._ends()
        bits = self.tie_bits
        if bits:
            steps = (steps << np.int64(bits)) + uniform(1 << bits, size=steps.size, source=source)
            low, high = low << bits, ((high + 1) << bits) - 1
        self._fill(points, np.sort(steps), self.shares, (Fraction(0), Fraction(1)), (low, high), source)
        points = {share: point >> bits for share, point in points.items()}
        if self.single:
            return self.interval.value(points[self.shares[0]])
        return self.interval.grid.values(np.array([points[share] for share in self.shares], dtype=np.int64))

    def probabilities(self, values: Any) -> NDArray[np.float64]:
        """The probability of every lattice point from low to high, for a single share on a small lattice."""
        if len(self.shares) > 1 or self.interval.points > 10**7:
            raise InvalidInput("probabilities are listed for one share and at most 10 million grid points.")
        steps = self.interval.steps(values, "Quantile", self.relation != "add-remove")
        share = self.shares[0]
        return ranks.masses(steps, share * steps.size, self.rate(share), *self._ends())

    def halfwidth(self, confidence: Number) -> float:
        """How many ranks each choice may be off within its part of the data, all jointly."""
        failure = (1 - confidence_level(confidence)) / len(self.shares)
        slowest = min(self.rate(share) for share in self.shares)
        if len(self.shares) > 1:
            slowest = self.rate(Fraction(1))
        points = self.interval.points << self.tie_bits
        return math.log(points / failure) / float(slowest) * (1 + 1e-12)

    def _ends(self) -> tuple[int, int]:
        return self.interval.low, self.interval.high

    def _fill(
        self,
        points: dict[Fraction, int],
        steps: Steps,
        shares: tuple[Fraction, ...],
        part: tuple[Fraction, Fraction],
        ends: tuple[int, int],
        source: Source | None,
    ) -> None:
        """Release the middle share among the records of this part, then both sides of it."""
        if not shares:
            return
        middle = len(shares) // 2
        share = _share((shares[middle] - part[0]) / (part[1] - part[0]))
        point = ranks.draw(steps, share * steps.size, self.rate(share), *ends, source=source)
        points[shares[middle]] = point
        if len(shares) == 1:
            return
        under, upto = np.searchsorted(steps, point, "left"), np.searchsorted(steps, point, "right")
        cut = under + np.sum(bernoulli(Fraction(1, 2), size=int(upto - under), source=source))
        lower, upper, here = steps[:cut], steps[cut:], shares[middle]
        self._fill(points, lower, shares[:middle], (part[0], here), (ends[0], point), source)
        self._fill(points, upper, shares[middle + 1 :], (here, part[1]), (point, ends[1]), source)


def _share(value: object) -> Fraction:
    """A share strictly between 0 and 1, as the decimal that was written, to six digits."""
    number = decimal(value, "q")
    if not 0 < number < 1:
        raise InvalidInput(
            f"q must lie strictly between 0 and 1, not {shown(value)}; for the ends see Minimum and Maximum."
        )
    close = number.limit_denominator(10**6)
    return min(max(close, Fraction(1, 10**6)), 1 - Fraction(1, 10**6))
