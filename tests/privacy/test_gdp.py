from __future__ import annotations

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import gdp
from tests.privacy.truth import gaussian_delta


@settings(deadline=None, max_examples=150)
@given(st.floats(1e-4, 30), st.floats(0, 12))
def test_delta_is_a_close_upper_bound(mu: float, deviations: float) -> None:
    epsilon = mu * mu / 2 + mu * deviations
    with mp.workdps(60):
        truth = gaussian_delta(mp.mpf(mu), mp.mpf(epsilon))
    found = gdp.delta(mu, epsilon)
    assert found >= truth
    assert found <= truth * (1 + mp.mpf(10) ** -10)


@settings(deadline=None, max_examples=80)
@given(st.floats(1e-3, 20), st.floats(1e-14, 0.5))
def test_epsilon_and_mu_are_inverses_on_the_safe_side(mu: float, target: float) -> None:
    epsilon = gdp.epsilon(mu, target)
    assert gdp.delta(mu, epsilon) <= target
    if epsilon > 0:
        assert gdp.delta(mu, epsilon * (1 - 1e-9)) > target
        back = gdp.largest_mu(epsilon, target)
        assert back == pytest.approx(mu, rel=1e-7)
        assert gdp.delta(back, epsilon) <= target


def test_least_sigma_beats_the_textbook_and_holds_beyond_epsilon_one() -> None:
    assert gdp.least_sigma(0.5, 1e-6) < (2 * mp.log(1.25e6)) ** 0.5 / 0.5
    for epsilon in (0.1, 1.0, 10.0, 100.0):
        sigma = gdp.least_sigma(epsilon, 1e-6)
        assert gaussian_delta(1 / mp.mpf(sigma), mp.mpf(epsilon)) <= mp.mpf("1e-6")
