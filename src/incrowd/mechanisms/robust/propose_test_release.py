"""Propose, test, release: answer only when the data are far from where the answer would be unstable.

A *distance* here is any whole number d(x) >= 0 that moves by at most 1 between neighbours and is 0 wherever
the local sensitivity of f exceeds the proposed bound (the number of records to change until it does is the
largest such).

Theorem (Dwork, Lei 2009). Draw Z discrete Laplace of scale 1 / e1 and refuse unless d(x) + Z >= T, where
P(Z >= T) <= delta; otherwise release f(x) with Laplace noise for the proposed sensitivity at e2. That is
(e1 + e2, delta)-differentially private. With a proposed bound of 0, f(x) itself is released, of any kind,
at e1.

Proof. Let x, x' be neighbours. If the local sensitivity of either is within the bound, f moves by at most
the bound between them, and the pair is dominated by the test (e1, one step) composed with the release (e2).
Otherwise d(x) = d(x') = 0: both refuse with the same probability, at least 1 - delta, and differ only where
they do not. So every pair is dominated by the three events that the guarantee states: two Laplace releases
and one of probability delta.

Worked cases: `StableMode`, the most common key of an unknown domain; `InterquartileRange`, to a factor of
two; `DistanceToProperty`, the noisy distance by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import (
    Grid,
    lattice_of,
)
from incrowd.mechanisms.additive.laplace import Laplace, unclamped
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    counted,
    delta_amount,
    float_above,
    float_below,
    share_of_epsilon,
)
from incrowd.mechanisms.records import read_column
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.noise import Source, discrete_laplace
from incrowd.noise.readings import (
    Number,
    binary,
    shown,
    whole,
)
from incrowd.privacy import Guarantee, laplace, threshold


@dataclass(frozen=True)
class Passed:
    """A value that was stable enough to be released as it is."""

    value: Any


@dataclass(frozen=True, eq=False, repr=False)
class ProposeTestRelease(Mechanism):
    """Releases a value when it is stable, or None.

    `bound` is the proposed local sensitivity; 0 proposes that the value does not change at all, and then the
    value may be of any kind. `share` of epsilon pays for the test. Release a pair (value, distance).

    >>> m = ProposeTestRelease(epsilon=1.0, delta=1e-6, bound=0)
    >>> m.threshold
    14
    >>> m.release(("flu", 500)), m.release(("flu", 0))
    (Passed(value='flu'), None)
    """

    epsilon: Number
    delta: Number
    _: KW_ONLY
    bound: Number = 0
    share: Number = 0.5
    grid: Number | Grid | None = None

    def __post_init__(self) -> None:
        if binary(self.bound, "bound") < 0:
            raise InvalidInput(f"bound must be 0 or more, not {shown(self.bound)}.")
        lattice_of(self.grid, self.bound, 0)
        _ = self.noise, self.threshold

    @cached_property
    def exact_delta(self) -> Fraction:
        """Delta as a fraction."""
        return delta_amount(self.delta)

    @cached_property
    def test_epsilon(self) -> Fraction:
        """The epsilon of the test: all of it where the value needs no noise."""
        share = share_of_epsilon(self.share)
        return amount(self.epsilon, "epsilon") * (share if self.bound else 1)

    @cached_property
    def noise(self) -> Laplace | None:
        """The noise on the value; None where the proposed bound is 0."""
        if not self.bound:
            return None
        budget = amount(self.epsilon, "epsilon") * (1 - share_of_epsilon(self.share))
        return Laplace(budget, sensitivity=self.bound, grid=self.grid)

    @property
    def threshold(self) -> int:
        """The least noisy distance that passes: P(Z >= T) = q^T / (1 + q) <= delta, q = exp(-e1), T >= 1."""
        rate = float_below(self.test_epsilon)
        ratio = math.exp(-rate)
        # Outward by a part in 10^12, far above the rounding of these few operations.
        wanted = -math.log(float_below(self.exact_delta) * (1 + ratio)) / rate
        return max(1, math.ceil(wanted * (1 + 1e-12) + 1e-12))

    @property
    def privacy(self) -> Guarantee:
        """What one ask guarantees, answered or refused."""
        test = laplace(self.test_epsilon, 1) + threshold(self.exact_delta)
        return test if self.noise is None else test + self.noise.privacy

    def release(self, value: Any, source: Source | None = None) -> Any:
        """For (value, distance): the noisy value (in `Passed` when the bound is 0), or None where refused."""
        if not isinstance(value, tuple) or len(value) != 2:
            raise InvalidInput("ProposeTestRelease releases a pair (value, distance to instability).")
        distance = counted(value[1], "the distance", least=0, secret=True)
        if self.noise is not None:
            self.noise.lattice.steps(value[0], "ProposeTestRelease")  # refused here, before anything is drawn
        scale = 1 / self.test_epsilon
        noise = unclamped(discrete_laplace(scale, source=source), scale, source)
        if distance + noise < self.threshold:
            return None
        return Passed(value[0]) if self.noise is None else self.noise.release(value[0], source)

    def chance(self, distance: int) -> float:
        """The probability that a value at this distance passes the test."""
        rate = float(self.test_epsilon)
        short = self.threshold - counted(distance, "the distance", least=0)
        ratio = math.exp(-rate)
        if short >= 1:
            return ratio**short / (1 + ratio)
        return 1 - ratio ** (1 - short) / (1 + ratio)

    def halfwidth(self, confidence: Number) -> Any:
        """The error of what is released with this confidence; 0 when the value itself is."""
        return 0 if self.noise is None else self.noise.halfwidth(confidence)


@dataclass(frozen=True, eq=False, repr=False)
class StableMode(Mechanism):
    """The most common key of an unknown domain, exactly, when it leads by enough; else None.

    Distance. A unit that comes or goes moves the lead of the first key over the second by at most s = 1,
    one that is replaced by at most s = 2 (it leaves the first key and joins the second). The distance is
    max(0, ceil(lead / s) - 1). It moves by at most 1 between neighbours, as ceil(lead / s) does. Where two
    neighbours have different first keys, the lead of both is at most s: going over to the other, the lead
    of the old first key, which moves by at most s, becomes 0 or less. So both distances are 0, and the
    theorem of this module holds with bound 0, under either relation at the whole epsilon and delta.

    (To claim replacement by counting it as two changes is weaker: at epsilon / 2 and d that proves only
    (1 + e^(epsilon / 2)) d, so d = delta / 2 would not do.)

    >>> StableMode(1.0, 1e-6).release({"flu": 900, "cold": 40})
    'flu'
    >>> StableMode(1.0, 1e-6).halfwidth(0.95), StableMode(1.0, 1e-6, relation="replace").halfwidth(0.95)
    (18, 35)
    """

    epsilon: Number
    delta: Number
    _: KW_ONLY
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        relation_named(self.relation)
        _ = self.test

    @property
    def step(self) -> int:
        """How far one unit moves the lead."""
        return 1 if self.relation == "add-remove" else 2

    def distance(self, lead: int) -> int:
        """The distance of a lead from where the mode may change."""
        return max(0, -(-whole(lead, "lead", least=0, secret=True) // self.step) - 1)

    @cached_property
    def test(self) -> ProposeTestRelease:
        """The test that the lead must pass."""
        return ProposeTestRelease(self.epsilon, self.delta, bound=0)

    @property
    def privacy(self) -> Guarantee:
        """What one ask guarantees."""
        return self.test.privacy

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The key with the most units of a mapping of keys to counts, or None."""
        if not isinstance(value, Mapping):
            raise InvalidInput("StableMode takes a mapping of keys to counts of units.")
        counts = {key: counted(count, "each count", least=0, secret=True) for key, count in value.items()}
        if not counts:
            counts = {None: 0}
        first, *others = sorted(counts, key=lambda key: (-counts[key], repr(key)))
        lead = counts[first] - (counts[others[0]] if others else 0)
        passed = self.test.release((first, self.distance(lead)), source)
        return passed.value if passed else None

    def halfwidth(self, confidence: Number) -> int:
        """The least lead with which the mode is released with this probability."""
        test = self.test
        scale = float_above(1 / test.test_epsilon)
        enough = test.threshold + int(Laplace(scale=scale).halfwidth(confidence))
        return self.step * enough + 1  # the least lead with that distance


@dataclass(frozen=True, eq=False, repr=False)
class DistanceToProperty(Mechanism):
    """How many records are known to keep the data away from a property, privately.

    The distance of the data from any fixed set of datasets moves by at most 1 with one record (triangle
    inequality), whatever the set, so discrete Laplace noise of scale 1 / epsilon suffices. Negative results
    are raised to 0, which is post-processing.
    """

    epsilon: Number

    def __post_init__(self) -> None:
        _ = self.noise

    @cached_property
    def noise(self) -> Laplace:
        """The noise on the distance."""
        return Laplace(self.epsilon, sensitivity=1)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees."""
        return self.noise.privacy

    def release(self, value: Any, source: Source | None = None) -> int:
        """The noisy distance."""
        return max(0, int(self.noise.release(counted(value, "the distance", least=0, secret=True), source)))

    def halfwidth(self, confidence: Number) -> int:
        """The error with this confidence."""
        return int(self.noise.halfwidth(confidence))


@dataclass(frozen=True, eq=False, repr=False)
class InterquartileRange(Mechanism):
    """The interquartile range to a factor of two, as an interval [a, 2a), without any bounds; or None.

    Theorem (after Dwork, Lei 2009). Let the bin of a dataset be the interval [2^k, 2^(k+1)) that holds its
    interquartile range (or [0, 2^-1000)), and d the fewest records that must be replaced to leave the bin,
    less 1. Neighbours in one bin have d within 1 of each other; neighbours in two bins both have d = 0. So
    d is a distance for the bin with proposed bound 0. Where the range lies near the edge of a bin a second
    test uses the bins [1.5 * 2^k, 3 * 2^k) and [0, 1.5 * 2^-1000); each test has half of epsilon and delta.

    Condition: each family of bins partitions the numbers from 0 on. If two bins overlapped, a dataset could
    lie deep inside one and its neighbour deep inside the other. Differences are float64's, rounded; rounding
    keeps the order, so the largest and least differences in reach are those of the quartiles in reach.

    Replacing j records can bring the quartiles x_a, x_b to any x_(a+i), x_(b-j+i) or x_(a-i), x_(b+j-i),
    0 <= i <= j, and no nearer together or further apart: what is left of x_1..x_n after removing j of them
    has its order statistics among those, and adding j records moves both down or up together. The number of
    records is public.

    >>> InterquartileRange(2.0, 1e-6).release(list(range(3000)))
    (1024.0, 2048.0)
    """

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        _ = self.test

    @cached_property
    def test(self) -> ProposeTestRelease:
        """Either of the two tests."""
        half = Fraction(1, 2)
        return ProposeTestRelease(amount(self.epsilon, "epsilon") * half, delta_amount(self.delta) * half)

    @property
    def privacy(self) -> Guarantee:
        """What one ask guarantees: two tests."""
        return self.test.privacy * 2

    def release(self, value: Any, source: Source | None = None) -> tuple[float, float] | None:
        """An interval that holds the interquartile range of a list of numbers, or None."""
        # Clamped so that no difference overflows; each record by itself, which is free.
        numbers = read_column(value, "InterquartileRange", public=True)
        ordered = np.sort(np.clip(numbers, -(2.0**1000), 2.0**1000))
        if ordered.size < 4:
            raise InvalidInput("InterquartileRange needs at least 4 numbers.")
        for shifted in (False, True):
            bin_of, distance = leaving(ordered, shifted)
            passed = self.test.release((bin_of, distance), source)
            if passed:
                return passed.value  # type: ignore[no-any-return]
        return None


def leaving(ordered: Any, shifted: bool) -> tuple[tuple[float, float], int]:
    """The bin of the interquartile range, and the fewest records to replace to leave it, less 1."""
    n = ordered.size
    a, b = n // 4, n - 1 - n // 4
    spread = float(ordered[b] - ordered[a])
    low, high = _bin(spread, shifted)

    def can_leave(j: int) -> bool:
        i = np.arange(j + 1)
        if a + j >= n or b - j < 0 or b + j >= n or a - j < 0:
            return True  # a quartile can be moved anywhere
        closest = float((ordered[b - j + i] - ordered[a + i]).min())
        widest = float((ordered[b + j - i] - ordered[a - i]).max())
        return max(0.0, closest) < low or widest >= high

    enough, short = 1, 0
    while not can_leave(enough):
        short, enough = enough, 2 * enough
    while enough - short > 1:
        middle = (enough + short) // 2
        short, enough = (short, middle) if can_leave(middle) else (middle, enough)
    return (low, high), enough - 1


def _bin(spread: float, shifted: bool) -> tuple[float, float]:
    """The bin of a family that holds this number; the least bin ends where the next of its family starts."""
    least = math.ldexp(1.5 if shifted else 1.0, -1000)
    if spread < least:
        return 0.0, least
    part, exponent = math.frexp(spread)
    start = 0.5
    if shifted:
        start = 0.75 if part >= 0.75 else 0.375
    return math.ldexp(start, exponent), math.ldexp(start, exponent + 1)
