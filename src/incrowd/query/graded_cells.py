"""Cells for numbers whose bounds nobody declared: fine near zero, wider with the distance from it.

What a person adds up to has no bound: a count is 1 for most and a million for one. Equal cells over all that
can be would hold everybody in the first of them. Here bands follow each other, each reaching 16 times as far
as the one before it, with as many equal cells: a cell is never wider than a small part of its numbers.

Theorem. `bands_of` gives bands that cover [low, high] without a gap, in order. So the cell of a number grows
with the number, and whatever holds of ranks over cells in order (`curator/quantiles.py`) holds here: it asks
nothing of how wide they are. A number beyond the last band is in its last cell, one below the first in the
first, so a unit has one cell for each row, whatever is in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ROWS_OF_ONE = 2**20
"""How many rows of one person add up before the rest is cut off, where nobody says how many there are."""
FINEST = 2.0**-20
"""How much of the most that one row adds is told apart, where numbers are not whole."""
_REACH = 16


class Band(NamedTuple):
    """Equal cells side by side."""

    start: float
    width: float
    cells: int

    @property
    def end(self) -> float:
        """Where the last cell ends."""
        return self.start + self.width * self.cells


def bands_of(low: float, high: float, grain: float, most: int) -> tuple[Band, ...]:
    """Bands over a range, with at most so many cells in all; those at zero are `grain` wide.

    >>> [(band.start, band.width, band.cells) for band in bands_of(0, 100, 1.0, 16)]
    [(0.0, 1.0, 8), (8.0, 15.0, 8)]
    """
    per = 2 ** math.floor(math.log2(most))
    while per > 1:
        sides = [_outwards(max(end, 0.0), grain, per) for end in (-low, high)]
        if sum(len(side) for side in sides) * per <= most:
            break
        per //= 2
    below = [Band(-band.end, band.width, band.cells) for band in reversed(sides[0])]
    return (*below, *sides[1]) or (Band(0.0, grain, 1),)


def _outwards(end: float, grain: float, per: int) -> list[Band]:
    """The bands from zero up to an end."""
    if end <= 0:
        return []
    bands = [Band(0.0, grain, per)]
    while bands[-1].end <= end:
        start = bands[-1].end
        bands.append(Band(start, start * (_REACH - 1) / per, per))
    return bands


def count_of(bands: Sequence[Band]) -> int:
    """How many cells there are."""
    return sum(band.cells for band in bands)


def cell_at(bands: Sequence[Band], cell: int) -> tuple[float, float]:
    """Where a cell starts, and its width.

    >>> cell_at(bands_of(0, 100, 1.0, 16), 9)
    (23.0, 15.0)
    """
    for band in bands:
        if cell < band.cells:
            return band.start + band.width * cell, band.width
        cell -= band.cells
    raise IndexError(cell)


def edges_of(bands: Sequence[Band]) -> Iterator[int]:
    """The edges of all cells, in grains from the first: whole numbers."""
    grain = min(band.width for band in bands)
    widths = (itertools.repeat(round(band.width / grain), band.cells) for band in bands)
    return itertools.accumulate(itertools.chain.from_iterable(widths), initial=0)
