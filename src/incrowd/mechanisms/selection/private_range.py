"""Where values lie, without bounds: a centre and a radius that few values exceed.

Theorem. Stage one is the median, by `Quantile`, of the codes of the values. Codes are whole numbers in the
order of the floats. They hold the sign, the exponent (from -64 to 63) and 20 bits after the first, so that
every magnitude is a candidate and the centre is precise to a millionth.

Stage two asks a sparse vector, for radii g that grow by a quarter of an octave, whether at most `beyond`
values lie further than g from the centre. The first radius with a yes is released. One more record moves
every question by 0 or -1. A record in place of another moves all questions by 0 or 1, or all of them by 0 or
-1. So the questions are monotone under both relations, with sensitivity 1. The centre is an earlier answer,
so the guarantees add.

Accuracy: the centre is a median up to ln(2^28 / beta) / rate ranks with probability 1 - beta. About `beyond`
values lie outside, by default 16 / (epsilon of stage two). With that the search goes past the last value by a
step or more with probability below 10^-3, and by many steps far more rarely: each further radius asks anew.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import amount, share_of_epsilon
from incrowd.mechanisms.records import Floats, read_column
from incrowd.mechanisms.selection.quantile import Quantile
from incrowd.mechanisms.selection.sparse_vector import SparseVector
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.noise import Source
from incrowd.noise.readings import (
    Number,
    binary,
    shown,
)
from incrowd.privacy import Guarantee

BITS = 20
LEAST, MOST = -64, 64  # octaves
CODES = (MOST - LEAST) << BITS
RADII = np.append(
    np.ldexp(1 + np.tile(np.arange(4), MOST - LEAST) / 4, np.repeat(np.arange(LEAST, MOST), 4)), 2.0**MOST
)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRange(Mechanism):
    """Releases (centre, radius): all but about `beyond` values lie within the radius of the centre.

    `share` of epsilon pays for the centre, the rest for the radius.

    >>> m = PrivateRange(epsilon=1.0)
    >>> m.beyond
    22
    >>> from incrowd.noise import SeededSource
    >>> centre, radius = m.release([10_000 + k for k in range(5000)], source=SeededSource(1))
    >>> 12_000 < centre < 13_000 and 2_500 <= radius <= 4_096
    True
    """

    epsilon: Number
    _: KW_ONLY
    relation: Relation = "add-remove"
    share: Number = 0.25

    def __post_init__(self) -> None:
        relation_named(self.relation)
        _ = self.middle, self.search

    @cached_property
    def split(self) -> tuple[Fraction, Fraction]:
        """The epsilon of each stage."""
        total, share = amount(self.epsilon, "epsilon"), share_of_epsilon(self.share)
        return total * share, total * (1 - share)

    @cached_property
    def middle(self) -> Quantile:
        """The median of codes, stage one."""
        return Quantile(self.split[0], low=-CODES, high=CODES, relation=self.relation)

    @property
    def beyond(self) -> int:
        """About how many values are left outside."""
        return math.ceil(16 / self.split[1])

    @cached_property
    def search(self) -> SparseVector:
        """The sparse vector of stage two."""
        return SparseVector(self.split[1], threshold=-self.beyond, monotone=True)

    @property
    def privacy(self) -> Guarantee:
        """What both stages guarantee together."""
        return self.middle.privacy + self.search.privacy

    def release(self, value: Any, source: Source | None = None) -> tuple[float, float]:
        """The centre and the radius of a list of numbers, one per unit."""
        numbers = read_column(value, "PrivateRange", self.relation != "add-remove")
        centre = value_of(int(self.middle.release(codes_of(numbers), source)))
        answers = self.search.release(questions(numbers, centre), source)
        place = len(answers) - 1 if answers[-1] else RADII.size - 1
        return centre, float(RADII[place])


def codes_of(values: Floats) -> NDArray[np.int64]:
    """Whole numbers in the order of the values; 0 for those below 2^-64 in size.

    >>> codes_of(np.array([-1.0, 0.0, 1.0, 1.5, 2.0])).tolist() == [-(64 << 20) - 1, 0, (64 << 20) + 1,
    ...     (64 << 20) + (1 << 19) + 1, (65 << 20) + 1]
    True
    """
    size = np.minimum(np.abs(values), np.nextafter(2.0**MOST, 0))
    part, exponent = np.frexp(size)
    octave = exponent.astype(np.int64) - 1 - LEAST
    code = (octave << BITS) + np.floor((2 * part - 1) * 2**BITS).astype(np.int64) + 1
    return np.where(size < 2.0**LEAST, 0, np.where(values < 0, -code, code))


def value_of(code: int) -> float:
    """The number of least size with this code."""
    if code == 0:
        return 0.0
    octave, part = divmod(abs(code) - 1, 1 << BITS)
    return math.copysign(math.ldexp(1 + part / 2**BITS, octave + LEAST), code)


def questions(values: Floats, centre: float) -> list[int]:
    """Minus the number of values further from the centre than each radius."""
    ordered = np.sort(np.abs(values - centre))
    nearer: list[int] = np.searchsorted(ordered, RADII, side="right").tolist()
    return [count - ordered.size for count in nearer]


def within(values: Floats, centre: float, radius: float) -> Floats:
    """Each value's place in its range, from -1 to 1; what lies outside is clamped."""
    with np.errstate(over="ignore"):
        return np.clip((values - centre) / radius, -1.0, 1.0)


def given_range(low: Number, high: Number) -> tuple[float, float]:
    """The centre and radius of bounds that were given; any floats near them serve."""
    least, most = binary(low, "low"), binary(high, "high")
    if least >= most:
        raise InvalidInput(f"low must be below high, but they are {shown(low)} and {shown(high)}.")
    if max(abs(least), abs(most)) > 2**500 or most - least < Fraction(1, 2**500):
        raise InvalidInput("low and high must lie within 2**500 of 0, and at least 2**-500 apart.")
    return float((least + most) / 2), float((most - least) / 2)
