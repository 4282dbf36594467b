"""Discrete Laplace and geometric noise: P(X = x) proportional to exp(-|x| / scale) on all integers.

Two routes give the same exact law. Long arrays with one scale use the digit tables; short ones and
per-element scales use inversion, for which nothing is prepared. Floating-point noise would break every
guarantee built on it (Mironov 2012); nothing here is rounded.

Draws saturate where 64 bits end: what is returned is the exact draw clamped to -2^62 - 1 .. 2^62, which
alters it with probability below exp(-4000) at the largest scale allowed. Where value + noise is itself
clamped to at most 2^61 in magnitude, for values no larger than that, this is post-processing.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

from incrowd.noise import digits, inversion
from incrowd.noise.arguments import (
    Parameter,
    Real,
    RealArray,
    Reals,
    Shape,
    Size,
    as_float,
    draws,
    scale_parameter,
    single_scale,
)
from incrowd.noise.source import Source, source_of

LONG = 1 << 15
"""From this many draws on, tables are worth making (they cost a few milliseconds, once for each scale)."""


@overload
def discrete_laplace(scale: Real, size: None = None, *, source: Source | None = None) -> int: ...
@overload
def discrete_laplace(scale: RealArray, size: Shape, *, source: Source | None = None) -> NDArray[np.int64]: ...
@overload
def discrete_laplace(
    scale: Reals, size: Size = None, *, source: Source | None = None
) -> NDArray[np.int64]: ...
def discrete_laplace(
    scale: RealArray, size: Size = None, *, source: Source | None = None
) -> int | NDArray[np.int64]:
    """Draw from P(X = x) = (1 - q)/(1 + q) q^|x|, q = exp(-1/scale), exactly.

    scale: above 0, at most 2^50; a float counts at its exact value, a Fraction as it is; an array gives every
    element its own. Without a size and with a single scale the answer is a plain int, else an int64 array.

    >>> from incrowd.noise import SeededSource
    >>> discrete_laplace(10, size=6, source=SeededSource(1)).dtype
    dtype('int64')
    """
    if size is None and (one := single_scale(scale)) is not None:
        return inversion.laplace_one(one, as_float(one), source_of(source))
    parameter = scale_parameter(scale)
    count, shape = draws(size, parameter.shape)
    return draw_laplace(parameter, count, source_of(source)).reshape(shape)


@overload
def geometric(scale: Real, size: None = None, *, source: Source | None = None) -> int: ...
@overload
def geometric(scale: RealArray, size: Shape, *, source: Source | None = None) -> NDArray[np.int64]: ...
@overload
def geometric(scale: Reals, size: Size = None, *, source: Source | None = None) -> NDArray[np.int64]: ...
def geometric(
    scale: RealArray, size: Size = None, *, source: Source | None = None
) -> int | NDArray[np.int64]:
    """Draw from P(G >= k) = exp(-k/scale) on 0, 1, 2, ..., exactly. Arguments as for `discrete_laplace`."""
    if size is None and (one := single_scale(scale)) is not None:
        return inversion.geometric_one(one, as_float(one), source_of(source))
    parameter = scale_parameter(scale)
    count, shape = draws(size, parameter.shape)
    if parameter.shape is None and count >= LONG:
        # X is G or its complement, so folding the complements back leaves G
        result = digits.tables(parameter.exact(0)).laplace(count, source_of(source))
        result ^= result >> 63
    else:
        result = inversion.geometric(parameter, count, source_of(source))
    return result.reshape(shape)


def draw_laplace(scale: Parameter, count: int, source: Source) -> NDArray[np.int64]:
    """Return `count` draws by whichever route is quicker."""
    if scale.shape is None and count >= LONG:
        return digits.tables(scale.exact(0)).laplace(count, source)
    return inversion.laplace(scale, count, source)
