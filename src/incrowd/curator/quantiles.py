"""Quantiles with intervals, from one weighted histogram per group, by the exponential mechanism.

Let a group's cells hold weights h_0..h_(B-1) (whole steps); a unit adds at most w_g to group g, and all
groups together at most C.

One draw. With target rank r, cell b has utility -max(0, before(b) - r, r - after(b)), where before and
after are the weights below b and up to b: 0 for the cell that holds the rank. If adding weight w moves
before - r and r - after by at most k w, so does the utility, and the exponential mechanism with rate t =
epsilon / (2 k C) spends 2 t k w_g in group g, epsilon in all groups together (bounded range; Durfee, Rogers
2019). Replacing a unit takes weight of at most C away and adds as much: the distance, 2, multiplies C.

Points. Each of m ranks q is drawn on all cells with target q of the total weight, at epsilon / m. Adding
weight w moves the target by q w, and before and after by x from 0 to w: x - q w lies between -q w and (1 -
q) w. So k = max(q, 1 - q), which is 1/2 for the median. (For q = 0 and q = 1 the utilities are minus the
weight below and above a cell: all move the same way, by w at most, which is a range as for k = 1/2.)
Targets are kept as exact fractions: rounded to whole steps, each group could move by a step more. Ties are
common in real columns, so cells are not split between ranks as in recursive schemes, which assume distinct
values; the points are sorted afterwards, which is free and moves none of them further from its rank than
the worst.

Ends. For a point at cell c, the low end is drawn from the data strictly below c, with the rank s below its
total as the target, and the high end from the data strictly above c, with rank s. Both may return c itself.
Here k = 1: the first target moves by w and the second not at all, while before and after move by 0 to w.
The data of the two is disjoint, so they cost epsilon once.

Error. A draw over B cells misses its rank by more than ln(B / beta) / t with probability at most beta. With
beta shared over the draws of a point and s the sum of the misses of its rounds and of the end itself (plus
one row), the interval contains the true quantile with the stated confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

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
    """The quantiles of one group. In steps, `sensitivity` is C times the distance, `row` one row's weight."""
    order = sorted(set(ranks))
    shares = [Fraction(rank).limit_denominator(10**6) for rank in order]
    rate = epsilon * POINTS / len(order) / (2 * sensitivity)
    rates = [rate / _spread(share) for share in shares]
    end_rate = epsilon * (1 - POINTS) / len(order) / (2 * sensitivity)
    count = len(cells)
    # Sorting mixes the points, so a point's miss is bounded by the worst of all.
    point_miss = math.log(count * (len(order) + 2) / (1 - confidence)) / float(min(rates))
    end_miss = math.log(count * (len(order) + 2) / (1 - confidence)) / float(end_rate)
    slack = min(math.ceil(point_miss + end_miss) + row + 1, MOST)
    edges = _added_up(cells)
    total = int(edges[-1])
    points = sorted(_draw(edges, total * share, rate) for share, rate in zip(shares, rates, strict=True))
    drawn = {}
    for rank, cell in zip(order, points, strict=True):
        below = np.append(edges[: cell + 1], edges[cell])
        above = np.append(edges[cell + 1], edges[cell + 1 :]) - edges[cell + 1]
        low = _draw(below, Fraction(int(edges[cell]) - slack), end_rate)
        high = cell + _draw(above, Fraction(slack), end_rate)
        drawn[rank] = (cell, low, high)
    return Quantiles(*(tuple(drawn[rank][place] for rank in ranks) for place in range(3)))


def _spread(share: Fraction) -> Fraction:
    """k of the docstring for a point."""
    return max(share, 1 - share) if 0 < share < 1 else Fraction(1, 2)


def _added_up(cells: NDArray[np.int64]) -> NDArray[Any]:
    """The weight below each cell and below the end, exactly: Python integers where 64 bits are too few.

    Clamped sums would not do: a total that is clamped stands still while the weights below it move.
    """
    large = float(cells.astype(np.float64).sum()) >= MOST
    return np.concatenate(([0], np.cumsum(cells.astype(object) if large else cells)))


def _draw(edges: NDArray[Any], target: Fraction, rate: Fraction) -> int:
    """A cell whose ranks are near the target."""
    parts, rank = target.denominator, target.numerator
    if max(int(edges[-1]) * parts, abs(rank)) >= MOST:
        edges = edges.astype(object)
    # In whole parts of a step, so that the utilities are exact.
    scaled = edges * parts
    utilities = -np.maximum(0, np.maximum(scaled[:-1] - rank, rank - scaled[1:]))
    return int(categorical(utilities, rate=rate / parts))


def value_of(measure: Measure, cell: int, end: str) -> float:
    """The middle, lower or upper edge of a cell; the number itself if a cell is one whole number."""
    width = (measure.high - measure.low) / measure.buckets
    if measure.whole and width == 1:
        return measure.low + cell
    return measure.low + width * (cell + {"low": 0.0, "middle": 0.5, "high": 1.0}[end])
