"""Numbers that are shown because they are large: their intervals, and how often a number is shown.

Where a noisy count y = n + X decides that its group is shown (y >= T), small groups that are shown had large
noise, and an interval y - h .. y + h would miss every one of them. The lower end takes the selection into
account: it is the least n that a test of level (1 - c) / 2 does not reject, given that the group is shown,

    P(X >= y - n) / P(X >= T - n) >= (1 - c) / 2.

The ratio grows with n. So for every n, the interval of a group that is shown holds n with probability c at
least: it misses n from above with at most (1 - c) / 2 by construction, and from below no more often than
without selection, which only takes small y away. For large n nothing changes; just above T an interval may
reach down to nearly nothing, as Laplace noise has no memory: there, being shown is all that is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_HALVINGS = 60


@dataclass(frozen=True)
class Selected:
    """Noise ("laplace" or "gaussian", at most `bound`), and the least noisy number that is shown."""

    kind: str
    scale: float
    least: float
    bound: float = math.inf

    def log_tail(self, at: Floats) -> Floats:
        """log P(X >= t), but for a constant; -inf beyond the bound."""
        if self.kind == "gaussian":
            from scipy.special import log_ndtr

            tails: Floats = log_ndtr(-at / self.scale)
            return tails
        cut = math.exp(-self.bound / self.scale)
        far = np.minimum(np.abs(at), self.bound) / self.scale
        with np.errstate(divide="ignore"):
            above = np.log(np.maximum(np.exp(-far) - cut, 0.0) / 2)
            return np.where(at >= 0, above, np.log(1 - cut - np.exp(-far) / 2 + cut / 2))

    def chance(self, size: float) -> float:
        """The probability that a group of this size is shown."""
        whole = self.log_tail(np.array([-1e9 * self.scale if self.bound == math.inf else -self.bound]))
        return float(np.exp(self.log_tail(np.array([self.least - size])) - whole)[0])

    def size_for(self, chance: float) -> float:
        """The least size that is shown with this probability."""
        low, high = 0.0, self.least + 60 * self.scale
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.chance(middle) >= chance else (middle, high)
        return high


def lowest(values: Floats, selected: Selected, confidence: float) -> Floats:
    """The lower ends of the intervals of numbers that are shown."""
    level = math.log((1 - confidence) / 2)
    # Noise within its bound makes sizes below y - bound impossible.
    low, high = np.maximum(values - selected.bound, 0.0), values.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above, shown = (selected.log_tail(end - middle) for end in (values, selected.least))
        rejected = (above == -math.inf) | (above < level + shown)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return low
