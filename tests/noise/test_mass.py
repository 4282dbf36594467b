from fractions import Fraction

import mpmath
import numpy as np
import pytest

from incrowd.errors import InvalidInput
from incrowd.noise import (
    discrete_gaussian_pmf,
    discrete_gaussian_sf,
    discrete_laplace_pmf,
    discrete_laplace_sf,
)

SCALES = [0.1, Fraction(1, 3), 1, 3.9, 10, 511.9, 512, 12345.678, 1e6, 1e12]


def points(scale):
    return sorted({int(z * float(scale)) for z in (0, 0.01, 0.5, 1, 2.5, 6, 12, 20, 35)} | {0, 1, 2})


def close(got, true):
    return abs(got - true) <= 1e-12 * true or true < 1e-300


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_mass_and_tail_to_twelve_digits(scale):
    with mpmath.workdps(60):
        b = mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator
        q = mpmath.exp(-1 / b)
        for k in points(scale):
            assert close(discrete_laplace_pmf(k, scale), (1 - q) / (1 + q) * q**k)
            assert discrete_laplace_pmf(-k, scale) == discrete_laplace_pmf(k, scale)
            assert close(discrete_laplace_sf(k, scale), q ** (k + 1) / (1 + q))
            assert close(discrete_laplace_sf(-k - 1, scale), 1 - q ** (k + 1) / (1 + q))


def added(k, s):
    return sum(mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * s * s)) for j in range(k + 1, k + int(40 * s) + 9))


def integrated(k, s):
    """Euler-Maclaurin about the midpoint to the eleventh derivative, by Hermite polynomials."""
    z = (k + mpmath.mpf(0.5)) / s
    hermite = [mpmath.mpf(1), z]
    for n in range(1, 12):
        hermite.append(z * hermite[n] - n * hermite[n - 1])
    total = s * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(z / mpmath.sqrt(2))
    for n in range(2, 13, 2):
        derivative = -hermite[n - 1] * mpmath.exp(-z * z / 2) / s ** (n - 1)
        total -= mpmath.bernpoly(n, mpmath.mpf(0.5)) / mpmath.factorial(n) * derivative
    return total


@pytest.mark.parametrize("sigma", SCALES)
def test_gaussian_mass_and_tail_to_twelve_digits(sigma):
    with mpmath.workdps(60):
        s = mpmath.mpf(Fraction(sigma).numerator) / Fraction(sigma).denominator
        theta = (
            mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * s * s))) if s < 30 else s * mpmath.sqrt(2 * mpmath.pi)
        )
        for k in points(sigma):
            assert close(
                discrete_gaussian_pmf(k, sigma), mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s * s)) / theta
            )
            tail = added(k, s) / theta if s <= 20 else integrated(k, s) / theta
            assert close(discrete_gaussian_sf(k, sigma), tail), k
            assert close(discrete_gaussian_sf(-k - 1, sigma), 1 - tail), k


def test_small_and_large_sigma_meet():
    for k in (0, 100, 2000):
        below, above = discrete_gaussian_sf(k, 511.9999999), discrete_gaussian_sf(k, 512)
        assert below == pytest.approx(above, rel=1e-7)


def test_masses_add_up_and_arrays_keep_their_shape():
    x = np.arange(-2000, 2001)
    for pmf, sf in (
        (discrete_laplace_pmf, discrete_laplace_sf),
        (discrete_gaussian_pmf, discrete_gaussian_sf),
    ):
        mass = pmf(x, 7.5)
        assert mass.shape == x.shape and mass.sum() == pytest.approx(1, abs=1e-13)
        assert np.allclose(1 - np.cumsum(mass), sf(x, 7.5), atol=1e-13)
        assert (
            type(pmf(3, 2)) is float
            and type(sf(3, 2)) is float
            and sf(10**9, 1) == 0.0
            and sf(-(10**9), 1) == 1.0
        )
        assert pmf(0, 1e-300) == 1.0 and pmf(1, Fraction(1, 10**400)) == 0.0


def test_a_wrong_scale_gets_a_sentence():
    for function in (discrete_laplace_pmf, discrete_laplace_sf, discrete_gaussian_pmf, discrete_gaussian_sf):
        with pytest.raises(InvalidInput, match="scale"):
            function(1, 0)
