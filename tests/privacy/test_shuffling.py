"""The figures of shuffling against sums over every number of clones and heads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.privacy import shuffling


def chance(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def exact_delta(epsilon0: float, share: float, reports: int, epsilon: float) -> float:
    """The hockey stick of the pair in the theorem, outcome by outcome."""
    keep = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    total = 0.0
    for clones in range(reports):
        weight = chance(reports - 1, clones, share)
        # a heads of the clones and the person's own: a ranges to clones + 1.
        for a in range(clones + 2):
            one = chance(clones, a - 1, 0.5) if a else 0.0
            none = chance(clones, a, 0.5) if a <= clones else 0.0
            p, q = keep * one + (1 - keep) * none, (1 - keep) * one + keep * none
            total += weight * max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("reports", [1, 2, 3, 40])
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.45])
def test_delta_encloses_the_sum_over_outcomes(reports: int, epsilon0: float, epsilon: float) -> None:
    share = math.exp(-epsilon0)
    exact = exact_delta(epsilon0, share, reports, epsilon)
    delta = shuffling.delta(epsilon0, share, reports, epsilon, max(exact, 1e-9))
    assert exact * (1 - 1e-12) <= delta
    assert delta <= exact * 1.35 + 1e-12


def test_with_no_clones_it_is_the_local_guarantee() -> None:
    keep = 1 / (1 + math.exp(-1.0))
    for epsilon in (0.0, 0.5):
        exact = keep - math.exp(epsilon) * (1 - keep)
        delta = shuffling.delta(1.0, math.exp(-1.0), 1, epsilon, 0.1)
        assert exact <= delta <= exact * (1 + 1e-7)
    assert shuffling.delta(1.0, math.exp(-1.0), 1, 1.0, 0.1) == 0.0
    assert shuffling.delta(1.0, math.exp(-1.0), 1, 1.5, 0.1) == 0.0


@pytest.mark.parametrize("coins", [0, 1, 2, 7, 8])
def test_given_the_number_of_clones_delta_is_exact(coins: int) -> None:
    keep = math.exp(1.0) / (1 + math.exp(1.0))
    for epsilon in (0.0, 0.1, 0.3, 0.7):
        exact = 0.0
        for a in range(coins + 2):
            one = chance(coins, a - 1, 0.5) if a else 0.0
            none = chance(coins, a, 0.5) if a <= coins else 0.0
            p, q = keep * one + (1 - keep) * none, (1 - keep) * one + keep * none
            exact += max(0.0, p - math.exp(epsilon) * q)
        delta = float(shuffling._conditional(1.0, np.array([float(coins)]), epsilon)[0])
        assert exact * (1 - 1e-12) <= delta <= exact + 1e-7


@pytest.mark.parametrize("others", [40.0, 2e8])
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_chance_of_fewer_clones_is_bounded(others: float, share: float) -> None:
    mean, deviation = others * share, math.sqrt(others * share * (1 - share))
    coins = np.array(
        [0.0, math.floor(mean - 3 * deviation), math.floor(mean - deviation), math.floor(mean) + 2]
    )
    chances = shuffling._fewer(coins, others, share)
    if others == 40:
        exact = [sum(chance(40, k, share) for k in range(int(c))) for c in coins]
        assert np.all(chances >= np.array(exact) * (1 - 1e-12))
        assert chances == pytest.approx(exact, rel=1e-5, abs=1e-299)
    else:
        # The normal limit from below, and Chernoff's bound with the variance it states from above.
        gap = np.maximum(0.0, mean - coins)
        normal = [0.5 * math.erfc(z / math.sqrt(2)) for z in gap / deviation]
        assert np.all(chances[1:] >= np.array(normal)[1:] * 0.999)
        below = coins / others
        spread = np.where(below > 0.5, below * (1 - below), share * (1 - share) if share < 0.5 else 0.25)
        assert chances[:3] == pytest.approx(
            np.exp(-np.minimum(gap**2 / (2 * others * spread), 700))[:3], rel=1e-5
        )
        assert chances[3] == 1.0


@pytest.mark.parametrize(
    ("coins", "excess"), [(5, 1), (5, -3), (5, 5), (6, 0), (0, 0), (2000, 40), (2001, 41)]
)
def test_masses_of_coins(coins: int, excess: int) -> None:
    exact = math.comb(coins, (coins + excess) // 2) / 2**coins
    low, high = (
        float(shuffling._mass(np.array([float(coins)]), np.array([float(excess)]), sign)[0])
        for sign in (-1, 1)
    )
    assert low <= exact <= high
    assert high - low <= exact * 1e-7
    beyond = shuffling._mass(np.array([float(coins)]), np.array([coins + 2.0]), 1)
    assert beyond[0] == 0


@pytest.mark.parametrize("target", [0.05, 0.01])
def test_the_least_epsilon_is_within_its_target_and_no_less_is(target: float) -> None:
    share = math.exp(-1.0)
    epsilon = shuffling.least_epsilon(1.0, share, 40, target)
    assert exact_delta(1.0, share, 40, epsilon) <= target
    assert shuffling.delta(1.0, share, 40, epsilon, target) <= target
    assert shuffling.delta(1.0, share, 40, epsilon * (1 - 3e-7), target) > target * (1 - 1e-12)
    assert exact_delta(1.0, share, 40, epsilon * 0.9) > target
    assert shuffling.least_epsilon(1.0, share, 40, 0.9) == 0.0


def test_more_reports_than_are_counted_hide_no_more() -> None:
    def delta(reports: int) -> float:
        return shuffling.delta(1.0, math.exp(-1.0), reports, 2e-9, 1e-3)

    assert 0 < delta(10**18) == delta(10**18 + 1) == delta(10**30)
    assert delta(10**18) < delta(10**17)
