"""Choosing how much one unit may contribute, from a noisy census of what units weigh.

The census counts units by weight on powers of two. Each unit is in one cell, so Laplace noise of scale
1/epsilon on each cell suffices, and everything computed from the noisy cells is free. Far above what is
usual, cells have twice the noise, and the same epsilon buys the number of all units there as well: else the
noise of dozens of empty cells would be in every number of units beyond a cap.

Two caps. The generous one, G, lies a little above the highest cell that is believed (`evidence`), so that
few units weigh more: it defines the quantity that the answer states. The other, C <= G, bounds what is
released: noise grows with it. Where C < G, the groups' sums under C are scaled up by the ratio of two noisy
totals, under G and under C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.curator.evidence import FALLBACK, MOST_UNSURE, Top, tail_point, top_of
from incrowd.mechanisms import Laplace
from incrowd.query import Measure

UNEVEN = 0.25
"""How far the cut share of a group may differ from that of all, as heavy units are spread unevenly."""
RANK_BIAS = 0.01
"""How far cutting all rows of heavy units may move a quantile, as a share of the rows."""
MOST_SCALED = 3.0
"""Sums are never scaled back up by more than about this: beyond, the answer is mostly the assumption."""
_UNSEEN = 1.0
"""Times 1/epsilon of the census: so many units that it does not show are taken to lose the most."""
UNKNOWN_GROUPS = 32
LEAST_TOTAL = 0.1
Use = Literal["total", "rescaled", "sum", "rank", "joint"]
"""Sums over all rows or few groups; sums by group that are scaled back up; other sums; quantiles; balls."""
JOINT_BIAS = {1: 1.0, 2: 0.3}
"""How far shrinking heavy units may move an average: by this part of what is cut, in spreads. By norm: in L2,
where there are many groups, a unit is heavy rather by its many rows than by its extreme values."""
WIDE_BIAS = 8.0
"""So many times as far where no bounds of the values are known: then heavy units are those of large values,
and what they lose moves an average one way. Cutting must stay small beside the noise, for intervals do not
hold it."""
LIGHTEST = 0.25
"""By how much a ball's count may weigh more at most: below, its noise hardly matters any more."""
_KEPT_LIGHT = 0.98
"""The part of the weight under a cap that is still counted when the count weighs more."""
SPAN = 12
"""C is at most 2^12 times smaller than G."""
_WORTH_IT = 0.8
"""Scaling must lower the estimated squared error at least this far."""
_MIDDLE = 0.72
"""A unit of a cell weighs about this part of the cell's upper edge."""
_HEADROOM = ((40.0, 1.0), (12.0, 2**0.5), (-math.inf, 2.0))
"""By the nats of the top cell: how far G lies above its lower edge, in halves of the upper one.

The fewer units the top cell shows, the more can hide above it. Sums by group have no headroom: what hidden
units lose is divided among the groups, and the noise is not.
"""
CENSUS_ROW = 2.0**20
"""What one row weighs at most, in a census of totals that was bought beforehand."""
NEAR = {False: 3, True: 10}
"""The last near cell, in doublings above one row's weight: for sums, and for counts."""
_HIDES = 12.0
"""From so many nats on, units above the top cell may hide."""


@dataclass(frozen=True)
class Situation:
    """What a cap is chosen for.

    epsilon: of the census; epsilon_sums, epsilon_totals: of what is released under the caps. groups: how many
    there are, None if not known. row: the most that one row weighs. counts: rows or groups are counted, each
    of which weighs 1. paired: the weight is a number of groups. norm: of the bound on a unit's groups.
    generous: the most that G may be, where the owner's file states it. far: the first cell of the census with
    twice the noise; None if all have the same. wide: nobody declared bounds of the values of a ball.
    """

    use: Use
    epsilon: float
    epsilon_sums: float
    epsilon_totals: float = 0.0
    groups: int | None = 1
    row: float = 1.0
    counts: bool = True
    paired: bool = False
    norm: int = 1
    distance: int = 1
    generous: float | None = None
    far: int | None = None
    wide: bool = False

    @property
    def rate(self) -> float:
        """One over the scale of the noise of the census."""
        return self.epsilon / self.distance

    @property
    def joint_bias(self) -> float:
        """How far shrinking moves an average: by this part of what is cut, in spreads."""
        return JOINT_BIAS[self.norm] * (WIDE_BIAS if self.wide else 1.0)

    def rates(self, cells: int) -> NDArray[np.float64]:
        """The same, cell by cell."""
        far = cells if self.far is None else self.far
        return np.where(np.arange(cells) < far, self.rate, self.rate / 2)

    def top_of(self, cells: NDArray[np.int64]) -> Top:
        """The highest cell of a census that is believed."""
        return top_of(cells, self.rates(len(cells)), math.ceil(math.log2(self.row)), self.counts)


@dataclass(frozen=True)
class Caps:
    """The chosen caps, in weights of the census; whole where rows or groups are counted.

    cap: C. generous: G. cut_squares: an estimate of the sum, over units, of the squares of what C cuts off
    their weight under G.
    """

    cap: float
    generous: float
    cut_squares: float = 0.0


def noisy_census(
    counts: NDArray[np.int64], epsilon: Fraction, distance: int, far: int | None = None
) -> tuple[NDArray[np.int64], int | None]:
    """Units per cell, with noise, and the noisy number of units in the cells from `far` on, if that is given.

    Cell 0 is weights up to 1, cell j up to 2^j. `counts` are the units that weigh more than 0, 1, 2, 4, ...

    Theorem. The release is epsilon-DP. With d the distance, near cells have Laplace noise of scale d/epsilon,
    far cells and their total of scale 2 d/epsilon. Adding or removing a unit moves one near cell by 1, or one
    far cell and the total by 1 each: in both cases the loss is at most epsilon/d. Replacing a unit is
    removing one and adding another, and d is 2.
    """
    cells = counts - np.append(counts[1:], 0)
    if far is None:
        return Laplace(epsilon, sensitivity=distance).release(cells), None
    near = Laplace(epsilon, sensitivity=distance).release(cells[:far])
    wide = Laplace(epsilon, sensitivity=2 * distance).release(np.append(cells[far:], cells[far:].sum()))
    return np.concatenate((near, wide[:-1])), int(wide[-1])


def first_far(row: float, counts: bool) -> int:
    """The first far cell, where one row weighs at most `row`."""
    return math.ceil(math.log2(row)) + NEAR[counts] + 1


def choose(cells: NDArray[np.int64], situation: Situation) -> Caps:
    """The caps of a noisy census."""
    top = situation.top_of(cells)
    held = np.where(np.arange(len(cells)) <= top.cell, np.maximum(cells, 0), 0).astype(np.float64)
    if situation.generous is None:
        generous = _generous(cells, top, situation)
    else:
        generous = _generous_enough(held, top, situation)
    edges = 2.0 ** np.arange(len(cells))
    weights = np.minimum(_MIDDLE * edges, generous)
    cap = generous if situation.use == "total" else _best_cap(held, weights, generous, top.cell, situation)
    if cap == generous:
        return Caps(cap, generous)
    lost = np.maximum(weights - cap, 0.0)
    return Caps(cap, generous, _cut_squares(lost, generous - cap, held, situation))


def lighter(cells: NDArray[np.int64], cap: float, situation: Situation) -> float:
    """By how much a ball's count may weigh more than in its census, as a factor of 1 or less for its scale.

    Where units weigh far less than the cap, their counts can weigh more without being cut, and need less
    noise. It goes by halves, as long as little weight is cut that the cap would have kept: what is cut twice
    would have needed no such cap.
    """
    top = situation.top_of(cells)
    held = np.where(np.arange(len(cells)) <= top.cell, np.maximum(cells, 0), 0).astype(np.float64)
    if not held.any():
        return 1.0
    weights = _MIDDLE * 2.0 ** np.arange(len(cells))
    least = _KEPT_LIGHT * float(held @ np.minimum(weights, cap))
    factor = 1.0
    while factor > LIGHTEST and held @ np.minimum(weights, cap * factor / 2) >= least:
        factor /= 2
    return factor


def total_cap(measure: Measure, epsilon: float, distance: int) -> float:
    """The cap of a sum over all rows, from the census that was bought about its units."""
    census = measure.census
    assert census is not None
    counts = measure.weighing == "rows" or measure.value is None
    situation = Situation(
        "total",
        census.epsilon,
        epsilon,
        row=1.0 if counts else CENSUS_ROW,
        counts=counts,
        distance=distance,
        generous=census.cap / census.up_to,
    )
    return choose(np.array(census.units), situation).generous * census.up_to


def most_beyond(
    cells: NDArray[np.int64],
    cap: float,
    situation: Situation,
    confidence: float,
    far_units: int | None = None,
) -> int:
    """How many units weigh more than a cap at most, at a confidence.

    It is the noisy number of units in the cells that reach above the cap, plus what their noise may hide. Far
    cells count by their noisy total `far_units`, less those that do not reach above the cap, unless fewer
    cells do.
    """
    # The last cell has no upper edge: what is in it may weigh more than any cap.
    first = int(np.append(2.0 ** np.arange(len(cells) - 1) > cap, True).argmax())
    far, rate = situation.far, situation.rate
    if far is None or far_units is None:
        units, hidden = cells[first:].sum(), tail_point(len(cells) - first, confidence) / rate
    elif first <= far:
        units = cells[first:far].sum() + far_units
        hidden = tail_point(far - first, confidence, wide=True) / rate
    elif first - far + 1 < len(cells) - first:
        units = far_units - cells[far:first].sum()
        hidden = 2 * tail_point(first - far + 1, confidence) / rate
    else:
        units, hidden = cells[first:].sum(), 2 * tail_point(len(cells) - first, confidence) / rate
    return max(0, math.floor(float(units) + hidden))


def _generous(cells: NDArray[np.int64], top: Top, situation: Situation) -> float:
    """G: a little above the top cell, the more the fewer units that cell shows."""
    if not top.held:
        return situation.row * 2.0 ** FALLBACK[situation.counts]
    shown = float(cells[top.cell] * situation.rates(len(cells))[top.cell])
    divided = situation.groups != 1 and situation.use in ("total", "rescaled")
    headroom = 1.0 if divided else next(headroom for least, headroom in _HEADROOM if shown > least)
    generous = 2.0**top.cell * headroom
    if situation.counts:
        generous = float(math.floor(generous))
    return generous if top.sure else min(generous, situation.row * 2.0 ** MOST_UNSURE[situation.counts])


def _generous_enough(held: NDArray[np.float64], top: Top, situation: Situation) -> float:
    """G from a census that was bought before: the least edge that at most about 1/epsilon units exceed.

    Such a census shows more than the noise of a question lets one see. Above a top cell that is full, as many
    units as it takes to be seen may hide: there G keeps its headroom.
    """
    assert situation.generous is not None
    if not held.any():
        return situation.generous
    few = situation.distance / situation.epsilon_sums
    heavier = held.sum() - np.cumsum(held)
    cell = int(np.flatnonzero(heavier <= few)[0])
    full = cell == top.cell and held[cell] * situation.rate > _HIDES
    return situation.generous if full else min(situation.generous, 2.0**cell)


def _best_cap(
    held: NDArray[np.float64],
    weights: NDArray[np.float64],
    generous: float,
    top: int,
    situation: Situation,
) -> float:
    """C: the cap, from G down by halves of a doubling, with the least estimated error of one group.

    With W the weight of all units under G, K what C keeps of it, and g groups:
    - a rescaled sum: noise C/epsilon times W/K; what heavy units lose differs from group to group, by chance
      (the squares of the cuts) and systematically (UNEVEN); the totals are noisy too;
    - a plain sum: noise C/epsilon, bias (W - K)/g;
    - a quantile: noise C/epsilon over K/g rows; reweighing rows moves it little;
    - a ball, in spreads: noise C/epsilon over K/g rows; what is cut moves it.
    """
    total = float(held @ weights)
    # Where units are counted once per group, some unit being in 2^j groups shows that there are as many.
    most_seen = 2 ** (top - 1) if situation.paired and top else 0
    groups = situation.groups or max(UNKNOWN_GROUPS, most_seen)
    best, least = generous, _error(generous, generous, held, weights, groups, situation)
    for halves in range(1, 2 * SPAN + 1):
        cap = generous * 2.0 ** (-halves / 2)
        if situation.counts:
            if cap < 1:
                break
            cap = float(math.ceil(cap))
        error = _error(cap, generous, held, weights, groups, situation)
        if total and error < least * (_WORTH_IT if best == generous else 1.0):
            best, least = cap, error
    return best


def _error(
    cap: float,
    generous: float,
    held: NDArray[np.float64],
    weights: NDArray[np.float64],
    groups: int,
    situation: Situation,
) -> float:
    """The estimated mean squared error of one group's number under a cap."""
    # In L2 a unit in m > C groups keeps sqrt(C m) of them, and the noise grows with sqrt(C) only.
    flat = situation.norm == 1 or situation.use == "joint"
    shrunk = np.minimum(weights, cap if flat else np.sqrt(cap * weights))
    total, kept = float(held @ weights), float(held @ shrunk)
    noise = math.sqrt(2) * situation.distance * (cap if flat else math.sqrt(cap)) / situation.epsilon_sums
    if cap == generous and situation.use not in ("rank", "joint"):
        return noise**2
    if not kept:
        return math.inf
    cut = total - kept
    if situation.use == "rank":
        return (noise * groups / kept) ** 2 + (RANK_BIAS * cut / total) ** 2
    if situation.use == "joint":
        return (noise * groups / kept) ** 2 + (situation.joint_bias * cut / kept) ** 2
    if situation.use == "sum":
        return noise**2 + (cut / groups) ** 2
    scale = total / kept
    if scale > MOST_SCALED:
        return math.inf
    squares = _cut_squares(weights - shrunk, generous - cap, held, situation)
    totals = _totals_variance(cap, generous, scale, situation)
    return (noise * scale) ** 2 + squares / groups + (UNEVEN * cut / groups) ** 2 + totals / groups**2


def _cut_squares(
    lost: NDArray[np.float64], most: float, held: NDArray[np.float64], situation: Situation
) -> float:
    """The sum over units of the squares of what C cuts off: those that the census shows, and some unseen.

    lost: what a unit of each cell loses. most: what one unit loses at most.
    """
    unseen = _UNSEEN * situation.distance / situation.epsilon
    return float(held @ lost**2) + unseen * most**2


def _totals_variance(cap: float, generous: float, scale: float, situation: Situation) -> float:
    """The variance of what the noise of the two totals adds to the scaled total."""
    small, large = totals_shares(cap, generous)
    epsilon = situation.epsilon_totals / situation.distance
    return 2 * (generous / (large * epsilon)) ** 2 + 2 * (scale * cap / (small * epsilon)) ** 2


def totals_shares(cap: float, generous: float) -> tuple[float, float]:
    """How the epsilon of the two totals is shared, under C and under G: as their variances ask for.

    Neither gets less than LEAST_TOTAL of it, so that its noise can be drawn whatever the caps are.

    >>> totals_shares(1.0, 8.0)
    (0.2, 0.8)
    """
    share = max(LEAST_TOTAL, 1 / (1 + (generous / cap) ** (2 / 3)))
    return share, 1 - share
