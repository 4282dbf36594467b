"""Certified comparison: decide U < p for whole arrays, U uniform in (0, 1) and p known approximately.

U is known to lie in [w, w + 1] 2^-b from a random word w of b bits; p is a float64 estimate with a proven
bound on its error. Where the two are further apart than all errors together, the comparison of floats is the
comparison of the real numbers. Elsewhere (about once in 2^31 with 32-bit words) the same U is continued with
more bits and p with integer bounds. Either way the answer is that of the real numbers: P(true) = p exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.exact import Bounds, LazyUniform
from incrowd.noise.source import Source

ULPS = 2.0**-49
"""Relative error allowed to exp and log in float64: 8 units in the last place; the tests hold them to 2."""

WORD = np.uint32
_BITS = 32
_WIDTH = 2.0**-_BITS


def below(
    estimate: NDArray[np.float64],
    error: NDArray[np.float64] | float,
    exact: Callable[[int], Bounds],
    source: Source,
) -> NDArray[np.bool_]:
    """Draw one U for each element of the flat array `estimate` and return whether U < p.

    Conditions: |estimate - p| <= error elementwise, estimate finite; `exact(i)` gives the bounds of p[i].
    A 32-bit word and its product with 2^-32 are exact in float64, the difference below is rounded by at most
    2^-52 for p in [0, 1], and U - w 2^-32 is in [0, 2^-32]; 2^-50 covers the roundings, those of the sum too.
    """
    words = source.words(estimate.size, WORD)
    gap = words * _WIDTH
    gap -= estimate
    margin = error + 2.0**-50
    result = gap < 0.0
    unsure = (gap < margin) & (gap > -(margin + _WIDTH))
    if unsure.any():
        for i in np.flatnonzero(unsure).tolist():
            result[i] = LazyUniform(int(words[i]), _BITS, source).below(exact(i))
    return result


def below_one(estimate: float, error: float, bounds: Bounds, source: Source) -> bool:
    """Decide a single comparison as `below` does."""
    word = int(source.words(1, WORD)[0])
    gap = word * _WIDTH - estimate
    margin = error + 2.0**-50
    if -(margin + _WIDTH) < gap < margin:
        return LazyUniform(word, _BITS, source).below(bounds)
    return gap < 0.0
