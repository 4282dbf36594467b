"""The scoreboard finds the row that a few rough facts are about."""

from __future__ import annotations

import math

import numpy as np

from incrowd.adversary.attacks.scoreboard import NOBODY, Facts, Scoreboard, eccentric, rarity, recalled
from incrowd.adversary.data.ratings import Ratings, generated_ratings

MADE = generated_ratings(users=300, items=200, seed=3)


def test_scores_are_those_of_the_paper() -> None:
    # Three rows: item 0 is in all of them, item 1 in the first two.
    users, items = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0])
    release = Ratings(users, items, np.array([10, 20, 40, 50, 10]), np.array([5, 3, 2, 3, 5]), 3, 3)
    board = Scoreboard.of(release)
    facts = Facts(np.array([0, 1, 2]), np.array([10, 20, 0]), np.array([5, 4, 1]))
    common, rare = 1 / math.log(3), 1 / math.log(2)
    expected = [
        common * 2 + rare * (math.exp(-1 / 1.5) + 1),
        common * (math.exp(-3 / 1.5) + math.exp(-1)) + rare * (math.exp(-1 / 1.5) + math.exp(-1)),
        common * 2,
    ]
    np.testing.assert_allclose(board.scores(facts), expected)
    expected = [common + rare * math.exp(-1 / 1.5), common * math.exp(-2) + rare * math.exp(-1 / 1.5), common]
    np.testing.assert_allclose(board.scores(facts, dates=False), expected)


def test_an_item_that_nobody_or_one_person_rated_has_a_finite_weight() -> None:
    assert np.isfinite(rarity(np.array([0, 1, 2, 10**9]))).all()


def test_nobody_is_named_without_a_lead() -> None:
    assert eccentric(np.zeros(5)) == NOBODY
    assert eccentric(np.array([1.0, 1.0, 0.0, 0.0])) == NOBODY
    assert eccentric(np.array([3.0])) == 0
    assert eccentric(np.array([0.0, 0.0, 9.0, 0.0])) == 2


def test_facts_are_hers_within_what_was_said_to_be_off() -> None:
    rng = np.random.default_rng(0)
    for user in range(0, 300, 29):
        heard = recalled(MADE, user, 6, rng, days_off=14, wrong=0.0)
        hers = MADE.of(user)
        assert len(heard.items) == min(6, hers.stop - hers.start) == len(set(heard.items.tolist()))
        place = hers.start + np.searchsorted(MADE.items[hers], heard.items)
        assert (MADE.items[place] == heard.items).all()
        assert np.abs(MADE.days[place] - heard.days).max() <= 14
        assert np.abs(MADE.stars[place] - heard.stars).max() <= 1


def test_without_errors_everybody_is_found_and_with_false_facts_alone_hardly_anybody() -> None:
    rng = np.random.default_rng(1)
    board = Scoreboard.of(MADE)
    exact = [recalled(MADE, user, 20, rng, days_off=0, wrong=0.0) for user in range(300)]
    false = [recalled(MADE, user, 20, rng, wrong=1.0) for user in range(300)]
    assert np.mean([eccentric(board.scores(facts)) == user for user, facts in enumerate(exact)]) > 0.97
    assert np.mean([eccentric(board.scores(facts)) == user for user, facts in enumerate(false)]) < 0.05
