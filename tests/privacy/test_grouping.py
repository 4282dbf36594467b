from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    FiniteMechanism,
    approximate,
    bounded_range,
    events,
    gaussian,
    grouping,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    zcdp,
)
from tests.privacy import truth


def noise(shift: int, scale: float, reach: int) -> np.ndarray:
    """Discrete Laplace masses on -reach..reach around `shift`; the tails beyond are lumped at the ends."""
    x = np.arange(-reach, reach + 1)
    r = math.exp(-1 / scale)
    mass = (1 - r) / (1 + r) * r ** np.abs(x - shift)
    mass[0] = r ** (reach + shift) / (1 + r)
    mass[-1] = r ** (reach - shift) / (1 + r)
    return mass


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=3).filter(any), st.floats(0.5, 5), st.floats(0.01, 0.99)
)
def test_vectors_of_discrete_laplace_noise_stay_within_their_event(
    shifts: list[int], scale: float, share: float
) -> None:
    steps = sum(abs(s) for s in shifts)
    reach = 5
    here = there = np.ones(1)
    for shift in shifts:
        here = np.multiply.outer(here, noise(0, scale, reach)).ravel()
        there = np.multiply.outer(there, noise(shift, scale, reach)).ravel()
    real = FiniteMechanism([here, there], [(0, 1)])
    claim = laplace(Fraction(steps) / Fraction(repr(scale)), steps)
    level = share * steps / scale
    assert real.delta(level) <= claim.delta(level) + 1e-12
    if len(shifts) == 1:  # one coordinate attains it
        assert claim.delta(level) == pytest.approx(real.delta(level), abs=1e-10)


def test_continuous_laplace_would_be_too_weak_a_claim_for_integers() -> None:
    # Why noise on a grid must not state the continuous event: one step is randomized response.
    one_step = FiniteMechanism([noise(0, 1.0, 6), noise(1, 1.0, 6)], [(0, 1)])
    assert one_step.delta(0.5) > laplace(1.0).delta(0.5)
    assert one_step.delta(0.5) == pytest.approx(pure(1.0).delta(0.5), abs=1e-12)
    assert laplace(1.0, steps=1000).delta(0.5) == pytest.approx(laplace(1.0).delta(0.5), rel=1e-2)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.05, 1.5), st.floats(0.01, 0.99))
def test_groups_under_any_pure_mechanism_stay_within_their_event(
    seed: int, k: int, epsilon: float, share: float
) -> None:
    # A random chain of data sets, each step within epsilon: logs of weights wander by at most epsilon / 2.
    rng = np.random.default_rng(seed)
    logs = np.cumsum(rng.uniform(-epsilon / 2, epsilon / 2, (k + 1, 6)), axis=0)
    table = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    chain = FiniteMechanism(table, [(i, i + 1) for i in range(k)])
    ends = FiniteMechanism(table[[0, k]], [(0, 1)])
    group = pure(chain.epsilon() * (1 + 1e-12)).group(k)
    level = share * k * epsilon
    assert ends.delta(level) <= group.delta(level) + 1e-12


def test_the_formulas_for_groups() -> None:
    assert pure(1.0).group(3).epsilon() == 3.0
    assert zcdp(0.1).group(3) == zcdp(Fraction(9, 10))
    assert gaussian(0.5).group(4) == gaussian(2)
    assert laplace(0.1).group(5) == laplace(0.5)
    assert laplace(0.1, steps=2).group(5) == laplace(0.5, steps=10)
    assert bounded_range(0.1).group(2) == bounded_range(0.2)
    assert threshold(1e-6).group(3) == threshold(Fraction(3, 10**6))
    assert threshold(0.5).group(3) == threshold(1)
    assert pure(1.0).group(1) == pure(1.0)
    assert pure(1.0).group(0).epsilon() == 0.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"), [(1.0, 1e-6, 3), (0.01, 1e-9, 50), (1e-13, 1e-9, 7), (0.0, 1e-9, 4)]
)
def test_approximate_groups_follow_the_geometric_sum(epsilon: float, delta: float, k: int) -> None:
    group = approximate(epsilon, delta).group(k)
    want = delta * sum(math.exp(i * epsilon) for i in range(k))
    grown = group.delta(k * epsilon)
    assert want * (1 - 1e-12) <= grown <= want * (1 + 1e-9)


def test_two_changes_in_an_approximate_mechanism_reach_the_geometric_sum_no_further() -> None:
    # Rows 0-1-2 each differ by (ln 2, 0.1); rows 0 and 2 then by at most (2 ln 2, 0.1 + 0.2).
    table = [[0.5, 0.5, 0.0], [0.25, 0.65, 0.1], [0.1, 0.6, 0.3]]
    chain = FiniteMechanism(table, [(0, 1), (1, 2)])
    delta = chain.delta(math.log(2))
    ends = FiniteMechanism([table[0], table[2]], [(0, 1)])
    assert (
        ends.delta(2 * math.log(2)) <= approximate(math.log(2), delta).group(2).delta(2 * math.log(2)) + 1e-12
    )


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_sampled_groups_stay_within_their_event(rate: float) -> None:
    # A noisy count of those of the k who are in the sample: each one moves it by a step, epsilon-DP.
    epsilon, k, reach = 1.0, 3, 8
    rows = [noise(j, 1 / epsilon, reach) for j in range(k + 1)]
    odds = [math.comb(k, j) * rate**j * (1 - rate) ** (k - j) for j in range(k + 1)]
    real = FiniteMechanism([rows[0], sum(p * row for p, row in zip(odds, rows, strict=True))], [(0, 1)])
    claim = poisson(pure(epsilon), rate).group(k)
    for level in (0.0, 0.1, 0.5, 2.0):
        assert real.delta(level) <= claim.delta(level) + 1e-12


@pytest.mark.parametrize("rate", [0.05, 0.4])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_replaced_unit_under_sampling_stays_within_the_group_of_two(rate: float, times: int) -> None:
    # A noisy sum to which the unit adds +1 in one data set and -1 in the other, when it is in the sample.
    epsilon, reach = 0.7, 3
    middle, up, down = (noise(shift, 1 / epsilon, reach) for shift in (0, 1, -1))
    rows = [(1 - rate) * middle + rate * moved for moved in (up, down)]
    both = []
    for row in rows:
        product = np.ones(1)
        for _ in range(times):
            product = np.multiply.outer(product, row).ravel()
        both.append(product)
    real = FiniteMechanism(both, [(0, 1)])
    claim = poisson(pure(epsilon), rate).group(2) * times
    for level in (0.0, 0.01, 0.1, 0.3, 1.0):
        assert real.delta(level) <= claim.delta(level) + 1e-12


def test_sampled_groups_of_gaussians_compose_in_every_currency() -> None:
    one = poisson(gaussian(0.5), 0.01) * 100
    group = one.group(2)
    assert one.epsilon(1e-6) < group.epsilon(1e-6) < (gaussian(1.0) * 100).epsilon(1e-6) / 10
    assert group.group(2) == one.group(4)
    assert group.group(2).epsilon(1e-6) > group.epsilon(1e-6)
    assert group.from_json(group.to_json()) == group
    assert group.rho == pytest.approx(50)
    assert group.charge().mu2 is not None


def mixture(units: int, rate: float, rows: list[np.ndarray]) -> np.ndarray:
    """rows[a] with the chance that a of the units are in the sample."""
    odds = [math.comb(units, a) * rate**a * (1 - rate) ** (units - a) for a in range(units + 1)]
    return np.asarray(sum(p * row for p, row in zip(odds, rows, strict=True)))


def powers(law: np.ndarray, times: int) -> np.ndarray:
    product = np.ones(1)
    for _ in range(times):
        product = np.multiply.outer(product, law).ravel()
    return product


@pytest.mark.parametrize(("k", "times"), [(2, 1), (2, 3), (3, 2), (4, 1), (5, 2)])
@pytest.mark.parametrize("rate", [0.02, 0.4, 1.0])
def test_sampled_groups_cost_exactly_the_worst_split(k: int, times: int, rate: float) -> None:
    # Noisy counts attain the bound: units of one data set raise them, those of the other lower them.
    epsilon = 0.7
    claim = poisson(pure(epsilon), rate).group(k) * times
    up = [noise(a, 1 / epsilon, k) for a in range(k + 1)]
    down = [noise(-b, 1 / epsilon, k) for b in range(k + 1)]
    for level in (0.0, 0.1, 0.6, 1.5):
        worst = 0.0
        for removed in range(k + 1):
            p = powers(mixture(removed, rate, up[: removed + 1]), times)
            q = powers(mixture(k - removed, rate, down[: k - removed + 1]), times)
            worst = max(worst, float(np.maximum(0.0, p - math.exp(level) * q).sum()))
        assert worst - 1e-12 <= claim.delta(level) <= worst * (1 + (1e-9 if times == 1 else 2e-3)) + 1e-11


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 2), st.floats(0.05, 1.5))
def test_any_pure_mechanism_on_a_sample_stays_within_its_groups(
    seed: int, removed: int, added: int, epsilon: float
) -> None:
    # Each unit multiplies the weights of six outputs by factors within e^(epsilon / 2) of each other.
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.05, 0.9)
    pull = rng.uniform(-epsilon / 4, epsilon / 4, (removed + added, 6))
    base = rng.normal(size=6)

    def sampled(units: list[int]) -> np.ndarray:
        law = np.zeros(6)
        for chosen in itertools.product((0, 1), repeat=len(units)):
            logs = base + sum((c * pull[u] for c, u in zip(chosen, units, strict=True)), np.zeros(6))
            weight = math.prod(rate if c else 1 - rate for c in chosen)
            law += weight * np.exp(logs) / np.exp(logs).sum()
        return law

    real = FiniteMechanism(
        [sampled(list(range(removed))), sampled(list(range(removed, removed + added)))], [(0, 1)]
    )
    claim = poisson(pure(epsilon), Fraction(repr(rate))).group(removed + added)
    for share in (0.0, 0.1, 0.4):
        assert real.delta(share * epsilon) <= claim.delta(share * epsilon) + 1e-12
    assert real.epsilon() <= claim.epsilon() * (1 + 1e-9)


@pytest.mark.parametrize(("mu", "rate", "k"), [(1.0, 0.01, 2), (0.3, 0.2, 3), (2.5, 0.5, 2), (0.1, 0.01, 5)])
def test_groups_of_gaussians_are_the_mixtures_and_never_below(mu: float, rate: float, k: int) -> None:
    claim = poisson(gaussian(mu), rate).group(k)
    for level in (0.01, 0.2, 1.0):
        worst = max(truth.mixture_delta(mu, rate, k - added, added, level) for added in range(k + 1))
        delta = claim.delta(level)
        assert worst <= delta <= worst * (1 + truth.mp.mpf("2e-3")) + truth.mp.mpf("1e-25")


def test_many_sampled_gaussians_for_two_people_against_an_optimistic_grid() -> None:
    # Losses rounded down on a grid: what is composed there is attained, so the claim must not be below it.
    mu, rate, count, spacing, size = 0.1, 0.01, 50_000, 2.0**-20, 2**23
    claim = (poisson(gaussian(mu), rate) * count).group(2)
    x = np.linspace(-9.0, 9.5, 400_001)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    ratio = mixture(2, rate, [np.exp(a * mu * x - (a * mu) ** 2 / 2) for a in range(3)])
    place = np.floor(np.log(ratio) / spacing).astype(int)
    law = np.bincount(place % size, weights=density * ratio, minlength=size)
    composed = np.fft.irfft(np.fft.rfft(law) ** count, size)
    loss = spacing * np.fft.fftfreq(size, 1 / size)
    epsilon = claim.epsilon(1e-6)
    assert epsilon == pytest.approx(2.002, abs=1e-3)
    attained = float(composed @ np.maximum(0.0, -np.expm1(np.minimum(0.975 * epsilon - loss, 50.0))))
    assert 1e-6 < attained < 2e-6


def test_sampling_maps_every_event_it_can_and_refuses_the_rest() -> None:
    assert poisson(bounded_range(1.0), 0.5) == poisson(pure(1.0), 0.5)
    assert poisson(threshold(1e-3), 0.5) == threshold(Fraction(1, 2000))
    assert poisson(poisson(pure(1.0), 0.5), 0.5) == poisson(pure(1.0), 0.25)
    sampled = poisson(approximate(1.0, 1e-3), 0.1)
    assert sampled.delta(math.log1p(0.1 * math.expm1(1.0)) + 1e-9) == pytest.approx(1e-4)
    assert poisson(pure(1.0), 0).epsilon() == 0.0
    assert poisson(pure(1.0), 1).epsilon() == 1.0
    with pytest.raises(InvalidInput, match="Poisson sampling"):
        poisson(zcdp(0.1), 0.5)
    with pytest.raises(InvalidInput, match="one release"):
        poisson(pure(1.0) * 2, 0.5)


@settings(deadline=None, max_examples=20)
@given(st.floats(0.1, 2), st.integers(2, 5), st.integers(1, 4))
def test_many_categories_compose_as_their_table_does(epsilon: float, categories: int, times: int) -> None:
    keep = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    rest = (1 - keep) / (categories - 1)
    rows = [[keep if i == row else rest for i in range(categories)] for row in (0, 1)]
    both = [[math.prod(p) for p in itertools.product(*[row] * times)] for row in rows]
    real = FiniteMechanism(both, [(0, 1)])
    claim = randomized_response(epsilon, categories) * times
    for share in (0.0, 0.3, 0.8):
        level = share * epsilon * times
        assert claim.delta(level) == pytest.approx(real.delta(level), abs=1e-10)
        assert claim.delta(level) >= real.delta(level) - 1e-13


def named(k: int, epsilon: float, delta: float) -> tuple[float, float]:
    """The chance that k people who alone share a key see it named, by Laplace noise and a threshold; and
    what the guarantee of one of them says for all.
    """
    ratio = math.exp(-epsilon)
    least = 1  # the smallest threshold that one person passes with probability at most delta
    while ratio ** (least - 1) / (1 + ratio) > delta:
        least += 1
    passed = (least - k) > 0
    chance = ratio ** (least - k) / (1 + ratio) if passed else 1 - ratio ** (k - least + 1) / (1 + ratio)
    return chance, (laplace(Fraction(repr(epsilon)), 1) + threshold(delta)).group(k).delta(100)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_a_threshold_grows_with_the_noise_that_it_belongs_to(epsilon: float, k: int) -> None:
    chance, claim = named(k, epsilon, 1e-6)
    assert chance <= claim
    # Not needlessly: the sum of e^(j epsilon) is at most e^epsilon / (e^epsilon - 1) times its last term.
    steps = math.exp(epsilon) / (math.exp(epsilon) - 1) * math.exp(2 * epsilon)
    assert claim <= max(min(1.0, chance * steps), k * 1e-6 * math.exp(k * epsilon))


@pytest.mark.parametrize(("mu", "k"), [(0.1, 2), (0.5, 3), (1.0, 2), (1.0, 10), (0.2, 30)])
def test_a_threshold_on_gaussian_noise_grows_by_its_shift(mu: float, k: int) -> None:
    from scipy.stats import norm

    delta = 1e-6
    exact = [norm.cdf(norm.ppf(delta) + size * mu) for size in range(k)]
    claim = (gaussian(mu) + threshold(delta)).group(k).delta(200)
    assert max(exact) <= claim
    assert claim <= min(1.0, 12 * k * max(exact))


def test_a_threshold_by_itself_grows_by_the_number_of_units() -> None:
    assert threshold(1e-6).group(5).delta(0) == pytest.approx(5e-6, rel=1e-12)
    assert (zcdp(2.0) + threshold(1e-6)).group(2).delta(1000) >= 7.39e-6


def test_groups_of_events_on_samples() -> None:
    base, rate = events.Pure(Fraction(1)), Fraction(1, 5)
    single = events.PoissonSubsampled(base, rate)
    assert grouping.group(single, 3) == events.PoissonUnits(base, rate, 3)
    assert grouping.group(events.PoissonUnits(base, rate, 2), 3) == events.PoissonUnits(base, rate, 6)
    fixed = events.WithoutReplacement(base, rate, 2)
    assert grouping.group(fixed, 3) == events.WithoutReplacement(base, rate, 6)
    assert grouping.group(single, 1) is single
    assert grouping.group(single, 0) == events.Pure(Fraction(0))
    crowd = grouping.group(events.PoissonGroup(base, rate), 3)
    assert crowd == events.PoissonGroup(events.DiscreteLaplace(Fraction(3), 3), Fraction(3, 5))
    most = grouping.group(events.PoissonGroup(base, rate), 6)
    assert most == events.PoissonGroup(events.DiscreteLaplace(Fraction(6), 6), Fraction(1))


def test_the_chance_that_some_unit_is_in_the_sample() -> None:
    base, rate = events.Gaussian(Fraction(1)), Fraction(1, 5)
    three = grouping.as_group(events.PoissonUnits(base, rate, 3))
    assert three == events.PoissonGroup(events.Gaussian(Fraction(3)), 1 - Fraction(4, 5) ** 3)
    fixed = grouping.as_group(events.WithoutReplacement(base, rate, 3))
    assert fixed == events.PoissonGroup(events.Gaussian(Fraction(3)), Fraction(3, 5))
    assert grouping.as_group(events.WithoutReplacement(base, rate, 6)).rate == 1
    rare = Fraction(1, 10**6)
    exact = -math.expm1(1000 * math.log1p(-1e-6))
    thousand = grouping.as_group(events.PoissonUnits(base, rare, 1000)).rate
    assert float(thousand) == pytest.approx(exact, rel=1e-12)
    assert thousand >= 1 - (1 - rare) ** 1000
    assert grouping.as_group(events.PoissonUnits(base, rare, 1001)).rate == Fraction(1001, 10**6)
    assert grouping.as_group(events.PoissonUnits(base, rate, 1001)).rate == 1


def test_a_grown_delta_is_the_geometric_sum_rounded_up() -> None:
    small = Fraction(1, 10**6)
    for epsilon, k in ((Fraction(1), 3), (Fraction(1, 100), 50), (Fraction(1, 10**11), 7)):
        grown = grouping.grown_delta(epsilon, small, k)
        with truth.mp.workdps(60):
            e = truth.mp.mpf(epsilon.numerator) / epsilon.denominator
            exact = truth.mp.fsum(truth.mp.exp(i * e) for i in range(k)) / 10**6
            stated = truth.mp.mpf(grown.numerator) / grown.denominator
            assert exact <= stated <= exact * (1 + truth.mp.mpf(10) ** -28)
    tiny = grouping.grown_delta(Fraction(1, 10**13), small, 7)
    assert 7 * small < tiny < 7 * small * (1 + Fraction(1, 10**11))
    assert grouping.grown_delta(Fraction(1), Fraction(0), 3) == 0
    assert grouping.grown_delta(Fraction(800), small, 2) == grouping.grown_delta(Fraction(801), small, 2) == 1
    assert grouping.grown_delta(Fraction(0), Fraction(1, 2), 3) == 1
