"""The attacker who speaks only when sure: her bound, and her best attack on noisy counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.adversary.attacks.assurance import beliefs, most_assured, named
from incrowd.adversary.attacks.bounds import most_success
from incrowd.errors import InvalidInput
from incrowd.noise import discrete_laplace_pmf


@given(st.floats(0, 6), st.integers(2, 12), st.floats(0.01, 1), st.floats(0.5, 1))
def test_randomized_response_with_silence_never_beats_the_bound(
    epsilon: float, choices: int, heard: float, strictness: float
) -> None:
    # Speaks with probability `heard`, and then the truth e^epsilon times as often as any other value.
    truth = math.exp(epsilon) / (math.exp(epsilon) + choices - 1)
    assert heard * truth <= most_assured(epsilon, 0.0, choices, strictness * truth * (1 - 1e-9)) + 1e-12


@given(st.floats(0, 5), st.floats(0, 0.2), st.integers(2, 6), st.floats(0.5, 1.0))
def test_telling_the_secret_with_probability_delta_never_beats_the_bound(
    epsilon: float, delta: float, choices: int, level: float
) -> None:
    # Right with probability delta and silent otherwise: (0, delta)-private, and sure at every level.
    assert delta <= most_assured(epsilon, delta, choices, level) + 1e-12


def test_with_little_epsilon_she_never_speaks_and_with_much_the_general_bound_is_left() -> None:
    assert most_assured(1.0, 0.0, 14, 0.95) == 0.0
    assert most_assured(0.0, 0.0, 2, 1.0) == 0.0
    assert most_assured(20.0, 0.0, 14, 0.95) == most_success(20.0, 0.0, 14)
    assert most_assured(1e6, 0.0, 14, 0.95) == 1.0
    assert most_assured(1.0, 1e-6, 14, 0.95) == pytest.approx(1e-6, rel=0.02)


@pytest.mark.parametrize(("choices", "level"), [(1, 0.9), (2, 0.0), (2, 1.5), (2, math.nan)])
def test_a_bound_without_meaning_is_refused(choices: int, level: float) -> None:
    with pytest.raises(InvalidInput, match="Being sure needs"):
        most_assured(1.0, 0.0, choices, level)


def test_beliefs_are_bayes_rule_for_two_releases_of_noisy_counts() -> None:
    scale, kinds = 1.7, 3
    for flat in itertools.product((-2, 0, 1), repeat=2 * kinds):
        seen = np.array(flat).reshape(2, 1, kinds)
        likely = np.array(
            [
                np.prod(discrete_laplace_pmf(seen[:, 0] - np.eye(kinds, dtype=np.int64)[v], scale))
                for v in range(kinds)
            ]
        )
        np.testing.assert_allclose(beliefs(seen, scale)[0], likely / likely.sum(), rtol=1e-9)


def test_beliefs_far_out_stay_numbers() -> None:
    believed = beliefs(np.array([[10**9, -(10**9)]]), scale=1e-3)
    assert np.isfinite(believed).all() and named(believed, 0.95).tolist() == [0]
