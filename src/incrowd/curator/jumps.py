"""How far a scaled sum may be off: noise, and heavy units that fall into its group by chance.

A sum under a small cap C that is scaled up lacks what C cut from the heavy units of its group, and has more
than its part of what was cut elsewhere. Let a group hold each unit with chance p, let no unit lose more than
J, and let Q be the sum of the squares of what all units lose. Then what the group lost, less its mean, has
the variance p Q, and by Bennett's inequality (1962) no heavier tail than J (N - r), where N is a Poisson
number of mean r = p Q / J^2: as if every heavy unit lost J. The error is taken to have that law, plus Laplace
noise. Where r is small most groups lose nothing, and a few lose far more than a deviation: neither a
normal law nor a deviation says how far those are off.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MANY = 30.0
"""From so many heavy units in a group on, what they lose is taken as one more part of the noise."""
FAR_CHANCE = 1e-6
FAR_WIDTHS = 5.0
"""With a chance of no more than FAR_CHANCE an error exceeds so many half-widths of 95%."""
_BISECTIONS = 45


def reach(scales: Floats, rates: Floats, jump: float, confidence: float) -> Floats:
    """The half-widths at a confidence of L + J (N - r), for Laplace noise L and Poisson numbers N.

    scales: of L. rates: r. Widened where the far tail is heavier than FAR_WIDTHS allow.

    >>> reach(np.array([1.0]), np.array([0.0]), 8.0, 0.95).round(6).tolist() == [round(math.log(20), 6)]
    True
    """
    # Beyond MANY the rest of the variance, 2 scale^2 for Laplace noise, is added to the noise's.
    more = np.maximum(rates - MANY, 0.0)
    scales = np.maximum(np.hypot(scales, np.sqrt(more / 2) * jump), 1e-300)
    rates = np.minimum(rates, MANY)
    number = np.arange(math.ceil(MANY + 12 * math.sqrt(MANY)))
    factorials = np.cumsum(np.log(np.maximum(number, 1)))
    logs = number * np.log(np.maximum(rates, 1e-300))[:, None] - rates[:, None] - factorials
    chances, middles = np.exp(logs), jump * (number - rates[:, None])
    near = _quantile(1 - confidence, scales, chances, middles)
    far = _quantile(FAR_CHANCE, scales, chances, middles)
    widths: Floats = np.maximum(near, far * math.log1p(-confidence) / (FAR_WIDTHS * math.log(0.05)))
    return widths


def _quantile(chance: float, scales: Floats, chances: Floats, middles: Floats) -> Floats:
    """The least h such that |L + m| > h has at most this chance."""
    low = np.zeros_like(scales)
    high = np.where(chances > 1e-18, np.abs(middles), 0.0).max(axis=1) - math.log(chance) * scales
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        outside = (chances * _outside(middle[:, None], scales[:, None], middles)).sum(axis=1) > chance
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    quantile: Floats = high
    return quantile


def _outside(half: Floats, scale: Floats, middle: Floats) -> Floats:
    """P(|L + m| > h) for Laplace noise L."""
    away = np.abs(middle)
    rest = np.exp(-(away + half) / scale) / 2
    inside = np.exp(-np.abs(half - away) / scale) / 2
    return np.asarray(np.where(away <= half, inside + rest, 1 - inside + rest))
