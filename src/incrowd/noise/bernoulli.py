"""Coins with exact probabilities: P(true) = p, and P(true) = exp(-x)."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.arguments import (
    Parameter,
    Real,
    RealArray,
    Reals,
    Shape,
    Size,
    as_float,
    draws,
    parameter,
    single,
)
from incrowd.noise.compare import below, below_one
from incrowd.noise.exact import Bounds, exp_bounds, rational_bounds
from incrowd.noise.source import Source, source_of


@overload
def bernoulli(p: Real, size: None = None, *, source: Source | None = None) -> bool: ...
@overload
def bernoulli(p: RealArray, size: Shape, *, source: Source | None = None) -> NDArray[np.bool_]: ...
@overload
def bernoulli(p: Reals, size: Size = None, *, source: Source | None = None) -> NDArray[np.bool_]: ...
def bernoulli(p: RealArray, size: Size = None, *, source: Source | None = None) -> bool | NDArray[np.bool_]:
    """Draw true with probability p, exactly: a float counts at its exact value, a Fraction as it is.

    >>> bernoulli(1), bernoulli(0.0)
    (True, False)
    """
    if size is None and (one := single(p, "probability")) is not None:
        if not 0 <= one <= 1:
            raise InvalidInput(f"The probability must be between 0 and 1, not {as_float(one):g}.")
        return below_one(float(one), 2.0**-53, rational_bounds(one), source_of(source))
    probability = parameter(p, "probability")
    _within(probability, 1, "probability", "between 0 and 1")
    count, shape = draws(size, probability.shape)
    estimate = np.broadcast_to(probability.approx, count) if probability.shape is None else probability.approx
    result = below(estimate, 2.0**-53, lambda i: rational_bounds(probability.exact(i)), source_of(source))
    return result.reshape(shape)


@overload
def bernoulli_exp(x: Real, size: None = None, *, source: Source | None = None) -> bool: ...
@overload
def bernoulli_exp(x: RealArray, size: Shape, *, source: Source | None = None) -> NDArray[np.bool_]: ...
@overload
def bernoulli_exp(x: Reals, size: Size = None, *, source: Source | None = None) -> NDArray[np.bool_]: ...
def bernoulli_exp(
    x: RealArray, size: Size = None, *, source: Source | None = None
) -> bool | NDArray[np.bool_]:
    """Draw true with probability exp(-x) for x >= 0, exactly.

    Error bound: a relative error of 2^-53 in x moves exp(-x) by at most x exp(-x) 2^-53 < 2^-54; the
    exponential itself adds 2^-49.

    >>> bernoulli_exp(0)
    True
    """
    if size is None and (one := single(x, "exponent")) is not None:
        if one < 0:
            raise InvalidInput(f"The exponent must be at least 0, not {as_float(one):g}.")
        estimate = math.exp(-min(as_float(one), 700.0))
        return below_one(estimate, 2.0**-48, lambda bits: exp_bounds(one, bits), source_of(source))
    exponent = parameter(x, "exponent")
    _within(exponent, None, "exponent", "at least 0")
    count, shape = draws(size, exponent.shape)
    estimates = np.exp(-np.minimum(exponent.approx, 700.0))
    if exponent.shape is None:
        estimates = np.broadcast_to(estimates, count)

    def exact(i: int) -> Bounds:
        value = exponent.exact(i)
        return lambda bits: exp_bounds(value, bits)

    result = below(estimates, 2.0**-48, exact, source_of(source))
    return result.reshape(shape)


def _within(values: Parameter, most: int | None, name: str, expected: str) -> None:
    """Refuse values below 0 or above `most`; at the very border the exact value decides."""
    low, high = values.approx.min(initial=0.5), values.approx.max(initial=0.5)
    if low <= 0.0 or (most is not None and high >= most):
        for i in range(values.approx.size):
            exact = values.exact(i)
            if exact < 0 or (most is not None and exact > most):
                raise InvalidInput(f"The {name} must be {expected}, not {values.approx[i]:g}.")
