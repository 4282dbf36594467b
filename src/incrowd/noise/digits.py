"""Discrete Laplace by independent digits: a few table look-ups a draw, whatever the scale.

Write q = exp(-1/b). A discrete Laplace variable is a sign and a magnitude that are independent once zero
is counted as positive only:

    X = G with probability 1/(1 + q), X = -1 - G with probability q/(1 + q), P(G = g) = (1 - q) q^g,

because P(X = x) = (1 - q)/(1 + q) q^|x| on both sides; so nothing is ever redrawn. In bits, X is G or its
complement. And the digits of a geometric variable are independent: with B = 256^J and
g = h B + sum of d_j 256^j, the weight q^g is a product of one factor for each of h, d_0, ..., d_(J-1). Digit
j has weights exp(-d 256^j / b) on 0..255; h is geometric with ratio exp(-B/b). J is the least for which h
has a scale of at most 32. Sign and h share one table, so that a scale up to 32 takes one look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.exact import exp_bounds, exp_powers
from incrowd.noise.source import Source
from incrowd.noise.table import Table

_BASE_BITS = 8
_TOP_SCALE = 32
_CEILING = 2**62
_CHUNK = 1 << 16
"""Draws made at a time: what a chunk touches stays in the processor's cache."""


@dataclass(frozen=True)
class Digit:
    """One digit: P(D = d) proportional to exp(-d x) on 0 .. 255.

    P(D < d) = (1 - exp(-d x)) / (1 - exp(-256 x)).
    """

    x: Fraction
    first: int = 0

    def _guard(self) -> int:
        # 1 - exp(-256 x) is at least about min(1, x): so many leading bits are lost in the division
        return 16 + max(0, self.x.denominator.bit_length() - self.x.numerator.bit_length())

    def ladder(self, bits: int) -> list[tuple[int, int]]:
        """Bounds on P(D < d) for d = 1 .. 255."""
        w = bits + self._guard()
        powers = exp_powers(self.x, 1 << _BASE_BITS, w)
        return [_ratio(power, powers[-1], w, bits) for power in powers[1:-1]]

    def cumulative(self, k: int, bits: int) -> tuple[int, int]:
        """Bounds on P(D < k)."""
        if k <= 0:
            return 0, 0
        if k >= 1 << _BASE_BITS:
            return 1 << bits, 1 << bits
        w = bits + self._guard()
        return _ratio(exp_bounds(k * self.x, w), exp_bounds((1 << _BASE_BITS) * self.x, w), w, bits)


def _ratio(top: tuple[int, int], bottom: tuple[int, int], w: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits (1 - top) / (1 - bottom), from bounds with w bits."""
    one = 1 << w
    lo = ((one - top[1]) << bits) // (one - bottom[0])
    hi = -(-((one - top[0]) << bits) // (one - bottom[1]))
    return lo, min(hi, 1 << bits)


@dataclass(frozen=True)
class SignedTop:
    """Sign and leading part in one: V = H or -1 - H, H geometric with P(H >= k) = exp(-k y).

    P(V < 0) = q/(1 + q) with q = exp(-x). Hence P(V < k) = q/(1 + q) exp(k y) for k <= 0, and
    1 - exp(-k y)/(1 + q) for k >= 0.
    """

    x: Fraction
    y: Fraction

    @property
    def first(self) -> int:
        """The value below the lowest step."""
        return -self._reach() - 1

    def _reach(self) -> int:
        return int(45 / self.y) + 1  # exp(-45) < 2^-64

    def ladder(self, bits: int) -> list[tuple[int, int]]:
        """Bounds on P(V < k) for k = -reach .. reach."""
        w = bits + 8
        powers = exp_powers(self.y, self._reach(), w)
        negative, positive = self._sides(w)
        below = [_product(negative, power, w, 8) for power in reversed(powers)]
        above = [_complement(_product(positive, power, w, 8), bits) for power in powers[1:]]
        return below + above

    def cumulative(self, k: int, bits: int) -> tuple[int, int]:
        """Bounds on P(V < k)."""
        w = bits + 8
        power = exp_bounds(abs(k) * self.y, w)
        negative, positive = self._sides(w)
        if k <= 0:
            return _product(negative, power, w, 8)
        return _complement(_product(positive, power, w, 8), bits)

    def _sides(self, w: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Bounds on P(V < 0) = q/(1 + q) and P(V >= 0) = 1/(1 + q)."""
        lo, hi = exp_bounds(self.x, w)
        one = 1 << w
        positive = (one << w) // (one + hi), -(-(one << w) // (one + lo))
        return _complement(positive, w), positive


def _product(a: tuple[int, int], b: tuple[int, int], w: int, drop: int) -> tuple[int, int]:
    """Bounds on the product of two numbers in [0, 1] with w bits, with `drop` bits fewer."""
    return a[0] * b[0] >> (w + drop), -(-a[1] * b[1] >> (w + drop))


def _complement(a: tuple[int, int], bits: int) -> tuple[int, int]:
    """Bounds on 1 - a."""
    return (1 << bits) - a[1], (1 << bits) - a[0]


@dataclass(frozen=True)
class DigitTables:
    """The tables of one scale: the signed top, and the digits below it, the least significant first."""

    top: Table
    digits: tuple[Table, ...]

    def laplace(self, count: int, source: Source) -> NDArray[np.int64]:
        """Return `count` discrete Laplace draws."""
        result = np.empty(count, dtype=np.int64)
        for start in range(0, count, _CHUNK):
            part = result[start : start + _CHUNK]
            part[:] = self._chunk(part.size, source)
        return result

    def _chunk(self, count: int, source: Source) -> NDArray[np.int64]:
        value = self.top.draw(count, source)
        if not self.digits:
            return value
        shift = _BASE_BITS * len(self.digits)
        # saturation: beyond these the draw is past 2^62 whatever its digits
        np.clip(value, -1 - (_CEILING >> shift), _CEILING >> shift, out=value)
        # the complement of h B + low has the complement of h above and that of low below
        sign = value >> 63
        value <<= shift
        for j, digit in enumerate(self.digits):
            value ^= digit.draw(count, source) << (_BASE_BITS * j)
        value ^= sign & ((1 << shift) - 1)
        return np.clip(value, -1 - _CEILING, _CEILING, out=value)


@lru_cache(maxsize=32)
def tables(scale: Fraction) -> DigitTables:
    """Return the tables of a scale; the last few are kept (128 KiB for each of up to seven look-ups)."""
    count = 0
    while scale > _TOP_SCALE << (_BASE_BITS * count):
        count += 1
    digits = tuple(Table(Digit((1 << _BASE_BITS * j) / scale)) for j in range(count))
    return DigitTables(Table(SignedTop(1 / scale, (1 << _BASE_BITS * count) / scale)), digits)
