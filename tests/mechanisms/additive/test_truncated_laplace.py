"""Truncated Laplace noise: exact (epsilon, delta) over vectors, the keys it names, mutants."""

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
from incrowd.mechanisms import Laplace, PartitionSelection, TruncatedLaplace

from ..checks import FAILURE, surprise


def masses(bound: int, scale: Fraction) -> list[mpmath.mpf]:
    """P(Z = z) for z = -bound .. bound, in many digits."""
    b = mpmath.mpf(scale.numerator) / scale.denominator
    weights = [mpmath.exp(-abs(z) / b) for z in range(-bound, bound + 1)]
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


def unreachable(bound: int, scale: Fraction, moves: tuple[int, ...]) -> mpmath.mpf:
    """The probability that some coordinate lands where the neighbour's cannot."""
    law = masses(bound, scale)
    hidden = mpmath.mpf(1)
    for move in moves:
        hidden *= 1 - mpmath.fsum(law[len(law) - min(abs(move), len(law)) :])
    return 1 - hidden


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.05, 6),
    st.floats(-12, -1).map(lambda x: 10**x),
    st.integers(1, 6),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_what_the_neighbour_cannot_say_is_as_rare_as_delta(epsilon, delta, largest, times, chance):
    """Every way to spread what a unit may move over keys: the worst is within delta, and little is wasted."""
    sensitivity = largest * times
    m = TruncatedLaplace(epsilon, delta, sensitivity=sensitivity, largest=largest)
    spreads = [(largest,) * times, (1,) * sensitivity, (largest,)]
    left, moves = sensitivity, []
    while left:
        moves.append(chance.randint(1, min(left, largest)))
        left -= moves[-1]
    with mpmath.workdps(40):
        for spread in (*spreads, tuple(moves)):
            assert unreachable(m.bound, m.scale_in_steps, spread) <= delta
        tighter = m.bound - 1
        if tighter >= max(largest, math.ceil(m.scale_in_steps)):
            union = times * unreachable(tighter, m.scale_in_steps, (largest,))
            assert union > delta * (1 - 1e-6)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.2, 3), st.sampled_from([1e-2, 1e-4]), st.integers(0, 2), st.integers(0, 2))
def test_two_coordinates_are_epsilon_delta_private(epsilon, delta, one, two):
    """By brute force over all pairs of outcomes."""
    sensitivity = max(one + two, 1)
    m = TruncatedLaplace(epsilon, delta, sensitivity=sensitivity, largest=min(2, sensitivity))
    y = np.arange(-m.bound, m.bound + 3)
    first = np.multiply.outer(m.pmf(y, 0), m.pmf(y, 0))
    second = np.multiply.outer(m.pmf(y, one), m.pmf(y, two))
    assert first.sum() == pytest.approx(1) and second.sum() == pytest.approx(1)
    for p, q in ((first, second), (second, first)):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta + 1e-12


def test_a_bound_that_is_a_step_of_the_unit_too_low_is_caught():
    """The mutants: a bound for what is not counted in, and one for a single coordinate of many."""
    with mpmath.workdps(40):
        m = TruncatedLaplace(1.0, 1e-6, sensitivity=64)
        assert unreachable(m.bound - 64, m.scale_in_steps, (64,)) > 1e-6
        m = TruncatedLaplace(1.0, 1e-6, sensitivity=64, largest=8)
        lower = TruncatedLaplace(1.0, 1e-6 * 8, sensitivity=64, largest=8)
        assert unreachable(lower.bound, m.scale_in_steps, (8,) * 8) > 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (0.5, 1e-9), (3.0, 1e-4)])
def test_keys_are_named_about_as_often_as_by_the_optimal_selection(epsilon, delta):
    """Which at the same epsilon and delta gives no count."""
    m, best = TruncatedLaplace(epsilon, delta), PartitionSelection(epsilon, delta)
    for n in range(1, 2 * m.bound):
        shown = m.pmf(np.arange(m.bound + 1, n + m.bound + 1), n).sum()
        assert shown <= float(best.probability(n)) * (1 + 1e-9)
        assert shown >= float(best.probability(n - 1)) * (1 - 1e-6)


def test_nothing_that_nobody_has_is_named():
    m = TruncatedLaplace(0.5, 0.1)
    noisy = m.release(np.zeros(100_000, int))
    assert noisy.max() <= m.bound and noisy.min() >= -m.bound


@pytest.mark.statistical
def test_the_noise_has_the_stated_law():
    """Fails by chance below 1e-7."""
    m = TruncatedLaplace(1.0, 0.05)
    drawn = m.release(np.zeros(50_000, int)) + m.bound
    law = m.pmf(np.arange(-m.bound, m.bound + 1))
    assert surprise(drawn, law) > FAILURE
    other = Laplace(1.0).pmf(np.arange(-m.bound, m.bound + 1))
    assert surprise(drawn, other / other.sum()) > FAILURE


@settings(max_examples=40)
@given(st.floats(0.05, 4), st.sampled_from([1e-1, 1e-3, 1e-8]), st.floats(0.5, 0.999))
def test_the_halfwidth_holds_the_noise_and_is_the_least(epsilon, delta, confidence):
    m = TruncatedLaplace(epsilon, delta)
    law = m.pmf(np.arange(-m.bound, m.bound + 1))
    sizes = np.abs(np.arange(-m.bound, m.bound + 1))
    half = m.halfwidth(confidence)
    assert law[sizes <= half].sum() >= confidence - 1e-9
    assert half == 0 or law[sizes < half].sum() < confidence + 1e-9


def test_small_deltas_and_large_epsilons_have_a_bound():
    for epsilon, delta in itertools.product((1e-3, 1.0, 50.0, 5_000.0), (0.5, 1e-300)):
        assert TruncatedLaplace(epsilon, delta, sensitivity=8).bound >= 8


def test_a_coordinate_that_moves_more_than_all_is_refused():
    with pytest.raises(InvalidInput, match="largest must not exceed"):
        TruncatedLaplace(1.0, 1e-6, sensitivity=1, largest=2)
    with pytest.raises(InvalidInput, match="too wide"):
        TruncatedLaplace(1e-3, 1e-6, sensitivity=2**45)
