"""Moments of events and the bounds made of them: not below the truth, and close where they are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import events, renyi
from tests.privacy import truth

ORDERS = np.array([0.25, 1.0, 4.0, 30.0])
F = Fraction


@pytest.mark.parametrize(
    ("event", "kind", "values"),
    [
        (events.Pure(F("0.7")), "pure", (0.7,)),
        (events.Approximate(F("0.7"), F(1, 10)), "pure", (0.7,)),
        (events.Laplace(F("0.7")), "laplace", (0.7,)),
        (events.DiscreteLaplace(F("0.7"), 4), "chain", (0.7, 4.0)),
        (events.RandomizedResponse(F("0.7"), 5), "categories", (0.7, 5.0)),
        (events.Gaussian(F("0.7")), "gaussian", (0.7,)),
    ],
)
def test_moments_are_exact_for_events_with_a_pair(
    event: events.Event, kind: str, values: tuple[float, ...]
) -> None:
    for c, cumulant in zip(ORDERS, renyi.event_cumulant(event, ORDERS), strict=True):
        exact = truth.mp.log(truth.moment(kind, values, truth.mp.mpf(float(c))))
        assert exact <= cumulant <= exact * (1 + 1e-12) + 1e-14


def test_what_has_no_pair_is_bounded_by_its_rho_and_its_epsilon() -> None:
    assert renyi.event_cumulant(events.ZeroConcentrated(F("0.3")), ORDERS) == pytest.approx(
        0.3 * ORDERS * (ORDERS + 1), rel=1e-14
    )
    # Rare samples of a pure release: at large orders the loss is at most log(1 + q (e^epsilon - 1)).
    sampled = events.PoissonSubsampled(events.Pure(F(1)), F(1, 10))
    most = math.log1p(0.1 * math.expm1(1.0))
    assert renyi.event_cumulant(sampled, np.array([1e4]))[0] == pytest.approx(1e4 * most, rel=1e-12)
    assert renyi.event_cumulant(sampled, np.array([1e4]))[0] >= 1e4 * most
    # The worst pair of bounded range 2 at order 2 (c = 1): log of the largest E exp(loss) over t.
    shares = np.linspace(0, 2, 200_001)
    masses = (math.exp(2) - np.exp(shares)) / math.expm1(2)
    worst = np.log(masses * np.exp(shares) + (1 - masses) * np.exp(shares - 2)).max()
    assert renyi.event_cumulant(events.BoundedRange(F(2)), np.array([1.0]))[0] == pytest.approx(
        worst, rel=1e-9
    )


def test_huge_events_fall_back_to_their_epsilon() -> None:
    for event in (events.Pure(F(10**15)), events.BoundedRange(F(10**15)), events.Laplace(F(10**15))):
        assert renyi.event_cumulant(event, np.array([1.0]))[0] == pytest.approx(1e15, rel=1e-12)
    # Steps beyond the most are not computed: epsilon^2 / 2 c (c + 1) is left, hardly above the pair's.
    long = events.DiscreteLaplace(F(1, 100), 10**15)
    assert renyi.event_cumulant(long, np.array([1.0]))[0] == pytest.approx(1e-4, rel=1e-2)


def test_composition_adds_moments() -> None:
    both: dict[events.Event, int] = {events.Gaussian(F(1)): 3, events.Pure(F(1)): 2}
    one = math.log((math.exp(2) + math.exp(-1)) / (1 + math.e))
    assert renyi.cumulant(both, np.array([1.0]))[0] == pytest.approx(3 * 1 + 2 * one, rel=1e-13)
    # The sum itself is rounded up, on top of what each event was.
    parts = [n * F(float(renyi.event_cumulant(event, np.array([1.0]))[0])) for event, n in both.items()]
    assert F(float(renyi.cumulant(both, np.array([1.0]))[0])) > sum(parts) > F(3) + 2 * F(one)


def test_the_peak_of_the_bound() -> None:
    assert renyi.log_peak(np.array([1.0, 2.0])) == pytest.approx(
        [math.log(1 / 4), math.log(4 / 27)], rel=1e-15
    )


def gaussian(rho: float) -> renyi.Cumulant:
    return lambda c: rho * c * (c + 1)


def least(rho: float, epsilon: float) -> float:
    """delta of rho-zCDP by its moments, from a dense search over orders."""
    c = np.geomspace(0.01, 1000, 1_000_001)
    return float(np.exp((rho * c * (c + 1) - c * epsilon + c * np.log(c) - (c + 1) * np.log(c + 1)).min()))


def test_the_bounds_take_the_best_order() -> None:
    exact = least(0.1, 1.5)
    assert exact * (1 - 1e-9) <= renyi.delta_bound(gaussian(0.1), 1.5) <= exact * (1 + 1e-6)
    epsilon = renyi.epsilon_bound(gaussian(0.1), exact)
    assert epsilon == pytest.approx(1.5, rel=1e-7)
    assert 0.1 * (1 - 1e-6) <= renyi.zcdp_rho(1.5, exact) <= 0.1 * (1 + 1e-9)


def test_the_bounds_stay_in_their_ranges() -> None:
    assert renyi.delta_bound(gaussian(100.0), 0.0) == 1.0
    assert renyi.delta_bound(gaussian(1e-12), 1e6) > 0
    assert renyi.delta_bound(gaussian(1e-12), 1e6) < 1e-300
    assert renyi.epsilon_bound(gaussian(1e-9), 0.9999999) == 0.0
    assert renyi.epsilon_bound(lambda c: np.zeros_like(c), 0.5) == 0.0
    assert renyi.zcdp_rho(1e-9, 1e-300) >= 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (5.0, 0.01)])
def test_the_largest_rho_is_within_its_budget_and_no_more_is(epsilon: float, delta: float) -> None:
    rho = renyi.zcdp_rho(epsilon, delta)
    assert renyi.delta_bound(gaussian(rho), epsilon) <= delta
    assert least(rho * 1.00001, epsilon) > delta


def test_every_bound_is_moved_outwards(monkeypatch: pytest.MonkeyPatch) -> None:
    def curve(c: np.ndarray) -> np.ndarray:
        return c

    monkeypatch.setattr(renyi, "_least", lambda function: -3.0)
    assert math.exp(-3) * (1 + 1e-13) < renyi.delta_bound(curve, 1.0) < math.exp(-3) * (1 + 1e-11)
    monkeypatch.setattr(renyi, "_least", lambda function: 3.0)
    assert renyi.delta_bound(curve, 1.0) == 1.0
    assert 3 * (1 + 1e-14) < renyi.epsilon_bound(curve, 1e-6) < 3 * (1 + 1e-12)
    assert renyi.zcdp_rho(1.0, 1e-6) == 0.0
    monkeypatch.setattr(renyi, "_least", lambda function: -0.25)
    assert 0.25 * (1 - 1e-11) < renyi.zcdp_rho(1.0, 1e-6) < 0.25 * (1 - 1e-13)
    monkeypatch.setattr(renyi, "_least", lambda function: -math.inf)
    assert renyi.delta_bound(curve, 1.0) == 0.0
