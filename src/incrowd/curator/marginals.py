"""Consistent totals: the best estimates of cells and of their sums, where both were measured.

Let there be cells, and levels that add them up by some of their keys. Each level was measured with noise of
its own variance, independent everywhere. The least squares estimate of the cells, weighted by one over the
variance, gives every level at once: totals are the sums of their parts, and no linear estimate without bias
has less variance (Gauss and Markov).

On a full grid of keys the normal equations fall apart. For each subset T of the keys, the part of a table
that varies with all keys of T, and averages out over each of them, is orthogonal to that of every other
subset. A level over the keys S shows the parts of all subsets of S. In averages per cell, with N_X the number
of value combinations of the keys X, it shows the part T with a variance proportional to variance(S) /
N_(not in S). So the estimate of a part is the mean of those that levels show, weighted by N_(not in S) /
variance(S).

Where levels are nested (ROLLUP), groups are a tree, with any number of children. One pass up gives each node
the best estimate from what lies below it, one pass down shares what is left over among the children, in
proportion to their variances (Hay et al. 2010).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Kept = tuple[int, ...]
_EXACT = 2.0**51
"""Whole numbers up to here are exact in float64, and so are their sums by two."""


def variances(sizes: Sequence[float], measured: Mapping[Kept, float], wanted: Sequence[Kept]) -> list[float]:
    """The variance of a cell of each wanted level, on a grid whose keys have so many values.

    measured: the variance of the noise, by level. A part that no level shows counts as nothing.

    >>> variances([4], {(0,): 1.0}, [(0,), ()])
    [1.0, 4.0]
    >>> [round(v, 3) for v in variances([4], {(0,): 1.0, (): 1.0}, [(0,), ()])]
    [0.8, 0.8]
    """
    every = range(len(sizes))
    shown: dict[Kept, float] = {}

    def number(keys: Kept) -> float:
        return math.prod(sizes[key] for key in keys)

    def part(keys: Kept) -> float:
        """The variance of a part per cell of its own keys, in averages per finest cell."""
        if keys not in shown:
            rest = number(tuple(key for key in every if key not in keys))
            precision = sum(
                number(tuple(key for key in every if key not in level)) * rest / variance
                for level, variance in measured.items()
                if set(keys) <= set(level)
            )
            varying = math.prod(1 - 1 / sizes[key] for key in keys)
            shown[keys] = varying / precision if precision else 0.0
        return shown[keys]

    return [
        number(tuple(key for key in every if key not in level)) ** 2 * sum(part(t) for t in subsets(level))
        for level in wanted
    ]


def subsets(level: Kept) -> list[Kept]:
    """All subsets of a level's keys."""
    sizes = range(len(level) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(level, size)]


def grid(shape: tuple[int, ...], measured: Mapping[Kept, tuple[Floats, float]]) -> Floats:
    """The cells of a full grid from the numbers of its levels, each with the variance of its noise.

    A level's numbers have the shape of its keys. A part that no level shows is taken as zero.
    """
    whole: Kept = tuple(range(len(shape)))
    cells = np.zeros(shape)
    for keys in subsets(whole):
        total, weights = np.zeros([shape[key] for key in keys]), 0.0
        for level, (numbers, variance) in measured.items():
            if not set(keys) <= set(level):
                continue
            beside = math.prod(size for key, size in enumerate(shape) if key not in level)
            weight = beside / variance
            total += weight * _part(numbers / beside, level, keys)
            weights += weight
        if weights:
            cells += (total / weights).reshape([size if key in keys else 1 for key, size in enumerate(shape)])
    return cells


def _part(numbers: Floats, level: Kept, keys: Kept) -> Floats:
    """What varies with all of these keys: averaged over the others, less the averages over each of them."""
    over = tuple(axis for axis, key in enumerate(level) if key not in keys)
    part: Floats = np.asarray(numbers.mean(axis=over) if over else numbers, dtype=np.float64)
    for axis in range(part.ndim):
        part = part - part.mean(axis=axis, keepdims=True)
    return part


def tree(
    levels: Sequence[tuple[Places, int]], measured: Sequence[tuple[Floats, float] | None]
) -> tuple[list[Floats], list[Floats]]:
    """The numbers of nested levels and their variances; the finest level comes first.

    levels: the node of each finest cell, and how many nodes there are. measured: a level's numbers with the
    variance of their noise; None if it was not measured. The finest is.
    """
    assert measured[0] is not None
    _, count = levels[0]
    parents = []
    for (below, size), (above, _) in itertools.pairwise(levels):
        parent = np.zeros(size, dtype=np.int64)
        parent[below] = above
        parents.append(parent)
    first, noise = measured[0]
    best, spread = [np.asarray(first, dtype=np.float64)], [np.full(count, float(noise))]
    sums, spreads = [], []
    for parent, (_, size), own in zip(parents, levels[1:], measured[1:], strict=True):
        total = np.bincount(parent, best[-1], minlength=size).astype(np.float64)
        variance = np.bincount(parent, spread[-1], minlength=size).astype(np.float64)
        sums.append(total)
        spreads.append(variance)
        if own is None:
            best.append(total)
            spread.append(variance)
            continue
        numbers, noise = own
        share = noise / (noise + variance)
        best.append(share * total + (1 - share) * numbers)
        spread.append(share * variance)
    values, known = [best[-1]], [spread[-1]]
    for place in range(len(parents) - 1, -1, -1):
        parent = parents[place]
        share = spread[place] / np.maximum(spreads[place], 1e-300)[parent]
        values.insert(0, best[place] + share * (values[0] - sums[place])[parent])
        known.insert(0, np.maximum(spread[place] * (1 - share) + share**2 * known[0][parent], 0.0))
    return values, known


def rounded(cells: Floats, unit: float) -> Floats:
    """The cells as multiples of a unit, so that their sums along the axes are near those of the cells.

    The sums of all cells up to a place are rounded, and the cells are the differences of these. A sum over
    all values of some axes then errs by at most half a unit for each corner of what is left: 2^k / 2 for k
    axes.
    The unit is doubled until sums are exact in float64, where only numbers beyond 2^51 units need it.

    >>> rounded(np.array([0.4, 0.4, 0.4]), 1.0)
    array([0., 1., 0.])
    """
    sums = np.asarray(cells, dtype=np.float64)
    for axis in range(cells.ndim):
        sums = np.cumsum(sums, axis=axis)
    if not sums.size:
        return sums
    most = float(np.abs(sums).max()) * 2.0 ** (cells.ndim + 1)
    while most / unit > _EXACT:
        unit *= 2.0
    whole = np.rint(sums / unit)
    for axis in range(cells.ndim):
        whole = np.diff(whole, axis=axis, prepend=0.0)
    return np.asarray(whole * unit, dtype=np.float64)
