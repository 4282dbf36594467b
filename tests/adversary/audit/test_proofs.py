"""Exact checks: what they compute is the definition, and what is wrong does not pass."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.adversary.audit.proofs import Proof, exactly, follows, hockey_stick, least_epsilon, share_of
from incrowd.mechanisms import Laplace, RandomizedResponse
from incrowd.noise import bernoulli


def test_the_least_epsilon_of_randomized_response_is_its_own():
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    assert least_epsilon(p, q) == pytest.approx(math.log(3), rel=1e-12)
    assert share_of({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, math.log(3)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.3])
def test_the_least_epsilon_at_a_delta_is_where_the_hockey_stick_is_that_delta(delta):
    noise, steps = Laplace(1.0), np.arange(-60, 62)
    p, q = (np.asarray(noise.pmf(steps, value)) for value in (0, 1))
    epsilon = least_epsilon(p, q, delta)
    assert 0 < epsilon <= 1.0
    assert hockey_stick(p, q, epsilon) == pytest.approx(delta, rel=1e-6)


def test_an_output_of_one_neighbour_alone_loses_everything_beyond_delta():
    assert share_of({"a": 1.0}, {"b": 1.0}, 1.0) == math.inf
    assert share_of({"a": 0.02, None: 0.98}, {None: 1.0}, 1.0, 0.01) == math.inf
    assert share_of({"a": 0.009, None: 0.991}, {None: 1.0}, 1.0, 0.01) == pytest.approx(0.9)


def test_a_law_that_raises_for_one_neighbour_is_found():
    proof = exactly(lambda data: {0: 1.0 / data}, [(1, 1), (1, 0)], 1.0)
    assert proof.share == math.inf and not proof.holds and proof.worst == "1 and 0"


def test_no_pair_proves_nothing():
    assert not exactly(lambda data: {0: 1.0}, [], 1.0).holds
    assert Proof("exact", 1.0, 3, "").holds and not Proof("exact", 1.01, 3, "").holds


@pytest.mark.statistical
def test_a_sampler_is_held_to_its_law():
    """Fails by chance below 1e-6."""
    coin = RandomizedResponse(1.0)
    kept = math.e / (1 + math.e)
    law = {0: kept, 1: 1 - kept}
    assert follows(lambda data: int(coin.release(data)), 0, law, 2_000)
    assert not follows(lambda data: int(bernoulli(0.5)), 0, law, 2_000)
    assert not follows(lambda data: 7, 0, law, 10)
    assert not exactly(
        lambda data: law, [(0, 0)], 1.0, release=lambda data: int(bernoulli(0.5)), sampled=[0]
    ).holds
