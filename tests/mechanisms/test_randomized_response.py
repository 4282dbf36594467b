"""Randomized response: exact probabilities, unbiased counts, intervals that cover."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from incrowd.errors import InvalidInput
from incrowd.mechanisms import RandomizedResponse

from .checks import FAILURE, smallest_epsilon, surprise

epsilons = st.floats(0.01, 20)


@given(epsilons, st.integers(2, 12), st.data())
def test_the_ratio_of_reports_is_epsilon(epsilon, categories, data):
    m = RandomizedResponse(epsilon, categories=categories)
    one = data.draw(st.integers(0, categories - 1))
    other = data.draw(st.integers(0, categories - 1))
    matrix = m.probabilities()
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-14)
    ratio = smallest_epsilon(matrix[one], matrix[other])
    assert ratio <= m.privacy.epsilon() * (1 + 1e-12) + 1e-12
    assert one == other or math.isclose(ratio, m.privacy.epsilon(), rel_tol=1e-9)


@given(st.fractions(Fraction(1, 100), Fraction(99, 100)), st.integers(2, 8))
def test_a_given_truth_states_an_epsilon_just_above_its_logarithm(truth, categories):
    if truth * categories <= 1:
        with pytest.raises(InvalidInput):
            RandomizedResponse(truth=truth, categories=categories)
        return
    m = RandomizedResponse(truth=truth, categories=categories)
    with mpmath.workdps(40):
        ratio = truth * (categories - 1) / (1 - truth)
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        claimed = mpmath.mpf(m.exact_epsilon.numerator) / m.exact_epsilon.denominator
        assert exact <= claimed <= exact * (1 + mpmath.mpf(10) ** -14)
    assert Fraction(repr(m.privacy.epsilon())) >= m.exact_epsilon * (1 - Fraction(1, 10**17))


def test_the_coin_version_is_ln_3():
    coin = RandomizedResponse(truth=Fraction(3, 4))
    assert math.isclose(coin.privacy.epsilon(), math.log(3), rel_tol=1e-14)
    assert coin.privacy.epsilon() >= math.log(3)
    assert coin.probabilities().tolist() == [[0.75, 0.25], [0.25, 0.75]]
    low, high = coin.privacy.posterior(0.5)
    assert low == pytest.approx(0.25) and high == pytest.approx(0.75)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "m",
    [
        RandomizedResponse(1.0),
        RandomizedResponse(0.1, categories=2),
        RandomizedResponse(2.5, categories=5),
        RandomizedResponse(truth=Fraction(3, 4)),
        RandomizedResponse(truth=Fraction(1, 3), categories=7),
    ],
)
def test_released_reports_follow_the_stated_probabilities(m):
    """Fails by chance below 1e-7."""
    for truth in range(m.categories):
        reports = m.release(np.full(12_000, truth))
        assert surprise(reports, m.probabilities()[truth]) > FAILURE


@pytest.mark.statistical
def test_a_mutant_that_keeps_the_truth_as_if_there_were_two_answers_is_caught():
    """The bug: keep the truth with e^eps / (e^eps + 1) although there are five answers. Chance below 1e-7."""
    honest = RandomizedResponse(1.0, categories=5)
    mutant = RandomizedResponse(truth=Fraction(math.exp(1) / (math.exp(1) + 1)), categories=5)
    assert smallest_epsilon(mutant.probabilities()[0], mutant.probabilities()[1]) > 2
    assert mutant.privacy.epsilon() > honest.privacy.epsilon()
    assert surprise(mutant.release(np.zeros(12_000, int)), honest.probabilities()[0]) < 1e-12


@given(st.integers(1, 400), epsilons, st.integers(2, 5), st.data())
def test_estimates_are_unbiased(n, epsilon, categories, data):
    """The estimator applied to the expected reports gives the true counts back."""
    m = RandomizedResponse(epsilon, categories=categories)
    truth = np.array(data.draw(st.lists(st.integers(0, 50), min_size=categories, max_size=categories)))
    expected = truth @ m.probabilities()
    estimated = (expected - truth.sum() * m.other) / (m.keep - m.other)
    assert np.allclose(estimated, truth, atol=1e-6 * n)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("holders", [0, 3, 17, 40])
def test_intervals_cover_with_at_least_their_confidence_exactly(epsilon, holders):
    """The coverage is summed over every number of reports, with its exact probability."""
    n, m = 40, RandomizedResponse(epsilon)
    masses = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, m.keep),
        binom.pmf(np.arange(n - holders + 1), n - holders, m.other),
    )
    covered = 0.0
    for ones, mass in enumerate(masses):
        answer = m.estimate([1] * ones + [0] * (n - ones), confidence=0.9)
        covered += mass * (answer.low[1] <= holders <= answer.high[1])
    assert covered + 1e-9 >= 0.9


def test_an_interval_is_nearly_as_narrow_as_the_normal_one():
    m, n = RandomizedResponse(1.0), 20_000
    answer = m.estimate(np.arange(n) % 2, confidence=0.95)
    normal = 1.96 * m.expected_error(n)
    assert answer.high[0] - answer.counts[0] == pytest.approx(normal, rel=0.02)
    assert answer.counts.sum() == pytest.approx(n)


def test_the_expected_error_is_the_formula_and_the_variance():
    m = RandomizedResponse(1.5)
    assert m.expected_error(900) == pytest.approx(math.exp(0.75) / (math.exp(1.5) - 1) * 30)
    p, q = m.keep, m.other
    assert m.expected_error(900) == pytest.approx(math.sqrt(900 * p * q) / (p - q))
    coin = RandomizedResponse(truth=Fraction(3, 4))
    assert coin.expected_error(100) == pytest.approx(math.sqrt(3) / 2 * 10)


@given(epsilons, st.integers(2, 6), st.integers(1, 60), st.data())
def test_the_tail_bound_holds_exactly(epsilon, categories, n, data):
    m = RandomizedResponse(epsilon, categories=categories)
    holders = data.draw(st.integers(0, n))
    masses = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, m.keep),
        binom.pmf(np.arange(n - holders + 1), n - holders, m.other),
    )
    error = np.abs((np.arange(n + 1) - n * m.other) / (m.keep - m.other) - holders)
    for t in (0.5, 0.1 * n + 1, float(n)):
        assert masses[error >= t * (1 + 1e-9)].sum() <= m.tail(t, n) + 1e-12
    for confidence in (0.5, 0.9, 0.999):
        width = m.halfwidth(confidence, n)
        assert masses[error > width].sum() <= 1 - confidence + 1e-12
        assert m.tail(width, n) <= (1 - confidence) * (1 + 1e-6)
        assert categories > 2 or m.tail(width, n) == pytest.approx(1 - confidence)
        hoeffding = math.sqrt(n * math.log(2 / (1 - confidence)) / 2) / (m.keep - m.other)
        assert width <= hoeffding * (1 + 1e-9)


@pytest.mark.parametrize("categories", [2, 5])
@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 10_000), (3.0, 10_000), (6.0, 10**6), (10.0, 10**7)])
def test_half_widths_are_within_what_a_normal_tail_costs(epsilon, n, categories):
    """Chernoff's bound on a normal tail is sqrt(2 ln 40) = 2.72 deviations at 95%, where 1.96 would do."""
    m = RandomizedResponse(epsilon, categories=categories)
    assert 1.96 <= m.halfwidth(0.95, n) / m.expected_error(n) <= 2.72 * 1.02


@pytest.mark.parametrize("epsilon", [10.0, 40.0, 700.0])
def test_half_widths_vanish_where_a_report_is_almost_surely_the_truth(epsilon):
    """Hoeffding's bound stays at 136 of 10,000."""
    m = RandomizedResponse(epsilon)
    assert m.halfwidth(0.95, 10_000) < 3
    assert epsilon < 40 or m.halfwidth(0.95, 10_000) < 0.2
    assert 0 <= m.tail(5, 10_000) < 1e-3


def test_the_gap_between_two_answers_keeps_its_digits():
    for epsilon, categories in ((1e-9, 2), (1e-6, 7), (1.0, 3), (700.0, 2)):
        m = RandomizedResponse(epsilon, categories=categories)
        with mpmath.workdps(40):
            grow = mpmath.exp(mpmath.mpf(m.exact_epsilon.numerator) / m.exact_epsilon.denominator)
            assert m.gap == pytest.approx(float((grow - 1) / (grow + categories - 1)), rel=1e-14)
    coin = RandomizedResponse(truth=Fraction(1, 2) + Fraction(1, 10**9))
    assert coin.gap == pytest.approx(2e-9, rel=1e-15)


def test_the_sample_size_reaches_the_error_and_not_one_less():
    n = RandomizedResponse.sample_size(0.01, 0.5)
    m = RandomizedResponse(0.5)
    assert m.expected_error(n) / n <= 0.01 < m.expected_error(n - 1) / (n - 1)
    sure = RandomizedResponse.sample_size(0.01, 0.5, confidence=0.95)
    assert m.halfwidth(0.95, sure) / sure <= 0.01 * (1 + 1e-9) < m.halfwidth(0.95, sure - 1) / (sure - 1)
    assert (
        RandomizedResponse.sample_size(0.001, 10.0, confidence=0.95) < 2_000
    )  # Hoeffding asks for 1.8 million


@pytest.mark.parametrize(
    "records", [[True, False], [True, None], [None], [np.True_, 1], [math.nan, True], []]
)
def test_no_record_decides_the_type_of_the_reports(records):
    """A truth value among them, or its absence, would show in every report."""
    m = RandomizedResponse(1.0)
    assert m.release(records).dtype == np.int64
    assert m.release(np.array(records, dtype=object)).dtype == np.int64
    assert {type(m.release(record)) for record in records} <= {int}


def test_answers_keep_their_shape():
    m = RandomizedResponse(1.0)
    assert m.release(np.array([True, False])).dtype == np.bool_
    assert m.release(np.zeros(3)).dtype == np.int64
    assert m.release(np.zeros((2, 3), dtype=np.uint8)).shape == (2, 3)
    assert m.release([]).shape == (0,)
    assert m.estimate([]).counts.tolist() == [0, 0]
    assert RandomizedResponse(50.0, categories=4).release([0, 1, 2, 3]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: RandomizedResponse(0),
        lambda: RandomizedResponse(-1.0),
        lambda: RandomizedResponse(float("nan")),
        lambda: RandomizedResponse(float("inf")),
        lambda: RandomizedResponse(1e6),
        lambda: RandomizedResponse("1"),
        lambda: RandomizedResponse(1.0, categories=1),
        lambda: RandomizedResponse(1.0, categories=2.0),
        lambda: RandomizedResponse(truth=0.5),
        lambda: RandomizedResponse(truth=1),
        lambda: RandomizedResponse(truth=Fraction(1, 4), categories=3),
        lambda: RandomizedResponse(1.0).release("yes"),
        lambda: RandomizedResponse(1.0).release([[0], [0, 1]]),
        lambda: RandomizedResponse(1.0).release(np.ma.masked_array([1], mask=[True])),
        lambda: RandomizedResponse(1.0).estimate([0, 5]),
        lambda: RandomizedResponse(1.0).estimate([0], confidence=1.0),
        lambda: RandomizedResponse(1.0).tail(-1, 10),
        lambda: RandomizedResponse(1.0).halfwidth(0.95, reports=0),
        lambda: RandomizedResponse.sample_size(0, 1.0),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [36.0, 37.5, 40.0, 300.0, 700.0])
@pytest.mark.parametrize("categories", [2, 5])
def test_estimates_where_the_truth_is_all_but_certain(epsilon, categories):
    """The probability of the truth rounds to 1; counts and intervals are what was reported."""
    m = RandomizedResponse(epsilon, categories=categories)
    reports = [0] * 7 + [1] * 1000
    estimate = m.estimate(reports, 0.95)
    assert estimate.counts[:2] == pytest.approx([7, 1000])
    assert estimate.low[:2].tolist() == estimate.high[:2].tolist() == [7, 1000]
    assert 0 <= m.stray <= 1e-14 and m.log_odds == pytest.approx(epsilon - math.log(categories - 1))
    assert m.expected_error(1000) >= 0
    near = RandomizedResponse(truth=1 - Fraction(1, 10**30))
    assert near.estimate(reports).high.tolist() == [7, 1000]
    assert near.stray == pytest.approx(1e-30)


def test_stray_reports_and_odds_agree_with_the_truth():
    for m in (RandomizedResponse(1.0, categories=3), RandomizedResponse(truth=Fraction(3, 4))):
        assert m.stray == pytest.approx(1 - m.keep)
        assert m.log_odds == pytest.approx(math.log(m.keep / (1 - m.keep)))
