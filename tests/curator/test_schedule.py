"""Schedules: the price is used up to the last digit, and never exceeded."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.curator import schedule
from incrowd.curator.schedule import Step, Strength, _with_noise, read_schedule, strengths, together
from incrowd.errors import InvalidInput
from incrowd.privacy import bounded_range, gaussian, least_sigma, pure
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


def test_a_strength_states_what_its_step_keeps() -> None:
    half = Fraction(1, 2)
    assert Strength("select", epsilon=half).guarantee == bounded_range(half)
    assert Strength("sums", epsilon=half).guarantee == pure(half)
    assert Strength("tree", mu=0.5).guarantee == gaussian(0.5)
    assert together([Strength("sums", mu=0.5)] * 3 + [Strength("select", epsilon=half)]) == (
        gaussian(0.5) * 3 + bounded_range(half)
    )


def test_gaussian_steps_share_by_squares_and_a_selection_has_the_same_rho() -> None:
    # mu = 1/2 / 2, and mu^2 / 2 = epsilon^2 / 8.
    assert _with_noise(Step("sums"), 0.25, 2.0) == Strength("sums", mu=0.25)
    assert _with_noise(Step("select"), 0.25, 2.0) == Strength("select", epsilon=Fraction(1, 2))
    one, four = strengths([Step("sums"), Step("sums", 4.0)], 1.0, 1e-6)
    assert one.mu**2 + four.mu**2 == pytest.approx(1 / least_sigma(1.0, 1e-6) ** 2, rel=1e-8)
    (alone,) = strengths([Step("sums")], 1.0, 1e-6)
    assert alone.mu == pytest.approx(1 / least_sigma(1.0, 1e-6), rel=1e-8)


def test_the_ends_of_what_a_grant_may_cost() -> None:
    assert strengths([Step("sums")], 1e-10, 0.0)[0].epsilon == Fraction(1, 10**10)
    assert strengths([Step("sums")], 1e-9, 0.5)[0].mu > 0
    assert strengths([Step("sums")], 10**6, 0.5)[0].mu > 0
    for epsilon in (0.9e-9, 1_000_001):
        with pytest.raises(InvalidInput, match="between 1e-9 and 1e6"):
            strengths([Step("sums")], epsilon, 0.5)


def test_the_most_steps_that_a_schedule_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "MOST_STEPS", 3)
    most = [Step("sums")] * 3
    assert read_schedule(most) == read_schedule({"sums": 3}) == tuple(most)
    for steps in ([*most, Step("sums")], {"sums": 2, "tree": 2}):
        with pytest.raises(InvalidInput, match="1 to 3 steps, not 4"):
            read_schedule(steps)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="from 1 to 3, not sums: 4"):
        read_schedule({"sums": 4})
    for wrong in ("sums", 3):
        with pytest.raises(InvalidInput, match="what is released"):
            read_schedule(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not of 3"):
        read_schedule([Step("sums"), 3])  # type: ignore[list-item]


@pytest.mark.parametrize("share", [0, -1.0, float("inf"), float("nan"), True, "1"])
def test_a_share_is_a_positive_number(share: Any) -> None:
    with pytest.raises(InvalidInput, match="share of a step"):
        Step("sums", share)
    assert Step("sums").share == Step("sums", 1).share


def test_steps_and_strengths_never_change() -> None:
    for value in (Step("sums"), Strength("sums")):
        with pytest.raises(AttributeError):
            value.kind = "tree"  # type: ignore[misc]
