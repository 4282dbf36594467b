"""Amplification against exact small cases: every sample and every shuffle enumerated, and mutants."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from operator import mul

import mpmath
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
    laplace,
    poisson,
    pure,
    randomized_response,
    shuffling,
    threshold,
)
from incrowd.privacy import amplification as amp
from incrowd.privacy.amplification import shuffled, without_replacement


def responded(epsilon, bits):
    """The law of randomised bits as a vector over all outcomes."""
    keep = 1 / (1 + math.exp(-epsilon))
    return np.array(
        [
            math.prod(keep if a == b else 1 - keep for a, b in zip(bits, seen, strict=True))
            for seen in itertools.product((0, 1), repeat=len(bits))
        ]
    )


def sampled_law(epsilon, bits, size):
    """Randomised response of the largest bit in a uniform sample: replacing one bit costs epsilon."""
    subsets = list(itertools.combinations(bits, size))
    return sum(responded(epsilon, [max(subset)]) for subset in subsets) / len(subsets)


@given(st.floats(0.01, 6), st.integers(2, 6), st.data())
def test_a_fixed_size_sample_costs_no_more_and_the_bound_is_reached(epsilon, population, data):
    size = data.draw(st.integers(1, population))
    bits = data.draw(st.lists(st.integers(0, 1), min_size=population - 1, max_size=population - 1))
    table = FiniteMechanism([sampled_law(epsilon, [b, *bits], size) for b in (0, 1)], [(0, 1)])
    stated = without_replacement(pure(epsilon), size, population).epsilon()
    assert table.epsilon() <= stated * (1 + 1e-9) + 1e-12
    tight = FiniteMechanism(
        [sampled_law(epsilon, [b] + [0] * (population - 1), size) for b in (0, 1)], [(0, 1)]
    )
    assert tight.epsilon() == pytest.approx(stated, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_a_mutant_that_multiplies_epsilon_by_the_rate_is_caught(epsilon):
    """The bug: epsilon m / n, right only in the limit of a small epsilon."""
    table = FiniteMechanism([sampled_law(epsilon, [b, 0, 0, 0], 1) for b in (0, 1)], [(0, 1)])
    assert epsilon / 4 < table.epsilon() <= without_replacement(pure(epsilon), 1, 4).epsilon() * (1 + 1e-9)


def test_a_curve_is_sampled_at_the_delta_asked_for():
    base = gaussian(1.0)
    for size, delta in ((1, 1e-6), (100, 1e-9), (1000, 1e-4)):
        rate = Fraction(size, 1000)
        made = without_replacement(base, size, 1000, delta)
        assert made.delta(made.epsilon(delta)) <= delta
        inner = mpmath.mpf(base.epsilon(min(Fraction(1), Fraction(repr(delta)) / rate)))
        exact = mpmath.log(1 + size * (mpmath.exp(inner) - 1) / 1000)
        assert float(exact) <= made.epsilon(delta) <= float(exact) * (1 + 1e-12)
    # The mixture itself: with probability q the outcome is that of the neighbour's.
    x = np.linspace(-12, 13, 200_001)
    q = 0.1
    p0, p1 = (np.exp(-((x - c) ** 2) / 2) / math.sqrt(2 * math.pi) for c in (0.0, 1.0))
    for delta in (1e-6, 1e-3):
        epsilon = without_replacement(base, 1, 10, delta).epsilon(delta)
        mixed = q * p1 + (1 - q) * p0
        for a, b in ((mixed, p0), (p0, mixed)):
            assert np.trapezoid(np.maximum(0, a - math.exp(epsilon) * b), x) <= delta * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "size", "population"), [(0.5, 1, 3), (1.5, 2, 4), (3.0, 1, 6)])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_fresh_samples_compose_no_worse_than_stated(epsilon, size, population, times):
    stated = without_replacement(pure(epsilon), size, population) * times
    for rest in ([0] * (population - 1), [1] * (population - 1), [0, 1] * population):
        laws = []
        for bit in (0, 1):
            law = sampled_law(epsilon, [bit, *rest[: population - 1]], size)
            product = np.ones(1)
            for _ in range(times):
                product = np.multiply.outer(product, law).ravel()
            laws.append(product)
        table = FiniteMechanism(laws, [(0, 1)])
        for level in (0.0, 0.05, 0.3, 1.0):
            assert table.delta(level) <= stated.delta(level) + 1e-12
    assert stated.epsilon() <= times * pure(epsilon).epsilon()


def test_many_fresh_samples_cost_what_their_curve_says():
    plan = without_replacement(gaussian(1), 100, 10_000) * 1000
    assert plan.epsilon(1e-6) == pytest.approx(2.5128, abs=1e-3)
    # Adding or removing in a Poisson sample is one of the cases that the curve covers, so it costs less.
    assert plan.epsilon(1e-6) > (poisson(gaussian(1), 0.01) * 1000).epsilon(1e-6)
    assert without_replacement(approximate(1.0, 1e-3), 1, 10).delta(1.0) == 1e-4
    assert without_replacement(threshold(1e-3), 1, 10) == threshold(1e-4)
    assert without_replacement(bounded_range(1), 1, 10) == without_replacement(pure(1), 1, 10)
    group = without_replacement(pure(1), 1, 10).group(3)
    assert group.epsilon() == pytest.approx(3 * math.log1p(0.1 * math.expm1(1)))


@pytest.mark.parametrize(("size", "population", "k"), [(1, 6, 2), (2, 9, 2), (2, 8, 3), (4, 8, 2), (5, 6, 2)])
@pytest.mark.parametrize("times", [1, 3])
def test_replaced_records_in_a_fixed_sample_stay_within_their_group(size, population, k, times):
    # A noisy sum to which replaced records add +1 in one data set and -1 in the other, and each other one 0.
    epsilon = 0.8
    reach = np.arange(-12, 13)
    laws = []
    for sign in (1, -1):
        law = np.zeros(len(reach))
        for chosen in itertools.combinations(range(population), size):
            centre = sign * sum(record < k for record in chosen)
            mass = np.exp(-epsilon / 2 * np.abs(reach - centre)) * math.tanh(epsilon / 4)
            mass[[0, -1]] /= -math.expm1(-epsilon / 2)
            law += mass / math.comb(population, size)
        product = np.ones(1)
        for _ in range(times):
            product = np.multiply.outer(product, law).ravel()
        laws.append(product)
    real = FiniteMechanism([law / law.sum() for law in laws], [(0, 1)])
    # Replacing a record moves the sum by two steps of epsilon / 2.
    claim = without_replacement(laplace(epsilon, steps=2), size, population).group(k) * times
    for level in (0.0, 0.1, 0.5, 1.5):
        assert real.delta(level) <= claim.delta(level) + 1e-9
    assert claim.epsilon() <= without_replacement(pure(epsilon), size, population).epsilon() * k * times * (
        1 + 1e-9
    )


def test_sampling_everything_changes_nothing_and_tiny_rates_stay_above_the_truth():
    assert without_replacement(pure(0.7), 5, 5).epsilon() == 0.7
    assert without_replacement(approximate(0.7, 1e-5), 5, 5, delta=1e-5).epsilon(1e-5) == 0.7
    for epsilon in (1e-9, 1.0, 50.0, 20000.0):
        made = Fraction(without_replacement(pure(epsilon), 1, 10**30).epsilon())
        with mpmath.workdps(80):
            exact = mpmath.log1p(mpmath.expm1(mpmath.mpf(epsilon)) / 10**30)
            assert mpmath.mpf(made.numerator) / made.denominator >= exact * (1 - mpmath.mpf(10) ** -25)
            assert made <= epsilon
    assert amp.poisson is poisson


def log_binomial(n, k, p):
    return (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )


def clones(n, epsilon0):
    """The pair that dominates any epsilon0-DP randomiser: one report among C ~ Bin(n - 1, e^-epsilon0)."""
    keep = 1 / (1 + math.exp(-epsilon0))
    one = Counter()
    for c in range(n):
        for a in range(c + 1):
            log = log_binomial(n - 1, c, math.exp(-epsilon0)) + log_binomial(c, a, 0.5)
            if log > -35:
                one[a + 1, c - a] += math.exp(log) * keep
                one[a, c - a + 1] += math.exp(log) * (1 - keep)
    keys = sorted(one | Counter((b, a) for a, b in one))
    return np.array([one[k] for k in keys]), np.array([one[k[::-1]] for k in keys])


@pytest.mark.parametrize(
    ("n", "epsilon0", "delta"),
    [(2, 1.0, 0.1), (10, 0.5, 1e-2), (300, 0.1, 1e-3), (400, 0.5, 1e-3), (600, 1.0, 1e-4), (600, 3.0, 1e-6)],
)
def test_shuffling_is_not_below_the_exact_reduction_and_near_it(n, epsilon0, delta):
    p, q = clones(n, epsilon0)
    assert p.sum() == pytest.approx(1, abs=1e-8)
    stated = shuffling.least_epsilon(epsilon0, math.exp(-epsilon0), n, delta)

    def exact(epsilon):
        return float(np.maximum(0, p - math.exp(epsilon) * q).sum())

    assert exact(stated) <= delta * (1 + 1e-9)
    assert exact(stated * 0.98) > delta


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(-40, 40))
def test_masses_and_tails_of_coins_enclose_the_truth(coins, excess):
    excess = max(-coins, min(coins, excess))
    excess += (excess + coins) % 2
    with mpmath.workdps(30):
        mass = mpmath.binomial(coins, (coins + excess) // 2) / mpmath.mpf(2) ** coins
        fewest = (coins + excess) // 2
        ratios = itertools.accumulate((mpmath.mpf(coins - k) / (k + 1) for k in range(fewest, coins)), mul)
        tail = mass * (1 + mpmath.fsum(ratios))
    c, m = np.array([float(coins)]), np.array([float(excess)])
    for low, truth, high in (
        (shuffling._mass(c, m, -1)[0], mass, shuffling._mass(c, m, 1)[0]),
        (shuffling._tail(c, m)[0] if excess > 0 else 0.0, tail, 1.0),
    ):
        assert low <= truth <= high
    assert shuffling._mass(c, m, 1)[0] <= mass * (1 + mpmath.mpf("1e-6"))
    if excess > 0:
        assert shuffling._tail(c, m)[0] >= tail * (1 - mpmath.mpf("1e-3"))


def test_large_numbers_of_coins_by_another_route():
    # 10^12 coins: the normal limit with its Edgeworth correction is right to 1e-10 or so.
    coins = np.array([1e12])
    for z in (1, 3, 5):
        excess = np.array([2.0 * round(z * 1e6 / 2)])
        mass = math.sqrt(2 / (math.pi * 1e12)) * math.exp(-(excess[0] ** 2) / 2e12)
        assert shuffling._mass(coins, excess, 1)[0] == pytest.approx(mass, rel=1e-6)
        tail = mpmath.ncdf(-(excess[0] - 1) / 1e6)
        assert float(tail) * (1 - 1e-3) <= shuffling._tail(coins, excess)[0] <= float(tail)


def shuffled_law(epsilon0, ones, n):
    """The number of reported ones when `ones` of n people hold a one."""
    keep = 1 / (1 + math.exp(-epsilon0))

    def binomial(m, p):
        return np.array([math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1)])

    return np.convolve(binomial(ones, keep), binomial(n - ones, 1 - keep))


@settings(max_examples=20)
@given(st.sampled_from([0.2, 0.6, 1.0]), st.integers(0, 899))
def test_shuffled_randomized_response_keeps_the_bound_exactly(epsilon0, ones):
    n, delta = 900, 1e-4
    table = FiniteMechanism([shuffled_law(epsilon0, k, n) for k in (ones, ones + 1)], [(0, 1)])
    stated = shuffled(randomized_response(epsilon0), n, delta)
    assert table.delta(stated.epsilon(delta)) <= delta


def test_a_mutant_that_forgets_the_logarithm_of_delta_is_caught():
    """The bug: epsilon0 / sqrt(n), as if a delta cost nothing."""
    n, epsilon0, delta = 900, 1.0, 1e-4
    table = FiniteMechanism([shuffled_law(epsilon0, k, n) for k in (0, 1)], [(0, 1)])
    assert table.delta(epsilon0 / math.sqrt(n)) > 10 * delta


def test_shuffled_randomized_response_is_near_its_exact_law():
    for n, epsilon0, delta in ((900, 1.0, 1e-4), (900, 0.3, 1e-3), (300, 2.0, 1e-5)):
        stated = shuffled(randomized_response(epsilon0), n, delta).epsilon(delta)
        laws = [[shuffled_law(epsilon0, k, n) for k in (ones, ones + 1)] for ones in (0, n // 4, n // 2)]
        worst = max(FiniteMechanism(law, [(0, 1)]).epsilon(delta) for law in laws)
        # The theorem shows which reports are clones; their own noise would hide a little more.
        assert worst <= stated <= 1.25 * worst
        assert stated < shuffled(pure(epsilon0), n, delta).epsilon(delta)


def test_the_formula_of_the_paper_is_an_upper_bound_far_above():
    for n, epsilon0, delta in ((10**6, 1.0, 1e-6), (10**5, 3.0, 1e-8), (10**9, 8.0, 1e-12)):
        made = shuffled(laplace(epsilon0), n, delta).epsilon(delta)
        e = math.exp(epsilon0)
        formula = math.log(1 + (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n))
        assert 0.1 * formula < made < 0.4 * formula
    assert shuffled(pure(1.0), 10**6, 1e-6).epsilon(1e-6) == pytest.approx(0.00434, abs=1e-5)


def test_shuffling_never_weakens_and_more_reports_hide_more():
    before = 1.0
    for n in (1, 10, 100, 10**4, 10**8, 10**13, 10**18, 10**30):
        made = shuffled(pure(1.0), n, 1e-12).epsilon(1e-12)
        assert made <= before
        before = made
    assert before < 1e-8
    assert shuffled(pure(10), 10_000, 1e-6).epsilon() == 10
    assert shuffled(pure(20_000), 10_000, 1e-6).epsilon() == 20_000
    assert shuffled(pure(1e-12), 300, 1e-3).epsilon() == 1e-12
    assert shuffled(pure(0), 300, 1e-3).epsilon() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: without_replacement(pure(1), 0, 5),
        lambda: without_replacement(pure(1), 6, 5),
        lambda: without_replacement(pure(1), 1.5, 5),
        lambda: without_replacement(gaussian(1) * 2, 1, 5),
        lambda: without_replacement(approximate(1, 1e-3), 5, 5, delta=1e-9),
        lambda: without_replacement(pure(1), 1, 5, delta=2),
        lambda: shuffled(pure(1), 0, 1e-6),
        lambda: shuffled(pure(1), 10_000, 0),
        lambda: shuffled(gaussian(1), 10_000, 1e-6),
        lambda: shuffled(approximate(1, 1e-9), 10_000, 1e-6),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("guarantee", "share"),
    [
        (pure(1.0), math.exp(-1)),
        (randomized_response(1.0), 2 / (1 + math.e)),
        (randomized_response(1.0, 3), math.exp(-1)),
    ],
)
def test_shuffling_is_asked_for_more_epsilon_and_less_delta_than_there_is(monkeypatch, guarantee, share):
    asked = []

    def noted(epsilon0, clones, reports, target):
        asked.append((epsilon0, clones, reports, target))
        return 0.25

    monkeypatch.setattr(shuffling, "least_epsilon", noted)
    assert shuffled(guarantee, 1000, 1e-6) == approximate(0.25, 1e-6)
    ((epsilon0, clones, reports, target),) = asked
    assert 1.0 < epsilon0 < 1 + 1e-14
    assert share * (1 - 1e-14) < clones < share
    assert reports == 1000
    assert 1e-6 * (1 - 1e-14) < target < 1e-6


def test_where_shuffling_helps_too_little_the_local_epsilon_stays(monkeypatch):
    for helped, result in ((0.989, approximate(0.989, 1e-6)), (0.991, pure(1.0))):
        monkeypatch.setattr(shuffling, "least_epsilon", lambda *_, helped=helped: helped)
        assert shuffled(pure(1.0), 1000, 1e-6) == result
    monkeypatch.setattr(shuffling, "least_epsilon", lambda *_: 0.0)
    for epsilon, delta in ((1e-7, 1e-6), (101, 1e-6), (1.0, 1.0), (1.0, 1e-200)):
        assert shuffled(pure(epsilon), 1000, delta) == pure(epsilon)
    for epsilon, delta in ((1e-6, 1e-6), (100, 1e-6), (1.0, 1e-199)):
        assert shuffled(pure(epsilon), 1000, delta) == approximate(0.0, delta)


def test_a_plan_on_one_sample_is_the_point_of_its_curve():
    plan = pure(0.5) * 2
    # (m/n) delta(epsilon) <= 0.01 where delta(epsilon) <= 0.04.
    inner = plan.epsilon(0.04)
    sampled = without_replacement(plan, 1, 4, delta=0.01)
    assert sampled.delta(math.log1p(0.25 * math.expm1(inner)) * (1 + 1e-12)) == pytest.approx(0.01)
    assert sampled.epsilon(0.01) == pytest.approx(math.log1p(0.25 * math.expm1(inner)), rel=1e-12)
    assert without_replacement(plan, 1, 4).epsilon() == pytest.approx(
        math.log1p(0.25 * math.expm1(1)), rel=1e-12
    )
    # More delta than the rate: no epsilon is needed at all.
    assert without_replacement(plan, 1, 4, delta=0.5).epsilon(0.5) == 0.0


def test_one_release_on_a_sample_keeps_its_curve():
    quarter = Fraction(1, 4)

    def event(guarantee):
        return without_replacement(guarantee, 1, 4).events

    assert event(pure(1)) == ((events.WithoutReplacement(events.Pure(Fraction(1)), quarter), 1),)
    assert event(bounded_range(1)) == event(pure(1))
    assert event(threshold(0.5)) == threshold(0.125).events
    ((made, _),) = event(approximate(1, 0.5))
    assert made.delta == Fraction(1, 8)
    assert float(made.epsilon) == pytest.approx(math.log1p(0.25 * math.expm1(1)), rel=1e-14)
