from __future__ import annotations

import math

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    Guarantee,
    approximate,
    bounded_range,
    compare,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    zcdp,
)

MIXED = laplace(0.05) * 50 + gaussian(1 / 20) * 50 + bounded_range(0.1) * 10 + randomized_response(0.1) * 20


def figures(plan: Guarantee, delta: float = 1e-6) -> dict[str, float]:
    return {row.method: row.epsilon for row in compare(plan, delta)}


def test_the_columns_of_the_reference_rows() -> None:
    first = figures(laplace(0.01) * 1000)
    assert first == pytest.approx(
        {"basic": 10, "advanced": 1.763, "optimal homogeneous": 1.3654, "zCDP": 1.469, "exact": 1.36292},
        rel=3e-4,
    )
    second = figures(gaussian(0.1) * 100)
    assert second["zCDP"] == pytest.approx(5.2215, abs=1e-4)
    assert second["basic"] == pytest.approx(49.3, abs=0.05)
    assert second["advanced"] == pytest.approx(59.6, rel=0.01)
    assert second["optimal homogeneous"] == pytest.approx(34.1, rel=0.01)


def advanced(epsilon: float, count: int, kept: float) -> float:
    """The formula of the theorem for equal releases."""
    return math.sqrt(2 * math.log(1 / kept) * count) * epsilon + count * epsilon * math.expm1(epsilon)


def test_pure_releases_keep_all_of_delta_for_composition() -> None:
    epsilons = figures(pure(0.1) * 10)
    assert 1.0 <= epsilons["basic"] <= 1 + 1e-14
    assert epsilons["advanced"] == pytest.approx(advanced(0.1, 10, 1e-6), rel=1e-12)
    assert epsilons["advanced"] >= advanced(0.1, 10, 1e-6)
    assert epsilons["optimal homogeneous"] == epsilons["exact"]


@pytest.mark.parametrize(("own", "kept"), [(1e-8, 9e-7), (1.001e-8, 5e-7), (5e-8, 5e-7), (9e-8, 1e-7)])
def test_releases_with_a_delta_leave_the_largest_share_that_is_free(own: float, kept: float) -> None:
    epsilons = figures(approximate(0.1, own) * 10)
    assert epsilons["basic"] == pytest.approx(1.0, rel=1e-12)
    assert epsilons["advanced"] == pytest.approx(advanced(0.1, 10, kept), rel=1e-12)
    assert epsilons["optimal homogeneous"] == (pure(0.1) * 10).epsilon(kept)
    total = 10 * (0.1 * math.tanh(0.05))
    mass = -math.expm1(10 * math.log1p(-own))
    assert epsilons["zCDP"] == pytest.approx(zcdp(total).epsilon((1e-6 - mass) / (1 - mass)), rel=1e-6)


def test_releases_without_an_epsilon_get_equal_parts_of_delta() -> None:
    plan = gaussian(0.1) * 3 + gaussian(0.2)
    parts = [gaussian(mu).epsilon(2.5e-7) for mu in (0.1, 0.2)]
    assert figures(plan)["basic"] == pytest.approx(3 * parts[0] + parts[1], rel=1e-12)
    # The best of three shares: 9/10 of delta for the releases and 1/10 for composition, and so on.
    tried = []
    for kept in (1e-7, 5e-7, 9e-7):
        one, two = (gaussian(mu).epsilon((1e-6 - kept) / 4) for mu in (0.1, 0.2))
        drift = 3 * one * math.expm1(one) + two * math.expm1(two)
        tried.append(math.sqrt(2 * math.log(1 / kept) * (3 * one**2 + two**2)) + drift)
    assert figures(plan)["advanced"] == pytest.approx(min(tried), rel=1e-6)


def test_where_a_theorem_does_not_apply_it_says_nothing() -> None:
    assert figures(pure(300))["advanced"] == math.inf
    assert figures(pure(299))["advanced"] < math.inf
    assert figures(poisson(gaussian(1), 0.1))["zCDP"] == math.inf
    assert figures(laplace(0.1) + threshold(1e-6))["zCDP"] == math.inf
    assert figures(laplace(0.1) + threshold(1e-6))["basic"] == pytest.approx(0.1)
    assert figures(gaussian(0.1) + threshold(1e-6))["basic"] == math.inf
    assert figures(gaussian(0.1) + threshold(9e-7))["basic"] < math.inf


@pytest.mark.parametrize("plan", [pure(1.0), MIXED, laplace(0.3) * 7 + threshold(1e-8), Guarantee()])
def test_the_exact_figure_is_never_above_another(plan: Guarantee) -> None:
    epsilons = figures(plan)
    assert all(epsilons["exact"] <= value * (1 + 1e-9) for value in epsilons.values())


def test_more_delta_than_there_is_leaves_no_answer() -> None:
    assert all(math.isinf(value) for value in figures(pure(1.0) + threshold(1e-3)).values())
    for delta in (0.0, 1.0):
        with pytest.raises(InvalidInput, match="between 0 and 1"):
            compare(pure(1.0), delta)
