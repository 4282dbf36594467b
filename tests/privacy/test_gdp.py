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
    delta = gdp.delta(mu, epsilon)
    assert delta >= truth
    assert delta <= truth * (1 + mp.mpf(10) ** -10)


@pytest.mark.parametrize("mu", [0.01, 0.9, 1.1, 9.0, 10.5, 12.0, 30.0])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.9])
def test_delta_near_one_is_a_close_upper_bound(mu: float, share: float) -> None:
    # Below mu^2 / 2 more than half of the mass tells the pair apart, up to Phi(15) here.
    epsilon = mu * mu / 2 * share
    with mp.workdps(60):
        truth = gaussian_delta(mp.mpf(mu), mp.mpf(epsilon))
        delta = mp.mpf(gdp.delta(mu, epsilon))
        assert truth <= delta <= truth * (1 + mp.mpf(10) ** -10)
        # What is missing to 1 is close as well, as far as floats near 1 can tell.
        assert 1 - delta >= (1 - truth) * (1 - mp.mpf(10) ** -6) - mp.mpf(10) ** -13


@pytest.mark.parametrize("deviations", [37.0, 38.0, 38.4, 38.5])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_delta_too_small_for_ordinary_floats_stays_above_the_truth(mu: float, deviations: float) -> None:
    epsilon = mu * mu / 2 + mu * deviations
    with mp.workdps(60):
        truth = gaussian_delta(mp.mpf(mu), mp.mpf(epsilon))
        assert (
            truth
            <= mp.mpf(gdp.delta(mu, epsilon))
            <= truth * (1 + mp.mpf(10) ** -10) + 12 * mp.mpf(2) ** -1074
        )
    assert gdp.delta(mu, mu * mu / 2 + mu * 39) == 2.0**-1074


def test_the_ends_of_the_curve() -> None:
    assert gdp.delta(0.0, 0.0) == gdp.delta(-1.0, 1.0) == 0.0
    assert gdp.delta(100.0, 0.0) == 1.0
    # Total variation at epsilon 0: 2 Phi(mu / 2) - 1.
    assert gdp.delta(1.0, 0.0) == pytest.approx(0.38292492254802624, rel=1e-12)
    assert gdp.epsilon(1.0, 0.38292492255) == 0.0
    assert 0 < gdp.epsilon(1.0, 0.3829249) < 1e-6
    assert gdp.epsilon(1e200, 1e-6) == float("inf")


def test_the_noise_grows_with_the_sensitivity() -> None:
    one = gdp.least_sigma(1, 1e-6)
    assert one == pytest.approx(4.2246788, rel=1e-7)
    assert gdp.least_sigma(1, 1e-6, 3) == pytest.approx(3 * one, rel=1e-14)
    # A fraction that no float is still gets enough noise.
    assert gaussian_delta(1 / mp.mpf(one * (1 - 1e-12)), mp.mpf(1)) > mp.mpf("1e-6")


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
