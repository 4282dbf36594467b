"""Choosing how much one unit may contribute, from a noisy census of what units weigh.

The census counts units by weight on powers of two. Each unit is in one cell, so Laplace noise of scale 1/epsilon on each cell
suffices, and everything computed from the noisy cells is free. The cap minimises the estimated error of one group: noise, which
grows with the cap, and what is cut off heavy units, which shrinks with it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.mechanisms import Laplace

KEPT_BIAS = 0.25
"""The part of the cut that remains as error after rescaling, as far as groups differ in their heavy units."""
UNKNOWN_GROUPS = 32
SPAN = 5
"""A generous cap is at most 2^5 times the cap it helps to undo."""


def noisy_census(counts: NDArray[np.int64], epsilon: Fraction, distance: int) -> NDArray[np.int64]:
    """Units per cell, with noise: cell 0 is weights up to 1, cell j up to 2^j; `counts` are units above 0, 1, 2, 4, ..."""
    cells = counts - np.append(counts[1:], 0)
    released: NDArray[np.int64] = Laplace(epsilon, sensitivity=distance).release(cells)
    return released


def choose(
    cells: NDArray[np.int64],
    epsilon_census: float,
    epsilon_sum: float,
    groups: int | None,
    distance: int,
    rescaled: bool,
) -> tuple[int, int]:
    """The cell of the cap and that of the generous cap: caps are 2^cell weights."""
    spread = groups or UNKNOWN_GROUPS
    # A cell that noise alone may explain holds nobody; one unit of weight 2^40 would drown everything.
    floor = distance * math.log(len(cells) / 0.05) / epsilon_census
    held = np.where(cells > floor, cells, 0).astype(float)
    if not held.any():
        return 0, SPAN
    top = int(np.flatnonzero(held)[-1])
    middle = 0.75 * 2.0 ** np.arange(len(cells))
    bias_left = KEPT_BIAS if rescaled else 1.0
    errors = []
    for cell in range(top + 1):
        cap = 2.0**cell
        cut = float((held * np.maximum(middle - cap, 0.0)).sum()) / spread
        noise = math.sqrt(2) * distance * cap / epsilon_sum
        errors.append(noise**2 + (bias_left * cut) ** 2)
    best = int(np.argmin(errors))
    return best, min(max(top, best), best + SPAN)
