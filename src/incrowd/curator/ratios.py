"""The interval of a ratio of two noisy sums, by inverting a test.

Let S and N be sums with independent noise, released as s and n. A ratio m = S/N is in the interval at
confidence c if s - m n is no larger than the noise of s - m n is with probability c. For the true ratio,
s - m n is nothing but noise, so it is accepted with probability c exactly: no union bound, and no box around
both sums.

The law of the noise: Gaussian noises of scales a and b add up to one of sqrt(a^2 + b^2). For Laplace noises,

    P(|X| > t) = (a^2 exp(-t/a) - b^2 exp(-t/b)) / (a^2 - b^2)

With u = t/a and r = b/a <= 1 the point t is a times a function of r alone, which is tabulated once for each
confidence. Where one noise is Laplace and the other Gaussian, the Gaussian one is taken as the Laplace noise
that reaches as far at a confidence higher by half of what is left: by a union bound that is conservative.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_POINTS = 513
_STEPS = 80
_FAINTEST = 1e-3
"""A sum below the line that is above its noise by less than this part of it has no ratio with ends."""


@dataclass(frozen=True)
class Noise:
    """The noise of one number: "laplace" or "gaussian", and its scale in values, of all groups or each."""

    kind: str
    scale: Floats | float


def reach(first: Noise, second: Noise, factor: Floats, confidence: float) -> Floats:
    """How far the noise of `first - factor * second` goes with a confidence, on either side."""
    sizes = np.abs(factor) * second.scale
    if first.kind == second.kind == "gaussian":
        return _normal_point(confidence) * np.hypot(first.scale, sizes)
    if first.kind != second.kind:
        half = (1 + confidence) / 2
        return _single(first, half) * first.scale + _single(second, half) * sizes
    large, small = np.maximum(first.scale, sizes), np.minimum(first.scale, sizes)
    ratios, points = _two_laplace(confidence)
    return large * np.interp(small / np.maximum(large, 1e-300), ratios, points)


def interval(
    numerator: Floats,
    denominator: Floats,
    noises: tuple[Noise, Noise],
    bounds: tuple[float, float],
    confidence: float,
    known: float = 0.0,
) -> tuple[Floats, Floats]:
    """The ends of the accepted ratios inside bounds, for each group.

    The distance |s - m n| less its reach is searched outward from the estimate for where it turns positive.
    Beyond that it stays positive if n exceeds what its own noise reaches; where it does not, the ratio may be
    anything, and the bounds are the interval. `known`: the confidence with which n must be above zero, that
    of the interval if that is more. Where the estimate has to be clamped, the interval goes as far from it as
    noise alone would: what is accepted may be next to nothing there.
    """
    low, high = (np.full_like(numerator, end) for end in bounds)
    far = _farthest(numerator, denominator, noises, max(confidence, known))
    alone = _single(noises[1], max(confidence, known)) * noises[1].scale
    sure = denominator > alone
    safe = np.where(sure, denominator, 1.0)
    ratio = numerator / safe
    estimate = np.clip(ratio, low, high)

    def accepted(ratio: Floats) -> NDArray[np.bool_]:
        away = np.abs(numerator - ratio * denominator)
        return away <= reach(*noises, ratio, confidence)

    ends = []
    for outer, end in ((np.maximum(low, -far), low), (np.minimum(high, far), high)):
        inside, outside = estimate.copy(), outer.copy()
        whole = accepted(outer)
        for _ in range(_STEPS):
            middle = (inside + outside) / 2
            held = accepted(middle)
            inside, outside = np.where(held, middle, inside), np.where(held, outside, middle)
        ends.append(np.where(whole, end, outside))
    stray = np.where(ratio == estimate, 0.0, reach(*noises, estimate, confidence) / safe)
    lowest = np.maximum(np.minimum(ends[0], estimate - stray), low)
    highest = np.minimum(np.maximum(ends[1], estimate + stray), high)
    return np.where(sure, lowest, low), np.where(sure, highest, high)


def _farthest(
    numerator: Floats, denominator: Floats, noises: tuple[Noise, Noise], confidence: float
) -> Floats:
    """Farther than this no ratio is searched for; what is accepted there has no end but the bounds."""
    one, two = (_single(noise, confidence) * noise.scale for noise in noises)
    left = np.maximum(denominator - two, _FAINTEST * two)
    far: Floats = np.maximum((np.abs(numerator) + one) / np.maximum(left, 1e-300), 1e-300) / _FAINTEST
    return far


def _single(noise: Noise, confidence: float) -> float:
    """How far noise of scale 1 goes."""
    return _normal_point(confidence) if noise.kind == "gaussian" else -math.log1p(-confidence)


@functools.lru_cache
def _normal_point(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


@functools.lru_cache
def _two_laplace(confidence: float) -> tuple[Floats, Floats]:
    """For ratios r of scales from 0 to 1, how far noise of scales 1 and r goes together, rounded up."""
    ratios = np.linspace(0.0, 1.0, _POINTS)
    low = np.full(_POINTS, -math.log1p(-confidence))
    high = 3 * low + 8
    for _ in range(_STEPS):
        middle = (low + high) / 2
        far = _tail(middle, ratios) > 1 - confidence
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    # Between two points of the table, a straight line may lie below the curve by less than a part in 10^5.
    return ratios, high * (1 + 1e-5)


def _tail(point: Floats, ratio: Floats) -> Floats:
    """P(|X| > point) for Laplace noises of scales 1 and `ratio`."""
    # For equal scales the formula is 0/0; its limit is exp(-t) (1 + t/2).
    near = ratio > 1 - 1e-6
    r = np.where(near, 0.5, np.maximum(ratio, 1e-12))
    apart = (np.exp(-point) - r**2 * np.exp(-point / r)) / (1 - r**2)
    return np.where(near, np.exp(-point) * (1 + point / 2), apart)
