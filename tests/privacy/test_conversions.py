"""The rho of each event against the Renyi divergences of its pair, from mass functions in 40 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import conversions, events, ranges
from tests.privacy.truth import atoms, exact, moment

ORDERS = [mp.mpf(x) for x in ("1.0001", "1.01", "1.1", "1.5", "2", "3", "5", "10", "30", "100", "1000")]


def least_rho(kind: str, values: tuple[float, ...]) -> mp.mpf:
    """The largest D_alpha / alpha over many orders, and the divergence at order 1."""
    found = [mp.log(moment(kind, values, a - 1)) / (a - 1) / a for a in ORDERS]
    if kind != "laplace":
        found.append(mp.fsum(x * m for x, m in atoms(kind, values)))
    return max(found)


@settings(deadline=None, max_examples=60)
@given(st.floats(0.001, 8), st.sampled_from([1, 2, 3, 7, 40]))
def test_chains_cost_their_divergence_and_no_less(epsilon: float, steps: int) -> None:
    event = events.DiscreteLaplace(Fraction(repr(epsilon)), steps)
    found, truth = conversions.rho(event), least_rho("chain", (epsilon, float(steps)))
    assert found is not None
    assert mp.mpf(found.numerator) / found.denominator >= truth * (1 - mp.mpf(10) ** -35)
    assert float(found) == pytest.approx(float(truth), rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.001, 8))
def test_laplace_costs_its_divergence_and_no_less(epsilon: float) -> None:
    found = conversions.rho(events.Laplace(Fraction(repr(epsilon))))
    e = exact(epsilon)
    truth = e - 1 + mp.exp(-e)
    assert found is not None
    assert (
        mp.mpf(found.numerator) / found.denominator >= truth >= least_rho("laplace", (epsilon,)) * (1 - 1e-25)
    )
    assert float(found) == pytest.approx(float(truth), rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, 6), st.integers(3, 200))
def test_many_categories_cost_no_less_than_every_order(epsilon: float, categories: int) -> None:
    found = conversions.rho(events.RandomizedResponse(Fraction(repr(epsilon)), categories))
    truth = least_rho("categories", (epsilon, float(categories)))
    assert found is not None
    assert float(found) >= float(truth) * (1 - 1e-15)
    assert found <= conversions.rho(events.Pure(Fraction(repr(epsilon))))  # type: ignore[operator]


def test_a_mutant_that_drops_the_last_digit_of_rho_is_caught() -> None:
    # The check above is sharp: a rho lower by one part in 10^8 falls below the divergence at order 1.
    truth = least_rho("chain", (0.7, 3.0))
    found = conversions.rho(events.DiscreteLaplace(Fraction(7, 10), 3))
    assert found is not None
    assert mp.mpf(found.numerator) / found.denominator * (1 - mp.mpf(10) ** -8) < truth


def two_point_order(e: mp.mpf, t: mp.mpf, alpha: mp.mpf) -> mp.mpf:
    """D_alpha / alpha of outcomes of log-ratio t and t - e, from the masses; alpha = 1 is the divergence."""
    p = (mp.exp(e) - mp.exp(t)) / mp.expm1(e)
    if alpha == 1:
        return p * t + (1 - p) * (t - e)
    total = p * mp.exp((alpha - 1) * t) + (1 - p) * mp.exp((alpha - 1) * (t - e))
    return mp.log(total) / (alpha - 1) / alpha


@settings(deadline=None, max_examples=60)
@given(st.one_of(st.floats(1e-6, 1e-3), st.floats(1e-3, 40)), st.lists(st.floats(0, 1), min_size=5))
def test_bounded_range_costs_no_less_than_any_pair_at_any_order(epsilon: float, shares: list[float]) -> None:
    found, e = conversions.rho(events.BoundedRange(Fraction(repr(epsilon)))), exact(epsilon)
    assert found is not None
    stated = mp.mpf(found.numerator) / found.denominator
    # The worst t at order 1, where the claim is attained, and others.
    worst = mp.log(mp.expm1(e) / e)
    for t in [worst, *(mp.mpf(share) * e for share in shares)]:
        assert all(two_point_order(e, t, alpha) <= stated for alpha in [mp.mpf(1), *ORDERS])
    assert stated <= two_point_order(e, worst, mp.mpf(1)) * (1 + mp.mpf("1e-9"))
    assert found <= Fraction(repr(epsilon)) ** 2 / 8 * (1 + Fraction(1, 10**30))


@pytest.mark.parametrize(("epsilon", "known"), [(2, 0.47447), (4, 1.66985), (6, 3.22067)])
def test_bounded_range_at_large_epsilons_is_far_below_an_eighth(epsilon: int, known: float) -> None:
    found = conversions.rho(events.BoundedRange(Fraction(epsilon)))
    assert found is not None
    assert float(found) == pytest.approx(known, abs=6e-6)


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-4, 30), st.floats(1e-3, 1e3), st.floats(0, 1))
def test_moments_of_bounded_range_are_the_worst_pair_of_each_order(e: float, c: float, share: float) -> None:
    big, order = exact(e), mp.mpf(c)
    found = float(ranges.cumulant(Fraction(repr(e)), np.array([c]))[0])
    low, high = (mp.exp(big) - mp.exp(-order * big)), -mp.expm1(-order * big)
    best = mp.log(order * low / ((order + 1) * high))
    for t in (best, mp.mpf(share) * big):
        assert found >= two_point_order(big, t, order + 1) * order * (order + 1)
    attained = float(two_point_order(big, best, order + 1) * order * (order + 1))
    assert found <= attained * (1 + 1e-6) + 1e-12 * (1 + c) * (1 + c * e)


def test_permute_and_flip_costs_a_half() -> None:
    half = conversions.rho(events.Pure(Fraction(1, 10)))
    assert half is not None
    assert float(half) == pytest.approx(0.1**2 / 2, rel=1e-3)


@given(st.fractions(min_value=0, max_value=20), st.fractions(min_value=0, max_value=1))
def test_sampling_lowers_epsilon_and_never_below_its_formula(epsilon: Fraction, rate: Fraction) -> None:
    found = conversions.pure_epsilon(events.PoissonSubsampled(events.Pure(epsilon), rate))
    assert found is not None
    assert found <= epsilon
    truth = mp.log1p(mp.mpf(rate.numerator) / rate.denominator * mp.expm1(exact(float(epsilon))))
    assert float(found) >= float(truth) * (1 - 1e-12)


def test_tiny_and_huge_epsilons_stay_upper_bounds() -> None:
    for e in (Fraction(1, 10**30), Fraction(10**6)):
        for event in (events.Pure(e), events.Laplace(e), events.DiscreteLaplace(e, 5)):
            found = conversions.rho(event)
            assert found is not None
            assert found >= min(e * e / 2, e) * Fraction(99, 100) - 1
            assert found <= min(e * e / 2, e) * (1 + Fraction(1, 10**30))
