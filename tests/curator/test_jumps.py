"""Half-widths of noise with rare jumps: exact where the law is known, and honest about the far tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from incrowd.curator.jumps import FAR_CHANCE, FAR_WIDTHS, MANY, reach


@given(st.floats(1e-3, 1e9), st.floats(0.5, 0.999), st.floats(0, 1e9))
def test_without_jumps_it_is_the_half_width_of_laplace_noise(
    scale: float, confidence: float, jump: float
) -> None:
    (half,) = reach(np.array([scale]), np.zeros(1), jump, confidence)
    assert half == pytest.approx(-math.log1p(-confidence) * scale, rel=1e-6)


@given(st.just(0.0) | st.floats(1e-3, 1e6), st.floats(0, 1e4), st.floats(0, 1e6), st.floats(0.01, 0.999))
def test_any_law_has_a_half_width_and_more_jumps_or_noise_no_smaller_one(
    scale: float, rate: float, jump: float, confidence: float
) -> None:
    halves = reach(np.array([scale, scale + 1.0]), np.array([rate, rate]), jump, confidence)
    assert np.all(np.isfinite(halves)) and np.all(halves >= -math.log1p(-confidence) * scale * (1 - 1e-6))


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.001, 0.02, 0.3, 3.0, 25.0, 100.0])
@pytest.mark.parametrize("jump", [1.0, 6.0, 60.0])
def test_errors_are_inside_as_often_as_stated(rate: float, jump: float) -> None:
    """200,000 errors. Fails by chance with a probability below 1e-7, from below and from above.

    Where the half-width is that of 95% (no far tail to mind), no more than 95.5% may be inside. Beyond MANY
    jumps a normal law is taken as Laplace noise, which is a little wider.
    """
    draws = 200_000
    random = np.random.default_rng(int(1_000 * rate + jump))
    errors = random.laplace(0, 1, draws) + jump * (random.poisson(rate, draws) - rate)
    (half,) = reach(np.ones(1), np.array([rate]), jump, 0.95)
    inside = int((np.abs(errors) <= half).sum())
    assert binom.cdf(inside, draws, 0.9497) > 1e-7
    (far,) = reach(np.ones(1), np.array([rate]), jump, 1 - FAR_CHANCE)
    if half > 1.001 * far / FAR_WIDTHS and rate * jump < 0.1:
        assert binom.sf(inside, draws, 0.955) > 1e-7
    if rate <= MANY:
        beyond = int((np.abs(errors) > FAR_WIDTHS * half).sum())
        assert binom.sf(beyond - 1, draws, FAR_CHANCE) > 1e-7


def test_a_rare_jump_widens_only_as_far_as_the_far_tail_asks() -> None:
    """One group in ten thousand holds a unit that loses a thousand times the noise's scale."""
    (half,) = reach(np.ones(1), np.array([1e-4]), 1_000.0, 0.95)
    assert 1_000 / FAR_WIDTHS <= half <= 1_020 / FAR_WIDTHS
    (rarer,) = reach(np.ones(1), np.array([1e-8]), 1_000.0, 0.95)
    assert rarer == pytest.approx(math.log(20), rel=1e-3)
