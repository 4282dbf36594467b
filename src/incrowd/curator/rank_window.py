"""The ends of a quantile's interval, from noisy weights of ranges that widen away from a released point.

The ranges. Edges lie at distances 0, 1, 3, 7, ... cells from both sides of each point, and at both ends of
the histogram: they cut a group's cells into at most about 2 log2(cells) ranges for each point. The points are
released already, so which ranges there are is public. A unit adds at most C to all ranges of all groups
together: with Laplace noise of scale C / epsilon on each range, they spend epsilon, whatever the points cost
(adaptive composition). Replacing a unit moves them by 2 C: the caller's sensitivity has the distance in it.
A range of no cells weighs nothing and gets no noise.

The ends. For an edge, let P be the weight left of it, T that of the group, and gap = P - q T: below 0 left of
rank q, not below 0 right of it. Edges are tested from left to right, each at (1 - confidence) / 2, until one
is not shown to lie left of the rank; the low end is the edge before it. It lies right of the rank only if the
first edge right of the rank was taken for one left of it: one test, so no share of the confidence is lost to
the number of edges. The high end is the same from right to left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.curator.rank_tree import Forest, deviations
from incrowd.mechanisms import Laplace

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def edges_around(points: Whole, cells: int) -> Whole:
    """For each group, the edges of its ranges in order; `points` are by rank and group.

    >>> edges_around(np.array([[5]]), 12).tolist()
    [[0, 0, 2, 4, 5, 6, 7, 9, 12, 12]]
    """
    steps = 2 ** np.arange(cells.bit_length() + 1, dtype=np.int64)
    around = points.T[:, :, None]
    both = np.concatenate((around - (steps - 1), around + steps), axis=-1)
    both = both.reshape(points.shape[1], len(points) * 2 * len(steps))
    return np.sort(np.clip(both, 0, cells), axis=-1)


def ends_of(
    forest: Forest,
    groups: Whole,
    points: Whole,
    ranks: tuple[float, ...],
    cells: int,
    noise: Laplace,
    row: int,
    confidence: float,
) -> tuple[Whole, Whole]:
    """By rank and group, the first and the last cell of the interval. `row` is the weight of one row."""
    edges = edges_around(points, cells)
    widths = np.diff(edges, axis=-1)
    place = np.broadcast_to(groups[:, None], widths.shape)
    wide = widths > 0
    noisy = np.zeros(widths.shape)
    if wide.any():
        noisy[wide] = noise.release(forest.sums(place[wide], edges[:, :-1][wide], widths[wide]))
    left, drawn = _added_up(noisy), _added_up(wide)
    lows, highs = [], []
    for rank in ranks:
        gap = left - rank * left[:, -1:]
        reach = _reach(drawn, rank, noise, confidence) + row
        # The first edge that may be right of the rank, and the last that may be left of it.
        first = 1 + np.argmin(np.c_[(gap < -reach)[:, 1:-1], np.zeros(len(gap), dtype=bool)], axis=-1)
        last = np.argmin(np.c_[(gap > reach)[:, -2:0:-1], np.zeros(len(gap), dtype=bool)], axis=-1)
        lows.append(np.take_along_axis(edges, first[:, None] - 1, axis=-1)[:, 0])
        highs.append(np.take_along_axis(edges, edges.shape[1] - 1 - last[:, None], axis=-1)[:, 0] - 1)
    return np.array(lows, dtype=np.int64), np.array(highs, dtype=np.int64)


def expected_reach(rank: float, ranks: int, cells: int, noise: Laplace, confidence: float) -> float:
    """How far from a rank in the middle of all cells its ends are expected, in steps; `ranks` are asked.

    An edge is shown to lie beside the rank once it is beyond the reach of its noise. Edges are ever further
    apart, each twice as far from the point as the one before: on average, the end lies half again as far.
    """
    edges = edges_around(np.full((ranks, 1), cells // 2), cells)
    drawn = _added_up(np.diff(edges, axis=-1) > 0)
    middle = int(np.searchsorted(edges[0], cells // 2))
    return 1.5 * float(_reach(drawn, rank, noise, confidence)[0, middle])


def _reach(drawn: Floats, rank: float, noise: Laplace, confidence: float) -> Floats:
    """How far noise takes the gap at each edge; `drawn` are the noisy ranges before the edge."""
    weights = [drawn * (1 - rank) ** k + (drawn[:, -1:] - drawn) * rank**k for k in (2, 4)]
    deviation = float(noise.scale_in_steps) * np.sqrt(2 * weights[0])
    excess = 3 * weights[1] / np.maximum(weights[0], 1e-100) ** 2
    reach: Floats = deviations((1 - confidence) / 2, excess) * deviation
    return reach


def _added_up(parts: NDArray[Any]) -> Floats:
    """The sum of the parts before each edge."""
    sums: Floats = np.cumsum(parts, axis=-1, dtype=np.float64)
    return np.concatenate((np.zeros((len(parts), 1)), sums), axis=-1)
