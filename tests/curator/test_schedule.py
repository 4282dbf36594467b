"""Schedules: the price is used up to the last digit, and never exceeded."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.curator.schedule import Step, read_schedule, strengths, together
from incrowd.errors import InvalidInput
from tests.sweep import sized

STEPS = st.lists(
    st.builds(Step, st.sampled_from(["sums", "histogram", "tree", "select"]), st.floats(0.1, 10)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=sized(4, 25), deadline=None)
@given(STEPS, st.floats(0.05, 5), st.sampled_from([0.0, 1e-9, 1e-5]))
def test_all_steps_together_cost_the_price(steps: list[Step], epsilon: float, delta: float) -> None:
    cost = together(strengths(steps, epsilon, delta)).epsilon(delta)
    assert epsilon * (1 - 1e-6) <= cost <= epsilon * (1 + 1e-12)


def test_without_a_delta_epsilon_is_shared_exactly() -> None:
    parts = strengths([Step("sums"), Step("select", 2.0), Step("tree")], 0.1, 0.0)
    assert [part.epsilon for part in parts] == [Fraction(1, 40), Fraction(1, 20), Fraction(1, 40)]
    assert not any(part.mu for part in parts)


def test_larger_shares_get_less_noise() -> None:
    small, large = strengths([Step("sums"), Step("sums", 4.0)], 1.0, 1e-6)
    assert large.mu == pytest.approx(2 * small.mu)


def test_a_mapping_names_how_often() -> None:
    assert read_schedule({"sums": 2, "select": 1}) == (Step("sums"), Step("sums"), Step("select"))


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ({"sum": 1}, "one of sums, histogram, tree, select, not 'sum'"),
        ({"sums": 0}, "whole number"),
        ({"sums": 1.5}, "whole number"),
        ({"sums": True}, "whole number"),
        ({}, "1 to 100,000 steps"),
        (["sums"], "list of steps"),
        ({"sums": 10**9}, "whole number"),
    ],
)
def test_a_wrong_schedule_is_refused_in_words(schedule: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_schedule(schedule)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (-1, 0), (1, 1), (1, -0.1)])
def test_a_wrong_price_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidInput):
        strengths([Step("sums")], epsilon, delta)


def test_the_ends_of_what_a_grant_may_cost() -> None:
    assert strengths([Step("sums")], 1e-10, 0.0)[0].epsilon == Fraction(1, 10**10)
    assert strengths([Step("sums")], 1e-9, 0.5)[0].mu > 0
    assert strengths([Step("sums")], 10**6, 0.5)[0].mu > 0
    for epsilon in (0.9e-9, 1_000_001):
        with pytest.raises(InvalidInput, match="between 1e-9 and 1e6"):
            strengths([Step("sums")], epsilon, 0.5)
