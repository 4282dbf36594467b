import threading
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from incrowd.noise import (
    SeededSource,
    SystemSource,
    digits,
    discrete_laplace,
    discrete_laplace_pmf,
    discrete_laplace_sf,
    geometric,
    inversion,
)
from incrowd.noise.arguments import parameter

from .fit import LEVEL, chi_square, p_value, spread

SCALES = [0.1, Fraction(1, 3), 2.0**-20, 1, 10, 12345.678, 1e6, 1e12]
SYSTEM = SystemSource()


def by_tables(scale, count):
    return digits.tables(Fraction(scale)).laplace(count, SYSTEM)


def by_inversion(scale, count):
    return inversion.laplace(parameter(scale, "scale"), count, SYSTEM)


def by_scales(scale, count):
    return discrete_laplace([scale] * count)


def one_by_one(scale, count):
    return np.array([discrete_laplace(scale) for _ in range(count)])


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("route", "count"),
    [(by_tables, 400_000), (by_inversion, 200_000), (by_scales, 20_000), (one_by_one, 5_000)],
)
def test_each_route_follows_the_exact_law(scale, route, count):
    draws = route(scale, count)
    assert draws.dtype == np.int64
    assert p_value(draws, partial(discrete_laplace_sf, scale=scale), spread(float(scale), 8)) > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [20_000, 200_000])
def test_geometric_follows_the_exact_law(scale, count):
    draws = geometric(scale, count)
    assert draws.min() >= 0

    def survival(k):
        return np.where(k < 0, 1.0, np.exp(-(np.maximum(k, -1) + 1) / float(scale)))

    edges = [edge for edge in spread(float(scale), 8) if edge >= 0]
    assert p_value(draws, survival, edges) > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1, 12345.678, 1e12])
def test_both_routes_agree_with_each_other(scale):
    first, second = by_tables(scale, 200_000), by_inversion(scale, 200_000)
    edges = np.unique(np.quantile(first, np.linspace(0.02, 0.98, 49)).astype(np.int64))
    table = np.array(
        [np.bincount(np.searchsorted(edges, part), minlength=edges.size + 1) for part in (first, second)]
    )
    # given the pooled counts, each half is expected in each cell
    pooled = table.sum(axis=0)
    statistic = ((table - pooled / 2) ** 2 / np.maximum(pooled / 2, 1)).sum()
    from scipy import stats

    assert stats.chi2.sf(statistic, edges.size) > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [100, 12345.678])
def test_digits_sign_and_top_follow_their_exact_joint_law(scale):
    draws = by_tables(scale, 500_000)
    values = np.arange(-int(45 * scale), int(45 * scale))

    def cell(x):
        g = x ^ (x >> 63)
        return ((g & 255) >> 5) + 8 * ((g >> 8 & 255) >> 5) + 64 * np.minimum(g >> 16, 2) + 192 * (x < 0)

    expected = (
        np.bincount(cell(values), weights=discrete_laplace_pmf(values, scale), minlength=384) * draws.size
    )
    assert abs(expected.sum() / draws.size - 1) < 1e-9
    assert chi_square(np.bincount(cell(draws), minlength=384), expected) > LEVEL


@pytest.mark.statistical
def test_digits_are_independent_pair_by_pair():
    # at scale 1e12 the five lower digits are nearly uniform: 256 equal pairs of high nibbles
    draws = by_tables(1e12, 300_000)
    g = draws ^ (draws >> 63)
    nibbles = [(g >> (8 * j + 4)) & 15 for j in range(4)] + [g & 15]
    for i in range(5):
        for j in range(i):
            counts = np.bincount(nibbles[i] * 16 + nibbles[j], minlength=256)
            rows, columns = counts.reshape(16, 16).sum(axis=1), counts.reshape(16, 16).sum(axis=0)
            expected = np.outer(rows, columns).ravel() / draws.size
            assert chi_square(counts, expected) > LEVEL / 10


@pytest.mark.statistical
def test_every_element_has_its_own_scale():
    scales = np.tile([0.5, 20.0, 3e7, 2.0**50], 20_000)
    draws = discrete_laplace(scales)
    for i, scale in enumerate([0.5, 20.0, 3e7, 2.0**50]):
        survival = partial(discrete_laplace_sf, scale=scale)
        assert p_value(draws[i::4], survival, spread(scale, 6)) > LEVEL / 4


def test_shapes_types_and_empties():
    assert type(discrete_laplace(3)) is int and type(geometric(Fraction(1, 3))) is int
    assert type(discrete_laplace(np.float64(2))) is int and type(discrete_laplace(np.array(2))) is int
    assert discrete_laplace(3, 0).shape == (0,) and discrete_laplace([]).shape == (0,)
    assert discrete_laplace(3, (2, 0, 5)).shape == (2, 0, 5)
    assert discrete_laplace(3, (4, 5)).shape == (4, 5) and discrete_laplace(3, ()).shape == ()
    assert discrete_laplace(np.ones((2, 3))).shape == (2, 3) and geometric(
        [1, Fraction(1, 3), 2.5], 3
    ).shape == (3,)


def test_a_seed_repeats_and_tables_do_not_change_with_use():
    for count in (5, 40_000):
        first = discrete_laplace(7, count, source=SeededSource(3))
        assert (first == discrete_laplace(7, count, source=SeededSource(3))).all()


def test_threads_share_tables_safely():
    digits.tables.cache_clear()
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(discrete_laplace(900, 40_000))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({result.tobytes() for result in results}) == 4


@pytest.mark.statistical
def test_tiny_scales_give_zero():
    # P(X != 0) < 2 exp(-10^6)
    for scale in (1e-6, 5e-324, Fraction(1, 10**500)):
        assert not discrete_laplace(scale, 50_000).any() and not discrete_laplace(scale, 100).any()
        assert discrete_laplace(scale) == 0 and geometric(scale) == 0
