"""A handful of facts finds a row; noisy counts keep who was counted within their bound."""

from __future__ import annotations

import json

import numpy as np
import pytest

from incrowd.adversary.attacks.bounds import most_success
from incrowd.adversary.attacks.linkage import best_candidates, expectations, linkage, noisy_counts
from incrowd.adversary.attacks.outcome import ACCUSING, Rate, Report
from incrowd.adversary.attacks.scoreboard import rarity, recalled
from incrowd.adversary.data.ratings import first_of_each, generated_ratings, rows_of
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Gaussian
from incrowd.noise import SeededSource

MADE = generated_ratings(users=500, items=400, seed=2)


@pytest.fixture(scope="module")
def report() -> Report:
    return linkage(MADE, facts=(2, 8), trials=200, source=SeededSource(1))


def at(report: Report, facts: int) -> dict[str, float]:
    return {attempt.against: attempt.success.value for attempt in report.attempts if attempt.x == facts}


def test_more_facts_find_more_rows_and_eight_find_nearly_all(report: Report) -> None:
    few, many = at(report, 2), at(report, 8)
    assert all(few[release] < many[release] for release in list(few)[:4])
    assert many["rows without names"] > 0.9
    assert many["rows without half the ratings"] > 0.5
    assert many["exact counts per item"] > 0.5
    assert 0.2 < many["rows without names or dates"] < many["rows without names"]


def test_noisy_counts_stay_within_what_is_allowed(report: Report) -> None:
    private = [attempt for attempt in report.attempts if attempt.allowed is not None]
    assert report.holds and len(private) == 2
    assert all(attempt.success.value < 0.03 and attempt.guessing == 1 / 500 for attempt in private)
    json.dumps(report.to_dict())


def test_noise_for_one_rating_and_not_for_a_row_is_found_out() -> None:
    # The mutant takes a person's row to move the counts by 1 in all, as if it held one rating. A small number
    # of candidates, known in full, is the strongest attack.
    rng = np.random.default_rng(4)
    few = generated_ratings(users=40, items=400, seed=6)
    kept = rows_of(first_of_each(few, 30))
    known = [recalled(few, user, 400, rng, wrong=0.0) for user in range(40)]
    expected = expectations(known, np.ones(400))
    targets = rng.integers(0, 40, 2_000)
    broken = []
    for mechanism in (Gaussian(epsilon=1.0, delta=1e-6, sensitivity=1), noisy_counts(1.0, 1e-6, 30)):
        noisy = mechanism.release(kept[targets], SeededSource(8))
        hits = int(np.count_nonzero(best_candidates(noisy, expected, rng) == targets))
        broken.append(Rate(hits, 2_000, ACCUSING).low > most_success(1.0, 1e-6, 40))
    assert broken == [True, False]


def test_the_sensitivity_covers_the_replacement_of_one_full_row_by_another() -> None:
    for most in (1, 2, 30, 1_000):
        assert noisy_counts(1.0, 1e-6, most).sensitivity ** 2 >= 2 * most
    kept = rows_of(first_of_each(MADE, 30))
    apart = ((kept[:250] - kept[250:]) ** 2).sum(axis=1)
    assert apart.max() <= noisy_counts(1.0, 1e-6, 30).sensitivity ** 2


def test_candidates_of_whom_nothing_is_known_and_ties_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    nothing = expectations([recalled(MADE, 0, 0, rng)] * 4, rarity(MADE.support))
    assert (nothing == 0).all()
    drawn = best_candidates(np.zeros((4_000, 400), dtype=np.int64), nothing, rng)
    assert np.abs(np.bincount(drawn, minlength=4) - 1_000).max() < 200


def test_bad_numbers_are_refused_in_words() -> None:
    for wrong in (
        {"trials": 0},
        {"facts": ()},
        {"facts": (0,)},
        {"wrong": 1.5},
        {"most": 0},
        {"days_off": -1},
    ):
        with pytest.raises(InvalidInput, match="Linkage needs at least one trial"):
            linkage(MADE, **wrong)  # type: ignore[arg-type]
