"""Choosing how much one unit may contribute, from a noisy census of what units weigh.

The census counts units by weight on powers of two. Each unit is in one cell, so Laplace noise of scale
1/epsilon on each cell suffices, and everything computed from the noisy cells is free. The cap minimises the
estimated error of one group: noise, which grows with the cap, and what is cut off heavy units, which
shrinks with it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.mechanisms import Laplace

KEPT_BIAS = 0.1
"""The share of the cut that remains as error after rescaling, because heavy units are spread differently."""
RATIO_BIAS = 0.02
"""How far cutting all rows of heavy units may move an average, as a share of the span of its values."""
MOST_SCALED = 3.0
"""Sums are never scaled back up by more than about this: beyond, the answer is mostly the assumption."""
BY_NOISE_ALONE = 0.05
"""The chance that some empty cell of a census is taken for a held one."""
GAP = 3
"""Cells more than GAP above the rest are dropped: one false cell at 2^40 would dominate the estimate."""
UNKNOWN_GROUPS = 32
Use = Literal["sum", "rescaled", "ratio"]
SPAN = 5
"""A generous cap is at most 2^5 times the cap it helps to undo."""


def noisy_census(counts: NDArray[np.int64], epsilon: Fraction, distance: int) -> NDArray[np.int64]:
    """Units per cell, with noise: cell 0 is weights up to 1, cell j up to 2^j.

    `counts` are the units that weigh more than 0, 1, 2, 4, ...
    """
    cells = counts - np.append(counts[1:], 0)
    released: NDArray[np.int64] = Laplace(epsilon, sensitivity=distance).release(cells)
    return released


def _held(cells: NDArray[np.int64], floor: float) -> NDArray[np.float64]:
    """The cells above `floor`, up to the first gap wider than GAP; 0 elsewhere."""
    held = np.where(cells > floor, cells, 0).astype(np.float64)
    places = np.flatnonzero(held)
    gaps = np.flatnonzero(np.diff(places) > GAP + 1)
    if len(gaps):
        held[places[gaps[0]] + 1 :] = 0
    return held


def choose(
    cells: NDArray[np.int64],
    epsilon_census: float,
    epsilon_sum: float,
    groups: int | None,
    distance: int,
    use: Use,
    paired: bool = False,
    norm: int = 1,
) -> tuple[int, int]:
    """The cell of the cap and that of the generous cap: caps are 2^cell weights.

    The error of one group, with W the weight of all units, K what is kept of it under cap C, and g groups:
    - a plain sum: noise sqrt(2) C / epsilon, bias (W - K) / g;
    - a rescaled sum: noise times W / K, a tenth of the bias;
    - a ratio (an average, a quantile): noise sqrt(2) C / epsilon over K / g rows; reweighing rows moves it
      little.
    """
    held = _held(cells, distance * math.log(len(cells) / BY_NOISE_ALONE) / epsilon_census)
    if not held.any():
        return 0, SPAN
    top = int(np.flatnonzero(held)[-1])
    middle = 0.75 * 2.0 ** np.arange(len(cells))
    # Where units are counted once per group, some unit being in 2^j groups shows that there are as many.
    spread = groups or max(UNKNOWN_GROUPS, 2 ** (top - 1) if paired and top else 0)
    weight = float((held * middle).sum())
    errors = []
    for cell in range(top + 1):
        cap = 2.0**cell
        # In L2 a unit in m > C groups keeps sqrt(C m) of them, and the noise grows with sqrt(C) only.
        shrunk = np.minimum(middle, cap if norm == 1 else np.sqrt(cap * middle))
        kept = float((held * shrunk).sum())
        noise = math.sqrt(2) * distance * (cap if norm == 1 else math.sqrt(cap)) / epsilon_sum
        cut = (weight - kept) / spread
        if use == "ratio":
            noise, bias = noise * spread / kept, RATIO_BIAS * (1 - kept / weight)
        elif use == "rescaled":
            noise, bias = noise * weight / kept, KEPT_BIAS * cut
            if weight > MOST_SCALED * kept:
                noise = math.inf
        else:
            bias = cut
        errors.append(noise**2 + bias**2)
    best = int(np.argmin(errors))
    return best, min(max(top, best), best + SPAN)
