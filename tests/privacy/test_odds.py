from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.privacy import FiniteMechanism, gaussian, odds, pure, threshold, zcdp


def test_an_even_belief_moves_to_three_quarters_with_log_three() -> None:
    assert pure(math.log(3)).posterior(0.5) == pytest.approx((0.25, 0.75))


@given(st.floats(0, 20), st.floats(0, 1))
def test_beliefs_stay_ordered_within_bounds(epsilon: float, prior: float) -> None:
    low, high = pure(epsilon).posterior(prior)
    assert 0 <= low <= prior * (1 + 1e-12)
    assert prior * (1 - 1e-12) <= high <= 1
    back = pure(epsilon).posterior(1 - prior)
    assert 1 - back[1] == pytest.approx(low, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
def test_no_output_of_a_real_mechanism_moves_a_belief_further(seed: int, prior: float) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(5), 2)
    real = FiniteMechanism(rows, [(0, 1)])
    low, high = pure(real.epsilon() * (1 + 1e-12)).posterior(prior)
    after = prior * rows[0] / (prior * rows[0] + (1 - prior) * rows[1])
    assert np.all(after <= high + 1e-12)
    assert np.all(after >= low - 1e-12)


def test_with_delta_the_bound_fails_as_rarely_as_it_says() -> None:
    # Gaussian: the loss is N(mu^2/2, mu^2), so the chance of exceeding the bound is known.
    mu, delta = 1.0, 1e-3
    _, high = gaussian(mu).posterior(0.5, delta=delta)
    bound = math.log(high / (1 - high))
    chance = math.erfc((bound - mu * mu / 2) / mu / math.sqrt(2)) / 2
    assert chance <= delta
    assert chance > delta / 50


class Curve:
    """A guarantee of epsilon 2 - delta that notes which deltas it was asked for."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def epsilon(self, delta: float = 0.0) -> float:
        self.asked.append(delta)
        return 2 - delta if delta else math.inf


def test_every_share_of_delta_is_asked_for_inwards() -> None:
    curve = Curve()
    bound = odds.loss_bound(curve, 0.1)
    shares = (0.5, 0.7, 0.85, 0.95)
    assert curve.asked == pytest.approx([0.0, *(0.1 * share for share in shares)], rel=1e-14)
    assert all(asked < 0.1 * share for asked, share in zip(curve.asked[1:], shares, strict=True))
    # The best of epsilon(s delta) - ln(1 - s): a half here.
    assert 1.95 + math.log(2) <= bound <= (1.95 + math.log(2)) * (1 + 1e-14)


def test_a_belief_never_leaves_its_range() -> None:
    assert pure(1000).posterior(0.5) == (0.0, 1.0)
    assert pure(40).posterior(0.5)[1] == 1.0
    assert pure(1).posterior(0.0) == (0.0, 0.0)
    assert pure(1).posterior(1.0) == (1.0, 1.0)
    low, high = pure(math.log(3)).posterior(0.25)
    assert (low, high) == pytest.approx((0.1, 0.5), rel=1e-14)
    assert low < 0.1
    assert high > 0.5


def test_without_a_finite_epsilon_the_sentence_says_what_to_give() -> None:
    for plan in (gaussian(1.0), zcdp(0.1), threshold(0.1)):
        with pytest.raises(InvalidInput, match="delta="):
            plan.posterior(0.5)
    with pytest.raises(InvalidInput, match="delta="):
        threshold(0.1).posterior(0.5, delta=0.01)
    with pytest.raises(InvalidInput, match="prior"):
        pure(1.0).posterior(1.5)


def test_a_whole_posterior_shifts_by_twice_epsilon() -> None:
    assert pure(0.5).posterior_shift() == pytest.approx(math.e)
    assert pure(0.5).posterior_shift() >= math.e
    assert pure(1000).posterior_shift() == pure(350).posterior_shift() == math.inf
    assert pure(349).posterior_shift() == pytest.approx(math.exp(698), rel=1e-11)
    assert pure(349).posterior_shift() > math.exp(698)
