"""The rho of each event against the Renyi divergences of its pair, from mass functions in 40 digits."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import conversions, events, ranges
from tests.privacy.truth import atoms, exact, moment

F = Fraction
ORDERS = [mp.mpf(x) for x in ("1.0001", "1.01", "1.1", "1.5", "2", "3", "5", "10", "30", "100", "1000")]


def least_rho(kind: str, values: tuple[float, ...]) -> mp.mpf:
    """The largest D_alpha / alpha over many orders, and the divergence at order 1."""
    rhos = [mp.log(moment(kind, values, a - 1)) / (a - 1) / a for a in ORDERS]
    if kind != "laplace":
        rhos.append(mp.fsum(x * m for x, m in atoms(kind, values)))
    return max(rhos)


@settings(deadline=None, max_examples=60)
@given(st.floats(0.001, 8), st.sampled_from([1, 2, 3, 7, 40]))
def test_chains_cost_their_divergence_and_no_less(epsilon: float, steps: int) -> None:
    event = events.DiscreteLaplace(Fraction(repr(epsilon)), steps)
    rho, truth = conversions.rho(event), least_rho("chain", (epsilon, float(steps)))
    assert rho is not None
    assert mp.mpf(rho.numerator) / rho.denominator >= truth * (1 - mp.mpf(10) ** -35)
    assert float(rho) == pytest.approx(float(truth), rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.001, 8))
def test_laplace_costs_its_divergence_and_no_less(epsilon: float) -> None:
    rho = conversions.rho(events.Laplace(Fraction(repr(epsilon))))
    e = exact(epsilon)
    truth = e - 1 + mp.exp(-e)
    assert rho is not None
    assert mp.mpf(rho.numerator) / rho.denominator >= truth >= least_rho("laplace", (epsilon,)) * (1 - 1e-25)
    assert float(rho) == pytest.approx(float(truth), rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, 6), st.integers(3, 200))
def test_many_categories_cost_no_less_than_every_order(epsilon: float, categories: int) -> None:
    rho = conversions.rho(events.RandomizedResponse(Fraction(repr(epsilon)), categories))
    truth = least_rho("categories", (epsilon, float(categories)))
    assert rho is not None
    assert float(rho) >= float(truth) * (1 - 1e-15)
    assert rho <= conversions.rho(events.Pure(Fraction(repr(epsilon))))  # type: ignore[operator]


def test_a_mutant_that_drops_the_last_digit_of_rho_is_caught() -> None:
    # The check above is sharp: a rho lower by one part in 10^8 falls below the divergence at order 1.
    truth = least_rho("chain", (0.7, 3.0))
    rho = conversions.rho(events.DiscreteLaplace(Fraction(7, 10), 3))
    assert rho is not None
    assert mp.mpf(rho.numerator) / rho.denominator * (1 - mp.mpf(10) ** -8) < truth


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
    rho, e = conversions.rho(events.BoundedRange(Fraction(repr(epsilon)))), exact(epsilon)
    assert rho is not None
    stated = mp.mpf(rho.numerator) / rho.denominator
    # The worst t at order 1, where the claim is attained, and others.
    worst = mp.log(mp.expm1(e) / e)
    for t in [worst, *(mp.mpf(share) * e for share in shares)]:
        assert all(two_point_order(e, t, alpha) <= stated for alpha in [mp.mpf(1), *ORDERS])
    assert stated <= two_point_order(e, worst, mp.mpf(1)) * (1 + mp.mpf("1e-9"))
    assert rho <= Fraction(repr(epsilon)) ** 2 / 8 * (1 + Fraction(1, 10**30))


@pytest.mark.parametrize(("epsilon", "known"), [(2, 0.47447), (4, 1.66985), (6, 3.22067)])
def test_bounded_range_at_large_epsilons_is_far_below_an_eighth(epsilon: int, known: float) -> None:
    rho = conversions.rho(events.BoundedRange(Fraction(epsilon)))
    assert rho is not None
    assert float(rho) == pytest.approx(known, abs=6e-6)


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-4, 30), st.floats(1e-3, 1e3), st.floats(0, 1))
def test_moments_of_bounded_range_are_the_worst_pair_of_each_order(e: float, c: float, share: float) -> None:
    big, order = exact(e), mp.mpf(c)
    cumulant = float(ranges.cumulant(Fraction(repr(e)), np.array([c]))[0])
    low, high = (mp.exp(big) - mp.exp(-order * big)), -mp.expm1(-order * big)
    best = mp.log(order * low / ((order + 1) * high))
    for t in (best, mp.mpf(share) * big):
        assert cumulant >= two_point_order(big, t, order + 1) * order * (order + 1)
    attained = float(two_point_order(big, best, order + 1) * order * (order + 1))
    assert cumulant <= attained * (1 + 1e-6) + 1e-12 * (1 + c) * (1 + c * e)


def test_permute_and_flip_costs_a_half() -> None:
    half = conversions.rho(events.Pure(Fraction(1, 10)))
    assert half is not None
    assert float(half) == pytest.approx(0.1**2 / 2, rel=1e-3)


@given(st.fractions(min_value=0, max_value=20), st.fractions(min_value=0, max_value=1))
def test_sampling_lowers_epsilon_and_never_below_its_formula(epsilon: Fraction, rate: Fraction) -> None:
    sampled = conversions.pure_epsilon(events.PoissonSubsampled(events.Pure(epsilon), rate))
    assert sampled is not None
    assert sampled <= epsilon
    truth = mp.log1p(mp.mpf(rate.numerator) / rate.denominator * mp.expm1(exact(float(epsilon))))
    assert float(sampled) >= float(truth) * (1 - 1e-12)


def test_tiny_and_huge_epsilons_stay_upper_bounds() -> None:
    for e in (Fraction(1, 10**30), Fraction(10**6)):
        for event in (events.Pure(e), events.Laplace(e), events.DiscreteLaplace(e, 5)):
            rho = conversions.rho(event)
            assert rho is not None
            assert rho >= min(e * e / 2, e) * Fraction(99, 100) - 1
            assert rho <= min(e * e / 2, e) * (1 + Fraction(1, 10**30))


VARIATIONS: list[tuple[events.Event, mp.mpf]] = [
    (events.Threshold(F("0.3")), mp.mpf("0.3")),
    (events.Pure(F("0.7")), mp.tanh(mp.mpf("0.35"))),
    (events.Approximate(F("0.7"), F("0.2")), mp.mpf("0.2") + mp.mpf("0.8") * mp.tanh(mp.mpf("0.35"))),
    (events.DiscreteLaplace(F("0.7"), 1), mp.tanh(mp.mpf("0.35"))),
    (events.BoundedRange(F("0.7")), mp.tanh(mp.mpf("0.175"))),
    (events.Laplace(F("0.7")), -mp.expm1(mp.mpf("-0.35"))),
    (events.RandomizedResponse(F("0.7"), 5), mp.expm1(mp.mpf("0.7")) / (mp.exp(mp.mpf("0.7")) + 4)),
    (
        events.PoissonSubsampled(events.Laplace(F("0.7")), F("0.2")),
        mp.mpf("0.2") * -mp.expm1(mp.mpf("-0.35")),
    ),
    (events.PoissonGroup(events.Laplace(F("0.7")), F("0.2")), mp.mpf("0.2") * -mp.expm1(mp.mpf("-0.35"))),
    (events.PoissonUnits(events.Pure(F("0.7")), F("0.2"), 3), mp.mpf("0.6") * mp.tanh(mp.mpf("0.35"))),
    (events.WithoutReplacement(events.Pure(F("0.7")), F("0.2"), 3), mp.mpf("0.6") * mp.tanh(mp.mpf("0.35"))),
]


@pytest.mark.parametrize(("event", "truly"), VARIATIONS)
def test_total_variation_is_the_formula_rounded_up(event: events.Event, truly: mp.mpf) -> None:
    variation = conversions.variation(event)
    stated = mp.mpf(variation.numerator) / variation.denominator
    assert truly - mp.mpf(10) ** -35 <= stated <= truly * (1 + mp.mpf(10) ** -14)


def test_total_variation_of_noise_without_an_epsilon_is_bounded() -> None:
    level = NormalDist()
    for mu in ("0.001", "0.5", "2"):
        truly = 2 * level.cdf(float(mu) / 2) - 1
        variation = float(conversions.variation(events.Gaussian(F(mu))))
        assert truly <= variation <= float(mu) / math.sqrt(2 * math.pi) * (1 + 1e-4)
        # The least rho of Gaussian noise is mu^2 / 2: what holds of zCDP holds of it.
        assert truly <= float(conversions.variation(events.ZeroConcentrated(F(mu) ** 2 / 2)))
    assert conversions.variation(events.Gaussian(F(3))) == 1
    # Pinsker: sqrt(rho / 2); Bretagnolle and Huber: 1 - exp(-rho) / 2.
    assert float(conversions.variation(events.ZeroConcentrated(F("0.02")))) == pytest.approx(0.1, rel=1e-12)
    assert float(conversions.variation(events.ZeroConcentrated(F(2)))) == pytest.approx(
        1 - math.exp(-2) / 2, rel=1e-12
    )
    assert conversions.variation(events.ZeroConcentrated(F(10**9))) <= 1
    assert conversions.variation(events.ZeroConcentrated(F(10**9))) > 1 - F(1, 10**40)


def test_tiny_and_huge_variations_stay_upper_bounds() -> None:
    tiny = F(1, 10**12)
    for event, truly in (
        (events.Pure(tiny), tiny / 2),
        (events.Laplace(tiny), tiny / 2),
        (events.BoundedRange(tiny), tiny / 4),
        (events.RandomizedResponse(tiny, 4), tiny / 4),
    ):
        assert truly * (1 - F(1, 10**10)) <= conversions.variation(event) <= truly * (1 + F(1, 10**7))
    for event in (events.Pure(F(10**6)), events.Laplace(F(10**6)), events.RandomizedResponse(F(10**6), 4)):
        assert 1 - F(1, 10**30) <= conversions.variation(event) <= 1
    many = events.PoissonUnits(events.Pure(F(9)), F(1, 2), 10)
    assert conversions.variation(many) == 1
    assert conversions.variation(events.WithoutReplacement(events.Pure(F(9)), F(1, 2), 10)) == 1


def test_the_epsilon_of_what_is_run_on_a_sample() -> None:
    one = math.log1p(0.2 * math.expm1(0.7))
    base, rate = events.Pure(F("0.7")), F("0.2")
    for event, truly in (
        (events.PoissonSubsampled(base, rate), one),
        (events.PoissonGroup(base, rate), one),
        (events.PoissonUnits(base, rate, 3), 3 * one),
        (events.WithoutReplacement(base, rate, 3), 3 * one),
        (events.Threshold(rate), 0.0),
        (events.Approximate(F("0.7"), rate), 0.7),
        (events.BoundedRange(F("0.7")), 0.7),
    ):
        assert float(conversions.pure_epsilon(event)) == pytest.approx(truly, rel=1e-14)
    noise = events.Gaussian(F(1))
    assert conversions.pure_epsilon(noise) is None
    assert conversions.pure_epsilon(events.ZeroConcentrated(F(1))) is None
    for kind in (events.PoissonSubsampled, events.PoissonGroup, events.WithoutReplacement):
        assert conversions.pure_epsilon(kind(noise, rate)) is None
    assert conversions.pure_epsilon(events.PoissonUnits(noise, rate, 2)) is None
    assert conversions.amplified(F(20000), rate) == 20000
    assert conversions.amplified(F(3), F(1)) == 3
    assert conversions.amplified(F(0), rate) == 0


def test_everybody_in_the_sample_is_as_many_units_as_differ() -> None:
    rate = F(1, 5)
    assert conversions.whole(events.PoissonUnits(events.Gaussian(F(2)), rate, 3)) == events.Gaussian(F(6))
    assert conversions.whole(events.PoissonUnits(events.Laplace(F(2)), rate, 3)) == events.Laplace(F(6))
    chain = events.DiscreteLaplace(F(2), 4)
    assert conversions.whole(events.WithoutReplacement(chain, rate, 3)) == events.DiscreteLaplace(F(6), 12)
    assert conversions.whole(events.PoissonUnits(events.Pure(F(2)), rate, 3)) == events.DiscreteLaplace(
        F(6), 3
    )
    assert conversions.whole(events.PoissonSubsampled(events.Pure(F(2)), rate)) == events.Pure(F(2))
    assert conversions.mu(events.PoissonUnits(events.Gaussian(F(2)), rate, 3)) == 6
    assert conversions.mu(events.Gaussian(F(2))) == 2
    assert conversions.mu(events.Pure(F(2))) is None
    assert conversions.delta_mass(events.Approximate(F(2), rate)) == rate
    assert conversions.delta_mass(events.Threshold(rate)) == rate
    assert conversions.delta_mass(events.Pure(F(2))) == 0


def test_the_rho_of_a_sample_is_the_less_of_its_noise_and_of_its_epsilon() -> None:
    rate = F(1, 5)
    assert conversions.rho(events.PoissonSubsampled(events.Gaussian(F(2)), rate)) == 2
    assert conversions.rho(events.PoissonUnits(events.Gaussian(F(2)), rate, 3)) == 18
    one = math.log1p(0.2 * math.expm1(2))
    assert float(conversions.rho(events.PoissonSubsampled(events.Pure(F(2)), rate))) == pytest.approx(
        one * math.tanh(one / 2), rel=1e-13
    )
    # Laplace noise of 10 on nearly everybody: its divergence 9 + exp(-10) is below the pure one.
    near = events.PoissonSubsampled(events.Laplace(F(10)), F(999, 1000))
    assert float(conversions.rho(near)) == pytest.approx(9 + math.exp(-10), rel=1e-12)
    assert conversions.rho(events.Threshold(rate)) == 0
    assert conversions.rho(events.ZeroConcentrated(rate)) == rate


@pytest.mark.parametrize(("epsilon", "rate"), [(0.01, 0.1), (1.0, 1e-3), (1e-6, 1e-6), (5.0, 0.5)])
def test_a_sampled_release_costs_its_formula_and_hardly_more(epsilon: float, rate: float) -> None:
    cost = conversions.amplified(F(repr(epsilon)), F(repr(rate)))
    truth = mp.log1p(exact(rate) * mp.expm1(exact(epsilon)))
    assert truth <= mp.mpf(cost.numerator) / cost.denominator <= truth * (1 + mp.mpf(10) ** -12)


def test_more_categories_cost_less() -> None:
    costs = [conversions.rho(events.RandomizedResponse(F(1), categories)) for categories in (2, 10, 100)]
    assert costs == sorted(costs, key=float, reverse=True)
    assert float(costs[2]) < 0.5 * float(costs[0])
