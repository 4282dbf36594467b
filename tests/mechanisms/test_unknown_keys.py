"""Partition selection and stable histograms: exact (epsilon, delta), optimality, mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Gaussian, Laplace, PartitionSelection, StableHistogram
from incrowd.privacy import threshold

from .checks import FAILURE, smallest_delta, surprise

epsilons = st.floats(0.05, 5)
deltas = st.floats(-12, -1).map(lambda x: 10**x)


def slack(pi, epsilon, delta):
    """How much the worst pair of neighbouring counts exceeds delta, with 60 digits."""
    with mpmath.workdps(60):
        grow = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        bound = mpmath.mpf(delta.numerator) / delta.denominator
        number = [mpmath.mpf(p.numerator) / p.denominator for p in pi]
        return max(
            max(b - grow * a, (1 - a) - grow * (1 - b), a - grow * b, (1 - b) - grow * (1 - a)) - bound
            for a, b in itertools.pairwise(number)
        )


@settings(max_examples=40, deadline=None)
@given(epsilons, deltas)
def test_selection_is_private_exactly_and_wastes_nothing(epsilon, delta):
    m = PartitionSelection(epsilon, delta)
    n = m.halfwidth(1 - 1e-15) + 2
    pi = [m.probability(k) for k in range(n + 1)]
    assert pi[0] == 0 and pi[-1] == 1 and all(a <= b for a, b in itertools.pairwise(pi))
    assert slack(pi, m.exact_epsilon, m.exact_delta) <= 0
    # the recursion of the theorem in floats gives the same to ten digits
    best = 0.0
    for k in range(1, min(n, 60)):
        best = min(math.exp(epsilon) * best + delta, 1 - math.exp(-epsilon) * (1 - best - delta), 1.0)
        assert float(pi[k]) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("groups", "relation", "parts"), [(3, "add-remove", 3), (2, "replace", 4)])
def test_several_keys_per_unit_share_the_budget(groups, relation, parts):
    m = PartitionSelection(1.0, 1e-4, groups=groups, relation=relation)
    pi = [m.probability(k) for k in range(40)]
    assert slack(pi, Fraction(1, parts), Fraction(1, 10**4) / parts) <= 0
    assert m.probability(1) == pytest.approx(1e-4 / parts)


def test_selection_beats_the_noisy_threshold():
    """At every count a key is named at least as often as by Laplace noise and a threshold."""
    m, noisy = PartitionSelection(1.0, 1e-6), StableHistogram(1.0, 1e-6)
    for n in range(1, 40):
        y = np.arange(noisy.threshold, 400)
        assert float(m.probability(n)) >= noisy.mechanism.pmf(y, n).sum() - 1e-12


def test_a_mutant_that_names_one_count_earlier_is_caught():
    m = PartitionSelection(1.0, 1e-6)
    shifted = [m.probability(k + 1) if k else Fraction(0) for k in range(40)]
    assert slack(shifted, m.exact_epsilon, m.exact_delta) > 0


def test_a_mutant_that_names_empty_keys_is_told_apart():
    assert PartitionSelection(1.0, 0.01).probability(0) == 0
    assert not PartitionSelection(1.0, 0.5).release(np.zeros(1000, int)).any()


@pytest.mark.statistical
def test_keys_are_named_with_the_stated_probability():
    """Fails by chance below 1e-7."""
    m = PartitionSelection(0.8, 0.02)
    for n in (1, 2, 4, 6):
        p = float(m.probability(n))
        named = m.release(np.full(20_000, n)).astype(int)
        assert surprise(named, [1 - p, p]) > FAILURE
        assert n != 4 or surprise(named, [1 - p * 1.3, p * 1.3]) < 1e-9


def law(m, count, top=200):
    """The law of one key: not released, or released with one of its noisy counts."""
    if count == 0:
        return np.append(1.0, np.zeros(top - m.threshold))
    y = np.arange(m.threshold, top)
    shown = m.mechanism.pmf(y, count)
    return np.append(1 - shown.sum(), shown)


@settings(max_examples=60)
@given(st.floats(0.2, 3), st.sampled_from([1e-2, 1e-4, 1e-7]), st.integers(0, 30))
def test_one_key_of_a_stable_histogram_is_epsilon_delta_private(epsilon, delta, count):
    m = StableHistogram(epsilon, delta)
    exact = smallest_delta(law(m, count), law(m, count + 1), epsilon)
    assert exact <= (delta if count == 0 else 1e-12)
    assert exact <= m.privacy.delta(epsilon) + 1e-12
    assert smallest_delta(law(m, count), law(m, count + 1), 0.0) <= m.privacy.delta(0.0) + 1e-12


def test_the_threshold_is_the_least_that_is_private():
    for epsilon, delta, groups in ((1.0, 1e-6, 1), (0.3, 1e-3, 4), (5.0, 0.2, 1), (2.0, 0.9, 3)):
        m = StableHistogram(epsilon, delta, groups=groups, noise="laplace")
        y = np.arange(m.threshold, m.threshold + 2000)
        alone = m.mechanism.pmf(y, 1).sum()
        assert groups * alone <= delta
        assert m.threshold == 1 or groups * (alone + m.mechanism.pmf(m.threshold - 1, 1)) > delta * (1 - 1e-9)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_new_keys_together_stay_within_delta(noise):
    """A unit alone in three keys: some key shows with probability at most delta."""
    m = StableHistogram(1.0, 1e-3, groups=3, noise=noise)
    shown = m.mechanism.pmf(np.arange(m.threshold, 4000), 1).sum()
    assert 1 - (1 - shown) ** 3 <= m.key_delta <= Fraction(1, 1000)


SETTINGS = [(1.0, 1e-6, 100), (0.3, 1e-3, 4), (4.0, 1e-9, 30), (8.0, 0.2, 1), (0.01, 1e-5, 2), (1.0, 0.9, 5)]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta", "groups"), SETTINGS)
def test_gaussian_noise_on_many_keys_keeps_epsilon_and_delta(epsilon, delta, groups, relation):
    """Every split of a unit's keys into those that others have and those that she alone has.

    For j new keys the two laws are a Gaussian pair of mu sqrt((keys - j) / keys), as the noise itself states
    it, beside the event that a new key is shown, whose chance is summed from the exact mass function.
    """
    m = StableHistogram(epsilon, delta, groups=groups, relation=relation, noise="gaussian")
    keys = groups if relation == "add-remove" else 2 * groups
    assert m.sensitivity == keys and m.mechanism.sensitivity**2 >= keys
    top = m.threshold + math.ceil(12 * m.mechanism.noise_scale) + 2
    shown = m.mechanism.pmf(np.arange(m.threshold, top), 1).sum()
    assert keys * shown <= m.key_delta
    # Not needlessly high: one lower and the keys' part of delta is exceeded.
    lower = shown + m.mechanism.pmf(m.threshold - 1, 1)
    assert m.threshold == 2 or keys * lower > float(m.key_delta) * (1 - 1e-3)

    def delta_of(mu):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)

    for new in {0, min(1, keys - 1), keys // 2, keys - 1}:
        mu = m.mechanism.mu * math.sqrt((keys - new) / keys)
        event = 1 - (1 - shown) ** new
        assert event + (1 - event) * delta_of(mu) <= delta * (1 + 1e-9)
    assert m.privacy.delta(epsilon) <= delta * (1 + 1e-9)
    assert m.privacy.delta(epsilon) >= delta * 0.6  # a large delta: the two do not simply add up


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (3.0, 1e-3), (0.5, 0.3)])
def test_two_keys_of_a_unit_together_are_private_by_enumeration(epsilon, delta, noise):
    """All outcomes of two keys, each shared with others (at every count that matters) or new."""
    m = StableHistogram(epsilon, delta, groups=2, noise=noise)
    top = m.threshold + math.ceil(9 * m.noise_scale) + 40
    laws = {count: law(m, count, top) for count in (0, 1, 2, m.threshold - 1, m.threshold, m.threshold + 4)}
    worst = 0.0
    for one, two in itertools.product((0, 1, m.threshold - 1, m.threshold), repeat=2):
        pair = [laws.setdefault(count, law(m, count, top)) for count in (one, two, one + 1, two + 1)]
        p, q = np.outer(pair[0], pair[1]), np.outer(pair[2], pair[3])
        worst = max(worst, smallest_delta(p, q, epsilon))
    assert worst <= delta * (1 + 1e-6)
    assert worst >= 0.3 * delta


@pytest.mark.parametrize(("epsilon", "delta", "groups"), SETTINGS)
def test_the_noise_with_the_lower_threshold_is_taken(epsilon, delta, groups):
    best, *both = (
        StableHistogram(epsilon, delta, groups=groups, noise=noise).threshold
        for noise in (None, "laplace", "gaussian")
    )
    assert best == min(both)


def test_many_keys_cost_their_root_and_not_their_number():
    """100 keys at epsilon 1 and delta 1e-6: the noise falls from 141 to 44, the threshold to a seventh."""
    laplace, gaussian = (StableHistogram(1.0, 1e-6, groups=100, noise=noise) for noise in ("laplace", None))
    assert laplace.noise_scale * math.sqrt(2) == pytest.approx(141, abs=1)
    assert gaussian.noise_scale == pytest.approx(43.3, abs=0.5)
    assert gaussian.threshold < laplace.threshold / 7
    assert isinstance(StableHistogram(1.0, 1e-6).mechanism, Laplace)
    assert isinstance(
        StableHistogram(10_000.0, 1e-6, groups=3).mechanism, Laplace
    )  # where no Gaussian can be drawn


def test_mutants_of_gaussian_thresholding_are_caught():
    """The bugs: L2 sensitivity 1 for a unit in 100 keys; a threshold for one new key; delta spent twice."""
    m = StableHistogram(1.0, 1e-6, groups=100)
    alone = Gaussian(1.0, 1e-6, sensitivity=1)
    assert 10 / alone.noise_scale > m.mechanism.mu * 5
    shown = m.mechanism.pmf(
        np.arange(StableHistogram(1.0, 1e-6, groups=1, noise="gaussian").threshold, 900), 1
    ).sum()
    assert 100 * shown > 1e-6
    twice = Gaussian(1.0, 1e-6, sensitivity=10).privacy + threshold(1e-6)
    assert twice.delta(1) > 1.9e-6 > 1e-6 >= m.privacy.delta(1) * (1 - 1e-9)


@pytest.mark.statistical
def test_released_counts_with_gaussian_noise_follow_their_law():
    """Fails by chance below 1e-7."""
    m = StableHistogram(2.0, 0.01, groups=2, noise="gaussian")
    released = m.release(dict.fromkeys(range(20_000), 8))
    seen = np.zeros(20_000, dtype=int)
    for key, count in released.items():
        seen[key] = min(count, 60) - m.threshold + 1
    stated = law(m, 8, top=60)
    assert surprise(np.minimum(seen, len(stated)), stated) > FAILURE


def test_a_mutant_whose_threshold_ignores_the_unit_itself_is_caught():
    """The bug: P(Z >= T) <= delta is asked for instead of P(1 + Z >= T)."""
    m = StableHistogram(1.0, 1e-4)
    shown = m.mechanism.pmf(np.arange(m.threshold - 1, 4000), 1).sum()
    assert shown > 1e-4


def test_a_mutant_that_adds_noise_to_absent_keys_is_caught():
    """The bug: every key of a list is noised, so keys that nobody has come out."""
    m = StableHistogram(0.5, 0.4)
    assert all("ghost" not in m.release({"ghost": 0, "real": 50}) for _ in range(300))


@pytest.mark.statistical
def test_released_counts_follow_their_law():
    """Fails by chance below 1e-7."""
    m = StableHistogram(0.7, 0.01)
    released = m.release(dict.fromkeys(range(20000), 6))
    seen = np.zeros(20_000, dtype=int)
    for key, count in released.items():
        seen[key] = min(count, 80) - m.threshold + 1
    stated = law(m, 6, top=80)
    assert surprise(np.minimum(seen, len(stated)), stated) > FAILURE


def test_shapes_and_order():
    m = StableHistogram(50.0, 1e-6)
    assert m.release({"b": 100, "a": 200, "c": 1, "d": 0}) == {"a": 200, "b": 100}
    assert m.release(["x"] * 30 + ["y"]) == {"x": 30}
    assert m.release([]) == {} and m.release({}) == {}
    assert m.release(np.array([3, 3, 3, 3, 3, 3, 3, 3])) == {3: 8}
    p = PartitionSelection(50.0, 1e-6)
    assert p.release({"b": 90, "a": 90, "c": 0}) == ["a", "b"]
    assert p.release([[90, 0], [0, 90]]).tolist() == [[True, False], [False, True]]
    assert p.release([]).shape == (0,)


@pytest.mark.parametrize("kind", [PartitionSelection, StableHistogram])
@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 0, "delta": 0.1},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -0.1},
        {"epsilon": 1, "delta": float("nan")},
        {"epsilon": "1", "delta": 0.1},
        {"epsilon": 1, "delta": 0.1, "groups": 0},
        {"epsilon": 1, "delta": 0.1, "groups": 1.5},
        {"epsilon": 1, "delta": 0.1, "relation": "swap"},
    ],
)
def test_bad_parameters_get_one_sentence(kind, given):
    with pytest.raises(InvalidInput) as caught:
        kind(**given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [PartitionSelection, StableHistogram])
@pytest.mark.parametrize(
    "value", [{"a": -1}, {"a": 1.5}, {"a": "1"}, {"a": None}, 5, "abc", [[1], [2, 3]], None]
)
def test_bad_counts_get_one_sentence(kind, value):
    if (kind is PartitionSelection and value == 5) or (kind is StableHistogram and value == [[1], [2, 3]]):
        return  # one count; records that can be no key, which have none
    with pytest.raises(InvalidInput) as caught:
        kind(1.0, 1e-3).release(value)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_noise_of_another_name_is_refused():
    with pytest.raises(InvalidInput, match="laplace"):
        StableHistogram(1.0, 1e-6, noise="cauchy")


def test_an_epsilon_that_needs_endless_tables_is_refused():
    with pytest.raises(InvalidInput, match="raise epsilon"):
        PartitionSelection(1e-9, 1e-9)
