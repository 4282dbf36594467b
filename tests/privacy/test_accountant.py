"""The accountant against truth in many digits, the reference figures, and the bugs of others."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import (
    Account,
    Guarantee,
    accountant,
    approximate,
    bounded_range,
    contour,
    conversions,
    events,
    gaussian,
    grouping,
    laplace,
    mixtures,
    poisson,
    pure,
    randomized_response,
    sampling,
    threshold,
    zcdp,
)
from tests.privacy import truth

CASES = 150
F = Fraction
HALF = events.Gaussian(F(1, 2))
RARE = events.PoissonSubsampled(HALF, F(1, 10))
UNITS = events.PoissonUnits(HALF, F(1, 10), 3)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 1000, 10**9])
@pytest.mark.parametrize("mass", [F(1, 3), F(1, 10**7), F(1, 10**15), F(1, 10**25)])
def test_the_chance_that_one_of_many_fails_is_close_and_not_below(mass: Fraction, count: int) -> None:
    chance = accountant._repeated(mass, count)
    with mp.workdps(80):
        exact = -mp.expm1(count * mp.log1p(-mp.mpf(mass.numerator) / mass.denominator))
        stated = mp.mpf(chance.numerator) / chance.denominator
        assert exact * (1 - mp.mpf(10) ** -60) <= stated <= exact * (1 + mp.mpf(10) ** -15)
    assert accountant._repeated(F(1), count) == 1
    assert accountant._repeated(F(1, 10**25), 10**30) == 1


def test_a_plan_is_parted_into_its_mass_and_its_finite_losses() -> None:
    tenth, sure = events.Threshold(F(1, 10)), events.Approximate(F(1), F(1, 5))
    counts: accountant.Counts = {tenth: 2, sure: 1, events.Pure(F(1)): 3}
    mass, rest = accountant.finite_part(counts)
    assert mass == 1 - F(9, 10) ** 2 * F(4, 5)
    assert rest == {sure: 1, events.Pure(F(1)): 3}
    assert accountant.finite_part({}) == (Fraction(0), {})
    assert accountant.pure_sum(rest) == 4
    assert accountant.pure_sum({**rest, HALF: 1}) is None
    # Total variations compose like masses: 2 tanh(1/2) - tanh(1/2)^2.
    both = math.tanh(0.5) * 2 - math.tanh(0.5) ** 2
    assert float(accountant._variation({events.Pure(F(1)): 2})) == pytest.approx(both, rel=1e-14)
    aside = accountant._without_samples(F(1, 10), {RARE: 2, HALF: 1})
    assert aside is not None
    assert aside[1] == {HALF: 1}
    chance = 0.1 * 0.5 * 0.39895
    assert float(aside[0]) == pytest.approx(1 - 0.9 * (1 - chance) ** 2, rel=1e-12)
    assert accountant._without_samples(F(0), {HALF: 1}) is None


def test_which_pairs_are_tried() -> None:
    assert accountant.cases({HALF: 2}) == [({HALF: 2}, "remove")]
    assert accountant.cases({RARE: 2}) == [({RARE: 2}, "remove"), ({RARE: 2}, "add")]
    pairs = [(3, 0), (2, 1), (1, 2), (0, 3)]
    assert accountant.cases({UNITS: 2, HALF: 1}) == [
        ({mixtures.Mixture(UNITS, *pair): 2, HALF: 1}, "remove") for pair in pairs
    ]
    # Beside a single unit, or groups of another size, or very many: the pair that covers every split.
    cover = mixtures.Mixture(UNITS, 3, 3)
    assert accountant.cases({UNITS: 1, RARE: 1}) == [({cover: 1, RARE: 1}, way) for way in ("remove", "add")]
    two = events.PoissonUnits(HALF, F(1, 10), 2)
    assert accountant.cases({UNITS: 1, two: 1}) == [({cover: 1, mixtures.Mixture(two, 2, 2): 1}, "remove")]
    many = events.PoissonUnits(HALF, F(1, 10), 17)
    assert accountant.cases({many: 1}) == [({mixtures.Mixture(many, 17, 17): 1}, "remove")]
    assert len(accountant.cases({events.PoissonUnits(HALF, F(1, 10), 16): 1})) == 17
    crowd = events.PoissonUnits(events.Laplace(F(1)), F(1, 10), 9)
    assert accountant.cases({crowd: 1}) == [({grouping.as_group(crowd): 1}, "remove")] * 10
    replaced = events.WithoutReplacement(events.Pure(F(1)), F(1, 10), 2)
    assert accountant.cases({replaced: 1}) == [({mixtures.replaced(replaced): 1}, "remove")]
    dense = events.WithoutReplacement(events.Pure(F(1)), F(1, 2), 2)
    assert accountant.cases({dense: 1}) == [({grouping.as_group(dense): 1}, "remove")]


def test_moments_of_a_plan_are_the_worse_direction() -> None:
    c = np.array([1.0])
    # E exp(loss) = 1 + q^2 (e^(mu^2) - 1) where a unit is removed.
    removing = math.log1p(0.01 * math.expm1(0.25))
    assert accountant.cumulant({RARE: 3}, c)[0] == pytest.approx(3 * removing, rel=1e-6)
    assert accountant.cumulant({RARE: 3, HALF: 2}, c)[0] == pytest.approx(3 * removing + 2 * 0.25, rel=1e-6)


@pytest.mark.parametrize("start", [0.01, 2.9, 3.0, 40.0])
def test_the_root_of_a_curve_is_found_from_above(start: float) -> None:
    asked: list[float] = []

    def curve(epsilon: float) -> float:
        asked.append(epsilon)
        return math.exp(-2 * epsilon - epsilon**2)

    root = accountant.solve(curve, 2.0, math.exp(-15), start)
    assert root >= 3.0 - 1e-14
    assert root == pytest.approx(3.0, rel=2e-11)
    assert root in asked
    assert len(asked) < 40


def test_curves_that_never_or_always_meet_delta() -> None:
    assert accountant.solve(lambda epsilon: 0.5, 1.0, 0.1, 1.0) == math.inf
    assert accountant.solve(lambda epsilon: 0.01, 1.0, 0.1, 1.0) == 0.0
    assert accountant.solve(lambda epsilon: 0.0, 1.0, 0.1, 1.0) == 0.0


def test_the_largest_loss_of_a_plan() -> None:
    assert accountant._largest_loss({events.Pure(F(1)): 3}, "remove") == pytest.approx(3.0, rel=1e-12)
    assert accountant._largest_loss({events.Pure(F(1)): 3}, "remove") >= 3.0
    assert accountant._largest_loss({HALF: 1}, "add") == math.inf
    assert accountant._largest_loss({RARE: 2}, "remove") == math.inf
    assert accountant._largest_loss({RARE: 2}, "add") == pytest.approx(-2 * math.log(0.9), rel=1e-12)
    everybody = events.PoissonSubsampled(HALF, F(1))
    assert accountant._largest_loss({everybody: 1}, "add") == math.inf
    sampled = events.PoissonSubsampled(events.Pure(F(1, 100)), F(1, 10))
    least = math.log1p(0.1 * math.expm1(0.01))
    assert accountant._largest_loss({sampled: 1}, "add") == pytest.approx(least, rel=1e-12)
    pair = mixtures.Mixture(UNITS, 0, 3)
    assert accountant._largest_loss({pair: 1}, "remove") == pytest.approx(-3 * math.log(0.9), rel=1e-12)


def closed(
    guarantee: Guarantee, direction: sampling.Direction = "remove"
) -> tuple[accountant.Curve, accountant.Curve]:
    plan = contour.make_plan(dict(guarantee.events), direction)
    assert plan is not None
    curves = accountant._closed_form(plan)
    assert curves is not None
    return curves


SINGLE_CURVES = [
    (laplace(0.7), lambda e: -mp.expm1((e - mp.mpf("0.7")) / 2)),
    (pure(0.7), lambda e: (mp.exp(mp.mpf("0.7")) - mp.exp(e)) / (1 + mp.exp(mp.mpf("0.7")))),
    (bounded_range(0.7), lambda e: mp.expm1((e - mp.mpf("0.7")) / 2) ** 2 / -mp.expm1(-mp.mpf("0.7"))),
    (gaussian(0.7), lambda e: truth.gaussian_delta(mp.mpf("0.7"), e)),
]


@pytest.mark.parametrize(("guarantee", "curve"), SINGLE_CURVES)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4, 0.65])
def test_one_release_alone_has_the_formula_both_ways(
    guarantee: Guarantee, curve: Callable[[mp.mpf], mp.mpf], epsilon: float
) -> None:
    exact = curve(mp.mpf(epsilon))
    delta, back = closed(guarantee)
    assert exact <= delta(epsilon) <= exact * (1 + mp.mpf(10) ** -10) + mp.mpf(10) ** -15
    recovered = back(float(exact))
    assert curve(mp.mpf(recovered)) <= mp.mpf(float(exact)) * (1 + mp.mpf(10) ** -14)
    assert recovered == pytest.approx(epsilon, abs=1e-9)
    # On a sample of a tenth: q D(log(1 + (e^epsilon - 1) / q)) where a unit is removed.
    level = mp.log1p(mp.expm1(mp.mpf(epsilon) / 20) * 10)
    if guarantee != bounded_range(0.7) and level < mp.mpf("0.7"):
        sampled = curve(level) / 10
        once, again = closed(poisson(guarantee, 0.1))
        assert sampled <= once(epsilon / 20) <= sampled * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -15
        assert again(float(sampled)) == pytest.approx(epsilon / 20, abs=1e-9)


def test_adding_a_unit_to_a_sample_has_its_own_formula() -> None:
    delta, back = closed(poisson(gaussian(2), 0.3), "add")
    for epsilon in (0.0, 0.1, 0.3):
        # The best event is {x < t}, t where the density around 0 is e^epsilon times that of the mixture.
        t = (mp.log((mp.exp(-mp.mpf(epsilon)) - mp.mpf("0.7")) / mp.mpf("0.3")) + 2) / 2
        mixture = mp.mpf("0.7") * mp.ncdf(t) + mp.mpf("0.3") * mp.ncdf(t - 2)
        exact = mp.ncdf(t) - mp.exp(mp.mpf(epsilon)) * mixture
        assert exact <= delta(epsilon) <= exact * (1 + mp.mpf(10) ** -9)
        assert back(float(exact)) == pytest.approx(epsilon, abs=1e-9)
    # Beyond -log(1 - q) the loss does not go.
    assert delta(-math.log(0.7) + 1e-6) < 1e-15
    assert back(1e-12) <= -math.log(0.7)


def test_which_plans_have_a_closed_form() -> None:
    def form(*parts: Guarantee) -> object:
        plan = contour.make_plan(dict(sum(parts, Guarantee()).events), "remove")
        assert plan is not None
        return accountant._closed_form(plan)

    assert form(laplace(1) * 2) is None
    assert form(laplace(1), gaussian(1)) is None
    assert form(pure(1) * 2) is not None
    assert form(pure(1), gaussian(1)) is None
    assert form(poisson(gaussian(1), 0.5) * 2) is None
    assert form(poisson(gaussian(1), 0.5), gaussian(1)) is None
    assert form(poisson(gaussian(1), 0.5), pure(1)) is None
    assert form(poisson(gaussian(1), 1e-11)) is not None
    assert form(bounded_range(1), gaussian(1)) is None
    assert form(gaussian(1) * 3) is not None


def test_what_delta_pays_for_alone_costs_no_epsilon() -> None:
    assert 1 - 1e-14 < accountant.INWARDS < 1
    tenth: dict[events.Event, int] = {events.Threshold(F(1, 10)): 1}
    assert accountant.epsilon(tenth, F(1, 10)) == 0.0
    assert accountant.epsilon(tenth, F(1, 10) - F(1, 10**12)) == math.inf
    both = {**tenth, events.Pure(F(1)): 1}
    limit = F(1, 10) + F(9, 10) * conversions.variation(events.Pure(F(1)))
    assert accountant.epsilon(both, limit) == 0.0
    assert 0 < accountant.epsilon(both, limit - F(1, 10**6)) < 1e-5
    assert accountant.epsilon(both, F(1, 10)) == 1.0
    assert accountant.delta(both, F(1)) == 0.1
    exact = 0.1 + 0.9 * (math.e - math.exp(0.5)) / (1 + math.e)
    assert accountant.delta(both, F(1, 2)) == pytest.approx(exact, rel=1e-12)
    assert accountant.delta(both, F(1, 2)) >= exact


def test_samples_may_be_taken_as_masses_where_that_is_cheaper() -> None:
    # The loss of a rare sample of noise 50 is huge, but it is seen with a chance of 1e-9 only.
    counts: accountant.Counts = {events.PoissonSubsampled(events.Gaussian(F(50)), F(1, 10**9)): 1}
    pure_counts: accountant.Counts = {**counts, events.Pure(F(1, 10)): 1}
    assert accountant.epsilon(counts, F(2, 10**9)) == 0.0
    assert accountant.epsilon(pure_counts, F(1, 10**6)) <= 0.1
    assert accountant.delta(pure_counts, F(1, 10)) == pytest.approx(1e-9, rel=1e-6)
    assert accountant.delta(pure_counts, F(1, 10)) >= 1e-9


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
            curve = functools.partial(truth.discrete_delta, plan)
        else:
            curve = functools.partial(truth.laplace_delta, plan[0][1][0], plan[0][2], plan[1:])
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
        epsilon = plan.epsilon(1e-6)
        assert epsilon >= 0
        if plan.epsilon() < math.inf:
            assert epsilon <= plan.epsilon()
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
