"""Exact decisions in integers: bounds on exp(-x), and a uniform number whose bits are drawn as needed.

This is the slow path under every sampler. No float enters here: what is returned as a bound is a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from incrowd.noise.source import Source

Bounds = Callable[[int], tuple[int, int]]
"""A real number p in [0, 1] as a function: bits -> (lo, hi), lo <= p 2^bits <= hi, tighter as bits grow."""


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers lo <= 2^bits exp(-x) <= hi with hi - lo <= 2, for a rational x >= 0.

    x = r 2^k with r < 2^-7; exp(-r) by its alternating series in fixed point with w bits, then k squarings.
    With R = floor(r 2^w) as the argument (an error of at most one unit, since |exp'| <= 1), each term is
    floored from the one before, term_i = floor(term_(i-1) R / (i 2^w)); its error obeys
    e_i <= e_(i-1) r + 1 < 2 units. The sum of n terms is off by at most 2n, the terms left out by at most
    the first of them, which is below 3 units. Squaring maps [lo, hi] to itself with outward rounding; it at
    most doubles the width and adds 2 units, so k squarings cost k + 2 bits beyond those of the series, all
    of which w provides.

    >>> exp_bounds(Fraction(0), 10)
    (1024, 1024)
    >>> lo, hi = exp_bounds(Fraction(1), 60)
    >>> lo <= 424136118829305329 <= hi and hi - lo <= 2
    True
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:  # exp(-x) <= 2^-bits because e > 2
        return 0, 1
    n, d = x.numerator, x.denominator
    k = max(0, n.bit_length() - d.bit_length() + 8)
    w = bits + k + 16 + bits.bit_length()
    one = 1 << w
    r = (n << w) // (d << k)
    total, term, i = one, one, 0
    while term:
        i += 1
        term = (term * r >> w) // i
        total += -term if i & 1 else term
    slack = 2 * i + 4
    lo, hi = max(total - slack, 0), min(total + slack, one)
    for _ in range(k):
        lo, hi = lo * lo >> w, -(-hi * hi >> w)
    shift = w - bits
    return lo >> shift, -(-hi >> shift)


def exp_powers(x: Fraction, count: int, bits: int) -> list[tuple[int, int]]:
    """Return bounds on 2^bits exp(-k x) for k = 0 .. count, by repeated multiplication; each hi - lo <= 2."""
    guard = count.bit_length() + 4
    w = bits + guard
    low, high = exp_bounds(x, w)
    lo = hi = 1 << w
    powers = []
    for _ in range(count + 1):
        powers.append((lo >> guard, -(-hi >> guard)))
        lo, hi = lo * low >> w, -(-hi * high >> w)
    return powers


def rational_bounds(p: Fraction) -> Bounds:
    """Return the bounds of a rational number."""

    def bounds(bits: int) -> tuple[int, int]:
        scaled = p.numerator << bits
        return scaled // p.denominator, -(-scaled // p.denominator)

    return bounds


class LazyUniform:
    """A number U uniform in (0, 1), known to `bits` bits: U is in [word, word + 1] 2^-bits.

    Comparing it with a real number draws more bits until the two intervals part. For any fixed number the
    answer "below" has exactly that number as its probability: U is one real number throughout, and a tie
    of all its bits has probability zero.
    """

    def __init__(self, word: int, bits: int, source: Source) -> None:
        self._word = word
        self._bits = bits
        self._source = source

    def below(self, bounds: Bounds) -> bool:
        """Whether U < p, for the p that `bounds` describes."""
        precision = self._bits
        while True:
            precision += 32
            lo, hi = bounds(precision)
            shift = precision - self._bits
            if (self._word + 1) << shift <= lo:
                return True
            if self._word << shift >= hi:
                return False
            if hi - lo < 1 << (shift - 1):  # p is known better than U: only more bits of U can help
                self._word = self._word << 64 | int(self._source.words(1, np.uint64)[0])
                self._bits += 64
                precision = self._bits


def last_true(holds: Callable[[int], bool], start: int) -> int:
    """The largest n for which `holds` is true, if it is true at `start` and false from some point on.

    >>> last_true(lambda n: n * n <= 50, 0)
    7
    """
    low, step = start, 1
    while holds(low + step):
        low += step
        step *= 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
