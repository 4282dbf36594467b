"""Choosing a point of a bounded lattice by its rank among the data, exactly.

The candidates are all lattice points t from low to high. The utility of a point is minus its distance in rank
from a target: with B records below t and U at or below t,

    distance = max(0, B - target, target - U).

A value that many records share covers many ranks, so ties are no special case, and neither is empty data
(target 0, all distances 0). The exponential mechanism gives a point the weight exp(-rate * distance).

Points between two neighbouring values share a distance. So a *run* of them is drawn with weight
length * exp(-rate * distance), then a point of the run uniformly. Only the records whose ranks lie near the
target are looked at. The points below and above them form two long runs with the distance of their nearest
point. A point that falls there is kept with probability exp(-rate * (its distance - that)), else all is drawn
anew. That is rejection from an envelope, so the law is exactly the stated one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import Steps
from incrowd.mechanisms.parameters import amount
from incrowd.noise import Source, bernoulli_exp, categorical, uniform
from incrowd.noise.compare import below_one
from incrowd.noise.exact import exp_bounds
from incrowd.noise.readings import shown
from incrowd.noise.source import source_of

_LARGEST_EPSILON = 10**9


@dataclass(frozen=True)
class Runs:
    """Runs of lattice points with the same number of records below, and at or below."""

    first: Steps
    length: Steps
    below: Steps
    upto: Steps

    def distances(self, target: Fraction) -> list[Fraction]:
        """How far each run lies from the target rank."""
        return [
            max(Fraction(0), b - target, target - u)
            for b, u in zip(self.below.tolist(), self.upto.tolist(), strict=True)
        ]


def runs_of(ordered: Steps, low: int, high: int, before: int = 0) -> Runs:
    """All runs from low to high of values in order, `before` further records being known to lie below low."""
    starts = np.flatnonzero(np.diff(ordered, prepend=low - 1))
    distinct = ordered[starts]
    ends = before + np.append(starts[1:], ordered.size)[: distinct.size]
    starts = before + starts
    edges = np.concatenate(([low - 1], distinct, [high + 1]))
    # gap 0, value 0, gap 1, value 1, ..., last gap
    first = np.empty(2 * distinct.size + 1, dtype=np.int64)
    length, below, upto = np.empty_like(first), np.empty_like(first), np.empty_like(first)
    first[::2], length[::2] = edges[:-1] + 1, np.diff(edges) - 1
    below[::2] = upto[::2] = np.append(before, ends)
    first[1::2], length[1::2] = distinct, 1
    below[1::2], upto[1::2] = starts, ends
    some = length > 0
    return Runs(first[some], length[some], below[some], upto[some])


def rank_epsilon(value: object) -> Fraction:
    """An epsilon as a fraction; refused if `choose`, whose floats have 53 bits, would redraw for ever."""
    epsilon = amount(value, "epsilon")
    if epsilon > _LARGEST_EPSILON:
        raise InvalidInput(f"epsilon must be at most {_LARGEST_EPSILON:g} here, not {shown(value)}.")
    return epsilon


def choose(lengths: list[int], exponents: list[Fraction], source: Source | None) -> int:
    """An index with probability proportional to length * exp(-exponent), exactly.

    Floats v near ln(length) - exponent propose an index with weight exp(v), exactly at their float values.
    It is kept with probability length * exp(-exponent - v - slack), which is just below 1: the slack is
    more than any error of v. Errors of v therefore cost a few redraws and alter nothing.
    """
    near = [math.log(length) - float(x) for length, x in zip(lengths, exponents, strict=True)]
    widest = max(abs(v) for v in near) + 64
    slack = Fraction(2) ** (math.frexp(widest)[1] - 44)
    while True:
        index = int(categorical(near, source=source))
        length, exponent = lengths[index], exponents[index] + Fraction(near[index]) + slack
        extra = length.bit_length()

        def bounds(
            bits: int, length: int = length, exponent: Fraction = exponent, extra: int = extra
        ) -> tuple[int, int]:
            lo, hi = exp_bounds(exponent, bits + extra)
            return length * lo >> extra, -(-length * hi >> extra)

        if below_one(length * math.exp(-float(exponent)), 2.0**-40, bounds, source_of(source)):
            return index


def draw(
    ordered: Steps,
    target: Fraction,
    rate: Fraction,
    low: int,
    high: int,
    source: Source | None = None,
    reach: int | None = None,
) -> int:
    """A lattice point from low to high with weight exp(-rate * its distance in rank from the target).

    `ordered` holds the records in order, all from low to high. `reach` is how many ranks around the target
    are looked at; any number gives the same law, and by default what is left out weighs below e^-10 in all.
    """
    n = ordered.size
    if reach is None:
        reach = math.ceil((math.log(high - low + 1) + 10) / float(rate)) + 1
    a, b = max(0, math.floor(target) - reach), min(n - 1, math.ceil(target) + reach)
    inner_low, inner_high, left, right = low, high, 0, n
    if a <= b:
        inner_low, inner_high = int(ordered[a]), int(ordered[b])
        left, right = _rank(ordered, inner_low, "left"), _rank(ordered, inner_high, "right")
    window = runs_of(ordered[left:right], inner_low, inner_high, left)
    lengths = window.length.tolist()
    distances = window.distances(target)
    tails = [
        (low, inner_low - low, max(Fraction(0), target - left)),
        (inner_high + 1, high - inner_high, max(Fraction(0), right - target)),
    ]
    firsts = window.first.tolist()
    for first, length, distance in tails:
        if length > 0:
            firsts.append(first)
            lengths.append(length)
            distances.append(distance)
    while True:
        index = choose(lengths, [rate * d for d in distances], source)
        point = int(firsts[index]) + int(uniform(lengths[index], source=source))
        if index < window.length.size:
            return point
        under, upto = _rank(ordered, point, "left"), _rank(ordered, point, "right")
        excess = max(Fraction(0), under - target, target - upto) - distances[index]
        if bernoulli_exp(rate * excess, source=source):
            return point


def _rank(ordered: Steps, point: int, side: Literal["left", "right"]) -> int:
    """How many records lie below the point (left), or at or below it (right)."""
    return int(np.searchsorted(ordered, point, side))


def masses(steps: Steps, target: Fraction, rate: Fraction, low: int, high: int) -> NDArray[np.float64]:
    """The probability of every lattice point from low to high, for checks on small lattices."""
    runs = runs_of(np.sort(steps), low, high)
    distances = np.array([float(rate * d) for d in runs.distances(target)])
    weights = np.repeat(np.exp(distances.min() - distances), runs.length)
    return np.asarray(weights / math.fsum(weights), dtype=np.float64)
