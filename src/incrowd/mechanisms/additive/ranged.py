"""What means, variances and covariances share: a range for every column, given or searched for, then noise.

A value counts by its place in the range [centre - radius, centre + radius] of its column, from -1 to 1. With
bounds the range is known and all of epsilon pays for the noise. Without them `PrivateRange` searches for the
range of every column first, and all searches together take `share` of epsilon. A record is in every column,
so the guarantees of the searches and of the noise add.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

from incrowd.errors import InvalidInput
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import amount, positive, share_of_epsilon
from incrowd.mechanisms.selection.private_range import PrivateRange, given_range
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee

HALF = 0.5 + 2.0**-20  # how far rounding moves a number of steps, with the errors of the floats before it

Ranges = tuple[tuple[float, float], ...]
"""The centre and the radius of every column."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranged(Mechanism):
    """A statistic of columns of numbers, within bounds that are given or searched for."""

    epsilon: Number
    _: KW_ONLY
    relation: Relation = "add-remove"
    share: Number = 0.4

    def __post_init__(self) -> None:
        relation_named(self.relation)
        _ = self.ranges, self.statistic_epsilon, self.search, self.noise_privacy

    @property
    @abstractmethod
    def ranges(self) -> Ranges | None:
        """The range of every column where bounds are given, else None."""

    @property
    @abstractmethod
    def noise_privacy(self) -> Guarantee:
        """What the noise on the sums guarantees."""

    @property
    def width(self) -> int:
        """How many columns there are."""
        return 1

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return amount(self.epsilon, "epsilon")

    @cached_property
    def statistic_epsilon(self) -> Fraction:
        """The epsilon that pays for the noise on the sums."""
        share = share_of_epsilon(self.share)
        return self.exact_epsilon * (1 - share) if self.ranges is None else self.exact_epsilon

    @cached_property
    def search(self) -> PrivateRange | None:
        """The search for the range of one column; None where bounds are given."""
        if self.ranges is not None:
            return None
        budget = self.exact_epsilon * share_of_epsilon(self.share) / self.width
        return PrivateRange(budget, relation=self.relation)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees, the search for ranges included."""
        if self.search is None:
            return self.noise_privacy
        return self.search.privacy * self.width + self.noise_privacy


@dataclass(frozen=True, eq=False, repr=False)
class RangedColumn(Ranged):
    """A statistic of one column; `low` and `high` are both given or both left out."""

    _: KW_ONLY
    low: Number | None = None
    high: Number | None = None

    @cached_property
    def ranges(self) -> Ranges | None:
        """The range of the column where bounds are given, else None."""
        if self.low is None and self.high is None:
            return None
        if self.low is None or self.high is None:
            raise InvalidInput(f"{type(self).__name__} takes both low= and high=, or neither.")
        return (given_range(self.low, self.high),)

    def _radius(self, radius: Number | None) -> float:
        """The radius of the given bounds, or the one that the caller assumes."""
        if radius is None and self.ranges is not None:
            return self.ranges[0][1]
        return float(positive(radius, "radius"))
