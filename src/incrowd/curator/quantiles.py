"""Quantiles with intervals, from one weighted histogram per group, by the exponential mechanism.

Let a group's cells hold weights h_0..h_(B-1) (whole steps); a unit adds at most w_g to group g, and all
groups together at most C.

One draw. With target rank r, cell b has utility -max(0, before(b) - r, r - after(b)), where before and
after are the weights below b and up to b: 0 for the cell that holds the rank. If adding weight w moves
before, after and r by at most w relative to each other, the utility moves by at most w, and the exponential
mechanism with rate t = epsilon / (2 C) spends 2 t w_g in group g, epsilon in all groups together (bounded
range; Durfee, Rogers 2019).

Points. Each of m ranks q is drawn on all cells with target q of the total weight, at epsilon / m: the
target moves by q w when before(b) moves by 0 or w. Ties are common in real columns, so cells are not split
between ranks as in recursive schemes, which assume distinct values; the points are sorted afterwards, which
is free and moves none of them further from its rank than the worst.

Ends. For a point at cell c, the low end is drawn from the data strictly below c, with the rank s below its
total as the target, and the high end from the data strictly above c, with rank s. Both may return c itself.
Their data is disjoint, so the two cost epsilon once.

Error. A draw over B cells misses its rank by more than ln(B / beta) / t with probability at most beta. With
beta shared over the draws of a point and s the sum of the misses of its rounds and of the end itself (plus
one row), the interval contains the true quantile with the stated confidence.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.noise import categorical
from incrowd.query import Measure

MOST = 2**62
POINTS = Fraction(1, 2)
"""The part of epsilon for the points; the rest is for the ends of their intervals."""


@dataclass(frozen=True)
class Quantiles:
    """For one group: the cell of each rank, and those of its interval's ends."""

    points: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]


def release(
    cells: NDArray[np.int64],
    ranks: tuple[float, ...],
    epsilon: Fraction,
    sensitivity: int,
    row: int,
    confidence: float,
) -> Quantiles:
    """The quantiles of one group; `sensitivity` is C times the distance, and `row` one row's weight, in
    steps.
    """
    order = sorted(set(ranks))
    # One step more than C: targets are rounded to whole steps.
    reach = sensitivity + 1
    point_rate = epsilon * POINTS / len(order) / (2 * reach)
    end_rate = epsilon * (1 - POINTS) / len(order) / (2 * reach)
    count = len(cells)
    # Sorting mixes the points, so a point's miss is bounded by the worst of all.
    point_miss = math.log(count * (len(order) + 2) / (1 - confidence)) / float(point_rate)
    end_miss = math.log(count * (len(order) + 2) / (1 - confidence)) / float(end_rate)
    slack = min(math.ceil(point_miss + end_miss) + row + 1, MOST)
    edges = np.concatenate(([0], _added_up(cells)))
    total = int(edges[-1])
    shares = [Fraction(rank).limit_denominator(10**6) for rank in order]
    points = sorted(_draw(edges, total * each.numerator // each.denominator, point_rate) for each in shares)
    found = {}
    for rank, cell in zip(order, points, strict=True):
        below = np.append(edges[: cell + 1], edges[cell])
        above = np.append(edges[cell + 1], edges[cell + 1 :]) - edges[cell + 1]
        low = _draw(below, int(edges[cell]) - slack, end_rate)
        high = cell + _draw(above, slack, end_rate)
        found[rank] = (cell, low, high)
    return Quantiles(*(tuple(found[rank][place] for rank in ranks) for place in range(3)))


def _added_up(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cumulative weights, at most 2^62: one unit moves each of them by no more than before."""
    if float(cells.astype(np.float64).sum()) < MOST:
        return np.cumsum(cells)
    sums = itertools.accumulate((int(cell) for cell in cells), lambda total, cell: min(total + cell, MOST))
    return np.fromiter(sums, np.int64, len(cells))


def _draw(edges: NDArray[np.int64], target: int, rate: Fraction) -> int:
    """A cell whose ranks are near the target."""
    utilities = -np.maximum(0, np.maximum(edges[:-1] - target, target - edges[1:]))
    return int(categorical(utilities, rate=rate))


def value_of(measure: Measure, cell: int, end: str) -> float:
    """The value that stands for a cell: its middle, or its lower or upper edge; the whole number itself
    where cells are such.
    """
    width = (measure.high - measure.low) / measure.buckets
    if measure.whole and width == 1:
        return measure.low + cell
    return measure.low + width * (cell + {"low": 0.0, "middle": 0.5, "high": 1.0}[end])
