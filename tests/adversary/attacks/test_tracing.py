"""Tracing people in published means, and the curve that a guarantee keeps it under."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from incrowd.adversary.attacks.bounds import most_hits
from incrowd.adversary.attacks.outcome import ACCUSING, Rate, Report
from incrowd.adversary.attacks.tracing import (
    Population,
    homer,
    inner_product,
    likelihood_ratio,
    noisy_sums,
    roc,
    tracing,
)
from incrowd.data import adult
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Gaussian
from incrowd.noise import SeededSource

MEMBERS, ATTRIBUTES, TRIALS = 30, 600, 400


@pytest.fixture(scope="module")
def census() -> Report:
    table = adult().take(pa.array(np.random.default_rng(0).permutation(48_842)[:8_000]))
    return tracing(table, attributes=200, members=30, trials=800, source=SeededSource(3))


def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Samples of people with independent attributes: the means, and for each an insider and an outsider."""
    rng = np.random.default_rng(5)
    means = rng.uniform(0.2, 0.8, ATTRIBUTES)
    samples = (rng.random((TRIALS, MEMBERS + 1, ATTRIBUTES)) < means).astype(np.uint8)
    return samples[:, :MEMBERS].sum(axis=1, dtype=np.int64), samples[:, 0], samples[:, MEMBERS], means


def test_every_test_tells_insiders_from_outsiders_once_attributes_outnumber_members() -> None:
    sums, inside, outside, means = drawn()
    published = sums / MEMBERS
    independent = Population(means, means * (1 - means), np.eye(ATTRIBUTES))
    for score in (
        lambda persons: homer(persons, published, means),
        lambda persons: inner_product(persons, published, means),
        lambda persons: likelihood_ratio(persons, published, independent, MEMBERS),
    ):
        within, without = score(inside.astype(float)), score(outside.astype(float))
        assert (within > without).mean() > 0.99
    # The likelihood ratio needs no practice: its own zero is the best threshold.
    assert (within > 0).mean() > 0.97 and (without < 0).mean() > 0.97


def test_the_inner_product_is_centred_for_outsiders_and_as_large_as_theory_says_for_insiders() -> None:
    sums, inside, outside, means = drawn()
    expected = (means * (1 - means)).sum() / MEMBERS
    spread = math.sqrt(expected * (means * (1 - means)).mean() * 1.5 / TRIALS)
    within, without = (
        inner_product(persons.astype(float), sums / MEMBERS, means) for persons in (inside, outside)
    )
    assert abs(within.mean() - expected) < 8 * spread and abs(without.mean()) < 8 * spread


def test_too_little_noise_is_found_out_by_the_curve() -> None:
    # The mutant takes the whole vector to move by 1, as if it were a single count.
    sums, inside, outside, means = drawn()
    mutant = Gaussian(epsilon=1.0, delta=1e-6, sensitivity=1)
    right = noisy_sums(1.0, 1e-6, ATTRIBUTES)
    broken = {}
    for mechanism in (mutant, right):
        noisy = mechanism.release(sums, SeededSource(11)) / MEMBERS
        within, without = (
            inner_product(persons.astype(float), noisy, means) for persons in (inside, outside)
        )
        ((hits, false),) = roc(within, without[: TRIALS // 2], without[TRIALS // 2 :], [0.1])
        allowed = most_hits(Rate(false.hits, false.trials, ACCUSING).high, 1.0, 1e-6)
        broken[mechanism] = Rate(hits.hits, hits.trials, ACCUSING).low > allowed
    assert broken == {mutant: True, right: False}


def test_the_sensitivity_covers_the_replacement_of_a_person_who_differs_in_everything() -> None:
    for attributes in (1, 2, 3, 500, 2_000):
        assert noisy_sums(1.0, 1e-6, attributes).sensitivity ** 2 >= attributes
    assert noisy_sums(1.0, 1e-6, 500).privacy.delta(1.0) <= 1e-6


def test_thresholds_come_from_practice_and_ties_are_not_positives() -> None:
    same = np.zeros(10)
    ((hits, false),) = roc(same, same, same, [0.5])
    assert (hits.hits, false.hits) == (0, 0)
    ((hits, false),) = roc(same, same, same, [1.0])
    assert (hits.value, false.value) == (1.0, 1.0)


def test_attributes_that_never_vary_do_not_break_the_likelihood_ratio() -> None:
    people = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 1], [1, 1, 0]], dtype=np.uint8)
    scores = likelihood_ratio(people.astype(float), people.mean(axis=0)[None], Population.of(people), 2)
    assert np.isfinite(scores).all()


def test_exact_and_rounded_means_of_the_census_trace_and_noisy_ones_do_not(census: Report) -> None:
    at = {attempt.against: attempt.success for attempt in census.attempts if attempt.x == 0.1}
    assert at["exact means"].value > 0.5
    assert at["exact means"].low > at["exact means, inner product alone"].value > 0.15
    assert at["means rounded to 0.1"].value > 0.3
    assert at["noisy means, epsilon 1, delta 1e-06"].low < 0.15


def test_the_noisy_means_stay_under_the_curve(census: Report) -> None:
    private = [(attempt, attempt.allowed) for attempt in census.attempts if attempt.allowed is not None]
    assert census.holds and len(private) == 9
    assert all(
        attempt.success.high < allowed
        for attempt, allowed in private
        if attempt.x is not None and attempt.x < 0.5
    )
    json.dumps(census.to_dict())


def test_bad_numbers_are_refused_in_words() -> None:
    small = pa.table({"a": [1, 2, 3, 4]})
    with pytest.raises(InvalidInput, match="members must lie between 1 and 2"):
        tracing(small, members=3)
    with pytest.raises(InvalidInput, match="trials must be at least 1"):
        tracing(small, members=1, trials=0)
