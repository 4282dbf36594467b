"""Mass functions and tails of the discrete laws, in float64: for accuracy statements and for tests.

Nothing is sampled with these. Relative errors are below 1e-12 wherever the value is a normal float (the tests
compare with 50 digits).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.arguments import Real, as_float, parameter, scale_parameter

Points = int | NDArray[Any]


def discrete_laplace_pmf(x: Points, scale: Real) -> Any:
    """P(X = x) = tanh(1/(2 scale)) exp(-|x|/scale).

    >>> round(discrete_laplace_pmf(0, 1), 6)
    0.462117
    """
    b = _scale(scale)
    with np.errstate(over="ignore", under="ignore"):
        return _plain(math.tanh(0.5 / b) * np.exp(-np.abs(_points(x, "x")) / b))


def discrete_laplace_sf(k: Points, scale: Real) -> Any:
    """P(X > k): q^(k+1) / (1 + q) for k >= 0, and 1 - q^(-k) / (1 + q) below, q = exp(-1/scale)."""
    b = _scale(scale)
    at = _points(k, "k")
    # P(X > k) = 1 - P(X > -1 - k) by symmetry
    far = np.where(at >= 0, at, -1 - at)
    with np.errstate(over="ignore", under="ignore"):
        tail = np.exp(-(far + 1) / b) / (1 + math.exp(-min(1 / b, 800.0)))
    return _plain(np.where(at >= 0, tail, 1 - tail))


def discrete_gaussian_pmf(x: Points, sigma: Real) -> Any:
    """P(X = x) = exp(-x^2 / (2 sigma^2)) / theta, theta the sum of that over all integers.

    >>> round(discrete_gaussian_pmf(0, 1), 6)
    0.398942
    """
    s = _scale(sigma)
    with np.errstate(over="ignore", under="ignore"):
        return _plain(np.exp(-0.5 * (_points(x, "x") / s) ** 2) / _theta(s))


def discrete_gaussian_sf(k: Points, sigma: Real) -> Any:
    """P(X > k), by adding up the mass for small sigma and by the Euler-Maclaurin formula for large.

    With f(x) = exp(-x^2 / (2 sigma^2)) and m = k + 1/2, the midpoint form is
    sum over j > k of f(j) = integral of f from m + f'(m)/24 - 7 f'''(m)/5760 + 31 f^(5)(m)/967680 - ...
    """
    s = _scale(sigma)
    at = _points(k, "k")
    far = np.where(at >= 0, at, -1 - at)
    tail = _tail_by_sum(far, s) if s < _SMOOTH else _tail_by_integral(far, s)
    return _plain(np.where(at >= 0, tail, 1 - tail))


_SMOOTH = 512.0


def _plain(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else values


def _points(x: Any, name: str) -> NDArray[np.float64]:
    """Points as float64, with a clamp where they are beyond its range."""
    points = parameter(np.asarray(x) if hasattr(x, "__array__") else x, name)
    return points.approx.reshape(points.shape or ())


def _scale(scale: Real) -> float:
    read = scale_parameter(scale)
    if read.approx.size != 1:
        raise InvalidInput("The scale of a mass function must be one number.")
    return max(as_float(read.exact(0)), 1e-300)


def _theta(s: float) -> float:
    """Sum of exp(-x^2 / (2 s^2)) over the integers; for s >= 1 by Poisson summation, one term being enough.

    theta = s sqrt(2 pi) (1 + 2 exp(-2 pi^2 s^2) + 2 exp(-8 pi^2 s^2) + ...).
    """
    if s >= 1:
        return s * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * s) ** 2) if s < 4 else 1)
    return 1 + 2 * sum(math.exp(-0.5 * min(j / s, 38.0) ** 2) for j in range(1, 41))


def _tail_by_sum(k: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    reach = math.ceil(39 * s) + 1  # beyond 39 sigma the mass is below the least float
    with np.errstate(over="ignore", under="ignore"):
        mass = np.exp(-0.5 * (np.arange(reach + 1, dtype=np.float64) / s) ** 2)
    tails = np.append(np.cumsum(mass[::-1])[::-1][1:], 0.0) / _theta(s)
    return np.asarray(tails[np.minimum(k, reach).astype(np.int64)])


def _tail_by_integral(k: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    from scipy.special import ndtr  # 0.3 seconds to import, so only where it is needed

    z = (k + 0.5) / s
    with np.errstate(over="ignore", under="ignore"):
        density = np.exp(-0.5 * z * z)
        z = np.minimum(z, 1e3)
        first = -z / s
        third = -(z**3 - 3 * z) / s**3
        fifth = -(z**5 - 10 * z**3 + 15 * z) / s**5
        series = density * (first / 24 - 7 * third / 5760 + 31 * fifth / 967680)
        integral = s * math.sqrt(2 * math.pi) * ndtr(-z)
    return np.asarray((integral + series) / _theta(s))
