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

from incrowd.errors import InvalidInput
from incrowd.mechanisms import PartitionSelection, StableHistogram

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
    m = PartitionSelection(1.0, 1e-4, groups, relation)
    pi = [m.probability(k) for k in range(40)]
    assert slack(pi, Fraction(1, parts), Fraction(1, 10**4) / parts) <= 0
    assert m.probability(1) == pytest.approx(1e-4 / parts)


def test_selection_beats_the_noisy_threshold():
    """At every count a key is named at least as often as by Laplace noise and a threshold."""
    m, noisy = PartitionSelection(1.0, 1e-6), StableHistogram(1.0, 1e-6)
    for n in range(1, 40):
        y = np.arange(noisy.threshold, 400)
        assert float(m.probability(n)) >= noisy.noise.pmf(y, n).sum() - 1e-12


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
    shown = m.noise.pmf(y, count)
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
        m = StableHistogram(epsilon, delta, groups)
        y = np.arange(m.threshold, m.threshold + 2000)
        alone = m.noise.pmf(y, 1).sum()
        assert groups * alone <= delta
        assert m.threshold == 1 or groups * (alone + m.noise.pmf(m.threshold - 1, 1)) > delta * (1 - 1e-9)


def test_new_keys_together_stay_within_delta():
    """A unit alone in three keys: some key shows with probability at most delta."""
    m = StableHistogram(1.0, 1e-3, groups=3)
    shown = m.noise.pmf(np.arange(m.threshold, 4000), 1).sum()
    assert 1 - (1 - shown) ** 3 <= 1e-3


def test_a_mutant_whose_threshold_ignores_the_unit_itself_is_caught():
    """The bug: P(Z >= T) <= delta is asked for instead of P(1 + Z >= T)."""
    m = StableHistogram(1.0, 1e-4)
    shown = m.noise.pmf(np.arange(m.threshold - 1, 4000), 1).sum()
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


def test_an_epsilon_that_needs_endless_tables_is_refused():
    with pytest.raises(InvalidInput, match="raise epsilon"):
        PartitionSelection(1e-9, 1e-9)
