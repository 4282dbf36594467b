"""Averaging: fresh noise wears off, the curator's record and budget see to it that its noise does not."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.adversary.attacks.averaging import average, averaging, repeated, rephrased
from incrowd.adversary.data.crowd import gather
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Laplace


def test_the_average_is_the_likelier_bit_for_every_pair_of_answers() -> None:
    """Against the product of the mass functions, over all pairs but ties."""
    noise = Laplace(epsilon=0.7, sensitivity=1)
    grid = np.array([(a, b) for a in range(-5, 7) for b in range(-5, 7)]).T
    ratio = np.prod(noise.pmf(grid, 1) / noise.pmf(grid, 0), axis=0)
    untied = abs(ratio - 1) > 1e-9
    assert (average(grid)[untied] == (ratio > 1)[untied]).all()


def test_the_same_question_is_answered_from_the_record() -> None:
    answers, recalled = repeated(gather(people=100, seed=1), 0.5, 4)
    assert recalled == 3 and (answers == answers[0]).all()


def test_a_question_put_in_other_words_draws_fresh_noise_until_the_budget_ends() -> None:
    answers = rephrased(gather(people=200, seed=1), 0.25, 0.75, 10)
    assert len(answers) == 3
    assert len({tuple(row) for row in answers.tolist()}) == 3


@pytest.mark.statistical
def test_repeats_without_a_budget_tell_everything_and_the_curator_stays_under_its_bound() -> None:
    """65 votes at epsilon 1 err with probability below 1e-4 each, 25 of some 260 errors below 1e-40; `holds`
    accuses by chance below 1e-6 for each of 9 attempts, 6 of which look at the same few answers."""
    report = averaging(epsilon=1.0, budget=2.0, people=300, repeats=(1, 5, 65), seed=1)
    attempts = {(attempt.against, attempt.x): attempt for attempt in report.attempts}
    assert attempts["fresh noise, no budget", 65].success.value > 0.9
    for name in ("the curator, the same question", "the curator, rephrased until the budget ends"):
        assert attempts[name, 5].success == attempts[name, 65].success
        assert attempts[name, 65].allowed == attempts[name, 5].allowed
    assert report.details["recalled"] == 64
    assert report.details["answered before the budget ended"] == 2
    assert report.holds


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InvalidInput, match="at least that"):
        averaging(epsilon=1.0, budget=0.5)
    with pytest.raises(InvalidInput, match="at least 1"):
        averaging(repeats=(0, 1))
    with pytest.raises(InvalidInput, match="row for each repeat"):
        average([1, 2, 3])
