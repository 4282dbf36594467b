"""Adaptive composition of bounded-range releases, exactly: a dynamic program over the adversary's choices.

THEOREM. Write V(y) for the largest delta at y = e^epsilon that an adversary reaches with the releases still
to come; V_0(y) = (1 - y)_+. A pair whose log-ratio stays in [t - e, t] has Y = Q/P in [e^-t, e^(e - t)] with
mean 1 under P, and V is convex in y (a supremum of hockey-stick divergences), so the two-point pair at the
ends is the worst, with P(loss = t) = (e^e - e^t) / (e^e - 1), and

    V_k(y) = sup over t in [0, e] of  p_t V_(k-1)(y e^-t) + (1 - p_t) V_(k-1)(y e^(e - t)).

The same for releases of several sizes, with the supremum also over which comes next. (Dong, Durfee, Rogers
2020 solve the case where t must be fixed beforehand.) Releases of other kinds may come between: each applies
a linear, positive operator S to V, and sup_t S(...) <= S(sup_t ...), so putting the bounded-range releases
last, where the adversary knows most, bounds every order. As V is convex, decreasing and V(0) = 1, it is
itself the curve of one pair with a discrete loss, and that pair is what this module returns.

Error. V is kept at grid points and joined by chords in y, which lie above a convex function. Within a cell
the supremum over t of the chords has a closed form (-a s - b / s with s = e^t), so nothing is missed between
grid points, and every figure is an upper bound. A step rounds by a few units in the last place of 1:
`ROUNDING` is put at an infinite loss for every release.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.privacy.amounts import float_up
from incrowd.privacy.transforms import Floats

ROUNDING = 4e-15
_WORK = 4e7
"""How many cells of (grid point, t) a block may take."""


@lru_cache(maxsize=64)
def worst_pair(sizes: tuple[tuple[Fraction, int], ...]) -> tuple[Floats, Floats] | None:
    """Losses and P-masses of a pair that dominates the adaptive composition of (epsilon, count) releases.

    None where the program would be too large; the releases are then treated as pure.
    """
    plan = _grid(sizes)
    if plan is None:
        return None
    spacing, widths = plan
    counts = [count for _, count in sizes]
    reach = sum(w * n for w, n in zip(widths, counts, strict=True))
    e = spacing * np.arange(-reach - 1, reach + 2)
    y = np.exp(e)
    values: dict[tuple[int, ...], Floats] = {tuple(0 for _ in counts): np.maximum(0.0, 1 - y)}
    for state in sorted(itertools.product(*(range(n + 1) for n in counts)), key=sum):
        for kind, left in enumerate(state):
            if left:
                before = tuple(n - (index == kind) for index, n in enumerate(state))
                reached = _step(values[before], y, widths[kind], spacing)
                values[state] = np.maximum(values[state], reached) if state in values else reached
    return _curve_to_pair(values[tuple(counts)], e, y)


def cumulant(epsilon: Fraction, c: Floats) -> Floats:
    """An upper bound on the moments of one release: the L(c) of `conversions`, the worst t for each order."""
    half = float_up(epsilon) / 2

    def f(x: Floats, last: float) -> Floats:
        z = np.minimum(x * half, 1e300)
        # log(sinh(z) / z) = z^2 / 6 - z^4 / 180 + z^6 / 2835 - ...: above with the last of these, else below.
        near = z * z / 6 * (1 - z * z / 30 * (1 - last * z * z * 4 / 63))
        far = z + np.log(-np.expm1(-2 * z) / (2 * z))
        return np.asarray(x * np.where(z < 0.02, near, far))

    error = 1e-14 * (c + 1) * (1 + (c + 1) * half)
    return np.asarray(f(c + 1, 1.0) - f(c, 0.0) - f(np.ones_like(c), 0.0) + error)


def _grid(sizes: tuple[tuple[Fraction, int], ...]) -> tuple[float, list[int]] | None:
    """A spacing and each epsilon as a whole number of spacings (rounded up where it must be)."""
    states = math.prod(count + 1 for _, count in sizes)
    common = sizes[0][0]
    for epsilon, _ in sizes:
        common = Fraction(
            math.gcd(common.numerator * epsilon.denominator, epsilon.numerator * common.denominator),
            common.denominator * epsilon.denominator,
        )
    least = min(epsilon for epsilon, _ in sizes)
    total = sum(epsilon * count for epsilon, count in sizes)
    for fineness in (512, 256, 128, 64, 32, 16, 8):
        unit = least / fineness
        unit = common / max(1, round(common / unit)) if common >= unit / 2 else unit
        widths = [math.ceil(epsilon / unit) for epsilon, _ in sizes]
        cells = 2 * sum(w * n for w, (_, n) in zip(widths, sizes, strict=True))
        if cells * max(widths) * states <= _WORK and total < 300:
            # The spacing as a float may be below the unit by a rounding; one part in 2^50 more covers it.
            return float(unit) * (1 + 2.0**-50), widths
    return None


def _step(values: Floats, y: Floats, width: int, spacing: float) -> Floats:
    """One more release of `width` spacings, the adversary choosing t: V_k from V_(k-1)."""
    size = len(values)
    slope = (values[1:] - values[:-1]) / (y[1:] - y[:-1])
    # Beyond the grid V is 1 - y on the left and 0 on the right, both exact.
    pad = width + 1
    left_y = y[0] * np.exp(spacing * np.arange(-pad, 0))
    right_y = y[-1] * np.exp(spacing * np.arange(1, pad + 1))
    level = np.concatenate([1 - left_y, values, np.zeros(pad)])
    place = np.concatenate([left_y, y, right_y])
    join_left = (values[0] - level[pad - 1]) / (y[0] - place[pad - 1])
    slope = np.concatenate([np.full(pad - 1, -1.0), [join_left], slope, np.zeros(pad)])
    factor = math.exp(width * spacing)
    best = np.zeros(size)
    index = np.arange(size) + pad
    for cell in range(width):
        low, high = index - cell - 1, index - cell - 1 + width
        a = level[low] - slope[low] * place[low] - level[high] + slope[high] * place[high]
        b = factor * y * (slope[high] - slope[low])
        first, last = math.exp(cell * spacing), math.exp((cell + 1) * spacing)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.where(a > 0, np.sqrt(np.maximum(b, 0.0) / a), last)
        s = np.clip(np.nan_to_num(s, nan=last), first, last)
        x = y / s
        share = (factor - s) / (factor - 1)
        near = np.maximum(level[low] + slope[low] * (x - place[low]), 0.0)
        far = np.maximum(level[high] + slope[high] * (factor * x - place[high]), 0.0)
        best = np.maximum(best, share * near + (1 - share) * far)
    return np.minimum(1.0, best * (1 + 1e-14))


def _curve_to_pair(values: Floats, e: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The discrete loss whose curve is the chords: the mass at e_j is y_j times the change of slope there."""
    level = np.concatenate([[1.0], values])
    place = np.concatenate([[0.0], y])
    slope = np.append(np.diff(level) / np.diff(place), 0.0)
    # Rounding may leave a change of slope just below zero; dropping it only raises the curve.
    return e, np.maximum(0.0, np.diff(slope) * y)
