"""A quantile without an upper bound: the joint law of both stages on neighbours, accuracy, bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import UnboundedQuantile
from tests.mechanisms.checks import FAILURE, surprise


def joint(m, values):
    """The exact probability of every (doublings, released value)."""
    questions = m.questions(values)
    law = {}
    for i in range(m.doublings + 1):
        answers = [False] * i + [True] * (i < m.doublings)
        chance = m.search.probability(questions[: len(answers)], answers)
        masses = m.within(i).probabilities(values)
        law |= {(i, place): chance * mass for place, mass in enumerate(masses)}
    return law


def spread(m, one, other):
    p, q = joint(m, one), joint(m, other)
    assert sum(p.values()) == pytest.approx(1, abs=1e-9)
    return max(abs(math.log(p[key] / q[key])) for key in p)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([0.5, 2.0]),
    st.sampled_from([0.5, 0.9]),
    st.lists(st.integers(-2, 12), max_size=6),
    st.integers(-2, 12),
    st.integers(-2, 12),
)
def test_both_stages_together_cost_at_most_epsilon(epsilon, q, values, one, other):
    m = UnboundedQuantile(epsilon, q=q, doublings=3)
    assert spread(m, [*values, one], values) <= m.privacy.epsilon() * (1 + 1e-9)
    r = UnboundedQuantile(epsilon, q=q, relation="replace", doublings=3)
    assert spread(r, [*values, one], [*values, other]) <= r.privacy.epsilon() * (1 + 1e-9)
    assert m.privacy.epsilon() == pytest.approx(epsilon)


def test_a_mutant_that_takes_the_bound_from_the_data_is_caught():
    """The bug: the interval ends at the largest value, so one record shows in what can come out at all."""
    m = UnboundedQuantile(1.0, doublings=3)
    one, other = [1, 1, 2], [1, 1, 2, 8]
    widths = [math.ceil(math.log2(max(data))) for data in (one, other)]
    outcomes = [
        len(m.within(width).probabilities(data)) for width, data in zip(widths, (one, other), strict=True)
    ]
    assert outcomes[0] != outcomes[1]


@pytest.mark.statistical
def test_released_values_follow_the_joint_law():
    """Fails by chance below 1e-7."""
    m = UnboundedQuantile(3.0, doublings=3)
    values = [0, 1, 3, 3, 5]
    stated = np.zeros(9)
    for (_, place), mass in joint(m, values).items():
        stated[place] += mass
    assert surprise([m.release(values) for _ in range(2_000)], stated) > FAILURE


def test_it_finds_quantiles_over_many_magnitudes():
    rng = np.random.default_rng(2)
    for scale in (1, 10**4, 10**9):
        values = (rng.exponential(scale, 5_000) + 5).astype(int)
        median = UnboundedQuantile(4.0, q=0.5).release(values)
        rank = np.searchsorted(np.sort(values), [median, median + 1])
        assert rank[0] - 300 <= 2_500 <= rank[1] + 300
    reals = UnboundedQuantile(4.0, q=0.9, low=0.0, unit=2.0**-10)
    assert reals.release(rng.random(5_000)) == pytest.approx(0.9, abs=0.1)
    assert 0 <= UnboundedQuantile(1.0).release([]) <= 2**50


def test_values_beyond_every_doubling_are_clamped():
    m = UnboundedQuantile(50.0, doublings=4)
    assert m.release([10**15] * 40) == 16
    assert m.release([-(10**15)] * 40) == 0


EXTREMES = [0, 1, -1, 2**50, 2**51, 2**62, -(2**70), 0.5, 5e-324, 1e300, math.inf, -math.inf, math.nan, None]


@pytest.mark.parametrize("low", [0, 0.0, -(2.0**20), 5e-324])
@given(st.lists(st.sampled_from(EXTREMES), max_size=5), st.sampled_from(EXTREMES), st.sampled_from(EXTREMES))
def test_no_record_however_extreme_moves_a_question_further_than_stated(low, values, one, other):
    added, replaced = (UnboundedQuantile(1.0, low=low, relation=r) for r in ("add-remove", "replace"))
    reach = added.search.sensitivity_in_steps
    assert np.abs(np.subtract(added.questions([*values, one]), added.questions(values))).max() <= reach
    reach = replaced.search.sensitivity_in_steps
    moved = np.subtract(replaced.questions([*values, one]), replaced.questions([*values, other]))
    assert np.abs(moved).max() <= reach
    assert (np.diff(added.questions(values)) >= 0).all()


@given(
    st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9),
    st.integers(1, 2**10) | st.floats(1e-9, 1e9),
    st.integers(1, 50),
)
def test_no_interval_is_refused_when_the_data_lead_there(low, unit, doublings):
    """What cannot be had is refused at once, whatever the data."""
    try:
        m = UnboundedQuantile(1.0, low=low, unit=unit, doublings=doublings)
    except InvalidInput:
        return
    for many in range(doublings + 1):
        assert m.within(many).interval.points > 1


@pytest.mark.parametrize("unit", [1e-3, 1e-6, 1e-12, 1e-30, 1e-250, 1e-300])
def test_small_units_are_seen(unit):
    """The grid is as fine as the interval asks for. Fails by chance below 1e-9 (ten thousand ranks at 50)."""
    m = UnboundedQuantile(50.0, low=0.0, unit=unit)
    assert m.release([5 * unit] * 10_000) == pytest.approx(
        5 * unit, rel=1e-6 if unit > 1e-290 else 0.1, abs=0
    )


@given(st.floats(-1e8, 1e8), st.integers(-60, 0), st.integers(1, 50))
def test_a_small_unit_beside_a_large_bound_is_refused_no_more_than_a_large_one(low, exponent, doublings):
    m = UnboundedQuantile(1.0, low=low, unit=2.0**exponent, doublings=doublings)
    for many in range(doublings + 1):
        grid = m.within(many).interval.grid.step
        assert grid <= max(Fraction(1, 2**31), Fraction(2) ** (exponent + many - 31))


@pytest.mark.parametrize(
    "call",
    [
        lambda: UnboundedQuantile(0),
        lambda: UnboundedQuantile(1, q=0),
        lambda: UnboundedQuantile(1, low=float("nan")),
        lambda: UnboundedQuantile(1, unit=0),
        lambda: UnboundedQuantile(1, share=1),
        lambda: UnboundedQuantile(1, relation="swap"),
        lambda: UnboundedQuantile(1, doublings=0),
        lambda: UnboundedQuantile(1, doublings=51),
        lambda: UnboundedQuantile(1, unit=16),
        lambda: UnboundedQuantile(1, low=2**59, unit=2**9),
        lambda: UnboundedQuantile(1, low=2.0**40),
        lambda: UnboundedQuantile(1).release("abc"),
        lambda: UnboundedQuantile(1, low=0.0).release([["a"]]),
        lambda: UnboundedQuantile(1, q=[0.1, 0.5], low=Fraction(1, 2)).release(["a"]),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.statistical
@pytest.mark.parametrize("n", [40, 400])
def test_the_released_value_is_off_by_few_ranks(n):
    """Of 200 releases about 10 may be further off; 40 are by chance with probability below 1e-12."""
    m = UnboundedQuantile(2.0, q=0.5)
    values = np.arange(n) * 7
    width = m.halfwidth(0.95)
    off = [abs(np.searchsorted(values, m.release(values), side="right") - n / 2) for _ in range(200)]
    assert sum(error > width + 1 for error in off) < 40
    assert width < m.halfwidth(0.99) < 2 * width < 200
