"""Where values lie: a centre and a spread, bought before values are summed around them.

Wide bounds would cost wide noise. In a ball (`Measure.ball`) a sum is noisy in proportion to what units
really weigh, as long as values are taken as deviations from a centre, in spreads. Neither has to be exact:
any choice gives an unbiased sum, and one that is off by a spread widens the noise of an average a little.

Theorem. All three draws are from one histogram of the values in which a unit weighs at most R in all (1 row,
times the distance), whatever it has:
1. the median among coarse cells, whose width grows with their distance from zero (or from the bound that is
   nearest to it), so that few cells reach over any range. Cells far from zero need more evidence: a centre
   that is false by a factor widens noise by that factor, and one at zero costs no more than no centre;
2. the median among finer cells in and beside the coarse one;
3. the radius r around that centre, half of the second cell's width or more, for which the sum of weight *
   max(0, 1 - distance / r) is SPREAD of the weight. Rows in the second cell have a part of their weight only,
   as they say nothing of how far others are: a column that is mostly zero has the spread of the rest.
Each is a draw of the exponential mechanism with the utility and the rate of `quantiles`. 2 and 3 choose their
cells by what was drawn before. In 3 the edges are that sum g(r), which
grows with r: adding weight w moves each edge by between 0 and w, as it does the edges of a histogram, and the
argument of `quantiles` asks for no more. Edges are whole numbers: radii are whole numbers of half cells that
all divide one number, by which weights are multiplied. Making the rows of a drawn cell lighter makes the unit
lighter too. So the whole is the composition of three bounded
ranges, epsilon together. How wide cells are is in none of this: where they are of different widths
(`graded_cells`), edges lie at whole numbers of the narrowest, and radii are whole numbers of its halves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.curator.quantiles import draw_cell
from incrowd.query import Centre, Measure
from incrowd.query.graded_cells import edges_of

DRAWS = (Fraction(2, 5), Fraction(1, 10), Fraction(1, 2))
"""How the three draws share epsilon."""
SPREAD = Fraction(1, 2)
PER_RADIUS = 1.5
"""The spread, in radii that are drawn: about 2.2 standard deviations of a normal distribution."""
_HEAVIER = 32
"""How many times as much as a row in the centre's cell other rows weigh in the draw of a spread."""
_PER_DOUBLING = 2
_FINER = 64
_HALF = Fraction(1, 2)
_FAR = 0.5
"""The nats that a coarse cell has to show for each half doubling that it lies away from zero."""
_NARROW = 0.05
"""The nats that a radius has to show for each half doubling below the widest."""
Edges = NDArray[Any]
Floats = NDArray[np.float64]


def centre_of(edges: Edges, histogram: Measure, epsilon: Fraction, distance: int) -> Centre:
    """The centre and the spread of a column. `edges`: the exact weights below each cell and below the end."""
    reach = histogram.sensitivity_steps * distance
    total, places = int(edges[-1]), _places(histogram)

    def draw(edges: Edges, share: Fraction, place: int, nats: Floats | None = None) -> int:
        return draw_cell(edges, total * share, share, epsilon * DRAWS[place], reach, nats)

    coarse, zero = _coarse(histogram), int(np.searchsorted(places, _zero(histogram)))
    away = np.abs(np.arange(len(coarse) - 1) + 0.5 - np.searchsorted(coarse, zero)) - 0.5
    near = draw(edges[coarse], _HALF, 0, _FAR * away)
    first, last = coarse[max(near - 1, 0)], coarse[min(near + 2, len(coarse) - 1)]
    fine = np.unique(np.linspace(first, last, _FINER + 1).astype(np.int64))
    cell = draw(edges[fine], _HALF, 1)
    weighed = _lightened(edges, int(fine[cell]), int(fine[cell + 1]))
    left, right = (int(places[edge]) for edge in fine[cell : cell + 2])
    radii = [radius for radius in _radii(int(places[-1])) if radius >= right - left]
    times = math.lcm(*radii)
    within, target = _within(weighed, places, left + right, radii, times), int(weighed[-1]) * times * SPREAD
    # A spread that is too narrow is worse than one that is too wide: the count would drown in noise.
    nats: Floats = _NARROW * np.arange(len(radii), dtype=np.float64)[::-1]
    drawn = draw_cell(within, target, SPREAD, epsilon * DRAWS[2], reach * _HEAVIER * times, nats)
    half_cell = (histogram.high - histogram.low) / int(places[-1]) / 2
    middle = float(histogram.low + half_cell * (left + right))
    return Centre(middle, PER_RADIUS * half_cell * radii[drawn])


def _lightened(edges: Edges, left: int, right: int) -> Edges:
    """The edges of a histogram in which all rows but those between two edges weigh _HEAVIER times as much."""
    inside = np.clip(edges.astype(object), edges[left], edges[right]) - edges[left]
    return np.asarray(_HEAVIER * edges.astype(object) - (_HEAVIER - 1) * inside)


def _places(histogram: Measure) -> NDArray[np.int64]:
    """Where cells begin, and the end of the last: in widths of the narrowest, from the first."""
    if histogram.bands:
        return np.fromiter(edges_of(histogram.bands), dtype=np.int64)
    return np.arange(histogram.buckets + 1)


def _zero(histogram: Measure) -> int:
    """The place that is nearest to zero."""
    last = int(_places(histogram)[-1])
    width = (histogram.high - histogram.low) / last
    return round(min(max(-histogram.low / width, 0.0), float(last)))


def _coarse(histogram: Measure) -> NDArray[np.int64]:
    """Which cells coarse cells begin with, and the end of the last: by half doublings from zero."""
    places, zero = _places(histogram), _zero(histogram)
    last = int(places[-1])
    steps = 2.0 ** (np.arange(_PER_DOUBLING * (math.log2(last) + 1)) / _PER_DOUBLING)
    away = np.concatenate(([0], np.unique(np.round(steps).astype(np.int64))))
    inside = np.concatenate((zero - away, zero + away, [0, last]))
    return np.unique(np.searchsorted(places, inside[(inside >= 0) & (inside <= last)]))


def _radii(cells: int) -> list[int]:
    """In half cells: 1, 2, 3, 4, 6, 8, 12, ... up to twice the range, so that any spread is within one.

    >>> _radii(2)
    [1, 2, 3, 4, 6, 8]
    """
    doublings = [2**k for k in range(math.ceil(math.log2(max(cells, 1))) + 3)]
    return sorted([*doublings, *(3 * size // 2 for size in doublings[1:-1])])


def _within(edges: Edges, starts: NDArray[np.int64], twice: int, radii: Sequence[int], times: int) -> Edges:
    """0, then for each radius r, `times` the sum of weight * max(0, 1 - distance / r), in half cells.

    starts: where cells begin. twice: the middle, in half cells; the values of a cell are taken to lie in its
    own middle.
    """
    places = starts[:-1] + starts[1:]
    weights = np.diff(edges).astype(object)
    moments = np.concatenate(([0], np.cumsum(weights * places)))
    sums = [0]
    for radius in radii:
        low, middle, high = np.searchsorted(places, [twice - radius, twice, twice + radius])
        left, right = edges[middle] - edges[low], edges[high] - edges[middle]
        far = (twice * int(left) - (moments[middle] - moments[low])) + (
            moments[high] - moments[middle] - twice * int(right)
        )
        sums.append((radius * (int(left) + int(right)) - far) * (times // radius))
    return np.array(sums, dtype=object)
