"""Uniform integers below a bound, exact by rejection."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.arguments import Parameter, RealArray, Reals, Shape, Size, as_float, draws, parameter
from incrowd.noise.source import SYSTEM, Source

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
    values = parameter(high, "bound")
    bounds = _bounds(values)
    count, shape = draws(size, values.shape)
    result = draw_below(bounds, count, source or SYSTEM)
    return int(result[0]) if shape is None else result.reshape(shape)


def _bounds(values: Parameter) -> NDArray[np.uint64]:
    given = values.given
    if isinstance(given, np.ndarray) and given.dtype.kind == "i" and given.min(initial=1) >= 1:
        return given.astype(np.uint64)
    exact = [values.exact(i) for i in range(values.approx.size)]
    for bound in exact:
        if bound.denominator != 1 or not 1 <= bound <= 2**63:
            raise InvalidInput(f"The bound must be a whole number from 1 to 2^63, not {as_float(bound):g}.")
    return np.array([int(bound) for bound in exact], dtype=np.uint64)


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
