"""Histograms: counts of disjoint cells, at the price of one count.

Theorem. When every unit is in at most one cell, adding or removing a unit changes one cell by 1. So the whole
vector has sensitivity 1, in L1 and in L2, however many cells it has. Replacing a unit takes 1 from a cell and
adds 1 to another: 2 in L1, sqrt(2) in L2. So Laplace noise of scale 1 / epsilon in every cell
(2 / epsilon for replacement) gives epsilon-differential privacy for all cells together
(parallel composition; McSherry 2009).

Conditions: cells are disjoint and fixed without looking at the data. Every cell is released, empty ones too.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.gaussian import Gaussian
from incrowd.mechanisms.additive.grid import INTEGERS
from incrowd.mechanisms.additive.laplace import Laplace
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import one_calibration
from incrowd.mechanisms.records import listed, read_floats
from incrowd.mechanisms.sensitivity import Relation, contingency
from incrowd.mechanisms.spelling import identity
from incrowd.noise import Source
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Mechanism):
    """Releases the counts of disjoint cells with Laplace (epsilon or scale) or Gaussian (delta or rho) noise.

    What it gains: 1,000 cells released one by one, as 1,000 separate counts, would share the budget, each
    with epsilon / 1000. Known to be disjoint, each has all of it: a thousand times less noise.

    >>> together = Histogram(epsilon=1.0)
    >>> one_by_one = Laplace(epsilon=1.0 / 1000)
    >>> together.halfwidth(0.95), one_by_one.halfwidth(0.95)
    (3, 2996)
    >>> from incrowd.noise import SeededSource
    >>> colours = ["red", "blue", "red", "red"]
    >>> together.release(colours, categories=["red", "green", "blue"], source=SeededSource(4)).shape
    (3,)
    """

    epsilon: Number | None = None
    delta: Number | None = None
    _: KW_ONLY
    rho: Number | None = None
    scale: Number | None = None
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        ways = (("epsilon",), ("epsilon", "delta"), ("rho",), ("scale",))
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "scale": self.scale}
        one_calibration("Histogram", ways, amounts)
        _ = self.noise

    @cached_property
    def noise(self) -> Laplace | Gaussian:
        """The noise on every cell."""
        reach = contingency(1, self.relation)
        if self.delta is None and self.rho is None:
            return Laplace(self.epsilon, scale=self.scale, sensitivity=int(reach.l1))
        return Gaussian(self.epsilon, self.delta, rho=self.rho, sensitivity=reach.l2, grid=INTEGERS)

    @property
    def sensitivity(self) -> Number:
        """The sensitivity of the whole histogram in the norm that the noise needs."""
        return self.noise.sensitivity

    @property
    def noise_scale(self) -> float:
        """The scale of the noise in every cell."""
        return self.noise.noise_scale

    @property
    def privacy(self) -> Guarantee:
        """What the release of all cells together guarantees."""
        return self.noise.privacy

    def release(
        self,
        value: Any,
        source: Source | None = None,
        *,
        categories: Any = None,
        edges: Any = None,
    ) -> Any:
        """Noisy counts of every cell, as integers.

        `value` holds the counts themselves; or one value per unit, with the `categories` to count (others
        are in no cell) or the `edges` of half-open cells [a, b), the last one closed (values outside are in
        no cell).
        """
        if categories is not None and edges is not None:
            raise InvalidInput("A histogram is given categories or edges, not both.")
        counts = value
        if categories is not None:
            counts = count_categories(value, categories)
        elif edges is not None:
            counts = count_between(value, edges)
        return self.noise.release(counts, source)

    def halfwidth(self, confidence: Number, count: int = 1) -> int:
        """The error of one cell with this confidence (or of `count` cells jointly)."""
        return int(self.noise.halfwidth(confidence, count))

    def pmf(self, outcome: Any, value: Any = 0) -> Any:
        """The probability that one cell is released as `outcome` when its count is `value`."""
        return self.noise.pmf(outcome, value)


def count_categories(values: Any, categories: Any) -> NDArray[np.int64]:
    """How many of the values equal each category, in the order of the categories.

    Equality is that of `mechanisms.spelling`: comparing a Decimal with a NumPy integer raises, and so one
    record could tell by an error that it is there.
    """
    complaint = "categories must be a list of distinct texts or numbers."
    names = [identity(category) for category in listed(categories, complaint)]
    if None in names:
        raise InvalidInput(complaint)
    cells = {name: place for place, name in enumerate(names)}
    if not cells or len(cells) != len(names):
        raise InvalidInput("categories must be a list of at least one category, each named once.")
    counts = np.zeros(len(names), dtype=np.int64)
    for value in listed(values, "A histogram with categories takes a list of values, one per unit."):
        name = identity(value)
        if name in cells:
            counts[cells[name]] += 1
    return counts


def count_between(values: Any, edges: Any) -> NDArray[np.int64]:
    """How many of the values lie in each cell [a, b) between the edges, the last cell closed."""
    complaint = "A histogram with edges takes numbers, in the edges and in the values."
    try:
        bounds = np.asarray(edges, dtype=np.float64)
    except Exception:
        raise InvalidInput(complaint) from None
    numbers = read_floats(values.ravel() if isinstance(values, np.ndarray) else values, complaint)
    if bounds.ndim != 1 or bounds.size < 2 or np.isnan(bounds).any() or not (np.diff(bounds) > 0).all():
        raise InvalidInput("edges must be a list of at least two numbers, each larger than the one before.")
    place = np.searchsorted(bounds, numbers, side="right") - 1
    place[numbers == bounds[-1]] = bounds.size - 2
    inside = (numbers >= bounds[0]) & (numbers <= bounds[-1])  # false for NaN: in no cell
    return np.asarray(np.bincount(place[inside], minlength=bounds.size - 1), dtype=np.int64)
