"""The Gaussian mechanism: its lemma at visible scales, its calibration, its masses, and mutants."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import INTEGERS, Gaussian, textbook_sigma
from incrowd.noise import discrete_gaussian_pmf
from incrowd.privacy import gdp
from tests.mechanisms.checks import FAILURE, smallest_delta, surprise


def exact_delta(mu, epsilon, digits=40):
    """delta of mu-GDP with many digits (Balle, Wang 2018, Theorem 8)."""
    with mpmath.workdps(digits):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def discrete_masses(sigma, shift, reach):
    y = np.arange(-reach, reach + 1)
    return discrete_gaussian_pmf(y - shift, sigma)


@pytest.mark.parametrize(("sigma", "radius"), [(3.0, 1.5), (5.0, 1.5), (8.0, 2.0), (2.5, 1.3)])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_smoothing_lemma_holds_where_it_can_be_seen(sigma, radius, shift):
    """At a few steps of noise the radius matters; t is below 1e-13 for these radii."""
    mu = shift / math.sqrt(sigma**2 - radius**2)
    reach = int(14 * sigma) + shift
    p, q = discrete_masses(sigma, 0, reach), discrete_masses(sigma, shift, reach)
    for epsilon in np.linspace(0, 3 * mu + mu**2, 25):
        assert smallest_delta(p, q, epsilon) <= float(exact_delta(mu, epsilon)) + 1e-12


@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (3, 0), (1, 4)])
def test_the_smoothing_lemma_holds_for_two_coordinates(shifts):
    sigma, radius = 3.0, 1.5
    mu = math.hypot(*shifts) / math.sqrt(sigma**2 - radius**2)
    p = discrete_masses(sigma, 0, 45)
    joint = np.multiply.outer(p, p).ravel()
    moved = np.multiply.outer(*(discrete_masses(sigma, s, 45) for s in shifts)).ravel()
    for epsilon in np.linspace(0, 4, 15):
        assert smallest_delta(joint, moved, epsilon) <= float(exact_delta(mu, epsilon)) + 1e-12


def test_without_smoothing_discrete_noise_is_not_as_private_as_continuous_noise():
    """Why the lemma gives up r: at sigma = 0.6 the claim mu = 1 / sigma would be false."""
    p, q = discrete_masses(0.6, 0, 20), discrete_masses(0.6, 1, 20)
    gaps = [smallest_delta(p, q, e) - float(exact_delta(1 / 0.6, e)) for e in np.linspace(0, 8, 80)]
    assert max(gaps) > 1e-3


@given(st.floats(0.01, 30), st.floats(-14, -0.5), st.integers(1, 40))
def test_the_calibration_meets_epsilon_and_delta_and_wastes_nothing(epsilon, exponent, sensitivity):
    delta = 10**exponent
    m = Gaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert exact_delta(m.mu, epsilon) <= delta
    assert exact_delta(m.mu * (1 + 1e-6), epsilon) >= delta * (1 - 1e-9)
    # and the noise is as wide as mu needs, smoothing included, to nine digits
    sigma = m.sigma_in_fine_steps
    smooth = mpmath.sqrt(mpmath.mpf(float(sigma)) ** 2 - 64**2)
    assert sensitivity * 2**m.fine / smooth < m.mu < sensitivity * 2**m.fine / smooth * (1 + 1e-8)
    assert sigma >= 2**20


@given(st.floats(1e-4, 20), st.floats(0.01, 100))
def test_a_rho_is_met(rho, sensitivity):
    m = Gaussian(rho=rho, sensitivity=sensitivity)
    assert m.privacy.rho <= rho
    assert math.isclose(m.privacy.rho, rho, rel_tol=1e-9)
    assert math.isclose(m.noise_scale, sensitivity / math.sqrt(2 * rho), rel_tol=1e-5)


@given(st.floats(0.02, 1e6), st.integers(1, 5))
def test_a_scale_states_the_mu_it_buys(scale, sensitivity):
    m = Gaussian(scale=scale, sensitivity=sensitivity)
    exact = Fraction(sensitivity) ** 2 / (
        (m.sigma_in_fine_steps / 2**m.fine) ** 2 - Fraction(64, 2**m.fine) ** 2
    )
    assert Fraction(m.mu) ** 2 > exact * (1 + Fraction(1, 2**53))
    assert math.isclose(m.mu, sensitivity / scale, rel_tol=1e-8)
    assert m.noise_scale == pytest.approx(scale, rel=1e-15)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 4), st.sampled_from([1e-2, 1e-4, 1e-7]), st.integers(1, 4), st.integers(-5, 5))
def test_the_exact_delta_of_released_integers_is_within_the_claim(epsilon, delta, sensitivity, value):
    m = Gaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    y = np.arange(-400, 401)
    p = m.pmf(y, value)
    assert p.sum() == pytest.approx(1, abs=1e-11)
    exact = smallest_delta(p, m.pmf(y, value + sensitivity), epsilon)
    assert exact <= delta * (1 + 1e-6) + 1e-13
    assert exact <= gdp.delta(m.mu, epsilon) * (1 + 1e-6) + 1e-13


def test_the_fine_lattice_is_tight():
    """The noise itself, before rounding: 2^21 points; the claim is reached to eight digits."""
    m = Gaussian(epsilon=3.0, delta=1e-5, sensitivity=1)
    sigma, shift = float(m.sigma_in_fine_steps), 2**m.fine
    # delta of a shift is P(Z <= t) - e^eps P(Z <= t - shift) at the crossing point of the two masses
    crossing = math.floor(shift / 2 - 3.0 * sigma**2 / shift)
    y = np.arange(crossing - int(5 * sigma), crossing + 1)
    p = discrete_gaussian_pmf(y, sigma).sum()
    q = discrete_gaussian_pmf(y - shift, sigma).sum()
    assert p - math.exp(3) * q == pytest.approx(1e-5, rel=1e-6)
    assert p - math.exp(3) * q <= 1e-5 * (1 + 1e-9)


def test_a_mutant_calibrated_by_the_textbook_beyond_epsilon_1_is_caught():
    """The bug: sigma = sqrt(2 ln(1.25/delta)) / epsilon used where its proof ends."""
    epsilon, delta = 16.0, 0.3
    sigma = 1000 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    y = np.arange(-2000, 3000)
    honest = Gaussian(epsilon=epsilon, delta=delta, sensitivity=1000)
    mutant = Gaussian(scale=sigma)
    assert smallest_delta(mutant.pmf(y, 0), mutant.pmf(y, 1000), epsilon) > delta
    assert smallest_delta(honest.pmf(y, 0), honest.pmf(y, 1000), epsilon) <= delta
    with pytest.raises(InvalidInput, match="below 1"):
        textbook_sigma(1.0, 1e-6)


def test_a_mutant_calibrated_to_one_coordinate_is_caught():
    """The bug: the L2 sensitivity of one coordinate where two of them move."""
    m = Gaussian(epsilon=1.0, delta=1e-3, sensitivity=1)
    y = np.arange(-40, 41)
    p, q = m.pmf(y, 0), m.pmf(y, 1)
    assert smallest_delta(np.outer(p, p), np.outer(q, q), 1.0) > 1e-3
    wide = Gaussian(epsilon=1.0, delta=1e-3, sensitivity=math.sqrt(2), grid=INTEGERS)
    p, q = wide.pmf(y, 0), wide.pmf(y, 1)
    assert smallest_delta(np.outer(p, p), np.outer(q, q), 1.0) <= 1e-3


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.5, 40.0])
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
def test_the_guarantee_as_stated_holds_what_was_asked_for(epsilon, delta):
    m = Gaussian(epsilon=epsilon, delta=delta, sensitivity=3)
    assert m.privacy.delta(epsilon) <= delta
    assert m.privacy.epsilon(delta) <= epsilon * (1 + 1e-9)


def test_analytic_beats_the_textbook():
    for epsilon in (0.1, 0.5, 0.99):
        assert Gaussian(epsilon=epsilon, delta=1e-6).noise_scale < textbook_sigma(epsilon, 1e-6)


@given(st.floats(0.1, 10), st.floats(0.01, 10), st.sampled_from([None, 0.25, 1.0]), st.data())
def test_reals_on_a_grid_keep_the_claim_after_flooring(rho, sensitivity, grid, data):
    size = data.draw(st.integers(1, 4))
    m = Gaussian(rho=rho, sensitivity=sensitivity, grid=grid, size=size)
    one = data.draw(st.lists(st.floats(-1e3, 1e3), min_size=size, max_size=size))
    way = data.draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size))
    length = math.sqrt(sum(w * w for w in way)) or 1.0
    other = [x + 0.999999 * sensitivity * w / length for x, w in zip(one, way, strict=True)]
    apart = m.lattice.steps(one, "Gaussian") - m.lattice.steps(other, "Gaussian")
    squared = sum(int(a) ** 2 for a in apart) * Fraction(4) ** m.fine
    assert squared / (m.sigma_in_fine_steps**2 - 64**2) <= Fraction(m.mu) ** 2


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_released_integers_follow_the_stated_masses_and_a_mutant_does_not(scale):
    """Fails by chance below 1e-7."""
    m = Gaussian(scale=scale, sensitivity=1)
    reach = int(12 * scale) + 3
    released = m.release(np.full(40_000, -3))
    cells = np.clip(released + 3, -reach, reach + 1) + reach
    y = -3 + np.arange(-reach, reach + 1)
    assert surprise(cells, m.pmf(y, -3)) > FAILURE
    assert surprise(cells, Gaussian(scale=scale * 1.06).pmf(y, -3)) < 1e-9


@pytest.mark.statistical
def test_wide_noise_has_the_stated_spread():
    """No rounding is needed at a scale of 2^25; fails by chance below 1e-7."""
    m = Gaussian(scale=2.0**25)
    assert m.fine == 0
    released = m.release(np.zeros(40_000, int))
    cells = np.clip(np.floor(released / 2.0**23) + 20, 0, 40).astype(int)
    edges = (np.arange(42) - 20) * 2.0**23
    from scipy.stats import norm

    stated = np.diff(norm.cdf(np.append(np.append(-np.inf, edges[1:-1]), np.inf) / 2.0**25))
    assert surprise(cells, stated) > FAILURE


@given(st.floats(0.05, 50), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_the_halfwidth_covers_and_is_nearly_the_least(scale, confidence):
    m = Gaussian(scale=scale, sensitivity=1)
    h = m.halfwidth(confidence)
    y = np.arange(-h, h + 1)
    assert m.pmf(y).sum() >= confidence - 1e-12
    assert h == 0 or m.pmf(y[1:-1]).sum() < confidence + 1e-5


def test_integers_in_integers_out_reals_in_reals_out():
    m = Gaussian(rho=0.5)
    assert type(m.release(4)) is int and m.release([1, 2]).dtype == np.int64
    r = Gaussian(rho=0.5, sensitivity=1.0, size=3)
    assert type(r.release(0.5)) is float and r.release([1.5, 2, 3]).dtype == np.float64
    assert m.then(abs).release(-3) >= 0 and m.then(abs).privacy == m.privacy
    assert Gaussian(rho=0.5) == Gaussian(rho=0.5)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon": 1.0},
        {"delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "rho": 1.0},
        {"rho": 1.0, "scale": 1.0},
        {"epsilon": 1.0, "delta": 0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": -1e-6},
        {"epsilon": 0, "delta": 1e-6},
        {"epsilon": float("nan"), "delta": 1e-6},
        {"epsilon": "1", "delta": 1e-6},
        {"rho": 0},
        {"rho": float("inf")},
        {"rho": 1e9},
        {"scale": 0},
        {"scale": 1e-4},
        {"scale": 1e17},
        {"rho": 1, "sensitivity": 0},
        {"rho": 1, "sensitivity": float("nan")},
        {"rho": 1, "sensitivity": 1.0, "size": 0},
        {"rho": 1, "sensitivity": 1.0, "grid": 0.7},
    ],
)
def test_bad_parameters_get_one_sentence(given):
    with pytest.raises(InvalidInput) as caught:
        Gaussian(**given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [1.5, "1", None, float("nan"), True])
def test_bad_values_get_one_sentence(value):
    with pytest.raises(InvalidInput):
        Gaussian(rho=1).release(value)
    with pytest.raises(InvalidInput, match="size="):
        Gaussian(rho=1, sensitivity=1.0).release([1.0, 2.0])
