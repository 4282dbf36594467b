"""Student noise of data-dependent width, rounded to a grid, exactly.

Heavy tails hide their own width, which smooth sensitivity needs. But a width that depends on the data rules
out noise tables and floats. So the real number centre + width * Z is never formed. Z = X / Y for a uniform
point (X, Y) of the quarter disc is Cauchy (up to a sign). Student noise follows from it by rejection with a
rational probability. X and Y are known to as many bits as it takes to tell to which grid point the sum
rounds. All decisions are made with integer bounds on both sides, so the rounded number has exactly the law of
the rounded real.

Rejection. Student's density with v degrees of freedom over Cauchy's is proportional to
(1 + z^2) / (1 + z^2 / v)^((v + 1) / 2), which is largest at z = 1 whatever v (its logarithm has slope
1 / (1 + w) - ((v + 1) / 2) / (v + w) in w = z^2, zero at w = 1). For odd v it is a rational function.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from incrowd.noise.source import Source, source_of

_WORD = 64


class _Pair:
    """Two or more independent uniform numbers in (0, 1), each known to the same growing number of bits."""

    def __init__(self, count: int, source: Source) -> None:
        self._source = source
        self.bits = 0
        self.words = [0] * count
        self.extend()

    def extend(self) -> None:
        """Learn 64 more bits of each: number i lies in [word, word + 1] 2^-bits."""
        fresh = self._source.words(len(self.words), np.uint64).tolist()
        self.words = [(word << _WORD) | more for word, more in zip(self.words, fresh, strict=True)]
        self.bits += _WORD


def _in_disc(numbers: _Pair) -> bool:
    while True:
        x, y = numbers.words[:2]
        square = 1 << (2 * numbers.bits)
        if (x + 1) ** 2 + (y + 1) ** 2 <= square:
            return True
        if x**2 + y**2 >= square:
            return False
        numbers.extend()


def _accepted(numbers: _Pair, degrees: int) -> bool:
    """Whether the third number lies below Student's density over its Cauchy envelope at X / Y."""
    if degrees == 1:
        return True
    half = (degrees + 1) // 2
    # 1 / M for M = 2 (1 + 1/v)^-half, the largest ratio
    scale = Fraction(degrees + 1, degrees) ** half / 2
    while True:
        x, y, v = numbers.words
        # (x^2 + y^2) v^half y^(2 half - 2) / (v y^2 + x^2)^half: lower end with small above and large below
        low = Fraction(
            (x**2 + y**2) * degrees**half * y ** (2 * half - 2),
            (degrees * (y + 1) ** 2 + (x + 1) ** 2) ** half,
        )
        top = ((x + 1) ** 2 + (y + 1) ** 2) * degrees**half * (y + 1) ** (2 * half - 2)
        under = (degrees * y**2 + x**2) ** half
        if (v + 1) <= scale * low * 2**numbers.bits:
            return True
        if under and v * under >= scale * top * 2**numbers.bits:
            return False
        numbers.extend()


def rounded_student(
    centre: Fraction, width: Fraction, step: Fraction, degrees: int = 3, source: Source | None = None
) -> int:
    """floor((centre + width * T) / step + 1/2) for Student's T with an odd number of degrees of freedom.

    >>> from incrowd.noise import SeededSource
    >>> rounded_student(Fraction(10), Fraction(1, 10**9), Fraction(1), source=SeededSource(1))
    10
    """
    bits = source_of(source)
    while True:
        numbers = _Pair(2 if degrees == 1 else 3, bits)
        if _in_disc(numbers) and _accepted(numbers, degrees):
            break
    sign = 1 if int(bits.words(1, np.uint8)[0]) & 1 else -1
    shift, factor = centre / step + Fraction(1, 2), sign * width / step
    while True:
        x, y = numbers.words[:2]
        if y:
            ends = (shift + factor * Fraction(x, y + 1), shift + factor * Fraction(x + 1, y))
            low, high = min(ends).__floor__(), max(ends).__floor__()
            if low == high:
                return low
        numbers.extend()
