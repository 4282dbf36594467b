"""Discrete Gaussian draws for long arrays with one sigma: by table, and rejection where sigma is large.

Up to sigma = 64 the law itself is a table. Beyond, with w = 2^s and sigma' = sigma/w in (32, 64], a sign and
a number q >= 0 with weight exp(-q^2 / (2 sigma'^2)) come from a table, and d is uniform on 0 .. w - 1. The
candidate is X = q w + d, or its complement -1 - q w - d for the negative sign; it is kept with probability
exp(-(X^2 - (q w)^2) / (2 sigma^2)), at most 1 because |X| >= q w. Candidates stand for all integers, each
once, and the product of both factors is exp(-X^2 / (2 sigma^2)). About 98% are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.compare import below
from incrowd.noise.exact import Bounds, exp_bounds
from incrowd.noise.source import Source
from incrowd.noise.table import Table

_WIDEST = 64
_CHUNK = 1 << 16


@dataclass(frozen=True)
class GaussianLaw:
    """P(V = v) proportional to exp(-v^2 x), x = 1/(2 sigma^2); or, `halves`, two copies of its right half.

    With S_k the sum of exp(-j^2 x) over j >= k, and by symmetry:
    whole:  P(V < k) = S_(1-k) / (2 S_0 - 1) for k <= 0, 1 - S_k / (2 S_0 - 1) for k >= 1.
    halves: V = q or -1 - q, so P(V < k) = S_(-k) / (2 S_0) for k <= 0, 1 - S_k / (2 S_0) for k >= 0.
    """

    x: Fraction
    halves: bool

    @property
    def first(self) -> int:
        """The value below the lowest step."""
        return -self._reach() - 1

    def _reach(self) -> int:
        # S_(R+1) <= exp(-R^2 x) / (2 R x), and R^2 x >= 46: below 2^-66 sigma/9, less than 2^-66 of S_0
        return math.isqrt(math.ceil(46 / self.x)) + 1

    def ladder(self, bits: int) -> list[tuple[int, int]]:
        """Bounds on P(V < k) for k = -reach .. reach."""
        sums, w = self._sums(bits)
        return [self._step(k, sums, w, bits) for k in range(-self._reach(), self._reach() + 1)]

    def cumulative(self, k: int, bits: int) -> tuple[int, int]:
        """Bounds on P(V < k)."""
        sums, w = self._sums(bits)
        return self._step(k, sums, w, bits)

    def _step(self, k: int, sums: list[tuple[int, int]], w: int, bits: int) -> tuple[int, int]:
        if self.halves and k == 0:  # one half: an interval around it would never be decided
            return 1 << (bits - 1), 1 << (bits - 1)
        one = 0 if self.halves else 1 << w
        whole = 2 * sums[0][0] - one, 2 * sums[0][1] - one
        start = k if k > 0 else (-k if self.halves else 1 - k)
        part = sums[start] if start < len(sums) else (0, sums[-1][1])
        lo, hi = (part[0] << bits) // whole[1], -(-(part[1] << bits) // whole[0])
        return (lo, hi) if k <= 0 else ((1 << bits) - hi, (1 << bits) - lo)

    def _sums(self, bits: int) -> tuple[list[tuple[int, int]], int]:
        """Return bounds on 2^w S_k for k = 0 .. R + 1, and w.

        R^2 x >= w + 2 g makes S_(R+1) <= 2^-w (as 1/(2 R x) <= max(1, sigma) <= 2^g): it is given as (0, 1).
        Terms follow each other by exp(-(j+1)^2 x) = exp(-j^2 x) exp(-(2j+1) x), with directed rounding.
        """
        g = math.ceil(1 / self.x).bit_length()
        w = bits + 2 * g + 24
        last = math.isqrt(math.ceil((w + 2 * g) / self.x)) + 1
        ratio = exp_bounds(self.x, w)
        square = exp_bounds(2 * self.x, w)
        term = (1 << w, 1 << w)
        terms = []
        for _ in range(last + 1):
            terms.append(term)
            term = term[0] * ratio[0] >> w, -(-term[1] * ratio[1] >> w)
            ratio = ratio[0] * square[0] >> w, -(-ratio[1] * square[1] >> w)
        lo, hi = 0, 1
        sums = [(lo, hi)]
        for term in reversed(terms):
            lo, hi = lo + term[0], hi + term[1]
            sums.append((lo, hi))
        return sums[::-1], w


@dataclass(frozen=True)
class GaussianTable:
    """What is prepared for one sigma."""

    sigma: Fraction
    shift: int
    top: Table

    def draw(self, count: int, source: Source) -> NDArray[np.int64]:
        """Return `count` draws, a chunk at a time so that the work stays in the processor's cache."""
        result = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            want = min(count - filled, _CHUNK)
            kept = self.top.draw(want, source) if self.shift == 0 else self._candidates(want, source)
            result[filled : filled + kept.size] = kept
            filled += kept.size
        return result

    def _candidates(self, count: int, source: Source) -> NDArray[np.int64]:
        """Return what is kept of `count` candidates.

        Error bound, with e = 2^-53: with m = |X| - q w <= w the exponent is m (2 q w + m) / (2 sigma^2); its
        factors are off by at most 2e relative each, sigma^2 by 3e, the product and quotient by 2e: 9e in all.
        As y exp(-y) < 0.37, and with 16e for exp itself, the probability is off by less than 32e = 2^-48.
        q saturates at 2^62 / w, 4,000 sigmas out, with probability below exp(-10^6).
        """
        value = self.top.draw(count, source)
        sign = value >> 63
        value ^= sign
        np.minimum(value, 2**62 >> self.shift, out=value)
        value <<= self.shift
        low = _uniform_bits(self.shift, count, source)
        beyond = low - sign
        factor = -0.5 / float(self.sigma) ** 2
        estimate = np.exp((value * 2.0 + beyond) * beyond * factor)

        def exact(i: int) -> Bounds:
            return partial(_keep_bounds, self.sigma, int(value[i]), int(beyond[i]))

        keep = below(estimate, 2.0**-48, exact, source)
        value += low
        value ^= sign
        kept: NDArray[np.int64] = value[keep]
        return kept


def _keep_bounds(sigma: Fraction, corner: int, beyond: int, bits: int) -> tuple[int, int]:
    return exp_bounds(beyond * (2 * corner + beyond) / (2 * sigma * sigma), bits)


def _uniform_bits(bits: int, count: int, source: Source) -> NDArray[np.int64]:
    """Return uniform integers below 2^bits, from words no longer than needed."""
    dtype = np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64
    words = source.words(count, dtype)
    return (words & dtype((1 << bits) - 1)).astype(np.int64)


@lru_cache(maxsize=32)
def gaussian_table(sigma: Fraction) -> GaussianTable:
    """Return what is prepared for one sigma; the last few are kept."""
    shift = 0
    while sigma > _WIDEST << shift:
        shift += 1
    narrow = sigma / (1 << shift)
    return GaussianTable(sigma, shift, Table(GaussianLaw(1 / (2 * narrow * narrow), halves=shift > 0)))
