"""Replays: both neighbours see the same answers, and whatever moves too far is seen without sampling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from incrowd.adversary.audit.checks import HOSTILE_ADDED, HOSTILE_REPLACED
from incrowd.adversary.audit.curators import (
    GROUPED,
    KEYED,
    MANY_KEYED,
    ONE,
    WEIGHED,
    Asked,
    lone_keys,
    units,
)
from incrowd.adversary.audit.replays import PATCHED, first_hit, losses, rank_loss, recorded, replayed
from incrowd.curator import thresholds
from incrowd.mechanisms import Gaussian, Laplace, Mean, Quantile, SparseVector, Variance
from incrowd.noise import SeededSource


def test_the_second_run_sees_the_answers_of_the_first():
    noise = Laplace(1.0)
    with recorded() as first:
        answer = noise.release(5)
    with recorded(first.steps) as second:
        assert noise.release(6) == answer
    assert [step.inputs for step in (*first.steps, *second.steps)] == [5, 6]


def test_everything_is_as_before_after_a_replay():
    before = [getattr(owner, name) for owner, name in PATCHED]
    with pytest.raises(ZeroDivisionError), recorded():
        _ = 1 // 0
    assert [getattr(owner, name) for owner, name in PATCHED] == before


def test_losses_of_steps_add_and_those_of_gaussians_by_squares():
    def release(data):
        first = Laplace(0.5).release(data)
        Laplace(0.25).release(data + first - first)
        Gaussian(scale=3).release(data)
        Gaussian(scale=4).release(data)

    spent, mu = losses(release, 0, 1)
    assert spent == pytest.approx(0.75)
    assert mu == pytest.approx(math.hypot(1 / 3, 1 / 4), rel=1e-6)


def test_runs_that_differ_in_their_steps_lose_everything():
    def more(data):
        for _ in range(data):
            Laplace(1.0).release(0)

    def wider(data):
        Laplace(1.0 / (1 + data)).release(0)

    def raises(data):
        return 1 / data

    assert losses(more, 1, 2)[0] == losses(more, 2, 1)[0] == math.inf
    assert losses(wider, 0, 1)[0] == losses(raises, 0, 1)[0] == math.inf
    assert losses(more, 2, 2) == (0.0, 0.0)


@pytest.mark.parametrize(("mechanism", "pairs"), [(Mean, HOSTILE_ADDED), (Variance, HOSTILE_ADDED)])
def test_noise_for_less_than_a_record_moves_is_found(mechanism, pairs):
    sound = mechanism(1.0, low=0, high=1)
    assert replayed(sound.release, pairs, 1.0).share == pytest.approx(1.0, abs=1e-9)
    assert not replayed(sound.release, pairs, 0.99).holds


def test_an_added_record_is_not_a_replaced_one():
    added = Mean(1.0, low=0, high=1)
    assert not replayed(added.release, HOSTILE_REPLACED, 1.0).holds


@pytest.mark.parametrize("monotone", [False, True])
def test_the_first_hit_has_the_probability_of_its_answers(monotone):
    vector = SparseVector(1.0, threshold=2, monotone=monotone)
    questions = [0, 3, -5, 1]
    chances = first_hit(vector, questions)
    ends = [[False] * place + [True] for place in range(4)] + [[False] * 4]
    for end, chance in zip(ends, chances, strict=True):
        assert chance == pytest.approx(vector.probability(questions[: len(end)], end), rel=1e-9)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_loss_of_a_choice_by_rank_is_that_of_its_probabilities():
    median = Quantile(1.0, low=0, high=9)
    for x, more in itertools.product(([], [3], [0, 3, 3, 9]), (0, 3, 9)):
        with recorded() as first:
            median.release(x)
        p, q = (median.probabilities(data) for data in (x, [*x, more]))
        sides = [
            (
                np.sort(np.array(data, dtype=np.int64)),
                median.shares[0] * len(data),
                median.rate(median.shares[0]),
            )
            for data in (x, [*x, more])
        ]
        assert rank_loss((*sides[0], 0, 9), (*sides[1], 0, 9)) == pytest.approx(
            float(np.abs(np.log(p / q)).max()), rel=1e-9
        )
        assert first.steps[0].mechanism is median


def test_several_quantiles_are_replayed_choice_by_choice():
    three = Quantile(3.0, q=[0.25, 0.5, 0.75], low=0, high=9)
    with recorded() as transcript:
        three.release([1, 5, 7], SeededSource(1))
    assert [step.mechanism for step in transcript.steps] == ["points"] * 3


def test_an_ask_is_replayed_down_to_its_exact_numbers():
    asked = Asked(GROUPED.format("SUM(x)"), ONE)
    proof = asked.replay(units(4, 1, "add-remove"))
    assert proof.holds and proof.share == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("asked", [KEYED, MANY_KEYED, WEIGHED], ids=lambda asked: asked.question)
def test_a_key_that_one_unit_has_is_shown_about_as_often_as_its_delta_says(asked):
    """For units in 1 to 2,049 groups, with the weights that the engine returns and the exact tail."""
    proof = lone_keys(asked)
    assert proof.holds and proof.share > 0.99


@pytest.mark.parametrize("known", [1, 100])
def test_units_in_more_groups_than_the_threshold_knows_are_caught(known, monkeypatch):
    """The mutant: a bound on the groups of a unit that the statement does not keep."""
    ranges = thresholds._numbers_of_groups
    monkeypatch.setattr(thresholds, "_numbers_of_groups", lambda most: ranges(known))
    assert not lone_keys(MANY_KEYED).holds
