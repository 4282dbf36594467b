"""Epsilon in odds: the figures are the guarantee's own, rounded so that every printed bound holds."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.explain import explain_epsilon
from incrowd.explain.meaning import LADDER, PRIORS, percent_down, percent_up
from incrowd.privacy import pure

epsilons = st.floats(1e-6, 50.0)
shares = st.floats(1e-6, 1 - 1e-6)


@given(epsilons, shares)
def test_beliefs_are_the_posterior_of_a_pure_guarantee(epsilon: float, prior: float) -> None:
    belief = explain_epsilon(epsilon, priors=[prior]).at(prior)
    assert (belief.low, belief.high) == pure(epsilon).posterior(prior)


@given(st.floats(1e-6, 10.0), st.floats(1e-3, 0.9))
def test_odds_move_by_exactly_the_stated_factor(epsilon: float, prior: float) -> None:
    meaning = explain_epsilon(epsilon, priors=[prior])
    belief, odds = meaning.at(prior), prior / (1 - prior)
    assert belief.high / (1 - belief.high) / odds == pytest.approx(meaning.factor, rel=1e-8)
    assert odds / (belief.low / (1 - belief.low)) == pytest.approx(meaning.factor, rel=1e-8)
    assert meaning.factor >= math.exp(epsilon)


@settings(max_examples=25)
@given(epsilons, st.floats(1e-12, 1e-3))
def test_a_delta_never_makes_the_bound_tighter(epsilon: float, delta: float) -> None:
    with_delta, without = explain_epsilon(epsilon, delta), explain_epsilon(epsilon)
    assert with_delta.failure >= delta
    for prior in PRIORS:
        assert with_delta.at(prior).high >= without.at(prior).high
        assert with_delta.at(prior).low <= without.at(prior).low


def test_a_coin_with_three_quarters_truth_moves_even_odds_to_three_quarters() -> None:
    even = explain_epsilon(math.log(3)).at(0.5)
    assert (round(even.low, 12), round(even.high, 12)) == (0.25, 0.75)


def test_verdicts_get_weaker_as_epsilon_grows() -> None:
    said = [explain_epsilon(epsilon).verdict for epsilon in LADDER]
    assert said == sorted(said, key=list(dict.fromkeys(said)).index)
    assert len(set(said)) == 5


@given(shares)
def test_percentages_are_rounded_outwards(share: float) -> None:
    up, down = (float(text.rstrip("%")) / 100 for text in (percent_up(share), percent_down(share)))
    assert down <= share * (1 + 1e-9) and up >= share * (1 - 1e-9)
    assert all(re.fullmatch(r"\d+(\.\d{1,3})?%", text) for text in (percent_up(share), percent_down(share)))


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1"])
def test_an_epsilon_that_is_none_is_told_so(epsilon: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be a positive number"):
        explain_epsilon(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-0.1, 0.5, math.nan])
def test_a_delta_that_is_none_is_told_so(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta must be a small probability"):
        explain_epsilon(1.0, delta)


def test_an_epsilon_beyond_all_floats_still_has_a_meaning() -> None:
    meaning = explain_epsilon(1000.0)
    assert meaning.factor == math.inf and meaning.at(0.5).high == 1.0
