"""Geometric and discrete Laplace draws by inversion: any scale, or one for each element; nothing to prepare.

For U uniform in (0, 1), G = floor(-b ln U) has P(G >= k) = P(U <= exp(-k/b)) = exp(-k/b). A float64
evaluation with a proven error bound gives the floor unless the bound straddles an integer; then integer
arithmetic decides with further bits of the same U. A discrete Laplace draw is G or its complement -1 - G.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.arguments import Parameter
from incrowd.noise.compare import ULPS, below, below_one
from incrowd.noise.exact import Bounds, LazyUniform, exp_bounds, last_true
from incrowd.noise.source import Source

_DIRECT = 21
"""Scales up to 2^21 are inverted directly: the error bound is then below 2^-24, so the slow path is rare."""
_CEILING = 2**62


def geometric(scale: Parameter, count: int, source: Source) -> NDArray[np.int64]:
    """Return `count` draws with P(G >= k) = exp(-k / scale), elementwise where there are many scales.

    A scale b above 2^21 is split: G = H 2^s + L with b / 2^s <= 2^21. The weight exp(-g/b) is a product of a
    factor in h and one in l, so H and L are independent: H is geometric with scale b / 2^s, and P(L = l) is
    proportional to exp(-l/b) on 0 <= l < 2^s. L is a uniform number kept with probability
    exp(-l/b) >= exp(-2^-20), else redrawn.

    Values saturate at 2^62: min(G, 2^62) is returned, which differs from G with probability below exp(-4000).
    """
    approx = scale.approx
    if approx.max(initial=0.0) <= 2.0**_DIRECT:
        return _invert(approx, scale, None, count, source)
    shift = np.maximum(np.frexp(approx)[1].astype(np.int64) - _DIRECT, 0)
    high = _invert(np.ldexp(approx, -shift), scale, shift, count, source)
    np.minimum(high, _CEILING >> shift, out=high)
    high <<= shift
    high += _low_bits(scale, shift, count, source)
    return np.minimum(high, _CEILING, out=high)


def laplace(scale: Parameter, count: int, source: Source) -> NDArray[np.int64]:
    """Return `count` discrete Laplace draws: G with probability 1/(1 + q), else -1 - G, q = exp(-1/scale).

    Both sides have P(X = x) = (1 - q)/(1 + q) q^|x|, for q/(1 + q) (1 - q) q^g is that at x = -1 - g.
    Error bound of p = q/(1 + q): 1/b has a relative error below 3e, and y exp(-y) < 0.37; exp and the
    division add at most 18e; all is below 32e. Scales below 2^-1000 are raised to it: p is below 2^-1000
    for both.
    """
    negative = below(
        np.broadcast_to(_negative(np.maximum(scale.approx, 2.0**-1000)), count),
        2.0**-48,
        lambda i: partial(_negative_bounds, scale.exact(i)),
        source,
    )
    result = geometric(scale, count, source)
    result ^= -negative.astype(np.int64)
    return result


def _negative(scale: NDArray[np.float64]) -> NDArray[np.float64]:
    q = np.exp(-np.minimum(1.0 / scale, 700.0))
    return q / (1.0 + q)


def _negative_bounds(scale: Fraction, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits q/(1 + q), which grows with q = exp(-1/scale)."""
    lo, hi = exp_bounds(1 / scale, bits)
    one = 1 << bits
    return (lo << bits) // (one + lo), -(-(hi << bits) // (one + hi))


def _invert(
    approx: NDArray[np.float64],
    scale: Parameter,
    shift: NDArray[np.int64] | None,
    count: int,
    source: Source,
) -> NDArray[np.int64]:
    """Return floor(-b ln U) for b = scale / 2^shift, of which `approx` is the float64 value.

    Error bound, with e = 2^-53. The word w gives U 2^64 in [w, w + 1]; f = fl(fl(w) + 1/2) is within
    1/2 + 2e f of any of these, so |ln U - ln(f 2^-64)| <= 1.01 (1/(2f) + 2e) whenever f >= 2^7. The
    logarithm has a relative error of at most ULPS = 16e by assumption, b one of e (a subnormal b has an
    absolute one below 2^-1000), the product one of e: together
    |x - X| <= b (1.01/(2f) + 2.02e) + 19e x. The coefficients below are about twice as large, which covers
    the roundings of the bound itself; 2^-60 covers underflow.
    For f < 2^7, -ln U may be anything above 39: such elements (once in 2^57) always take the slow path.
    """
    words = source.words(count, np.uint64)
    f = words.astype(np.float64)
    f += 0.5
    x = np.log(f * 2.0**-64)
    x *= -approx
    error = approx / f
    error += approx * 2.0**-51
    error += x * (2 * ULPS)
    error += 2.0**-60
    low = np.floor(x - error)
    np.maximum(low, 0.0, out=low)
    unsure = (low != np.floor(x + error)) | (f < 128.0)
    result = low.astype(np.int64)
    if unsure.any():
        for i in np.flatnonzero(unsure).tolist():
            b = scale.exact(i)
            if shift is not None:
                b /= 1 << int(shift[i if shift.size > 1 else 0])
            result[i] = min(_exact(b, int(words[i]), int(result[i]), source), _CEILING)
    return result


def geometric_one(scale: Fraction, approx: float, source: Source) -> int:
    """Return one draw as `geometric` does, with the same bounds; `approx` is the scale as a float."""
    shift = max(math.frexp(approx)[1] - _DIRECT, 0)
    b = math.ldexp(approx, -shift)
    word = int(source.words(1, np.uint64)[0])
    f = word + 0.5
    x = -b * math.log(f * 2.0**-64)
    error = b / f + b * 2.0**-51 + x * (2 * ULPS) + 2.0**-60
    high = max(math.floor(x - error), 0)
    if high != math.floor(x + error) or f < 128.0:
        high = _exact(scale / (1 << shift), word, high, source)
    if not shift:
        return min(high, _CEILING)
    while True:
        low = int(source.words(1, np.uint64)[0]) & ((1 << shift) - 1)
        if below_one(math.exp(-low / approx), 2.0**-48, partial(_keep_bounds, low, scale), source):
            return min((high << shift) + low, _CEILING)


def laplace_one(scale: Fraction, approx: float, source: Source) -> int:
    """Return one draw as `laplace` does, with the same bounds; `approx` is the scale as a float."""
    q = math.exp(-min(1.0 / max(approx, 2.0**-1000), 700.0))
    negative = below_one(q / (1.0 + q), 2.0**-48, partial(_negative_bounds, scale), source)
    magnitude = geometric_one(scale, approx, source)
    return ~magnitude if negative else magnitude


def _keep_bounds(low: int, scale: Fraction, bits: int) -> tuple[int, int]:
    return exp_bounds(low / scale, bits)


def _exact(b: Fraction, word: int, guess: int, source: Source) -> int:
    """Return the largest k with U <= exp(-k/b), from exact comparisons alone; `guess` only saves steps."""
    uniform = LazyUniform(word, 64, source)

    def reaches(k: int) -> bool:
        return k <= 0 or uniform.below(lambda bits: exp_bounds(k / b, bits))

    low = guess if reaches(guess) else 0
    return last_true(reaches, low)


def _low_bits(scale: Parameter, shift: NDArray[np.int64], count: int, source: Source) -> NDArray[np.int64]:
    """Return L in [0, 2^shift) with P(L = l) proportional to exp(-l/b): uniform, kept with that probability.

    Here l/b < 2^-20, so exp(-l/b) is off by at most 2^-20 2e for its argument, and by 16e for exp itself.
    """
    result = np.zeros(count, dtype=np.int64)
    pending = np.arange(count)
    mask = (np.int64(1) << shift) - 1
    while pending.size:
        words = source.words(pending.size, np.uint64)
        low = words.astype(np.int64) & (mask if mask.size == 1 else mask[pending])

        def exact(i: int, low: NDArray[np.int64] = low, pending: NDArray[np.intp] = pending) -> Bounds:
            return partial(_keep_bounds, int(low[i]), scale.exact(int(pending[i])))

        keep = below(np.exp(-low / scale.at(pending)), 2.0**-48, exact, source)
        result[pending[keep]] = low[keep]
        pending = pending[~keep]
    return result
