"""What a guarantee allows: attained by randomized response, exceeded by nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.adversary.attacks.bounds import most_hits, most_success
from incrowd.errors import InvalidInput

EPSILONS = st.floats(0, 10)
DELTAS = st.floats(0, 1)


@pytest.mark.parametrize("choices", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_randomized_response_attains_the_most_success(epsilon: float, choices: int) -> None:
    kept = math.exp(epsilon) / (math.exp(epsilon) + choices - 1)
    assert most_success(epsilon, choices=choices) == pytest.approx(kept, rel=1e-12)


@given(EPSILONS, DELTAS)
def test_an_even_guess_follows_from_the_test_that_errs_alike_on_both_sides(e: float, d: float) -> None:
    """With two choices, success s means a test with false positives 1 - s and true positives s."""
    success = most_success(e, d)
    assert most_hits(1 - success, e, d) == pytest.approx(success, abs=1e-9)


@given(EPSILONS, DELTAS, st.floats(0, 1))
def test_hits_lie_between_guessing_and_certainty_and_grow_with_the_guarantee(
    e: float, d: float, f: float
) -> None:
    assert f - 1e-12 <= most_hits(f, e, d) <= 1
    assert most_hits(f, e, d) <= most_hits(f, e + 1, d) + 1e-12
    assert 0.5 <= most_success(e, d) <= most_success(e + 1, d) <= 1


def test_name_and_shame_attains_what_delta_allows() -> None:
    """Published with probability delta, guessed by a coin otherwise."""
    assert most_success(0.0, 0.1) == pytest.approx(0.1 + 0.9 / 2)
    assert most_hits(0.0, 0.0, 0.1) == pytest.approx(0.1)


def test_a_huge_epsilon_allows_everything_without_overflow() -> None:
    assert most_success(1e6) == most_hits(0.5, 1e6) == 1.0


@pytest.mark.parametrize("epsilon, delta", [(-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.1)])
def test_what_is_no_guarantee_is_refused(epsilon: float, delta: float) -> None:
    for bound in (lambda: most_success(epsilon, delta), lambda: most_hits(0.1, epsilon, delta)):
        with pytest.raises(InvalidInput, match="epsilon of 0 or more"):
            bound()


def test_no_choice_and_no_rate_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one choice"):
        most_success(1.0, choices=0)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        most_hits(math.nan, 1.0)
