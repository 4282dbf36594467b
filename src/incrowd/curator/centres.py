"""Where values lie: a centre and a spread, bought before values are summed around them.

Wide bounds would cost wide noise. In a ball (`Measure.ball`) a sum is noisy in proportion to what units
really weigh, as long as values are taken as deviations from a centre, in spreads. Neither has to be exact:
any choice gives an unbiased sum, and one that is off by a spread widens the noise of an average a little.

Theorem. All three draws are from one histogram of the values in which a unit weighs at most R in all (1 row,
times the distance), whatever it has:
1. the median among coarse cells, whose width grows with their distance from zero (or from the bound that is
   nearest to it), so that few cells reach over any range;
2. the median among finer cells in and beside the coarse one;
3. the distance from that centre within which SPREAD of the weight lies, among half doublings. Folding the
   histogram at the centre moves weights, and adds none.
Each is a draw of the exponential mechanism with the utility and the rate of `quantiles`; 2 and 3 choose their
cells by what was drawn before. So the whole is the composition of three bounded ranges, epsilon together.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.curator.quantiles import draw_cell
from incrowd.query import Centre, Measure

DRAWS = (Fraction(2, 5), Fraction(1, 10), Fraction(1, 2))
"""How the three draws share epsilon."""
SPREAD = Fraction(3, 4)
_PER_DOUBLING = 2
_FINER = 64
_HALF = Fraction(1, 2)
_NATS = 0.15
"""What a spread has to show for each half doubling that it is below the widest."""
Edges = NDArray[Any]
Floats = NDArray[np.float64]


def centre_of(edges: Edges, histogram: Measure, epsilon: Fraction, distance: int) -> Centre:
    """The centre and the spread of a column. `edges`: the exact weights below each cell and below the end."""
    reach = histogram.sensitivity_steps * distance
    total = int(edges[-1])

    def draw(edges: Edges, share: Fraction, place: int, nats: Floats | None = None) -> int:
        return draw_cell(edges, total * share, share, epsilon * DRAWS[place], reach, nats)

    coarse = _coarse(histogram)
    near = draw(edges[coarse], _HALF, 0)
    first, last = coarse[max(near - 1, 0)], coarse[min(near + 2, len(coarse) - 1)]
    fine = np.unique(np.linspace(first, last, _FINER + 1).astype(np.int64))
    cell = draw(edges[fine], _HALF, 1)
    middle = (fine[cell] + fine[cell + 1]) / 2
    radii = _radii(histogram.buckets)
    # A spread that is too small is worse than one that is too large: the count would drown in noise.
    handicaps: Floats = _NATS * np.arange(len(radii), dtype=np.float64)[::-1]
    within = draw(_folded(edges, middle, radii), SPREAD, 2, handicaps)
    width = (histogram.high - histogram.low) / histogram.buckets
    return Centre(float(histogram.low + width * middle), float(2 * width * radii[within]))


def _coarse(histogram: Measure) -> NDArray[np.int64]:
    """Where coarse cells begin, and the end of the last: by half doublings from zero."""
    cells = histogram.buckets
    width = (histogram.high - histogram.low) / cells
    zero = round(min(max(-histogram.low / width, 0.0), float(cells)))
    steps = 2.0 ** (np.arange(_PER_DOUBLING * (math.log2(cells) + 1)) / _PER_DOUBLING)
    away = np.concatenate(([0], np.unique(np.round(steps).astype(np.int64))))
    inside = np.concatenate((zero - away, zero + away, [0, cells]))
    return np.unique(inside[(inside >= 0) & (inside <= cells)])


def _radii(cells: int) -> Floats:
    """Half doublings, from half a cell to half of the cells; the last one takes all that is further away."""
    return 2.0 ** (np.arange(-2, 2 * math.ceil(math.log2(max(cells, 2))) - 1) / 2)


def _folded(edges: Edges, middle: float, radii: Floats) -> Edges:
    """The weight within each radius of the middle, from 0 up to all: edges of a histogram of distances."""
    last = len(edges) - 1
    low = np.clip(np.ceil(middle - radii - 0.5), 0, last).astype(np.int64)
    high = np.clip(np.floor(middle + radii + 0.5), 0, last).astype(np.int64)
    held = edges[high] - edges[low]
    held[-1] = edges[-1]
    return np.concatenate(([held[0] - held[0]], held))
