"""Discrete Gaussian noise: P(X = x) proportional to exp(-x^2 / (2 sigma^2)) on all integers.

By rejection from the discrete Laplace law (Canonne, Kamath, Steinke 2020, algorithm 3): with
t = floor(sigma) + 1 and Y discrete Laplace of scale t, keep Y with probability
exp(-(|Y| - sigma^2/t)^2 / (2 sigma^2)). The product of that and exp(-|y|/t) is exp(-y^2 / (2 sigma^2)) times
a constant. Long arrays with one sigma use tables instead. Saturation is as for the discrete Laplace law.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import overload

import numpy as np
from numpy.typing import NDArray

from incrowd.noise import inversion
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
from incrowd.noise.compare import below, below_one
from incrowd.noise.exact import Bounds, exp_bounds
from incrowd.noise.gaussian_table import gaussian_table
from incrowd.noise.laplace_sampler import LONG
from incrowd.noise.source import Source, source_of


@overload
def discrete_gaussian(sigma: Real, size: None = None, *, source: Source | None = None) -> int: ...
@overload
def discrete_gaussian(
    sigma: RealArray, size: Shape, *, source: Source | None = None
) -> NDArray[np.int64]: ...
@overload
def discrete_gaussian(
    sigma: Reals, size: Size = None, *, source: Source | None = None
) -> NDArray[np.int64]: ...
def discrete_gaussian(
    sigma: RealArray, size: Size = None, *, source: Source | None = None
) -> int | NDArray[np.int64]:
    """Draw from P(X = x) proportional to exp(-x^2 / (2 sigma^2)), exactly.

    sigma: above 0, at most 2^50, taken at its exact value; an array gives every element its own. Without a
    size and with a single sigma the answer is a plain int, else an int64 array. Its variance is at most
    sigma^2.
    """
    if size is None and (one := single_scale(sigma, "sigma")) is not None:
        return _draw_one(one, source_of(source))
    parameter = scale_parameter(sigma, "sigma")
    count, shape = draws(size, parameter.shape)
    return _draw(parameter, count, source_of(source)).reshape(shape)


def _draw_one(sigma: Fraction, source: Source) -> int:
    s = max(as_float(sigma), 2.0**-1000)
    t = int(sigma) + 1
    scale, approx = Fraction(t), float(t)
    while True:
        y = inversion.laplace_one(scale, approx, source)
        z = min(abs(y) / s - s / approx, 64.0)
        # the error bound is that of `_accept`
        if below_one(math.exp(-0.5 * z * z), 2.0**-48, partial(_bounds, sigma, t, y), source):
            return y


def _bounds(sigma: Fraction, t: int, y: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits exp(-(|y| - sigma^2/t)^2 / (2 sigma^2))."""
    variance = sigma * sigma
    return exp_bounds((abs(y) - variance / t) ** 2 / (2 * variance), bits)


def _draw(sigma: Parameter, count: int, source: Source) -> NDArray[np.int64]:
    if sigma.shape is None and count >= LONG:
        return gaussian_table(sigma.exact(0)).draw(count, source)
    above = _floor(sigma) + 1
    if sigma.shape is None:
        return _fill(sigma, above, count, source)
    result = np.empty(count, dtype=np.int64)
    pending = np.arange(count)
    while pending.size:
        t = above[pending]
        y = inversion.laplace(Parameter(t.astype(np.float64), t.shape, t), pending.size, source)
        keep = _accept(sigma, pending, y, t, source)
        result[pending[keep]] = y[keep]
        pending = pending[~keep]
    return result


def _fill(sigma: Parameter, t: NDArray[np.int64], count: int, source: Source) -> NDArray[np.int64]:
    """Return `count` draws with one sigma: as any candidate may take any place, more are made than needed."""
    scale = Parameter(t.astype(np.float64), None, Fraction(int(t[0])))
    result = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        y = inversion.laplace(scale, (count - filled) * 3 // 2 + 8, source)
        kept = y[_accept(sigma, np.zeros(1, dtype=np.intp), y, t, source)][: count - filled]
        result[filled : filled + kept.size] = kept
        filled += kept.size
    return result


def _floor(sigma: Parameter) -> NDArray[np.int64]:
    """Return floor(sigma) exactly: the float64 value may have been rounded up to the next integer."""
    floor = np.floor(sigma.approx).astype(np.int64)
    for i in np.flatnonzero(floor == sigma.approx).tolist():
        floor[i] = int(sigma.exact(i))
    return floor


def _accept(
    sigma: Parameter, where: NDArray[np.intp], y: NDArray[np.int64], t: NDArray[np.int64], source: Source
) -> NDArray[np.bool_]:
    """Decide for each y with probability exp(-z^2/2), z = |y|/sigma - sigma/t.

    Error bound, with e = 2^-53: the two quotients have relative errors of at most 3e (of sigma, of |y| or
    t, of the division), their difference one of e more, so |dz| <= 4e (a + 1) with a = |y|/sigma and
    sigma/t < 1. Then |d exp(-z^2/2)| <= |z| exp(-z^2/2) |dz| + (2e z^2/2 + 16e) exp(-z^2/2). As
    a <= |z| + 1, z^2 exp(-z^2/2) < 0.74 and |z| exp(-z^2/2) < 0.61, all of it is below
    4e (0.74 + 2 0.61) + 0.74e + 16e < 32e = 2^-48. Beyond z = 64, where everything is below 2^-2900, z is
    cut off; so too for sigma below 2^-1000.
    """
    s = np.maximum(sigma.at(where), 2.0**-1000)
    z = np.abs(y) / s
    z -= s / t
    np.minimum(z, 64.0, out=z)
    z *= z
    z *= -0.5

    def exact(i: int) -> Bounds:
        own = i if sigma.shape is not None else 0
        return partial(_bounds, sigma.exact(int(where[own])), int(t[own]), int(y[i]))

    return below(np.exp(z), 2.0**-48, exact, source)
