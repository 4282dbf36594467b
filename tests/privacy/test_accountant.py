"""The accountant against truth in many digits, the reference figures, and the bugs of others."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import (
    Account,
    Guarantee,
    approximate,
    bounded_range,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    zcdp,
)
from tests.privacy import truth

CASES = 150


def some(rng: random.Random, low: float, high: float) -> float:
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.4g}")


def part(rng: random.Random, kinds: list[str], most: int) -> truth.Part:
    kind, epsilon, count = rng.choice(kinds), some(rng, 0.005, 2.0), int(some(rng, 1, most))
    if kind == "gaussian":
        return kind, (some(rng, 0.02, 1.0),), count
    if kind in ("laplace", "pure"):
        return kind, (epsilon,), count
    return kind, (epsilon, float(rng.choice([2, 3, 5]) + (kind == "categories"))), count


def composition(rng: random.Random) -> tuple[str, truth.Plan]:
    everything = ["gaussian", "laplace", "pure", "chain", "categories"]
    draw = rng.random()
    if draw < 0.6:
        return "gaussian", [part(rng, ["gaussian"], 300), *(part(rng, everything, 300) for _ in range(2))]
    if draw < 0.8:
        return "discrete", [part(rng, ["pure", "chain", "categories"], 12) for _ in range(rng.randint(1, 2))]
    plan: truth.Plan = [("laplace", (some(rng, 0.02, 2.0),), rng.randint(1, 6))]
    return "laplace", plan + [part(rng, ["pure", "categories"], 3) for _ in range(rng.randint(0, 1))]


def test_random_compositions_are_never_below_the_truth_and_a_millionth_above_at_most() -> None:
    rng = random.Random(20)
    done = 0
    while done < CASES:
        family, plan = composition(rng)
        delta = some(rng, 1e-12, 1e-3)
        epsilon = truth.guarantee(plan).epsilon(delta)
        if family == "gaussian":
            line = truth.GaussianTruth(plan, epsilon, most_nodes=250)
            if epsilon > 50 or not line.feasible:
                continue
            curve = line.delta
        elif family == "discrete":
            curve = lambda e, plan=plan: truth.discrete_delta(plan, e)  # noqa: E731
        else:
            curve = lambda e, p=plan: truth.laplace_delta(p[0][1][0], p[0][2], p[1:], e)  # noqa: E731
        assert curve(epsilon) <= truth.exact(delta), (plan, delta)
        if epsilon > 0:
            assert curve(epsilon * (1 - 1e-6)) >= truth.exact(delta), (plan, delta)
        done += 1


@pytest.mark.parametrize(
    ("mu", "rate", "delta", "beside"), [(1.0, 0.01, 1e-6, 0.0), (0.5, 0.2, 1e-9, 0.0), (0.5, 0.2, 1e-9, 0.3)]
)
def test_sampled_gaussians_are_never_below_the_truth(
    mu: float, rate: float, delta: float, beside: float
) -> None:
    epsilon = (poisson(gaussian(mu), rate) + gaussian(beside)).epsilon(delta)
    worst = max(truth.sampled_delta(mu, rate, beside, epsilon, d) for d in ("remove", "add"))
    assert worst <= truth.exact(delta)
    less = epsilon * (1 - 1e-6)
    assert max(truth.sampled_delta(mu, rate, beside, less, d) for d in ("remove", "add")) >= truth.exact(
        delta
    )


def attained(mu: float, rate: float, count: int, epsilon: float, direction: str) -> float:
    """delta of sampled Gaussians whose losses are rounded down on a grid: the truth is above it."""
    size = 2**20
    x = np.linspace(-9.0, 9.0 + mu, 200_001)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    loss = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    loss, mass = (loss, density * np.exp(loss)) if direction == "remove" else (-loss, density)
    spacing = float(np.abs(loss).max()) / 2**14
    law = np.bincount(np.floor(loss / spacing).astype(int) % size, weights=mass, minlength=size)
    composed = np.fft.irfft(np.fft.rfft(law) ** count, size)
    total = spacing * np.fft.fftfreq(size, 1 / size)
    return float(composed @ np.maximum(0.0, -np.expm1(epsilon - total)))


@pytest.mark.parametrize(
    ("mu", "rate", "count", "delta"), [(0.1, 1e-6, 30, 1e-9), (0.1, 1e-4, 300, 1e-9), (1.0, 1e-3, 20, 1e-7)]
)
def test_rare_samples_cost_little_and_no_less_than_is_attained(
    mu: float, rate: float, count: int, delta: float
) -> None:
    epsilon = (poisson(gaussian(mu), rate) * count).epsilon(delta)
    assert max(attained(mu, rate, count, epsilon, d) for d in ("remove", "add")) <= delta
    assert max(attained(mu, rate, count, 0.8 * epsilon, d) for d in ("remove", "add")) > delta


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        ([("laplace", (0.2467,), 7), ("categories", (1.018, 3.0), 2)], 7.263e-06),
        ([("laplace", (0.677,), 12)], 2.135e-5),
    ],
)
def test_close_to_the_largest_loss_the_figure_is_still_sharp(plan: truth.Plan, delta: float) -> None:
    # Here delta is below the probability of the largest loss, and smoothing could hide the kink there.
    epsilon = truth.guarantee(plan).epsilon(delta)
    scale, count, others = plan[0][1][0], plan[0][2], plan[1:]
    assert truth.laplace_delta(scale, count, others, epsilon) <= truth.exact(delta)
    assert truth.laplace_delta(scale, count, others, epsilon * (1 - 1e-6)) >= truth.exact(delta)


REFERENCE = [
    (laplace(0.01) * 1000, 1.36292),
    (gaussian(0.1) * 100, 4.88655),
    (laplace(0.05) * 50 + gaussian(1 / 20) * 50 + pure(0.1) * 10 + randomized_response(0.1) * 20, 3.40606),
    (
        laplace(0.05) * 50 + gaussian(1 / 20) * 50 + bounded_range(0.1) * 10 + randomized_response(0.1) * 20,
        3.14934,
    ),
    (poisson(gaussian(1.0), 0.01) * 1000, 2.12452),
]


@pytest.mark.parametrize(("plan", "epsilon"), REFERENCE)
def test_reference_rows_to_five_digits(plan: Guarantee, epsilon: float) -> None:
    assert plan.epsilon(1e-6) == pytest.approx(epsilon, abs=6e-6)


def test_randomized_response_is_counted_as_often_as_it_was_run() -> None:
    # A peer's accountant prints 0.1 for twenty of these.
    assert (randomized_response(0.1) * 20).epsilon(1e-6) == pytest.approx(1.7886, abs=1e-4)


def test_tiny_deltas_do_not_fall_below_the_truth() -> None:
    # A peer's grid does at 1e-12.
    for plan in (laplace(0.01) * 1000, laplace(0.5) * 30 + gaussian(0.2)):
        parts = [
            ("laplace", (float(e.epsilon),), n) if hasattr(e, "epsilon") else ("gaussian", (float(e.mu),), n)
            for e, n in plan.events
        ]
        parts.append(("gaussian", (0.01,), 1))
        bound = (plan + gaussian(0.01)).epsilon(1e-12)
        assert truth.GaussianTruth(parts, bound, 20000).delta(bound) <= mp.mpf("1e-12")


def test_replacing_a_record_costs_twice_the_sensitivity_in_every_currency() -> None:
    # A peer's moments accountant forgets it.
    one, two = gaussian(0.1) * 50, (gaussian(0.1) * 50).group(2)
    assert two.rho == pytest.approx(4 * one.rho)
    assert two.epsilon(1e-6) == pytest.approx((gaussian(0.2) * 50).epsilon(1e-6), rel=1e-12)


def test_the_limit_theorem_for_sampled_gaussians_understates_and_is_not_used() -> None:
    # The central limit mu = q sqrt(T (e^(1/sigma^2) - 1)) of a peer gives 13.6% less than the truth here.
    limit = gaussian(0.01 * math.sqrt(1000 * math.expm1(1.0))).epsilon(1e-6)
    exact = (poisson(gaussian(1.0), 0.01) * 1000).epsilon(1e-6)
    assert limit < 0.9 * exact


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 5), st.floats(1e-10, 0.9), st.integers(1, 30), st.sampled_from([laplace, pure, gaussian]))
def test_epsilon_is_never_negative_and_both_ways_agree(e: float, delta: float, n: int, make: object) -> None:
    plan = make(e) * n  # type: ignore[operator]
    epsilon = plan.epsilon(delta)
    assert epsilon >= 0
    # Next to the largest loss a hair of epsilon is much of delta, so the two are compared in epsilon.
    assert plan.delta(epsilon * (1 + 1e-6)) <= delta * (1 + 1e-6) + 1e-13
    assert plan.epsilon(delta) <= plan.epsilon(delta / 2)
    assert plan.delta(epsilon + 0.1) <= plan.delta(epsilon)


def test_masses_of_delta_stand_beside_the_curve() -> None:
    plan = pure(0.5) * 4 + threshold(1e-7) * 3
    assert plan.epsilon() == math.inf
    assert plan.epsilon(2e-7) == math.inf
    inner = (1e-6 - 3e-7) / (1 - 3e-7)
    assert plan.epsilon(1e-6) == pytest.approx((pure(0.5) * 4).epsilon(inner), rel=1e-6)
    assert plan.delta(2.0) == pytest.approx(3e-7, rel=1e-6)
    assert approximate(1.0, 0.25).delta(1.0) == 0.25
    assert (approximate(0.0, 0.5) * 2).delta(0.0) == 0.75
    assert (threshold(0.5) * 2000).epsilon(0.5) == math.inf
    assert (threshold(1e-25) * 3).delta(0.0) == pytest.approx(3e-25)


def test_concentrated_releases_go_by_their_moments() -> None:
    assert zcdp(0.05).epsilon(1e-6) == pytest.approx(1.4716, abs=1e-4)
    assert zcdp(0.05).epsilon() == math.inf
    # Never better than the Gaussian of the same rho, which is one of them.
    assert zcdp(0.05).epsilon(1e-6) > gaussian(math.sqrt(0.1)).epsilon(1e-6)
    both = zcdp(0.05) + laplace(0.1) * 3
    assert both.epsilon(1e-6) > zcdp(0.05).epsilon(1e-6)
    assert zcdp(0.05, 1e-7).epsilon(1e-7) == math.inf
    assert math.isfinite(zcdp(0.05, 1e-7).epsilon(1.1e-7))


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-15, 0.5, 0.999999, 1.0])
def test_extreme_deltas_have_an_answer(delta: float) -> None:
    for plan in (
        laplace(0.1) * 10,
        gaussian(0.1) * 10,
        pure(3.0) + laplace(0.01),
        poisson(laplace(1.0), 0.1) * 5,
    ):
        assert 0 <= plan.epsilon(delta) < math.inf
    assert (laplace(0.1) * 10).epsilon(1e-300) == 1.0


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 50.0, 1000.0])
def test_extreme_epsilons_have_an_answer(scale: float) -> None:
    for make in (laplace, pure, gaussian, bounded_range):
        plan = make(scale) * 3
        found = plan.epsilon(1e-6)
        assert found >= 0
        if plan.epsilon() < math.inf:
            assert found <= plan.epsilon()
        assert 0 <= plan.delta(scale) <= 1


def test_a_million_releases_are_one_factor() -> None:
    many = laplace(0.0001) * 10**6
    assert many.epsilon(1e-6) < 0.6
    assert many.epsilon(1e-6) > 0.39


def test_order_does_not_matter() -> None:
    a, b, c = laplace(0.1) * 3, gaussian(0.2), randomized_response(0.3, 4) * 2
    assert (a + b + c).epsilon(1e-5) == (c + a + b).epsilon(1e-5)


def test_sampling_everyone_is_no_sampling() -> None:
    assert (poisson(gaussian(0.5), 1) * 3).epsilon(1e-6) == pytest.approx(
        (gaussian(0.5) * 3).epsilon(1e-6), rel=1e-6
    )
    assert (poisson(gaussian(0.5), 1) * 3).epsilon(1e-6) >= (gaussian(0.5) * 3).epsilon(1e-6) * (1 - 1e-12)
    tiny = poisson(gaussian(0.5), 1e-9)
    assert tiny.epsilon(1e-6) == 0.0


@pytest.mark.parametrize(
    "base", [pure(1.0), laplace(1.0), laplace(1.0, steps=4), randomized_response(1.0, 5)]
)
def test_sampled_bounded_losses_match_their_mixture(base: Guarantee) -> None:
    plan = poisson(base, 0.2)
    lower = base.delta(math.log1p(math.expm1(0.1) / 0.2)) * 0.2
    assert plan.delta(0.1) == pytest.approx(lower, rel=1e-9)
    assert plan.epsilon() == pytest.approx(math.log1p(0.2 * math.expm1(1.0)), rel=1e-12)
    # Two of them, on the lattice: between one, and the pure bound.
    assert plan.delta(0.1) < (plan * 2).delta(0.1) <= (pure(plan.epsilon()) * 2).delta(0.1) * (1 + 1e-6)


def test_a_running_account_prints_what_the_plan_costs() -> None:
    account = Account(1e-6)
    assert account.epsilon() == 0.0
    plan = Guarantee()
    for index in range(40):
        more = [laplace(0.05), gaussian(0.02) * 3, randomized_response(0.1, 3), threshold(1e-9)][index % 4]
        account.add(more)
        plan = plan + more
        assert account.epsilon() == pytest.approx(plan.epsilon(1e-6), rel=1e-6)
        assert account.epsilon() >= plan.epsilon(1e-6) * (1 - 1e-6)
    account.add(bounded_range(0.1))
    assert account.epsilon() == pytest.approx((plan + bounded_range(0.1)).epsilon(1e-6), rel=1e-9)
    assert account.guarantee() == plan + bounded_range(0.1)
    account.add(threshold(Fraction(1, 2)))
    assert account.epsilon() == math.inf
