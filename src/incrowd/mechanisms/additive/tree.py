"""Trees of counts: sums over ranges from one noisy release, made consistent by least squares.

A tree of branching b stands over b^h cells: level 0 holds the total, level l the b^l sums of b^(h-l)
neighbouring cells, level h the cells. A unit that adds at most C to all cells together adds at most C to
each level, so at most C (h + 1) to the whole tree in L1 and C sqrt(h + 1) in L2.

`consistent` is post-processing. Given noise of one variance on every node, it returns the cells whose sums
are closest to the noisy nodes in squares (Hay, Rastogi, Miklau, Suciu 2010): bottom up, each node's estimate
is averaged with the sum of its children's; top down, what a parent's estimate differs from the sum of its
children's is given to them in equal parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def height(cells: int, branching: int) -> int:
    """How many levels below the root it takes to hold so many cells.

    >>> height(1, 16), height(16, 16), height(17, 16)
    (0, 1, 2)
    """
    levels, width = 0, 1
    while width < cells:
        levels, width = levels + 1, width * branching
    return levels


def levels_of(cells: NDArray[Any], branching: int) -> list[NDArray[Any]]:
    """The sums of every level, the root first; cells that are missing at the end are empty.

    >>> [level.tolist() for level in levels_of(np.array([1, 2, 3]), 2)]
    [[6], [3, 3], [1, 2, 3, 0]]
    """
    size = branching ** height(len(cells), branching)
    levels = [np.concatenate((cells, np.zeros(size - len(cells), dtype=cells.dtype)))]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0].reshape(-1, branching).sum(axis=1))
    return levels


def consistent(levels: Sequence[NDArray[np.int64]], branching: int) -> Floats:
    """The cells whose sums fit noisy levels best, if all nodes have noise of one variance.

    >>> consistent([np.array([9]), np.array([1, 2])], 2).tolist()
    [3.0, 4.0]
    """
    b, h = branching, len(levels) - 1
    upward: list[Floats] = [levels[h].astype(np.float64)]
    for level in range(h - 1, -1, -1):
        below = upward[0].reshape(-1, b).sum(axis=1)
        # The height of a node above the cells, counted from 1, decides how much it knows itself.
        tall = float(b) ** (h - level + 1)
        known = float(b) ** (h - level)
        own = (tall - known) / (tall - 1)
        upward.insert(0, own * levels[level] + (1 - own) * below)
    estimate = upward[0]
    for level in range(1, h + 1):
        missing = estimate - upward[level].reshape(-1, b).sum(axis=1)
        estimate = upward[level] + np.repeat(missing / b, b)
    return estimate
