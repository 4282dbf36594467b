"""Where ranks lie, from one noisy tree of counts per group.

The cells of a histogram are the leaves of a tree of branching b: level l has b^l nodes, each the sum of the
cells below it. A unit adds at most C to all cells of all groups together, so at most C to each level in L1:
with Laplace noise of scale h C / epsilon on every node, h levels spend epsilon together. Replacing a unit
moves a level by 2 C: the caller's sensitivity has the distance in it.

Where there are many groups, noise is drawn for the nodes that are looked at, once each. That is the release
of the whole trees, of which only a part is read: which part depends on nothing but noisy numbers, so the
guarantee is that of the whole. Without groups, or with a few public ones, the trees are drawn whole and kept
with the answer (`Tree`): every rank that is asked for later is computed from them, which costs nothing and
reads no row.

Estimates. For an edge between cells, let P be the weight left of it and T the weight of the group. Both are
estimated by least squares from the children of all nodes on the path from the root to the edge, which is
a Kalman filter from the bottom up: inside a node, P and T are sums over its children; the noisy node itself
is one more measurement of T. Siblings' own subtrees would say a little more (a tenth of the variance for b
= 9), and are not read. The variances depend on the path alone.

Ends. The cell that holds rank q has P - q T < 0 at its left edge and >= 0 at its right one. Walking down from
the root, the low end takes the leftmost child whose right edge is not refuted (P - q T within z standard
deviations below 0), the high end the rightmost child whose left edge is not. As long as no true edge is
refuted, the walk to the low end is on the true path or left of it. The chance that one is, over all levels,
is at most the sum of the levels' shares of 1 - confidence, most of which the last level gets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.mechanisms import Laplace

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
_BRANCHINGS = range(4, 33)
_DEEPER = 3.0
"""Each level has so many times the share of 1 - confidence that the level above has."""
_EXCESS = 0.6
"""The excess kurtosis that sums of Laplace noise are taken to have: that of five equal ones."""


@dataclass(frozen=True)
class Shape:
    """The branching of a tree and its levels below the root."""

    branching: int
    height: int

    @property
    def size(self) -> int:
        """How many cells it has, some of them beyond the histogram and empty."""
        return int(self.branching**self.height)


def shape_of(cells: int) -> Shape:
    """The tree over so many cells whose ranks have the least variance.

    A rank is a sum of about b/2 nodes at each of h levels, with noise that grows with h: h^3 b in all.

    >>> shape_of(74), shape_of(65_536)
    (Shape(branching=9, height=2), Shape(branching=16, height=4))
    """
    if cells <= _BRANCHINGS[0]:
        return Shape(max(cells, 2), 1)
    heights = {b: max(1, math.ceil(math.log(cells, b) - 1e-9)) for b in _BRANCHINGS}
    best = min(heights, key=lambda b: (heights[b] ** 3 * b, b))
    return Shape(best, heights[best])


class Forest:
    """The exact weights of cells in groups, private: one sparse histogram for each group."""

    def __init__(self, place: Whole, cell: Whole, steps: Whole, size: int) -> None:
        order = np.lexsort((cell, place))
        self._size = size
        self._keys = place[order].astype(np.int64) * size + cell[order]
        large = float(steps.astype(np.float64).sum()) >= 2**62
        ordered = steps[order].astype(object) if large else steps[order]
        self._before: NDArray[Any] = np.concatenate(([0], np.cumsum(ordered)))

    def sums(self, place: Whole, first: Whole, width: int | Whole) -> Whole:
        """The weight of `width` cells from `first` on, in each place; at most 2^61."""
        low = np.searchsorted(self._keys, place * self._size + first)
        high = np.searchsorted(self._keys, place * self._size + first + width)
        weights: Whole = np.minimum(self._before[high] - self._before[low], 2**61).astype(np.int64)
        return weights


@dataclass(frozen=True)
class Ends:
    """By rank and group: the cell at the rank, and those at the ends of its interval."""

    points: Whole
    lows: Whole
    highs: Whole


@dataclass(frozen=True)
class Tree:
    """All noisy nodes of the trees of some groups, released: by level below the root, a line per group."""

    shape: Shape
    variance: float
    levels: tuple[Whole, ...]

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.levels[0])

    def children(self, nodes: Whole, level: int) -> Floats:
        """The noisy children, at a level, of a node for each walk and group."""
        branching = self.shape.branching
        families = self.levels[level - 1].reshape(self.groups, branching ** (level - 1), branching)
        return families[np.arange(self.groups), nodes].astype(np.float64)

    def in_order(self, places: Whole) -> Tree:
        """The trees of the groups in these places."""
        return replace(self, levels=tuple(level[places] for level in self.levels))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        shape = [self.shape.branching, self.shape.height]
        return {"shape": shape, "variance": self.variance, "levels": [x.tolist() for x in self.levels]}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Tree:
        """The reverse of `to_json`."""
        levels = tuple(np.array(level, dtype=np.int64) for level in state["levels"])
        return cls(Shape(*state["shape"]), state["variance"], levels)


class Drawing:
    """The trees of some groups, whose nodes are drawn when they are looked at. Each level is visited once."""

    def __init__(
        self, forest: Forest, groups: Whole, shape: Shape, epsilon: Fraction, sensitivity: int
    ) -> None:
        self._forest = forest
        self._places = groups
        self._noise = Laplace(epsilon / shape.height, sensitivity=sensitivity)
        self.shape = shape
        self.variance = 2.0 * float(self._noise.scale_in_steps) ** 2

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self._places)

    def children(self, nodes: Whole, level: int) -> Floats:
        """The noisy children of a node for each walk and group; a node of several walks is drawn once."""
        branching, parents = self.shape.branching, self.shape.branching ** (level - 1)
        visited, back = np.unique(np.arange(self.groups) * parents + nodes, return_inverse=True)
        child = (visited % parents)[:, None] * branching + np.arange(branching)
        place = np.broadcast_to(self._places[visited // parents][:, None], child.shape)
        noisy = self._noisy(place.ravel(), child.ravel(), level).astype(np.float64).reshape(child.shape)
        return noisy[back.reshape(nodes.shape)]

    def whole(self) -> Tree:
        """The trees of all groups, all of their nodes drawn."""
        levels = []
        for level in range(1, self.shape.height + 1):
            width = self.shape.branching**level
            child, place = np.tile(np.arange(width), self.groups), np.repeat(self._places, width)
            levels.append(self._noisy(place, child, level).reshape(self.groups, width))
        return Tree(self.shape, self.variance, tuple(levels))

    def _noisy(self, place: Whole, child: Whole, level: int) -> Whole:
        width = self.shape.size // self.shape.branching**level
        return np.asarray(self._noise.release(self._forest.sums(place, child * width, width)))


Nodes = Drawing | Tree
"""The noisy nodes of a tree for each group, with the variance of their noise."""


def find(tree: Nodes, ranks: tuple[float, ...], row: int, confidence: float) -> Ends:
    """The cells of ranks and of their ends in every group. `row` is the weight of one row."""
    shape = tree.shape
    rank = np.repeat(np.array(ranks, dtype=np.float64), 3)[:, None, None]
    side = np.tile(np.array([0, -1, 1]), len(ranks))
    nodes = np.zeros((3 * len(ranks), tree.groups), dtype=np.int64)
    path: list[tuple[Floats, Whole]] = []
    for level in range(1, shape.height + 1):
        children = tree.children(nodes, level)
        gap, deviation = _gaps(children, path, tree.variance, rank)
        reach = _reach(level, shape.height, confidence) * deviation + row
        chosen = _chosen(gap, reach, side)
        path.append((children, chosen))
        nodes = nodes * shape.branching + chosen
    return Ends(nodes[0::3], nodes[1::3], nodes[2::3])


def expected_reach(shape: Shape, variance: float, rank: float, confidence: float) -> float:
    """How far from a rank in the middle of all cells its ends are expected, in steps."""
    branching, height = shape.branching, shape.height
    children, middle = np.zeros((1, 1, branching)), np.full((1, 1), branching // 2)
    _, deviation = _gaps(children, [(children, middle)] * (height - 1), variance, np.array(rank))
    return float(_reach(height, height, confidence) * deviation.max())


def _gaps(
    children: Floats, path: list[tuple[Floats, Whole]], variance: float, rank: Floats
) -> tuple[Floats, Floats]:
    """P - q T at the edges before, between and after the children of a node, with its standard deviation."""
    branching = children.shape[-1]
    edge = np.arange(branching + 1.0)
    left = np.concatenate((np.zeros((*children.shape[:2], 1)), np.cumsum(children, axis=-1)), axis=-1)
    total = np.broadcast_to(left[..., -1:], left.shape)
    both = np.broadcast_to(variance * edge, left.shape)
    spread_left, spread_total = both, np.full(left.shape, variance * branching)
    for siblings, chosen in reversed(path):
        at = chosen[..., None]
        own = np.take_along_axis(siblings, at, axis=-1)
        # The noisy node itself is one more measurement of its total.
        surprise = (own - total) / (spread_total + variance)
        left, total = left + both * surprise, total + spread_total * surprise
        spread_left = spread_left - both**2 / (spread_total + variance)
        kept = variance / (spread_total + variance)
        both, spread_total = both * kept, spread_total * kept
        # Up to the parent: the node's siblings count with their own noise.
        before = np.concatenate((np.zeros_like(siblings[..., :1]), np.cumsum(siblings, axis=-1)), axis=-1)
        aside = np.take_along_axis(before, at, axis=-1)
        left, total = left + aside, total + before[..., -1:] - own
        spread_left, both = spread_left + variance * at, both + variance * at
        spread_total = spread_total + variance * (branching - 1)
    deviation = np.sqrt(np.maximum(spread_left - 2 * rank * both + rank**2 * spread_total, 0.0))
    return left - rank * total, deviation


def _chosen(gap: Floats, reach: Floats, side: Whole) -> Whole:
    """The child that each walk takes: the point's, the leftmost or the rightmost that is not refuted."""
    last = gap.shape[-1] - 2
    low = np.where((gap >= -reach)[..., 1:], np.arange(last + 1), last).min(axis=-1)
    high = np.where((gap <= reach)[..., :-1], np.arange(last + 1), 0).max(axis=-1)
    point = np.where((gap >= 0)[..., 1:], np.arange(last + 1), last).min(axis=-1)
    kinds = side[:, None]
    chosen: Whole = np.where(kinds == 0, point, np.where(kinds < 0, low, high))
    return chosen


def _reach(level: int, height: int, confidence: float) -> float:
    """How many standard deviations refute an edge at a level."""
    shares = _DEEPER ** np.arange(height)
    return float(deviations((1 - confidence) / 2 * shares[level - 1] / shares.sum(), np.array(_EXCESS)))


def deviations(alpha: float, excess: Floats) -> Floats:
    """How many standard deviations a sum of Laplace noise passes with probability alpha (Cornish, Fisher).

    excess: its excess kurtosis.
    """
    from scipy.special import ndtri

    z = float(-ndtri(alpha))
    return z + excess / 24 * max(z**3 - 3 * z, 0.0)
