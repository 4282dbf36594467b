"""Quantiles with intervals, from one weighted histogram per group.

Let a group's cells hold weights h_0..h_(B-1) (whole steps); a unit adds at most w_g to group g, and all
groups together at most C.

A release has up to three parts, each with its share of epsilon (`shares_of`).

Points. One or two ranks are drawn by the exponential mechanism, which finds a lone point far better than a
tree does. With
target rank r, cell b has utility -max(0, before(b) - r, r - after(b)), where before and after are the weights
below b and up to b: 0 for the cell that holds the rank. If adding weight w moves before - r and r - after by
at most k w, so does the utility, and the exponential mechanism with rate t = epsilon / (2 k C) spends 2 t k
w_g in group g, epsilon in all groups together (bounded range; Durfee, Rogers 2019). Replacing a unit takes
weight of at most C away and adds as much: the distance, 2, multiplies C.

Each of m ranks q is drawn on all cells with target q of the total weight, at epsilon / m. Adding weight w
moves the target by q w, and before and after by x from 0 to w: x - q w lies between -q w and (1 - q) w. So k
= max(q, 1 - q), which is 1/2 for the median. (For q = 0 and q = 1 the utilities are minus the weight below
and above a cell: all move the same way, by w at most, which is a range as for k = 1/2.) Targets are kept as
exact fractions: rounded to whole steps, each group could move by a step more. Points are sorted afterwards,
and an interval is widened to hold its point: both are free.

Windows. The intervals of drawn points come from noisy weights of ranges around them (`rank_window`).

Tree. More ranks than MOST_DRAWN come with their intervals from a noisy tree over the cells (`rank_tree`),
which serves any number of them at once. Without groups, or with a few public ones (`Leaf.keeps_trees`), a
release always has trees, drawn whole: they are kept, and answer every other rank of the same rows later,
which is post-processing.

The guarantee of a release is the composition of its parts: what each does depends on the rows and on what the
parts before it released, and costs its share whatever that was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.curator.rank_tree import Drawing, Forest, Nodes, Shape, Tree, find, shape_of
from incrowd.curator.rank_window import ends_of
from incrowd.mechanisms import Laplace
from incrowd.noise import categorical
from incrowd.query import Measure
from incrowd.query.graded_cells import cell_at
from incrowd.query.plan import TREE_CELLS

MOST = 2**62
MOST_DRAWN = 2
_LUCKY = 1.25
CHAIN = 1024
"""Laplace noise is stated as a chain of this many steps, so sensitivities are multiples of it."""
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Shares:
    """The parts of epsilon for points that are drawn, for the windows around them, and for a tree."""

    points: Fraction
    window: Fraction
    tree: Fraction


DRAWN = Shares(Fraction(1, 2), Fraction(1, 2), Fraction(0))
DRAWN_AND_KEPT = Shares(Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
TREE_ALONE = Shares(Fraction(0), Fraction(0), Fraction(1))


def shares_of(ranks: tuple[float, ...], kept: bool) -> Shares:
    """How epsilon is shared for some ranks; kept: whether trees are kept for others."""
    if not draws_points(ranks):
        return TREE_ALONE
    return DRAWN_AND_KEPT if kept else DRAWN


@dataclass(frozen=True)
class Histograms:
    """The exact, private cells of groups that are not empty: their group, number and weight in steps.

    groups: those that are asked about. buckets: how many cells there are. reach: what one unit adds to all
    cells at most, times the distance. row: the weight of one row.
    """

    place: Whole
    cell: Whole
    steps: Whole
    groups: Whole
    buckets: int
    reach: int
    row: int

    @property
    def sensitivity(self) -> int:
        """The reach, rounded up to whole chains."""
        return -(-self.reach // CHAIN) * CHAIN

    def edges(self) -> Iterator[NDArray[Any]]:
        """For each group, the weight below each cell and below the end."""
        order = np.argsort(self.place, kind="stable")
        place, cell, steps = (column[order] for column in (self.place, self.cell, self.steps))
        starts, ends = (np.searchsorted(place, self.groups, side) for side in ("left", "right"))
        for start, end in zip(starts, ends, strict=True):
            cells = np.zeros(self.buckets, dtype=np.int64)
            cells[cell[start:end]] = steps[start:end]
            yield added_up(cells)


@dataclass(frozen=True)
class Quantiles:
    """By rank and group: the cell of each rank, and those of its interval's ends."""

    points: Whole
    lows: Whole
    highs: Whole

    def of(self, rank: int) -> Quantiles:
        """Those of one rank, by its place."""
        return Quantiles(self.points[rank], self.lows[rank], self.highs[rank])

    def around(self, points: Whole) -> Quantiles:
        """Other points, with these intervals widened to hold them."""
        return Quantiles(points, np.minimum(self.lows, points), np.maximum(self.highs, points))


def draws_points(ranks: tuple[float, ...]) -> bool:
    """True if the points are drawn by themselves, not read from the tree."""
    return len(set(ranks)) <= MOST_DRAWN


def levels_of(buckets: int) -> int:
    """How many levels of a tree get noise."""
    return tree_shape(buckets).height


def tree_shape(buckets: int) -> Shape:
    """The shape of the tree over so many cells."""
    return shape_of(-(-buckets // _merged(buckets)))


def _merged(buckets: int) -> int:
    """How many cells make a leaf of the tree."""
    return -(-buckets // TREE_CELLS)


def release(
    histograms: Histograms, ranks: tuple[float, ...], epsilon: Fraction, confidence: float, kept: bool
) -> tuple[Quantiles, Tree | None]:
    """The quantiles of every group, and the trees where they are to be kept."""
    order = tuple(sorted(set(ranks)))
    shares = shares_of(ranks, kept)
    tree: Nodes | None = None
    if shares.tree:
        drawing = _tree(histograms, epsilon * shares.tree)
        tree = drawing.whole() if kept else drawing
    if shares.points:
        found = _drawn(histograms, order, epsilon * shares.points, epsilon * shares.window, confidence)
    else:
        assert tree is not None
        found = read(tree, histograms.buckets, order, histograms.row, confidence)
    asked = [order.index(rank) for rank in ranks]
    whole = tree if isinstance(tree, Tree) else None
    return Quantiles(found.points[asked], found.lows[asked], found.highs[asked]), whole


def _tree(histograms: Histograms, epsilon: Fraction) -> Drawing:
    """The trees of all groups, not yet drawn."""
    merged = _merged(histograms.buckets)
    shape = tree_shape(histograms.buckets)
    forest = Forest(histograms.place, histograms.cell // merged, histograms.steps, shape.size)
    return Drawing(forest, histograms.groups, shape, epsilon, histograms.sensitivity)


def _drawn(
    histograms: Histograms,
    order: tuple[float, ...],
    for_points: Fraction,
    for_window: Fraction,
    confidence: float,
) -> Quantiles:
    """Points that are drawn, with the intervals of the windows around them."""
    points = np.sort(_points(histograms, order, for_points), axis=0)
    forest = Forest(histograms.place, histograms.cell, histograms.steps, histograms.buckets)
    noise = Laplace(for_window, sensitivity=histograms.sensitivity)
    lows, highs = ends_of(
        forest, histograms.groups, points, order, histograms.buckets, noise, histograms.row, confidence
    )
    return Quantiles(points, lows, highs).around(points)


def read(tree: Nodes, buckets: int, order: tuple[float, ...], row: int, confidence: float) -> Quantiles:
    """The quantiles of ranks in order, from a noisy tree."""
    merged = _merged(buckets)
    ends = find(tree, order, row, confidence)
    points = np.sort(np.minimum(ends.points * merged + merged // 2, buckets - 1), axis=0)
    highs = np.minimum(ends.highs * merged + merged, buckets) - 1
    return Quantiles(points, ends.lows * merged, highs).around(points)


def _points(histograms: Histograms, order: tuple[float, ...], epsilon: Fraction) -> Whole:
    """A cell for each rank and group, by the exponential mechanism."""
    shares = [Fraction(rank).limit_denominator(10**6) for rank in order]
    rate = epsilon / len(order) / (2 * histograms.reach)
    points = np.zeros((len(order), len(histograms.groups)), dtype=np.int64)
    for place, edges in enumerate(histograms.edges()):
        for number, share in enumerate(shares):
            points[number, place] = _draw(edges, int(edges[-1]) * share, rate / _spread(share))
    return points


def draw_cell(
    edges: NDArray[Any],
    target: Fraction,
    share: Fraction,
    epsilon: Fraction,
    reach: int,
    nats: NDArray[np.float64] | None = None,
) -> int:
    """One cell near a target, which is `share` of the total weight, by the exponential mechanism.

    nats: what each cell needs to be drawn as often as others that are as near; no data may be in it.
    """
    rate = epsilon / (2 * reach) / _spread(share)
    if nats is None:
        return _draw(edges, target, rate)
    handicaps = np.array([int(Fraction(float(need)) / rate) for need in nats], dtype=object)
    return _draw(edges.astype(object), target, rate, handicaps)


def _spread(share: Fraction) -> Fraction:
    """k of the docstring for a point."""
    return max(share, 1 - share) if 0 < share < 1 else Fraction(1, 2)


def added_up(cells: NDArray[np.int64]) -> NDArray[Any]:
    """The weight below each cell and below the end, exactly: Python integers where 64 bits are too few.

    Clamped sums would not do: a total that is clamped stands still while the weights below it move.
    """
    large = float(cells.astype(np.float64).sum()) >= MOST
    return np.concatenate(([0], np.cumsum(cells.astype(object) if large else cells)))


def _draw(edges: NDArray[Any], target: Fraction, rate: Fraction, handicaps: NDArray[Any] | int = 0) -> int:
    """A cell whose ranks are near the target; handicaps are in steps."""
    parts, rank = target.denominator, target.numerator
    if max(int(edges[-1]) * parts, abs(rank)) >= MOST:
        edges = edges.astype(object)
    # In whole parts of a step, so that the utilities are exact.
    scaled = edges * parts
    utilities = -np.maximum(0, np.maximum(scaled[:-1] - rank, rank - scaled[1:])) - handicaps * parts
    return int(categorical(utilities, rate=rate / parts))


def moved(points: Whole, ends: Whole, ratio: float, drawn: bool) -> Whole:
    """Where the ends of intervals are expected if noise were so many times as wide.

    Those of drawn points lie a power of two of cells away (`rank_window.edges_around`), and may be a lucky
    draw: they are taken to be a quarter further away, and rounded up to the next such edge.

    >>> moved(np.array([100, 100]), np.array([115, 69]), 0.5, drawn=True).tolist()
    [115, 69]
    >>> moved(np.array([100, 100]), np.array([115, 69]), 0.4, drawn=True).tolist()
    [107, 85]
    """
    side, away = np.sign(ends - points), np.abs(ends - points)
    if not drawn:
        return np.asarray(points + side * np.ceil(away * ratio).astype(np.int64))
    octaves = np.maximum(np.ceil(np.log2((away + 1) * ratio * _LUCKY) - 1e-9), 0.0)
    return np.asarray(points + side * np.minimum(2.0**octaves - 1, 2.0**40).astype(np.int64))


def value_of(measure: Measure, cell: int, end: str) -> float:
    """The middle, lower or upper edge of a cell; the number itself if a cell is one whole number."""
    start, width, place = measure.low, (measure.high - measure.low) / measure.buckets, float(cell)
    if measure.bands:
        start, width = cell_at(measure.bands, cell)
        place = 0.0
    if measure.whole and width == 1:
        return start + place
    return start + width * (place + {"low": 0.0, "middle": 0.5, "high": 1.0}[end])
