"""Exact draws from a law on the integers by table: sixteen random bits for nearly every draw.

U uniform in (0, 1) falls between two steps of the cumulative law, and the step says the value. The first
sixteen bits of U name one of 65,536 cells; where no step lies inside the cell, the value is read off. In the
few cells with a step, 64 bits of the same U are compared with steps known to 64 bits in certified integer
arithmetic; where these tie, bits are drawn until the exact comparison is decided. Nothing is rounded.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.exact import LazyUniform, last_true
from incrowd.noise.source import Source

_CELL_BITS = 16
_REST_BITS = 64 - _CELL_BITS
_UNSURE = np.iinfo(np.int16).min


class Law(Protocol):
    """A law on the integers, known by bounds on its cumulative probabilities."""

    @property
    def first(self) -> int:
        """The value below the first step of the ladder."""
        ...

    def ladder(self, bits: int) -> list[tuple[int, int]]:
        """Bounds on 2^bits P(V < k) for k = first + 1, first + 2, ...

        The ladder ends where the law ends, or else where less than 2^-64 of it is left on either side.
        """
        ...

    def cumulative(self, k: int, bits: int) -> tuple[int, int]:
        """Bounds on 2^bits P(V < k) for any integer k, tightening as bits grow."""
        ...


class Table:
    """A law made ready for drawing whole arrays; immutable once made."""

    def __init__(self, law: Law) -> None:
        self._law = law
        self._steps = _steps(law)
        inside = np.bincount(
            (self._steps >> np.uint64(_REST_BITS)).astype(np.int64), minlength=1 << _CELL_BITS
        )
        value = np.cumsum(inside) + law.first
        value[inside > 0] = _UNSURE
        self._guide = value.astype(np.int16)

    def draw(self, count: int, source: Source) -> NDArray[np.int64]:
        """Return `count` independent values of the law."""
        cells = source.words(count, np.uint16)
        values = self._guide[cells]
        result: NDArray[np.int64] = values.astype(np.int64)
        unsure = np.flatnonzero(values == _UNSURE)
        if unsure.size:
            rest = source.words(unsure.size, np.uint64) >> np.uint64(_CELL_BITS)
            words = cells[unsure].astype(np.uint64) << np.uint64(_REST_BITS) | rest
            result[unsure] = self.read(words, source)
        return result

    def read(self, words: NDArray[np.uint64], source: Source) -> NDArray[np.int64]:
        """Return the values that 64-bit words stand for, U being in [word, word + 1] 2^-64.

        A step c of the law lies in [t, t + 1] 2^-64 for its entry t. A word above t means U >= c, a word
        below t means U <= c (and equality has probability zero); a word equal to some t is left to `_exact`.
        """
        place = np.searchsorted(self._steps, words, side="left")
        tied = np.searchsorted(self._steps, words, side="right") != place
        result = place.astype(np.int64) + self._law.first
        for i in np.flatnonzero(tied).tolist():
            result[i] = self._exact(int(words[i]), int(result[i]), source)
        return result

    def _exact(self, word: int, guess: int, source: Source) -> int:
        """Return the largest k with P(V < k) <= U, from exact comparisons alone; `guess` only saves steps."""
        uniform = LazyUniform(word, 64, source)

        def reaches(k: int) -> bool:
            return not uniform.below(lambda bits: self._law.cumulative(k, bits))

        # the search is open at both ends: the outermost steps stand for all the tail beyond them
        low, step = guess, 1
        while not reaches(low):
            low -= step
            step *= 2
        return last_true(reaches, low)


def _steps(law: Law) -> NDArray[np.uint64]:
    """Return for each step c of the ladder the integer t with t <= c 2^64 <= t + 1, t < 2^64, proven."""
    bits = 128
    while True:
        drop = bits - 64
        steps = [(min(lo >> drop, 2**64 - 1), hi) for lo, hi in law.ladder(bits)]
        if all(hi <= (t + 1) << drop for t, hi in steps):
            return np.array([t for t, _ in steps], dtype=np.uint64)
        bits *= 2
