"""Uniform integers below a bound, exact by rejection."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.arguments import (
    Parameter,
    RealArray,
    Reals,
    Shape,
    Size,
    as_float,
    draws,
    parameter,
    single,
)
from incrowd.noise.source import Source, source_of

Whole = int | np.integer[Any]


@overload
def uniform(high: Whole, size: None = None, *, source: Source | None = None) -> int: ...
@overload
def uniform(high: RealArray, size: Shape, *, source: Source | None = None) -> NDArray[np.int64]: ...
@overload
def uniform(high: Reals, size: Size = None, *, source: Source | None = None) -> NDArray[np.int64]: ...
def uniform(high: RealArray, size: Size = None, *, source: Source | None = None) -> int | NDArray[np.int64]:
    """Draw an integer from 0, 1, ..., high - 1, all equally likely; many bounds give one draw each.

    >>> uniform(1)
    0
    """
    if size is None and (one := single(high, "bound")) is not None:
        return draw_one_below(_whole(one), source_of(source))
    values = parameter(high, "bound")
    bounds = _bounds(values)
    count, shape = draws(size, values.shape)
    return draw_below(bounds, count, source_of(source)).reshape(shape)


def _bounds(values: Parameter) -> NDArray[np.uint64]:
    bounds = values.values
    if isinstance(bounds, np.ndarray) and bounds.dtype.kind == "i" and bounds.min(initial=1) >= 1:
        return bounds.astype(np.uint64)
    return np.array([_whole(values.exact(i)) for i in range(values.approx.size)], dtype=np.uint64)


def _whole(bound: Fraction) -> int:
    if bound.denominator != 1 or not 1 <= bound.numerator <= 2**63:
        raise InvalidInput(f"The bound must be a whole number from 1 to 2^63, not {as_float(bound):g}.")
    return bound.numerator


def draw_one_below(bound: int, source: Source) -> int:
    """Return one uniform integer below a bound of at most 2^63, as `draw_below` does."""
    last = 2**64 - 1 - 2**64 % bound
    while True:
        word = int(source.words(1, np.uint64)[0])
        if word <= last:
            return word % bound


def draw_below(bounds: NDArray[np.uint64], count: int, source: Source) -> NDArray[np.int64]:
    """Return `count` uniform integers below `bounds` (one bound, or one for each draw).

    A word w is kept when it lies below the largest multiple of the bound h that fits into 64 bits, that is
    when w <= 2^64 - 1 - (2^64 mod h); then every remainder is equally likely. Less than half are redrawn.
    """
    excess = (np.uint64(2**64 - 1) % bounds + np.uint64(1)) % bounds
    last = np.uint64(2**64 - 1) - excess
    words = source.words(count, np.uint64)
    rejected = np.flatnonzero(words > last)
    if rejected.size:
        words = words.copy()
        while rejected.size:
            words[rejected] = source.words(rejected.size, np.uint64)
            rejected = rejected[words[rejected] > (last if last.size == 1 else last[rejected])]
    return (words % bounds).astype(np.int64)
