"""Quantiles and extremes: exact masses on neighbours, the windowed draw against the full law, mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Maximum, Minimum, Quantile
from incrowd.mechanisms.selection import quantile, ranks
from incrowd.noise import SeededSource
from tests.mechanisms.checks import FAILURE, smallest_epsilon, surprise

data = st.lists(st.integers(0, 8), max_size=7)
shares = st.sampled_from([0.5, 0.25, 0.9, Fraction(1, 3), 0.01])


def spread(p, q):
    ratio = np.log(p) - np.log(q)
    return float(ratio.max() - ratio.min())


@given(st.floats(0.1, 4), shares, data, st.integers(0, 8))
def test_one_more_record_costs_at_most_epsilon_and_its_range(epsilon, q, values, extra):
    m = Quantile(epsilon, q=q, low=0, high=8)
    p, more = m.probabilities(values), m.probabilities([*values, extra])
    assert smallest_epsilon(p, more) <= m.privacy.epsilon() * (1 + 1e-9)
    assert spread(p, more) <= m.privacy.epsilon() * (1 + 1e-9)


@given(st.floats(0.1, 4), shares, data, st.integers(0, 8), st.integers(0, 8))
def test_replacing_a_record_costs_at_most_epsilon_and_its_range(epsilon, q, values, one, other):
    m = Quantile(epsilon, q=q, low=0, high=8, relation="replace")
    p, moved = m.probabilities([*values, one]), m.probabilities([*values, other])
    assert spread(p, moved) <= m.privacy.epsilon() * (1 + 1e-9)


@given(st.floats(0.1, 4), st.sampled_from([Maximum, Minimum]), st.integers(0, 6), data, st.data())
def test_extremes_cost_at_most_epsilon_under_both_relations(epsilon, kind, beyond, values, more):
    m = kind(epsilon, low=0, high=8, beyond=beyond)
    one, other = more.draw(st.integers(0, 8)), more.draw(st.integers(0, 8))
    p = m.probabilities([*values, one])
    assert spread(p, m.probabilities(values)) <= m.privacy.epsilon() * (1 + 1e-9)
    assert spread(p, m.probabilities([*values, other])) <= m.privacy.epsilon() * (1 + 1e-9)


def test_the_range_is_reached():
    # Far from the middle of long data, adding a record on the right moves far-left and mid utilities apart.
    m = Quantile(1.0, low=0, high=8)
    values = [1] * 9 + [7] * 9
    worst = max(spread(m.probabilities(values), m.probabilities([*values, extra])) for extra in range(9))
    assert worst == pytest.approx(1.0, rel=1e-9)


def naive(values, m):
    """The definition, point by point."""
    target = m.shares[0] * len(values)
    weights = []
    for t in range(m.interval.low, m.interval.high + 1):
        under, upto = sum(v < t for v in values), sum(v <= t for v in values)
        weights.append(
            math.exp(-float(m.rate(m.shares[0]) * max(Fraction(0), under - target, target - upto)))
        )
    return np.array(weights) / sum(weights)


@given(st.floats(0.1, 4), shares, data)
def test_masses_are_those_of_the_definition(epsilon, q, values):
    m = Quantile(epsilon, q=q, low=-1, high=9)
    assert np.allclose(m.probabilities(values), naive(values, m), atol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("reach", [0, 1, 3, None])
@pytest.mark.parametrize("values", [[], [4], [2, 2, 2, 2, 7], [0, 1, 3, 3, 5, 8, 8], [8] * 6])
def test_the_windowed_draw_has_the_full_law_whatever_the_window(reach, values):
    """Fails by chance below 1e-7."""
    steps, rate = np.array(sorted(values), dtype=np.int64), Fraction(2, 5)
    target = Fraction(1, 2) * len(values)
    seen = [ranks.draw(steps, target, rate, 0, 9, reach=reach) for _ in range(1_500)]
    assert surprise(seen, ranks.masses(steps, target, rate, 0, 9)) > FAILURE


@pytest.mark.statistical
def test_released_quantiles_follow_the_stated_masses_and_a_mutant_does_not():
    """Fails by chance below 1e-7."""
    values = [1, 1, 2, 3, 5, 5, 5, 6, 9]
    m = Quantile(1.5, q=0.25, low=0, high=10)
    seen = [m.release(values) for _ in range(4_000)]
    assert surprise(seen, m.probabilities(values)) > FAILURE
    mutant = Quantile(2.2, q=0.25, low=0, high=10)
    assert surprise(seen, mutant.probabilities(values)) < 1e-9


@pytest.mark.statistical
def test_unequal_lengths_are_weighted_exactly():
    """`choose` with weights length * exp(-x) over lengths up to 2^40. Fails by chance below 1e-7."""
    lengths = [1, 3, 2**40, 7, 10**6]
    exponents = [Fraction(0), Fraction(1, 3), Fraction(28), Fraction(2), Fraction(131, 10)]
    weights = np.array([n * math.exp(-float(x)) for n, x in zip(lengths, exponents, strict=True)])
    seen = [ranks.choose(lengths, exponents, None) for _ in range(6_000)]
    assert surprise(seen, weights / weights.sum()) > FAILURE


def test_a_mutant_calibrated_to_the_median_at_another_share_is_caught():
    """The bug: D = 1/2 used for the 99th percentile."""
    m = Quantile(1.0, q=0.99, low=0, high=8)
    steps, more = np.array([1] * 40), np.array([1] * 40 + [8])
    share = m.shares[0]
    honest = [ranks.masses(x, share * len(x), m.rate(share), 0, 8) for x in (steps, more)]
    mutant = [ranks.masses(x, share * len(x), Fraction(1), 0, 8) for x in (steps, more)]
    assert spread(*honest) <= 1 + 1e-9 < 1.2 < spread(*mutant)


def test_a_mutant_that_calls_replacing_adding_is_caught():
    m = Quantile(1.0, low=0, high=8)
    values = [1] * 5 + [7] * 5
    assert spread(m.probabilities([*values, 0]), m.probabilities([*values, 8])) > 1.5


def joint(m, values, *, both_sides=False):
    """The exact joint law of two shares: the upper is chosen first, then the lower among what lies below."""
    low, high = m.interval.low, m.interval.high
    size = high - low + 1
    law = np.zeros((size, size))
    steps = np.array(values, dtype=np.int64)
    first = m.shares[1]
    rest = (m.shares[0] / first).limit_denominator(10**6)
    p = ranks.masses(steps, first * steps.size, m.rate(first), low, high)
    for point in range(low, high + 1):
        tied = int((steps == point).sum())
        for down in range(tied + 1):
            coins = math.comb(tied, down) / 2**tied
            kept = tied if both_sides else down
            lower = np.append(steps[steps < point], np.full(kept, point))
            inside = ranks.masses(lower, rest * lower.size, m.rate(rest), low, point)
            law[point - low, : len(inside)] += p[point - low] * coins * inside
    return law


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([0.5, 2.0]),
    st.sampled_from([(0.25, 0.5), (0.5, 0.75), (0.1, 0.9)]),
    st.lists(st.integers(0, 4), max_size=5),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_two_quantiles_together_cost_at_most_epsilon(epsilon, q, values, one, other):
    m = Quantile(epsilon, q=q, low=0, high=4)
    p = joint(m, [*values, one])
    assert smallest_epsilon(p, joint(m, values)) <= m.privacy.epsilon() * (1 + 1e-9)
    r = Quantile(epsilon, q=q, low=0, high=4, relation="replace")
    assert smallest_epsilon(joint(r, [*values, one]), joint(r, [*values, other])) <= epsilon * (1 + 1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("bits", [0, 1])
def test_several_quantiles_follow_their_joint_law(bits, monkeypatch):
    """Over every way to draw the random bits of the records. Fails by chance below 1e-7."""
    monkeypatch.setattr(quantile, "TIE_BITS", bits)
    m = Quantile(2.0, q=(0.25, 0.5), low=0, high=4)
    fine = Quantile(2.0, q=(0.25, 0.5), low=0, high=5 * 2**bits - 1)
    values = [0, 1, 1, 2, 3, 3]
    law = np.zeros((5, 5))
    for drawn in itertools.product(range(2**bits), repeat=len(values)):
        one = joint(fine, [(v << bits) + b for v, b in zip(values, drawn, strict=True)])
        law += one.reshape(5, 2**bits, 5, 2**bits).sum(axis=(1, 3)) / 2 ** (bits * len(values))
    seen = np.array([m.release(values) for _ in range(2_500)])
    assert surprise(seen[:, 1] * 5 + seen[:, 0], law.ravel()) > FAILURE


def test_a_value_that_many_share_does_not_shift_the_other_shares():
    """Half of the people work 40 hours: the quartiles around them are right all the same."""
    values = [30] * 2400 + [40] * 4700 + [45] * 2900
    m = Quantile(50.0, q=[0.1, 0.25, 0.5, 0.7, 0.75], low=0, high=100)
    assert m.release(values).tolist() == [30, 40, 40, 40, 45]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-50, 50), max_size=40), st.integers(1, 9))
def test_several_quantiles_are_in_order(values, many):
    m = Quantile(1.0, q=[Fraction(i, many + 1) for i in range(1, many + 1)], low=-20, high=20)
    answer = m.release(values)
    assert len(answer) == many and (np.diff(answer) >= 0).all()
    assert answer.min() >= -20 and answer.max() <= 20
    assert m.privacy.epsilon() == pytest.approx(1.0)


def test_a_value_shared_by_all_is_found_at_every_share():
    m = Quantile(20.0, q=[0.25, 0.5, 0.75], low=0, high=10**6)
    assert m.release([777] * 500).tolist() == [777, 777, 777]


def test_accuracy_in_ranks():
    values = np.arange(10_000)
    m = Quantile(1.0, q=0.9, low=0, high=10**6)
    for _ in range(20):  # each fails with probability 1e-9
        assert abs(m.release(values) - 9_000) <= m.halfwidth(1 - 1e-9) + 1
    top = Maximum(1.0, low=0, high=10**6)
    assert abs(top.release(values) - (10_000 - top.records_beyond)) <= top.halfwidth(1 - 1e-9) + 1
    bottom = Minimum(1.0, low=0, high=10**6)
    assert abs(bottom.release(values) - bottom.records_beyond) <= bottom.halfwidth(1 - 1e-9) + 1


def test_outliers_empty_data_and_kinds():
    m = Quantile(1.0, low=0, high=10)
    assert 0 <= m.release([]) <= 10
    assert type(m.release([10**17, -(10**17), 3])) is int
    assert Quantile(60.0, low=0, high=10).release([2**62, 2**62, 2**62, 2**62]) == 10
    assert Quantile(60.0, low=0, high=10).release(np.array([2**63] * 5, dtype=np.uint64)) == 10
    assert Quantile(60.0, low=0, high=1000).release(np.array([7] * 9, dtype=np.int8)) == 7
    r = Quantile(60.0, low=0.0, high=10.0)
    assert type(r.release([1.5] * 9)) is float
    assert r.release([math.inf] * 9) == pytest.approx(10, abs=1e-6)
    assert r.release([5e300, 5e300, -5e300, 4.0, 4.0, 4.0]) <= 10
    assert r.release([2**61] * 9) == pytest.approx(10, abs=1e-6)
    assert Quantile(60.0, low=0.0, high=8.0, grid=2.0).release([5] * 9) == 4.0


def test_seeded_releases_repeat():
    m = Quantile(0.1, q=[0.2, 0.8], low=0, high=1000)
    one, other = (m.release([1, 2, 3], SeededSource(4)).tolist() for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    "call",
    [
        lambda: Quantile(0, low=0, high=1),
        lambda: Quantile(1, q=0, low=0, high=1),
        lambda: Quantile(1, q=1.0, low=0, high=1),
        lambda: Quantile(1, q="0.5", low=0, high=1),
        lambda: Quantile(1, q=[], low=0, high=1),
        lambda: Quantile(1, q=[0.5, 0.5], low=0, high=1),
        lambda: Quantile(1, q=[0.9, 0.5], low=0, high=1),
        lambda: Quantile(1, low=1, high=1),
        lambda: Quantile(1, low=2, high=1),
        lambda: Quantile(1, low=float("nan"), high=1),
        lambda: Quantile(1, low=-math.inf, high=1),
        lambda: Quantile(1, low="0", high=1),
        lambda: Quantile(1, low=0, high=2**60),
        lambda: Quantile(1, low=0, high=1, grid=0.3),
        lambda: Quantile(1, low=0, high=1, relation="swap"),
        lambda: Quantile(1, low=0, high=1).release(["a"]),
        lambda: Quantile(1, low=0, high=1).release([[1], [2]]),
        lambda: Quantile(1, low=0, high=1).release([[1], [2, 3]]),
        lambda: Quantile(1, low=0, high=1).release(5),
        lambda: Quantile(1, low=0, high=1).release(None),
        lambda: Quantile(1, low=0, high=1).release(np.ma.masked_array([1], mask=[True])),
        lambda: Quantile(1, q=[0.1, 0.2], low=0, high=1).probabilities([1]),
        lambda: Quantile(1, low=0, high=1).halfwidth(1),
        lambda: Maximum(1, low=0, high=1, beyond=-1),
        lambda: Maximum(0, low=0, high=1),
        lambda: Minimum(1, low=0, high=1).release("abc"),
        lambda: Minimum(1, low=0, high=1).halfwidth(0),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
