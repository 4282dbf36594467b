import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

from incrowd.noise import (
    SystemSource,
    discrete_gaussian,
    discrete_gaussian_pmf,
    discrete_gaussian_sf,
    gaussian_sampler,
)
from incrowd.noise.arguments import parameter
from incrowd.noise.gaussian_table import _keep_bounds, gaussian_table

from .fit import LEVEL, Script, chi_square, p_value, spread

SIGMAS = [0.1, Fraction(1, 3), 2.0**-20, 0.9, 1, 10, 64.5, 12345.678, 1e6, 1e12]
SYSTEM = SystemSource()


def by_tables(sigma, count):
    return gaussian_table(Fraction(sigma)).draw(count, SYSTEM)


def by_rejection(sigma, count):
    return np.concatenate([discrete_gaussian(sigma, 25_000) for _ in range(count // 25_000)])


def by_sigmas(sigma, count):
    return discrete_gaussian([sigma] * count)


def one_by_one(sigma, count):
    return np.array([discrete_gaussian(sigma) for _ in range(count)])


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize(
    ("route", "count"),
    [(by_tables, 400_000), (by_rejection, 200_000), (by_sigmas, 20_000), (one_by_one, 4_000)],
)
def test_each_route_follows_the_exact_law(sigma, route, count):
    draws = route(sigma, count)
    assert draws.dtype == np.int64
    assert p_value(draws, partial(discrete_gaussian_sf, sigma=sigma), spread(float(sigma), 4)) > LEVEL


@pytest.mark.statistical
def test_low_bits_sign_and_top_follow_their_exact_joint_law():
    sigma = 300  # three bits are split off
    draws = by_tables(sigma, 500_000)
    values = np.arange(-40 * sigma, 40 * sigma)

    def cell(x):
        g = x ^ (x >> 63)
        return (g & 7) + 8 * np.minimum(g >> 6, 15) + 128 * (x < 0)

    expected = np.bincount(cell(values), weights=discrete_gaussian_pmf(values, sigma), minlength=256)
    assert chi_square(np.bincount(cell(draws), minlength=256), expected * draws.size) > LEVEL


@pytest.mark.parametrize(
    ("sigma", "y"), [(Fraction(5, 2), 4), (Fraction(1, 3), 0), (Fraction(10**12), 3 * 10**12)]
)
def test_an_undecided_acceptance_is_settled_by_the_following_bits(sigma, y):
    t = math.floor(sigma) + 1
    with mpmath.workprec(400):
        s = mpmath.mpf(sigma.numerator) / sigma.denominator
        bits = int(mpmath.floor(mpmath.exp(-((abs(y) - s * s / t) ** 2) / (2 * s * s)) * mpmath.mpf(2) ** 96))
    word, rest = bits >> 64, bits & (2**64 - 1)
    for following, answer in [(rest - 5, True), (rest + 5, False)]:
        script = Script(word, following)
        kept = gaussian_sampler._accept(
            parameter(sigma, "sigma"), np.array([0]), np.array([y]), np.array([t], dtype=np.int64), script
        )
        assert kept.tolist() == [answer] and script.left == []


def test_table_candidates_are_kept_with_the_ratio_of_the_masses():
    sigma, corner = Fraction(1000), 32
    for beyond in (0, 1, 16):
        lo, hi = _keep_bounds(sigma, corner, beyond, 200)
        with mpmath.workprec(400):
            ratio = mpmath.exp(mpmath.mpf(corner**2 - (corner + beyond) ** 2) / (2 * 1000**2))
            assert lo <= ratio * mpmath.mpf(2) ** 200 <= hi


def test_the_floor_of_sigma_is_that_of_its_exact_value():
    just_below = 3 - Fraction(1, 10**30)
    assert gaussian_sampler._floor(parameter([just_below, 3, 3 + Fraction(1, 10**30)], "sigma")).tolist() == [
        2,
        3,
        3,
    ]


@pytest.mark.statistical
def test_every_element_has_its_own_sigma():
    sigmas = [Fraction(1, 2), 20, 3e7, 2.0**50]
    draws = discrete_gaussian(sigmas * 10_000)
    for i, sigma in enumerate(sigmas):
        survival = partial(discrete_gaussian_sf, sigma=sigma)
        assert p_value(draws[i::4], survival, spread(float(sigma), 4)) > LEVEL / 4


def test_shapes_types_and_empties():
    assert type(discrete_gaussian(3)) is int and discrete_gaussian(3, 0).shape == (0,)
    assert discrete_gaussian([]).shape == (0,) and discrete_gaussian(3, (2, 3)).shape == (2, 3)
    assert discrete_gaussian(np.ones((2, 3))).dtype == np.int64


def test_tiny_sigmas_give_zero():
    # P(X != 0) < 3 exp(-5 10^11)
    for sigma in (1e-6, 5e-324, Fraction(1, 10**500)):
        assert not discrete_gaussian(sigma, 50_000).any() and not discrete_gaussian(sigma, 100).any()
        assert discrete_gaussian(sigma) == 0
