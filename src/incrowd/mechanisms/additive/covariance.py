"""Covariance matrices: all entries under one calibration, within bounds that are given or searched for.

Theorem. Let t_i be a record's place in the range of column i, clamped to [-1, 1], and let U = 2^20. Release
these sums over the records, rounded to whole numbers, with noise of one scale for all of them:

    U a,   U b t_i for every i,   U t_i t_j for i <= j.

With bounds given a = b = 1. In a range that was searched for a = 1/2 and b = 1/4: there t_i is around 0 on
average, and its mean matters less.

One more record changes the sums by at most U (a + b d + d (d + 1) / 2) in L1 and by at most
U sqrt(a^2 + b^2 d + d (d + 1) / 2) in L2, because every number is largest in size at |t| = 1, all of them at
once. Where records are replaced, their number is public and is not released; then t_i moves by at most 2,
t_i t_j by at most 2, and t_i^2 by at most 1. Laplace noise for the L1 distance gives epsilon, and Gaussian
noise for the L2 distance gives (epsilon, delta).

Everything after that is post-processing. The covariance of columns i and j is

    radius_i radius_j (mean of t_i t_j - mean of t_i times mean of t_j).

The matrix is made positive semidefinite by dropping its negative eigenvalues. That brings it no further from
the truth: it is a projection onto a convex set that holds the truth.

What one calibration gains: released one by one, d (d + 1) / 2 entries would share epsilon equally. Together,
under Gaussian noise, each entry has the noise of the square root of its share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.gaussian import Gaussian
from incrowd.mechanisms.additive.grid import INTEGERS
from incrowd.mechanisms.additive.laplace import Laplace
from incrowd.mechanisms.additive.ranged import HALF, Ranged, Ranges
from incrowd.mechanisms.parameters import (
    counted,
    root_above,
)
from incrowd.mechanisms.records import Floats, read_floats
from incrowd.mechanisms.selection.private_range import given_range, within
from incrowd.mechanisms.sensitivity import Relation
from incrowd.noise import Source
from incrowd.noise.readings import (
    Number,
    items_of,
)
from incrowd.privacy import Guarantee

UNIT = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class Covariance(Ranged):
    """Releases the covariance matrix of `columns` numbers per unit.

    The noise is Laplace noise for epsilon alone and Gaussian noise for epsilon and delta, which is less from
    four columns on at epsilon 1 and delta 1e-6. `bounds` lists (low, high) for every column, known without
    looking at the data; without them `share` of epsilon pays for a search.

    >>> from incrowd.noise import SeededSource
    >>> rows = [(k % 73, (3 * k) % 73) for k in range(7300)]
    >>> m = Covariance(1.0, 1e-6, columns=2, bounds=[(0, 72), (0, 72)])
    >>> matrix = m.release(rows, source=SeededSource(1))
    >>> matrix.shape, bool(430 < matrix[0, 0] < 460)
    ((2, 2), True)
    """

    delta: Number | None = None
    _: KW_ONLY
    columns: int
    bounds: Sequence[tuple[Number, Number]] | None = None

    @property
    def width(self) -> int:
        """How many columns there are."""
        return counted(self.columns, "columns")

    @cached_property
    def ranges(self) -> Ranges | None:
        """The range of every column where bounds are given, else None."""
        return None if self.bounds is None else _ranges(self.bounds, self.width)

    @property
    def count(self) -> int:
        """The U a of the theorem: the weight of a record in the count."""
        return UNIT // 2 if self.bounds is None else UNIT

    @property
    def place(self) -> int:
        """The U b of the theorem: the weight of t_i in the sums."""
        return UNIT // 4 if self.bounds is None else UNIT

    @cached_property
    def noise(self) -> Laplace | Gaussian:
        """The noise on every sum."""
        l1, l2_squared = sensitivity(self.width, self.relation, self.count, self.place)
        if self.delta is None:
            return Laplace(self.statistic_epsilon, sensitivity=int(l1))
        reach = root_above(l2_squared)
        return Gaussian(self.statistic_epsilon, self.delta, sensitivity=reach, grid=INTEGERS)

    @property
    def noise_privacy(self) -> Guarantee:
        """What the noise on the sums guarantees."""
        return self.noise.privacy

    def release(self, value: Any, source: Source | None = None) -> NDArray[np.float64]:
        """The covariance matrix of a table of numbers with one row per unit."""
        table = self._read(value)
        ranges = self.ranges
        if ranges is None:
            assert self.search is not None
            ranges = tuple(self.search.release(column, source) for column in table.T)
        noisy = self.noise.release(self.sums(table, ranges), source).astype(np.float64)
        count = float(max(1, len(table)))
        if self.relation == "add-remove":
            count, noisy = max(1.0, noisy[0] / self.count), noisy[1:]
        means = np.clip(noisy[: self.columns] / self.place / count, -1.0, 1.0)
        matrix = np.zeros((self.columns, self.columns))
        matrix[np.triu_indices(self.columns)] = noisy[self.columns :] / UNIT / count
        matrix = matrix + np.triu(matrix, 1).T - np.outer(means, means)
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.clip(values, 0.0, None)) @ vectors.T
        radii = np.array([radius for _, radius in ranges])
        return np.asarray(matrix * np.outer(radii, radii), dtype=np.float64)

    def sums(self, table: Floats, ranges: Sequence[tuple[float, float]]) -> NDArray[np.int64]:
        """The whole numbers that are released with noise."""
        places = np.column_stack([within(table[:, j], *ranges[j]) for j in range(self.columns)])
        rows, columns = np.triu_indices(self.columns)
        parts = [
            np.rint(places * self.place).astype(np.int64).sum(axis=0),
            np.array(
                [
                    np.rint(places[:, i] * places[:, j] * UNIT).astype(np.int64).sum()
                    for i, j in zip(rows, columns, strict=True)
                ]
            ),
        ]
        if self.relation == "add-remove":
            parts.insert(0, np.array([self.count * len(table)]))
        return np.concatenate(parts).astype(np.int64)

    def halfwidth(self, confidence: Number, records: int) -> float:
        """The error of an entry over the product of its radii, all entries jointly.

        For so many records, before the matrix is made positive semidefinite. Noise and the rounding of every
        record (up to half a step in every sum) are counted, clamping is not.
        """
        n, d = counted(records, "records"), self.columns
        numbers = d + d * (d + 1) // 2 + (self.relation == "add-remove")
        noise = int(self.noise.halfwidth(confidence, numbers))
        off = noise / self.count if self.relation == "add-remove" else 0.0
        if off >= n:
            return math.inf
        product = ((noise + n * HALF) / UNIT + off) / (n - off)
        mean = ((noise + n * HALF) / self.place + off) / (n - off)
        return (product + 2 * mean + mean**2) * (1 + 1e-12)

    def _read(self, value: Any) -> Floats:
        """The rows; one with a gap is left out, or has 0 there where the number of records is public."""
        complaint = f"This Covariance takes rows of {self.columns} numbers, without gaps."
        table = read_floats(value, complaint, dimensions=2)
        if table.size == 0:
            table = table.reshape(0, self.columns)
        if table.ndim != 2 or table.shape[1] != self.columns:
            raise InvalidInput(complaint)
        gaps = np.isnan(table)
        return table[~gaps.any(axis=1)] if self.relation == "add-remove" else np.where(gaps, 0.0, table)


def sensitivity(columns: int, relation: Relation, count: int, place: int) -> tuple[Fraction, Fraction]:
    """How far the sums move between neighbours: in L1, and in L2 squared."""
    pairs = columns * (columns - 1) // 2
    if relation == "add-remove":
        moves = [(1, count), (columns, place), (columns + pairs, UNIT)]
    else:
        moves = [(columns, 2 * place), (columns, UNIT), (pairs, 2 * UNIT)]
    return (
        Fraction(sum(times * move for times, move in moves)),
        Fraction(sum(times * move**2 for times, move in moves)),
    )


def _ranges(bounds: Sequence[tuple[Number, Number]], columns: int) -> tuple[tuple[float, float], ...]:
    complaint = f"bounds must list (low, high) for each of the {columns} columns."
    pairs = [items_of(pair, complaint) for pair in items_of(bounds, complaint)]
    if len(pairs) != columns or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput(complaint)
    return tuple(given_range(low, high) for low, high in pairs)
