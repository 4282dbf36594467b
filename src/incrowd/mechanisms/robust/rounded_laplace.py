"""Laplace noise of data-dependent width, rounded to a grid, exactly.

The sibling of `mechanisms.robust.student` for smooth sensitivity with a delta. The real number
centre + width * Z, Z Laplace, is never formed. |Z| is exponential and drawn by comparing uniform numbers
alone (von Neumann 1951). The falling run that starts at U = u has an odd length with probability
1 - u + u^2/2! - ... = e^-u. An odd run gives |Z| = (even runs before it) + U; an even run, of probability
1/e, adds 1 and starts anew. Numbers are known to as many bits as it takes to compare them and to tell to
which grid point the sum rounds. So the rounded number has exactly the law of the rounded real.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from incrowd.noise.source import Source, source_of

_WORD = 64


class _Uniform:
    """A uniform number in (0, 1), known to lie in [word, word + 1] 2^-bits."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.word = 0
        self.bits = 0
        self.extend()

    def extend(self) -> None:
        """Learn 64 more bits."""
        self.word = (self.word << _WORD) | int(self._source.words(1, np.uint64)[0])
        self.bits += _WORD


def _below(one: _Uniform, other: _Uniform) -> bool:
    """Whether one number lies below another, from as many bits as that takes."""
    while True:
        while one.bits < other.bits:
            one.extend()
        while other.bits < one.bits:
            other.extend()
        if one.word != other.word:
            return one.word < other.word
        one.extend()


def rounded_laplace(centre: Fraction, width: Fraction, step: Fraction, source: Source | None = None) -> int:
    """floor((centre + width * Z) / step + 1/2) for Laplace noise Z of scale 1.

    >>> from incrowd.noise import SeededSource
    >>> rounded_laplace(Fraction(10), Fraction(1, 10**9), Fraction(1), source=SeededSource(1))
    10
    """
    bits = source_of(source)
    whole = 0
    while True:
        first = last = _Uniform(bits)
        odd = True
        while _below(new := _Uniform(bits), last):
            last, odd = new, not odd
        if odd:
            break
        whole += 1
    sign = 1 if int(bits.words(1, np.uint8)[0]) & 1 else -1
    shift, factor = centre / step + Fraction(1, 2), sign * width / step
    while True:
        ends = [shift + factor * (whole + Fraction(first.word + more, 1 << first.bits)) for more in (0, 1)]
        low, high = min(ends).__floor__(), max(ends).__floor__()
        if low == high:
            return low
        first.extend()
