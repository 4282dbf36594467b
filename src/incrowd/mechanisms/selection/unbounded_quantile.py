"""A quantile without an upper bound: double the interval until it holds enough of the data, then look inside.

Theorem (after Durfee 2023). Stage one asks a sparse vector, for i = 0, 1, 2, ..., whether the share of
records below low + unit 2^i reaches c = a / b, a share above q. The question is b * (records below) - a * n,
which one more record moves by b - a or by -a, and a replaced one by b at most. The first hit ends the search,
which costs e1 in all, however many doublings it took. After `doublings` of them the last interval is taken,
which needs no answer. Stage two is `Quantile` on [low, low + unit 2^i] at e2. Its interval is an earlier
answer, so the guarantees add.

Conditions: low and unit do not depend on the data. Values below low are clamped to it.

Accuracy: the interval is at most twice too wide, up to the sparse vector's error in ranks, and the error of a
quantile grows only with the logarithm of the interval's length.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import LEAST_EXPONENT, LIMIT, at_exponent
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    confidence_level,
    counted,
    is_whole_type,
    log2_floor,
    positive,
    share_of_epsilon,
)
from incrowd.mechanisms.records import read_records
from incrowd.mechanisms.selection.quantile import FINEST, Quantile
from incrowd.mechanisms.selection.sparse_vector import SparseVector
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.noise import Source
from incrowd.noise.readings import (
    Number,
    binary,
    whole,
)
from incrowd.privacy import Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class UnboundedQuantile(Mechanism):
    """Releases a quantile of values that are only known to be at least `low`.

    `unit` is the width of the first interval tried; `share` of epsilon pays for finding the upper bound.
    Whole low and unit release integers, others reals.

    >>> from incrowd.noise import SeededSource
    >>> incomes = [1000 * k for k in range(2000)]
    >>> value = UnboundedQuantile(epsilon=2.0, low=0).release(incomes, source=SeededSource(5))
    >>> 900_000 < value < 1_100_000
    True
    """

    epsilon: Number
    _: KW_ONLY
    q: Number = 0.5
    low: Number = 0
    unit: Number = 1
    relation: Relation = "add-remove"
    share: Number = Fraction(1, 3)
    doublings: int = 50

    def __post_init__(self) -> None:
        if not 1 <= counted(self.doublings, "doublings") <= 50:
            raise InvalidInput(f"doublings must be at most 50, not {self.doublings}.")
        positive(self.unit, "unit")
        # Every interval between these two can be had if both can: none is refused when the data lead there.
        _ = self.search, self.within(0), self.within(self.doublings)

    @cached_property
    def split(self) -> tuple[Fraction, Fraction]:
        """The epsilon of each stage."""
        total, share = amount(self.epsilon, "epsilon"), share_of_epsilon(self.share)
        return total * share, total * (1 - share)

    @cached_property
    def target(self) -> Fraction:
        """The share that the interval must hold: half-way from q to 1, with a small denominator."""
        return ((1 + self.within(0).shares[0]) / 2).limit_denominator(1000)

    @cached_property
    def search(self) -> SparseVector:
        """The sparse vector of stage one."""
        target = self.target
        reach = max(target.numerator, target.denominator - target.numerator)
        if relation_named(self.relation) != "add-remove":
            reach = target.denominator
        return SparseVector(self.split[0], sensitivity=reach)

    def within(self, doublings: int) -> Quantile:
        """The quantile of stage two on the interval after so many doublings."""
        times = whole(doublings, "doublings", least=0, most=50)
        low, width = binary(self.low, "low"), binary(self.unit, "unit") * 2**times
        ends: tuple[Number, Number] = (low, low + width)
        if is_whole_type(self.low) and is_whole_type(self.unit):
            ends = (int(low), int(low + width))
        # Reals get a grid whatever the bounds, so that a whole bound does not turn them into integers.
        grid = None if isinstance(ends[0], int) else at_exponent(_exponent(low, width))
        return Quantile(self.split[1], q=self.q, low=ends[0], high=ends[1], relation=self.relation, grid=grid)

    @property
    def privacy(self) -> Guarantee:
        """What both stages guarantee together."""
        return self.search.privacy + self.within(0).privacy

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The quantile of a list of numbers, one per unit."""
        questions = self.questions(value)  # a column that holds no numbers is refused here
        answers = self.search.release(questions, source)
        doublings = len(answers) - 1 if answers[-1] else self.doublings
        return self.within(doublings).release(value, source)

    def halfwidth(self, confidence: Number) -> float:
        """How many ranks the released value may be off, with this confidence.

        Conditions: no value lies below `low`, and the quantile lies below the last interval's end. Each stage
        may fail half as often. When stage one errs by at most h, a hit says that at least c n - h / b records
        lie below the bound, and c > q. So the released value is off by at most the error of stage two or, at
        the bound itself, by h / b.
        """
        level = 1 - (1 - confidence_level(confidence)) / 2
        search = float(self.search.halfwidth(level, self.doublings) / self.target.denominator)
        return max(search, *(self.within(i).halfwidth(level) for i in range(self.doublings + 1)))

    def questions(self, values: Any) -> list[int]:
        """b * (records below low + unit 2^i) - a * n for each i."""
        target = self.target
        array = np.sort(read_records(values, "UnboundedQuantile", self.relation != "add-remove"))
        low, unit = binary(self.low, "low"), binary(self.unit, "unit")
        edges = [low + unit * 2**i for i in range(self.doublings)]
        # A Python number and a fraction compare exactly, so that a record lies below an edge by itself alone.
        items = array.tolist()
        below = [bisect_left(items, edge) for edge in edges]
        return [target.denominator * count - target.numerator * array.size for count in below]


def _exponent(low: Fraction, width: Fraction) -> int:
    """The grid of some 2^31 points in the interval; below a width of 1 as fine as low, and floats, allow."""
    fine = log2_floor(width) + 1 - FINEST
    if width >= 1:
        return fine
    end = max(abs(low), abs(low + width))
    return min(1 - FINEST, max(fine, log2_floor(end) + 2 - log2_floor(Fraction(LIMIT)), LEAST_EXPONENT))
