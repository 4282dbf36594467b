"""Intervals of ratios: the true ratio is inside as often as stated, no less and no more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from incrowd.curator.ratios import Noise, interval, reach

KINDS = ("laplace", "gaussian")
CONFIDENCES = (0.5, 0.8, 0.95, 0.999)


def law(noise: Noise) -> Any:
    return (stats.laplace if noise.kind == "laplace" else stats.norm)(scale=noise.scale)


def chance_within(first: Noise, second: Noise, far: float) -> float:
    """P(|X + Y| <= far), by integrating over Y."""
    one, other = law(first), law(second)
    inside = lambda y: (one.cdf(far - y) - one.cdf(-far - y)) * other.pdf(y)  # noqa: E731
    edge = 40 * second.scale
    return float(integrate.quad(inside, -edge, edge, points=[-far, 0, far], limit=500)[0])


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.0, 0.01, 0.3, 0.99999, 1.0, -2.5, 100.0])
def test_two_noises_of_a_kind_reach_as_far_as_their_law_says(
    kind: str, factor: float, confidence: float
) -> None:
    first, second = Noise(kind, 3.0), Noise(kind, 2.0)
    far = float(reach(first, second, np.array(factor), confidence))
    scaled = Noise(kind, max(2.0 * abs(factor), 1e-9))
    assert chance_within(first, scaled, far) == pytest.approx(confidence, abs=3e-5)
    assert chance_within(first, scaled, far) >= confidence - 1e-7


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("kinds", [KINDS, KINDS[::-1]])
def test_two_kinds_of_noise_are_never_said_to_reach_too_little(
    kinds: tuple[str, str], confidence: float
) -> None:
    first, second = Noise(kinds[0], 3.0), Noise(kinds[1], 2.0)
    far = float(reach(first, second, np.array(1.0), confidence))
    assert chance_within(first, second, far / 3) < confidence <= chance_within(first, second, far)


SHAPES = [
    (300.0, 100.0, 10.0, 3.0),
    (0.0, 50.0, 5.0, 8.0),
    (30.0, 100.0, 40.0, 20.0),
    (-500.0, 80.0, 10.0, 1.0),
]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_true_ratio_is_inside_as_often_as_stated(
    kind: str, shape: tuple[float, float, float, float]
) -> None:
    """20,000 releases. The chance of more than 5.2 standard deviations is below 1e-6 over all cases."""
    total, rows, wide, narrow = shape
    noises = Noise(kind, wide), Noise(kind, narrow)
    seed = np.random.default_rng(5)
    sums, counts = (law(noise).rvs(20_000, random_state=seed) for noise in noises)
    low, high = interval(total + sums, rows + counts, noises, (-50.0, 50.0), 0.95)
    inside = np.mean((low <= total / rows) & (total / rows <= high))
    assert abs(inside - 0.95) < 5.5 * math.sqrt(0.05 * 0.95 / 20_000)


@given(
    st.floats(-1e9, 1e9),
    st.floats(-100, 1e9),
    st.sampled_from(KINDS),
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1e6),
    st.sampled_from(CONFIDENCES),
)
def test_an_interval_is_ordered_finite_within_its_bounds_and_holds_the_clamped_estimate(
    total: float, rows: float, kind: str, wide: float, narrow: float, confidence: float
) -> None:
    noises = Noise(kind, wide), Noise(kind, narrow)
    (low,), (high,) = interval(np.array([total]), np.array([rows]), noises, (-10.0, 20.0), confidence)
    assert -10.0 <= low <= high <= 20.0
    if rows > 0:
        estimate = min(max(total / rows, -10.0), 20.0)
        assert low - 1e-9 <= estimate <= high + 1e-9


def test_hardly_any_rows_tell_nothing() -> None:
    noises = Noise("laplace", 1.0), Noise("laplace", 1.0)
    low, high = interval(np.array([5.0, 5.0]), np.array([2.9, 3.1]), noises, (-10.0, 20.0), 0.95)
    assert (low[0], high[0]) == (-10.0, 20.0)
    assert low[1] > -10.0


def test_more_rows_are_asked_for_where_a_count_must_be_known_more_surely() -> None:
    """Laplace noise reaches 6.9 of its scales in 999 of 1,000 draws."""
    noises = Noise("laplace", 1.0), Noise("laplace", 1.0)
    sums, rows = np.array([5.0, 5.0]), np.array([6.8, 7.0])
    low, high = interval(sums, rows, noises, (-10.0, 20.0), 0.95, known=0.999)
    assert (low[0], high[0]) == (-10.0, 20.0)
    assert low[1] > -10.0
    assert interval(sums, rows, noises, (-10.0, 20.0), 0.95)[0][0] > -10.0


def test_many_rows_tell_almost_everything() -> None:
    noises = Noise("laplace", 1.0), Noise("laplace", 1e-6)
    low, high = interval(np.array([5e6]), np.array([1e6]), noises, (-10.0, 20.0), 0.95)
    assert high[0] - low[0] == pytest.approx(2 * math.log(20) / 1e6, rel=1e-3)
