"""The auditor: its error is what it states, it sees what there is to see, and it says so plainly."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.adversary.audit import Batch, audit, auditor, neighbours
from incrowd.adversary.audit.auditor import _delta_interval, _epsilon_bound
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Gaussian, Laplace, RandomizedResponse
from incrowd.noise import discrete_laplace

SURE = 1 - 1e-7


def tiled(mechanism):
    return Batch(lambda data, runs: mechanism.release(np.full(runs, data)))


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("error", [0.1, 1e-3])
@pytest.mark.parametrize(("p", "epsilon"), [(0.73, 1.0), (0.3, 0.1), (0.06, 2.0), (0.99, 3.0)])
def test_a_true_claim_is_accused_no_more_often_than_stated(p, epsilon, error, delta):
    """Exactly, over all outcomes of 150 runs: a mechanism that just keeps its claim."""
    runs = 150
    q = max(0.0, (p - delta) / math.exp(epsilon))
    hits = np.arange(runs + 1)
    masses = binom.pmf(hits, runs, p)[:, None] * binom.pmf(hits, runs, q)[None, :]
    bounds = _epsilon_bound(hits[:, None], runs, hits[None, :], runs, delta, error)
    assert masses[bounds > epsilon].sum() <= error


@pytest.mark.parametrize(("p", "q"), [(0.4, 0.1), (0.02, 0.0), (0.9, 0.5)])
def test_the_interval_of_delta_covers_as_stated(p, q):
    """Exactly, over all outcomes of 100 runs."""
    runs, error, epsilon = 100, 0.05, 0.5
    truth = min(1.0, max(0.0, p - math.exp(epsilon) * q))
    missed = 0.0
    masses = np.outer(*(binom.pmf(np.arange(runs + 1), runs, chance) for chance in (p, q)))
    for k in range(runs + 1):
        for m in range(runs + 1):
            mass = masses[k, m]
            if mass > 1e-7:
                low, high = _delta_interval(auditor.Tested("", "x", (k, m), runs), epsilon, error)
                missed += mass * (not low <= truth <= high)
    assert missed <= error - 1e-3  # all outcomes left out together weigh less


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "x", "x_prime"), [(Laplace(1.0), 0, 1), (RandomizedResponse(1.0), True, False)]
)
def test_most_of_a_known_epsilon_is_recovered_and_never_more(mechanism, x, x_prime):
    """Fails by chance below 1e-6: the bound lies nine deviations above 0.9."""
    result = audit(tiled(mechanism), x, x_prime, epsilon=1.0, samples=400_000, confidence=SURE)
    assert 0.9 < result.bound <= 1.0 and result.verdict == "consistent"
    assert result.closeness == result.bound and result.tested.runs == 200_000


@pytest.mark.statistical
def test_the_delta_of_gaussian_noise_is_found_at_its_epsilon():
    """Fails by chance below 1e-6."""
    noise = Gaussian(1.0, 0.05, sensitivity=1000)
    result = audit(tiled(noise), 0, 1000, epsilon=1.0, delta=0.05, samples=400_000, confidence=SURE)
    low, high = result.delta_interval
    assert 0.03 < low <= noise.privacy.delta(1.0) <= high < 0.07
    assert result.verdict == "consistent"
    assert audit(tiled(noise), 0, 1000, epsilon=1.0, delta=0.02, samples=400_000, confidence=SURE).bound > 1.0


@pytest.mark.statistical
def test_a_vector_is_judged_as_a_whole():
    """No coordinate tells more than a third of what all three tell. Fails by chance below 1e-6."""
    whole = Laplace(3.0, sensitivity=3)
    released = Batch(lambda data, runs: whole.release(np.tile(data, (runs, 1))))
    result = audit(released, [0, 0, 0], [1, 1, 1], epsilon=3.0, samples=60_000, confidence=SURE)
    assert 1.5 < result.bound <= 3.0


def test_an_exception_on_one_neighbour_is_a_violation():
    result = audit(lambda data: {"flu": 1}[data], "flu", "rare", epsilon=1.0, samples=400)
    assert result.verdict == "violates"
    assert "a failure (KeyError)" in result.event


@pytest.mark.statistical
def test_a_search_finds_the_pair_that_tells():
    """Only a record of 7 is treated wrongly. Fails by chance below 1e-6."""

    def careless(data, runs):
        return len(data) + 50 * data.count(7) + discrete_laplace(1, size=runs)

    pairs = list(neighbours([1, 2], (0, 7)))
    result = audit(Batch(careless), search=pairs, epsilon=1.0, samples=8_000, confidence=SURE)
    assert result.verdict == "violates"
    assert abs(result.pair[0].count(7) - result.pair[1].count(7)) == 1
    harmless = [pair for pair in pairs if 7 not in pair[0] + pair[1]]
    assert audit(Batch(careless), search=harmless, epsilon=1.0, samples=8_000, confidence=SURE).bound <= 1.0


def test_an_audit_reads_as_a_sentence_and_as_json():
    result = audit(Batch(lambda data, runs: np.full(runs, data)), 3, 4, epsilon=0.5, samples=1_000)
    assert str(result).startswith("violates: epsilon is at least ")
    assert "In 100.0000% of 500 runs on x" in str(result) or "In 0.0000% of 500 runs on x" in str(result)
    told = json.loads(json.dumps(result.to_dict(), allow_nan=True))
    assert told["verdict"] == "violates" and "pair" not in told
    assert result.estimate == math.inf and result.samples == 1_000


def test_equal_outputs_tell_nothing():
    result = audit(Batch(lambda data, runs: np.zeros(runs)), 3, 4, epsilon=0.5)
    assert result.bound == 0.0 and result.verdict == "consistent" and result.delta_interval[0] == 0.0
    nothing = audit(lambda data: [], 3, 4, epsilon=0.0, samples=40)
    assert nothing.verdict == "consistent" and nothing.closeness == 0.0


def test_outputs_of_which_no_two_are_alike_tell_nothing():
    names = (f"answer {number}" for number in itertools.count())
    assert audit(lambda data: next(names), 3, 4, epsilon=0.5, samples=400).verdict == "consistent"


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"epsilon": -1}, "claimed epsilon"),
        ({"epsilon": math.inf}, "claimed epsilon"),
        ({"epsilon": 1, "delta": 1.0}, "claimed delta"),
        ({"epsilon": 1, "confidence": 1.0}, "confidence must"),
        ({"epsilon": 1, "samples": 10}, "samples must"),
        ({"epsilon": 1, "samples": 1e6}, "samples must"),
        ({"epsilon": 1, "search": [(1, 2)]}, "not both"),
    ],
)
def test_wrong_claims_get_one_sentence(claim, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        audit(lambda data: data, 0, 1, **claim)
    assert str(caught.value).endswith(".")


def test_a_long_audit_says_how_far_it_has_come():
    seen = []
    for mechanism in (tiled(Laplace(1.0)), Laplace(1.0)):
        seen.clear()
        result = audit(mechanism, 0, 1, epsilon=1.0, samples=400, progress=lambda *far: seen.append(far))
        assert result.samples == 400
        assert seen == sorted(seen) and seen[-1] == (800, 800) and len(seen) == 80


def test_an_audit_needs_neighbours():
    with pytest.raises(InvalidInput, match="two neighbouring data sets"):
        audit(lambda data: data, epsilon=1.0)
    with pytest.raises(InvalidInput, match="no pair"):
        audit(lambda data: data, search=[], epsilon=1.0)
